"""Equal columns of the points, which a descent multiplies once.

Pixels that are the same in every image, constant features under a scheme that centres them, the
zeros of a sphered rank-deficient data set: features whose columns are equal have one derivative,
and the scores see only the sum of their weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.normalizers.decomposition import blocks

Array = NDArray[Any]
Numbers = NDArray[np.intp]
FEW = 64  # points that tell most columns apart


@dataclass(frozen=True)
class Columns:
    """N features as M <= N different columns.

    first: `(M,)`, the first feature of each column. place: `(N,)`, the column of each feature.
    """

    first: Numbers
    place: Numbers

    @cached_property
    def _with_bias(self) -> Numbers:
        return np.insert(self.first + 1, 0, 0)

    @cached_property
    def _copies(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return the copies' numbers, by column; where each column's copies begin; the columns."""
        copies = np.setdiff1d(np.arange(len(self.place)), self.first)
        copies = copies[np.argsort(self.place[copies], kind="stable")]
        columns, begin = np.unique(self.place[copies], return_index=True)
        return copies + 1, begin, columns + 1

    def fold(self, weights: Array) -> Array:
        """Return weights `(R, C, N + 1)`, bias first, as `(R, C, M + 1)`: sums over features."""
        folded = weights.take(self._with_bias, axis=2)
        copies, begin, columns = self._copies
        if len(copies):
            folded[:, :, columns] += np.add.reduceat(weights.take(copies, axis=2), begin, axis=2)
        return folded

    @property
    def features(self) -> int:
        """The number of features N."""
        return len(self.place)

    def unfold(self, slopes: Array, bias: Array) -> Array:
        """Return derivatives `(..., M)` in the columns as those in the features, `(..., N)`."""
        return slopes.take(self.place, axis=-1)

    def spread(self, hessian: Array, classes: int) -> Array:
        """Return second derivatives `(D, D)` in the columns as those in the features."""
        place = np.r_[0, self.place + 1]
        width = len(hessian) // classes
        rows = (np.arange(classes)[:, None] * width + place).ravel()
        return hessian[np.ix_(rows, rows)]

    def pack(self, x: Array, packed: Array) -> Array:
        """Return points x `(P, N)` as `(P, M)` at the start of flat memory, maybe x's own."""
        packed = packed[: len(x) * len(self.first)].reshape(len(x), -1)
        for block in blocks(len(x)):
            packed[block] = x[block].take(self.first, axis=1)
        return packed

    def unpack(self, packed: Array, x: Array) -> None:
        """Write to x `(P, N)` the points that `pack` has written to x's own memory."""
        for block in reversed(list(blocks(len(x)))):
            x[block] = packed[block].take(self.place, axis=1)


def different(x: Array) -> Columns:
    """Return the different columns of points x (P, N); equal ones agree in every bit."""
    features = x.shape[1]
    equal_to = np.zeros(features, dtype=np.intp)  # the first feature that is so far the same
    for block in _compared(len(x)):
        shared = np.bincount(equal_to, minlength=features)[equal_to] > 1
        if not shared.any():
            break
        seen: dict[tuple[int, bytes], int] = {}
        for feature, column in zip(np.flatnonzero(shared), x[block][:, shared].T, strict=True):
            key = (int(equal_to[feature]), column.tobytes())
            equal_to[feature] = seen.setdefault(key, int(feature))
    first, place = np.unique(equal_to, return_inverse=True)
    return Columns(first, place)


def _compared(points: int) -> Iterator[slice]:
    """Yield the blocks of points in which columns are compared, a short one first."""
    yield slice(0, FEW)
    yield from blocks(points)
