"""Some of the rows of points that are not in memory: none of them is copied."""

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.files_on_disk import BESIDE
from normbench.datasets.on_disk.points import Array, Points, Rows
from normbench.datasets.values import SHARE, available

STRIDE = 4096  # rows of the file: before each of so many, those that are taken are counted
PIECE = 1 << 20  # bytes that are read at once: they stay in a cache until the rows are picked


class Taken(Points):
    """The rows of other points that a mask (P,) says, in their order."""

    mask: NDArray[np.bool_]

    def __init__(self, source: Points, mask: NDArray[np.bool_]) -> None:
        """Take the rows where the mask is true; of rows that are taken already, some of these."""
        if isinstance(source, Taken):
            mask = _within(source.mask, mask)
            source = source.source
        self._source, self.mask = source, mask
        counts = np.add.reduceat(mask, np.arange(0, len(mask), STRIDE), dtype=np.intp)
        self._before = np.concatenate([[0], np.cumsum(counts)])
        self.shape = (int(self._before[-1]), source.shape[1])
        self.dtype, self.stays = source.dtype, source.stays

    @property
    def source(self) -> Points:
        """The points that are read for these."""
        return self._source

    def check(self) -> None:
        """Raise `UserError` where the source is not what it was when it was opened."""
        self.source.check()

    def ahead(self, first: int, last: int) -> None:
        """Say which rows are read next, see `Points.ahead`."""
        if first < last:
            self.source.ahead(self._row(first), self._row(last - 1) + 1)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given."""
        count = last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        size = max(1, PIECE // (self.shape[1] * self.itemsize))
        row, done = self._row(first) if count else 0, 0
        while done < count:
            found = np.flatnonzero(self.mask[row : row + size])[: count - done]
            if len(found):
                first, last = row + int(found[0]), row + int(found[-1]) + 1
                part = out[done : done + len(found)]
                if last - first == len(found):
                    self.source.read(first, last, part)
                else:
                    part[:] = self.source.read(first, last)[found - found[0]]
            row, done = row + size, done + len(found)
        return out

    def _row(self, number: int) -> int:
        """Return the source's row of a row."""
        stride = int(np.searchsorted(self._before, number, side="right")) - 1
        rows = np.flatnonzero(self.mask[stride * STRIDE : (stride + 1) * STRIDE])
        return stride * STRIDE + int(rows[number - self._before[stride]])


def taken(x: Rows, mask: NDArray[np.bool_], beside: bool = False) -> Rows:
    """Return the rows of points that a mask (P,) says, in their order.

    Of points that are not in memory, an array where they take at most a quarter of it, unless they
    were to be read by blocks in any case. beside: of a test part, at most a sixteenth.
    """
    if not isinstance(x, Points):
        return x[mask]
    made = Taken(x, mask)
    share = BESIDE if beside else SHARE * (not x.stays)
    return made[:] if made.size * made.itemsize <= share * available() else made


def _within(mask: NDArray[np.bool_], inner: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of the rows that an inner mask takes of those that a mask takes."""
    both = mask.copy()
    both[mask] = inner
    return both
