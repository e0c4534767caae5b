"""A random rotation that ignores the points: it changes only what depends on the axes."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

POINT_DTYPES = [np.float64, np.float32]


class Scheme(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of the schemes of this package: points keep their type."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RandomRotation(Scheme):
    """A random rotation about the origin: `z = Q x`, every rotation equally likely.

    Q is the orthogonal factor of the QR decomposition of a standard normal matrix, with the signs
    that make the diagonal of R positive, and determinant 1.

    Args:
        seed: The seed of the draw; the same seed and number of features give the same Q, whatever
            the points.

    Attributes:
        matrix_: Q `(N, N)`.

    Raises:
        ValueError: For a seed that is not an integer, 0 or more.

    References:
        Mezzadri, "How to generate random matrices from the classical compact groups", Notices of
        the AMS 54 (2007).
    """

    # Centres, scales, rotates: see `normbench.normalizers.affine`.
    affine_traits = (False, False, True)
    fits_in_float64 = True  # it learns nothing of the points
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "seed": [Interval(Integral, 0, None, closed="left")]
    }

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the rotation, which depends on the number of features and the seed alone.

        Args:
            X: Points (P, N).
            y: Not used.

        Returns:
            The scheme.

        Raises:
            ValueError: The seed is not an integer, 0 or more.
        """
        self._validate_params()
        X = validate_data(self, X, dtype=POINT_DTYPES)
        self.matrix_ = draw_rotation(X.shape[1], self.seed)
        self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated, in their type."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        return np.asarray(X @ self.matrix_.T, dtype=X.dtype)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated back, in their type."""
        check_is_fitted(self)
        X = check_array(X, dtype=POINT_DTYPES)
        return np.asarray(X @ self.matrix_, dtype=X.dtype)

    def affine_map(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the matrix Q (N, N) of the map `z = Q x + offset`, and an offset (N,) of zeros."""
        check_is_fitted(self)
        return self.matrix_, np.zeros(len(self.matrix_))


def draw_rotation(features: int, seed: int) -> NDArray[np.float64]:
    """Return a random rotation `(N, N)`, uniformly distributed.

    Args:
        features: The number of features N.
        seed: The seed of the draw, an integer, 0 or more.
    """
    normal_matrix = np.random.default_rng(seed).standard_normal((features, features))
    orthogonal, triangular = np.linalg.qr(normal_matrix)
    # With a positive diagonal of R the factor Q is unique, and uniformly distributed.
    orthogonal *= np.where(np.diag(triangular) < 0, -1.0, 1.0)
    if np.linalg.det(orthogonal) < 0:  # a reflection: with one column reversed it is a rotation
        orthogonal[:, 0] *= -1
    return np.asarray(orthogonal)
