"""Pareto scaling: between centring and standardizing."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler


class Pareto(StandardScaler):  # type: ignore[misc]
    """Pareto scaling: `z = (x - m) / sqrt(s)`, s the standard deviation (divided by P).

    A feature keeps the variance s, so that large features stay larger, but less so. A constant
    feature keeps scale 1.

    Args:
        copy: As in `StandardScaler`.

    Attributes:
        mean_: m `(N,)`.
        scale_: The divisors `(N,)`.

    References:
        van den Berg et al., "Centering, scaling, and transformations", BMC Genomics 7 (2006),
        table 1.
    """

    # Centres, scales, rotates: see `normbench.normalizers.affine`.
    affine_traits = (True, True, False)

    def __init__(self, *, copy: bool = True) -> None:
        super().__init__(copy=copy)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more points, beside those of earlier calls; `fit` calls it, too.

        Args:
            X: Points (P, N).
            y: Not used.
            sample_weight: The weight of each point (P,), as in scikit-learn's `StandardScaler`.

        Returns:
            The scheme, whose divisors are square roots of the standard deviations of all points so
            far.
        """
        super().partial_fit(X, y, sample_weight)
        # `StandardScaler` sets `scale_` anew at each call, so that only one root is taken.
        self.scale_: NDArray[np.float64] = np.sqrt(self.scale_)
        return self

    def affine_map(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the factors (N,) and the offset (N,) of the map `z = factors x + offset`."""
        return 1 / self.scale_, -self.mean_ / self.scale_
