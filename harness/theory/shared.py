"""Cache what the jobs of one comparison share about the points of a data set."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points
from normbench.normalizers.decomposition import Moments
from normbench.theory.minimum import sphere_points

Array = NDArray[np.float64]


class PointStatistics(NamedTuple):
    """Statistics of a data set's points before any scheme.

    The Gram matrix is `[1 X]'[1 X] / P`, the column of the bias included.

    Attributes:
        raw: The largest eigenvalue of the Gram matrix of the points as they are.
        centred: That of the centred points.
        standard: That of the points centred and scaled to variance 1.
        variances: The eigenvalues of the covariance, `(N,)`, decreasing, those that are rounding
            included.
        live: The number of directions above rounding, with features scaled to variance 1.
    """

    raw: float
    centred: float
    standard: float
    variances: Array
    live: int


class PointsCache:
    """Results about one data set's points, each computed once.

    Attributes:
        x: The points (P, N) before any scheme.
        moments: Their moments.
    """

    def __init__(self, x: Points) -> None:
        self.x = x
        self.moments = Moments(x)
        self._cache: dict[Hashable, Any] = {}

    @cached_property
    def facts(self) -> PointStatistics:
        """The statistics of the points."""
        moments = self.moments
        variances = moments.get(correlation=False, complete=False).values
        return PointStatistics(
            raw=float(np.linalg.norm(moments.gram_root, 2) ** 2),
            # The Gram matrix of centred points has the eigenvalue 1 of the bias.
            centred=max(1.0, float(variances[0])),
            standard=max(1.0, float(moments.correlation_deviations[0] ** 2)),
            variances=variances,
            live=moments.live,
        )

    @cached_property
    def basis(self) -> Array:
        """The points sphered, `(P, r)`."""
        return sphere_points(self.moments).basis

    def get_or_compute(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return the value under a key, computed once.

        Args:
            key: All that the value depends on beside the points, its own name among them.
            find: Computes the value where the key is new.

        Returns:
            The value; the same object each time.
        """
        if key not in self._cache:
            self._cache[key] = find()
        return self._cache[key]
