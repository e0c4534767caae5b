"""Points that need not be in memory: rows by blocks, from wherever they are.

A numpy array is the one-block case: whoever asks points for `shape`, `dtype`, `len`, `size` and
slices of rows, and for no more, takes both.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = Any  # points (P, N): an array, or `Points`
BLOCK_BYTES = 1 << 23  # of rows that are read at once, where nothing else says how many


class Points(ABC):
    """Points `(P, N)` of one type, of which some rows at a time are in memory.

    Reading is safe from several threads. shape, dtype: as of an array.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2
    stays = False  # whether they are read by blocks however few they are
    marks: Any = (
        None  # checksums of what was read of them: see `normbench.datasets.on_disk.content`
    )
    bytes_read = 0  # of their file, so far

    @abstractmethod
    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given.

        Raises `UserError` where they are no longer there, or are no longer what they were.
        """

    def ahead(self, first: int, last: int) -> None:  # noqa: B027 - of memory nothing waits
        """Say that rows `first` to `last - 1` are read next, so that a disk can begin."""

    def check(self) -> None:  # noqa: B027 - points that nobody else can change need no check
        """Raise `UserError` where the source is not what it was when it was opened."""

    @property
    def source(self) -> "Points":
        """The points that are read for these."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.shape[0] * self.shape[1]

    @property
    def itemsize(self) -> int:
        """The bytes of a number."""
        return self.dtype.itemsize

    def __getitem__(self, rows: slice | Array) -> Array:
        """Return a slice of the rows, or the rows of some numbers, as an array."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            assert step == 1
            return self.read(first, max(first, last))
        chosen = np.empty((len(rows), self.shape[1]), self.dtype)
        for place, number in enumerate(rows):
            chosen[place] = self.read(int(number), int(number) + 1)[0]
        return chosen


def blocks_of(x: Rows) -> Iterator[tuple[slice, Array]]:
    """Yield all rows of points, a block after the other; an array is one block."""
    size = len(x) if isinstance(x, np.ndarray) else rows_a_block(x)
    for first in range(0, len(x), max(1, size)):
        rows = slice(first, min(first + size, len(x)))
        yield rows, x[rows]


def rows_a_block(x: Rows) -> int:
    """Return how many rows are read at once."""
    return max(1, BLOCK_BYTES // (x.shape[1] * x.itemsize))
