"""Cache what the jobs of one comparison share about a data set.

A caller of several jobs creates one `Shared` and passes it to each.
"""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Rows
from normbench.normalizers.decomposition import (
    Decompositions,
    Surrogate,
    mean_and_covariance,
    rounding_share,
)
from normbench.theory import spectra
from normbench.theory.minimum import sphere

Array = NDArray[np.float64]
MAX_DATA_SETS = 8  # a sweep over data sets goes through them for each scheme
MAX_BASES = 2  # each is as large as the points


class Facts(NamedTuple):
    """Statistics of a data set's points, whatever the scheme.

    raw, centred, standard: the largest eigenvalue of the Gram matrix of the points unchanged,
    centred, and centred and scaled to variance 1. variances `(N,)`: the covariance's eigenvalues,
    decreasing, rounding included. live: how many directions are above rounding, with features
    scaled to variance 1.
    """

    raw: float
    centred: float
    standard: float
    variances: Array
    live: int


class PointsCache:
    """Results about one data set's points (P, N), each computed once.

    decompositions: for the schemes that are fitted on the points.
    """

    def __init__(self, x: Rows) -> None:
        self.x = x
        self.decompositions = Decompositions(x)
        self._cache: dict[Hashable, Any] = {}

    @cached_property
    def facts(self) -> Facts:
        """The statistics of the points."""
        return _facts(self.surrogate)

    @property
    def surrogate(self) -> Surrogate:
        """The points, or few rows with their mean and covariance where they are read by blocks."""
        if isinstance(self.x, np.ndarray):
            return Surrogate(self.x, holds_all_points=True)
        return self.decompositions.surrogate

    @cached_property
    def basis(self) -> Array:
        """The points sphered, `(P, r)`."""
        return sphere(self.x)[0]

    def get_or_compute(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return the value under a key, computed once.

        Args:
            key: It names all that the value depends on, beside the points.
            find: Computes the value.

        Returns:
            The value; the same object each time.
        """
        if key not in self._cache:
            self._cache[key] = find()
        return self._cache[key]


class Shared:
    """The caches of the data sets of one comparison, the most recent few of them."""

    def __init__(self) -> None:
        self._by_fingerprint: dict[str, PointsCache] = {}

    def get(self, fingerprint: str, x: Rows) -> PointsCache:
        """Return the cache of a data set's points, which the jobs of a sweep share.

        Args:
            fingerprint: Of the content of the points.
            x: Points (P, N).

        Returns:
            The cache. Only the most recently used caches are kept, and of fewer of them the sphered
            points.
        """
        points_cache = self._by_fingerprint.pop(fingerprint, None) or PointsCache(x)
        self._by_fingerprint[fingerprint] = points_cache
        if len(self._by_fingerprint) > MAX_DATA_SETS:
            del self._by_fingerprint[next(iter(self._by_fingerprint))]
        for old in list(self._by_fingerprint.values())[:-MAX_BASES]:
            vars(old).pop("basis", None)  # gives the memory of the sphered points back
        return points_cache


def _facts(points: Surrogate) -> Facts:
    """Return the statistics of points."""
    x = points.moment_rows
    gram = spectra.gram(x)
    mean, covariance = mean_and_covariance(x)
    variances = np.linalg.eigvalsh(covariance)[::-1]
    scale = np.sqrt(np.diag(covariance))
    rounding_level = len(x) * np.finfo(np.float64).eps * (np.abs(mean) + scale)
    scale = np.where(scale > rounding_level, scale, 1.0)
    correlation = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    # Of centred points, the Gram matrix has the eigenvalue 1 of the bias beside the covariance's.
    return Facts(
        raw=float(np.linalg.eigvalsh(gram)[-1]),
        centred=max(1.0, float(variances[0])),
        standard=max(1.0, float(correlation[-1])),
        variances=np.maximum(variances, 0.0),
        live=int(np.count_nonzero(correlation > rounding_share(len(scale)) * correlation[-1])),
    )
