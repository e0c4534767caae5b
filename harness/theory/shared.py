"""What the jobs of one comparison share of a data set: found once, by the first that asks.

Whoever runs several jobs makes one `Shared` and passes it to each.
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
DATA_SETS = 8  # a sweep over data sets goes through them for each scheme
BASES = 2  # each is as large as the points


class Facts(NamedTuple):
    """What a data set's own points say, under whatever scheme.

    raw, centred, standard: the largest eigenvalue of the Gram matrix of the points as they are,
    centred, and centred and scaled to variance 1. variances `(N,)`: the covariance's eigenvalues,
    decreasing, rounding included. live: how many directions the points have, scaled to variance 1.
    """

    raw: float
    centred: float
    standard: float
    variances: Array
    live: int


class OfPoints:
    """What is known of one data set's points (P, N).

    decompositions: for the schemes that are fitted on them.
    """

    def __init__(self, x: Rows) -> None:
        self.x = x
        self.decompositions = Decompositions(x)
        self._found: dict[Hashable, Any] = {}

    @cached_property
    def facts(self) -> Facts:
        """The points' own facts."""
        return _facts(self.surrogate)

    @property
    def surrogate(self) -> Surrogate:
        """The points, or few of the same mean and covariance where they are read by blocks."""
        if isinstance(self.x, np.ndarray):
            return Surrogate(self.x, holds_all_points=True)
        return self.decompositions.surrogate

    @cached_property
    def basis(self) -> Array:
        """The points sphered, `(P, r)`."""
        return sphere(self.x)[0]

    def once(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return what is found under a key, which says all that it follows from; found once."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]


class Shared:
    """What is known of the data sets of one comparison, the last few of them."""

    def __init__(self) -> None:
        self._held: dict[str, OfPoints] = {}

    def of(self, fingerprint: str, x: Rows) -> OfPoints:
        """Return what is known of points x (P, N); fingerprint: of their content."""
        found = self._held.pop(fingerprint, None) or OfPoints(x)
        self._held[fingerprint] = found
        if len(self._held) > DATA_SETS:
            del self._held[next(iter(self._held))]
        for old in list(self._held.values())[:-BASES]:
            vars(old).pop("basis", None)  # gives the memory of the sphered points back
        return found


def _facts(points: Surrogate) -> Facts:
    x = points.moment_rows
    gram = spectra.gram(x)
    mean, covariance = mean_and_covariance(x)
    variances = np.linalg.eigvalsh(covariance)[::-1]
    scale = np.sqrt(np.diag(covariance))
    tiny = len(x) * np.finfo(np.float64).eps * (np.abs(mean) + scale)
    scale = np.where(scale > tiny, scale, 1.0)
    correlation = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return Facts(
        raw=float(np.linalg.eigvalsh(gram)[-1]),
        centred=max(1.0, float(variances[0])),
        standard=max(1.0, float(correlation[-1])),
        variances=np.maximum(variances, 0.0),
        live=int(np.count_nonzero(correlation > rounding_share(len(scale)) * correlation[-1])),
    )
