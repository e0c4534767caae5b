"""Select rows of points that are not in memory, without a copy."""

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.files_on_disk import TEST_PART_SHARE
from normbench.datasets.on_disk.points import CACHE_BYTES, Array, Points, Rows
from normbench.datasets.on_disk.sparse import sparse_or_none
from normbench.datasets.values import ARRAY_SHARE, available_bytes

# Rows of the source in a stride. The selected rows before each stride are counted once, so that a
# selected row is found without counting from the start.
STRIDE = 4096


class SelectedRows(Points):
    """The rows of other points that a mask (P,) selects, in their order.

    They are read from the other points, its `source`, whenever they are needed.
    """

    mask: NDArray[np.bool_]

    def __init__(self, source: Points, mask: NDArray[np.bool_]) -> None:
        """Select the rows where the mask is true.

        Args:
            source: The points. The rows of another selection are selected directly from the source
                of that selection.
            mask: The mask of the rows of `source`, (P,).
        """
        if isinstance(source, SelectedRows):
            mask = _combine_masks(source.mask, mask)
            source = source.source
        self._source, self.mask = source, mask
        counts = np.add.reduceat(mask, np.arange(0, len(mask), STRIDE), dtype=np.intp)
        # Entry n: how many rows are selected before row n STRIDE of the source.
        self._rows_before = np.concatenate([[0], np.cumsum(counts)])
        self.shape = (int(self._rows_before[-1]), source.shape[1])
        self.dtype, self.always_in_blocks = source.dtype, source.always_in_blocks

    @property
    def source(self) -> Points:
        """The points that these are read from."""
        return self._source

    def check(self) -> None:
        """Raise `UserError` where the source has changed since it was opened."""
        self.source.check()

    def read_ahead(self, first: int, last: int) -> None:
        """Announce which rows are read next, see `Points.read_ahead`."""
        if first < last:  # an empty range has no rows of the source
            self.source.read_ahead(self._row(first), self._row(last - 1) + 1)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given.

        See `Points.read`. A piece of the source is read at a time, from its first selected row to
        its last; the rows between that are not selected are left out.
        """
        count = last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        size = max(1, CACHE_BYTES // (self.shape[1] * self.itemsize))  # rows of the source at once
        row, read_rows = self._row(first) if count else 0, 0  # row: of the source
        while read_rows < count:
            selected = np.flatnonzero(self.mask[row : row + size])[: count - read_rows]
            if len(selected):
                source_first, source_last = row + int(selected[0]), row + int(selected[-1]) + 1
                out_rows = out[read_rows : read_rows + len(selected)]
                if source_last - source_first == len(selected):  # they are consecutive
                    self.source.read(source_first, source_last, out_rows)
                else:
                    source_rows = self.source.read(source_first, source_last)
                    out_rows[:] = source_rows[selected - selected[0]]
            row, read_rows = row + size, read_rows + len(selected)
        return out

    def _row(self, number: int) -> int:
        """Return the index in the source of a row of the selection, given by its number."""
        stride = int(np.searchsorted(self._rows_before, number, side="right")) - 1
        rows = np.flatnonzero(self.mask[stride * STRIDE : (stride + 1) * STRIDE])
        return stride * STRIDE + int(rows[number - self._rows_before[stride]])


def select_rows(x: Rows, mask: NDArray[np.bool_], is_test_part: bool = False) -> Rows:
    """Return the rows of points that a mask (P,) selects, in their order.

    The selection of points on disk becomes an array if it is small: a training part if it takes at
    most a quarter of the memory and the points are not always read by blocks, a test part if it
    takes at most a sixteenth.

    Args:
        x: Points (P, N).
        mask: The mask of the rows to select (P,).
        is_test_part: Whether the rows become a test part.

    Returns:
        An array for an array, `SparsePoints` for sparse points; for points on disk an array or
        `SelectedRows`.
    """
    if not isinstance(x, Points):
        return x[mask]
    sparse = sparse_or_none(x)
    if sparse is not None:
        return sparse.select(mask)
    selection = SelectedRows(x, mask)
    # The share is 0 for a training part that is always read by blocks.
    share = TEST_PART_SHARE if is_test_part else ARRAY_SHARE * (not x.always_in_blocks)
    return (
        selection[:]
        if selection.size * selection.itemsize <= share * available_bytes()
        else selection
    )


def _combine_masks(mask: NDArray[np.bool_], inner: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask (P,) of two selections, the second of which is among the rows of the first.

    Args:
        mask: The first mask (P,), which selects p rows.
        inner: The second mask (p,).
    """
    combined = mask.copy()
    combined[mask] = inner
    return combined
