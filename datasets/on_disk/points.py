"""The contract of points that need not be in memory: rows are read by blocks.

A numpy array is the case of one block: a caller that uses only `shape`, `dtype`, `len`, `size` and
slices of rows accepts both.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = Any  # points (P, N): an array, or `Points`
BLOCK_BYTES = 1 << 23  # of rows that are read at once by default
CACHE_BYTES = 1 << 20  # that are read at once so that they are still in a processor's cache


class Points(ABC):
    """Points `(P, N)` of one type, some rows of which are in memory at a time.

    Reading is safe from several threads. `shape` and `dtype` are those of an array of the points.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2
    always_in_blocks = False  # whether a selection of rows is read by blocks, however few they are
    # Checksums of what was read of them: see `normbench.datasets.on_disk.content`.
    checksums: Any = None
    bytes_read = 0  # from the points' file, so far
    density = 1.0  # the share of the entries that a product reads: below 1 for sparse points

    @abstractmethod
    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of `out` if given.

        Args:
            first: The index of the first row, from 0.
            last: The index after the last row.
            out: An array of N columns and at least `last - first` rows, the first of which are
                filled and returned; None makes a new array.

        Raises:
            UserError: The rows are gone or have changed.
        """

    def read_ahead(self, first: int, last: int) -> None:  # noqa: B027 - of memory nothing waits
        """Announce that rows `first` to `last - 1` are read next, so that a disk can start."""

    def check(self) -> None:  # noqa: B027 - points that nobody else can change need no check
        """Raise `UserError` where the source has changed since it was opened."""

    @property
    def source(self) -> "Points":
        """The points that these are read from: themselves, unless they are a selection of rows."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of entries, P N."""
        return self.shape[0] * self.shape[1]

    @property
    def itemsize(self) -> int:
        """The bytes of an entry."""
        return self.dtype.itemsize

    def __getitem__(self, rows: slice | Array) -> Array:
        """Return some rows (p, N) as an array.

        Args:
            rows: A slice without a step, or indices (p,) from 0.
        """
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            assert step == 1
            # No row where the slice ends before it begins, as of an array.
            return self.read(first, max(first, last))
        # Each index alone, since they need not be in order.
        chosen = np.empty((len(rows), self.shape[1]), self.dtype)
        for row, index in enumerate(rows):
            chosen[row] = self.read(int(index), int(index) + 1)[0]
        return chosen


def iterate_blocks(x: Rows) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of points in order, each as a slice of rows and an array of them.

    An array is one block; of `Points` a block has `BLOCK_BYTES`.
    """
    size = len(x) if isinstance(x, np.ndarray) else rows_per_block(x)
    for first in range(0, len(x), max(1, size)):
        rows = slice(first, min(first + size, len(x)))
        yield rows, x[rows]


def has_one_source(x: Rows, other: Rows) -> bool:
    """Return whether the rows of both are read from the same `Points`; never of an array."""
    return isinstance(x, Points) and isinstance(other, Points) and x.source is other.source


def rows_per_block(x: Rows) -> int:
    """Return how many rows make up a block of `BLOCK_BYTES`, 1 at least."""
    return max(1, BLOCK_BYTES // (x.shape[1] * x.itemsize))
