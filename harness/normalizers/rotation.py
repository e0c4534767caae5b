"""A rotation that knows nothing of the points: for what depends on the axes alone."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

TYPES = [np.float64, np.float32]


class Scheme(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of the schemes that are written here: points keep their type."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RandomRotation(Scheme):
    """A random rotation about the origin: `z = Q x`, every rotation equally likely.

    Q is the orthogonal part of the QR decomposition of a standard normal matrix, with the signs
    that make the diagonal of R positive, and determinant 1. seed: of the draw; the same seed and
    number of features give the same Q, whatever the points. Learned: `matrix_` Q (N, N). Raises
    ValueError on a seed that is no whole number, 0 or more. Source: Mezzadri, "How to generate
    random matrices from the classical compact groups", Notices of the AMS 54 (2007).
    """

    parts = (False, False, True)  # centres, scales, rotates: see `normbench.normalizers.affine`
    fits_in_float64 = True  # it learns nothing of the points

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the rotation for points X (P, N); return self."""
        self._validate_params()
        X = validate_data(self, X, dtype=TYPES)
        self.matrix_ = rotation(X.shape[1], self.seed)
        self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated, in their type."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=TYPES, reset=False)
        return np.asarray(X @ self.matrix_.T, dtype=X.dtype)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated back, in their type."""
        check_is_fitted(self)
        X = check_array(X, dtype=TYPES)
        return np.asarray(X @ self.matrix_, dtype=X.dtype)

    def affine_map(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Q (N, N) and an offset (N,) of zeros."""
        check_is_fitted(self)
        return self.matrix_, np.zeros(len(self.matrix_))

    def _validate_params(self) -> None:
        wrong = isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer))
        if wrong or self.seed < 0:
            raise ValueError(f"seed={self.seed!r} must be a whole number, 0 or more")


def rotation(features: int, seed: int) -> NDArray[np.float64]:
    """Return a random rotation `(N, N)`, uniform over all of them."""
    turn, triangle = np.linalg.qr(np.random.default_rng(seed).standard_normal((features,) * 2))
    turn *= np.where(np.diag(triangle) < 0, -1.0, 1.0)
    if np.linalg.det(turn) < 0:
        turn[:, 0] *= -1
    return np.asarray(turn)
