"""Contrast normalization: each point by its own mean and standard deviation."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import validate_data

from normbench.normalizers.rotation import POINT_DTYPES, Scheme


class Contrast(OneToOneFeatureMixin, Scheme):  # type: ignore[misc]
    """Each point minus its own mean, over its own standard deviation (divided by N).

    `z = (x - mean(x)) / std(x)` over the features of one point, such as the pixels of an image: a
    brighter or paler copy of an image becomes the same point. A constant point becomes zeros. It
    learns nothing and is not affine.

    References:
        Watt, Borhani, Katsaggelos, "Machine Learning Refined", section 9.3 (contrast normalization
        of images).
    """

    fits_in_float64 = True  # it learns nothing of the points

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the number of features; each point is normalized by itself.

        Args:
            X: Points (P, N).
            y: Not used.

        Returns:
            The scheme.
        """
        validate_data(self, X, dtype=POINT_DTYPES)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) normalized, in their type; the statistics are in float64."""
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        mean = X.mean(axis=1, keepdims=True, dtype=np.float64)
        centred = X - mean
        deviation = np.sqrt(np.einsum("pn,pn->p", centred, centred) / X.shape[1])
        # The deviation of a constant point can be the rounding of its mean, which is in float64.
        # The errors of N numbers add up, each of an epsilon of the mean.
        rounding = X.shape[1] * np.finfo(np.float64).eps * np.abs(mean[:, 0])
        is_constant = deviation <= rounding
        z = centred / np.where(is_constant, 1.0, deviation)[:, None]
        z[is_constant] = 0.0
        return np.asarray(z.astype(X.dtype, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
