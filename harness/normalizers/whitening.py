"""Whitening: linear schemes after which every live direction has variance 1."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from harness.normalizers.spectrum import eigendecomposition, mean_and_covariance


class PCASphere(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """PCA sphering: `z = (D + ridge I)^-1/2 V' (x - m)`, components by decreasing variance.

    ridge: added to every eigenvalue of the covariance, in squared units of the inputs.
    rtol: a direction whose eigenvalue is at most rtol times the largest carries nothing but
    rounding on the training points, and is mapped to zero; None for N times machine epsilon.

    Learned: `mean_` (N,), `eigenvalues_` (N,), `components_` (N, N) with one eigenvector a row,
    `dropped_` (N,) the mask of dropped directions. Raises ValueError on a negative option.
    Source: Watt, Borhani, Katsaggelos, Machine Learning Refined, section 9.5; Kessy, Lewin,
    Strimmer, The American Statistician 72 (2018).
    """

    def __init__(self, ridge: float = 1e-7, rtol: float | None = None) -> None:
        self.ridge = ridge
        self.rtol = rtol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and spectrum from points X (P, N), P at least 2; return self."""
        for name, value in (("ridge", self.ridge), ("rtol", self.rtol)):
            if value is not None and not (isinstance(value, Real) and 0 <= value < np.inf):
                raise ValueError(f"{name}={value!r} must be a finite number, 0 or more")
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        self.mean_, covariance = mean_and_covariance(X)
        self.eigenvalues_, self.components_ = eigendecomposition(covariance)
        rtol = len(covariance) * np.finfo(np.float64).eps if self.rtol is None else self.rtol
        self.dropped_ = self.eigenvalues_ <= rtol * self.eigenvalues_[0]
        self._n_features_out = len(self.components_)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the sphered points (P, N), in the type of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        matrix = self.components_ / self._scales()[:, None]
        # Centred in float64: a large offset would take the digits of a float32 with it.
        return ((X - self.mean_) @ matrix.T).astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points (P, N) in the space of the inputs; dropped directions at their mean."""
        check_is_fitted(self)
        X = np.asarray(X)
        scales = np.where(self.dropped_, 0.0, self._scales())
        return ((X * scales) @ self.components_ + self.mean_).astype(X.dtype, copy=False)

    def _scales(self) -> NDArray[np.float64]:
        """Return the divisor of each direction (N,): infinite where it is dropped."""
        return np.where(self.dropped_, np.inf, np.sqrt(self.eigenvalues_ + self.ridge))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
