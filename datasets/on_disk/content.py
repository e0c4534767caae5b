"""Hash the content of data for the fingerprint, and refuse entries that cannot be squared."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Points, iterate_blocks
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError

# An entry's square, and a sum of squares, stay finite. A plain Python float would become
# float32 beside such points: infinite, so that no infinite one would be larger.
LARGEST_ENTRY = np.float64(1e150)


class Content:
    """The hash of a fingerprint: arrays are added in order, bit by bit."""

    def __init__(self) -> None:
        """Start with an empty hash."""
        self._hasher = hashlib.sha256()

    @property
    def fingerprint(self) -> str:
        """The digest of all that was added."""
        return self._hasher.hexdigest()

    def add(self, x: Points) -> "Content":
        """Add an array of any shape, or points; return this object."""
        # A generator hashes only what is taken from it.
        for _ in self._hash_blocks(x):
            pass
        return self

    def add_points(self, x: Points, name: str, features: tuple[str, ...], prefix: str) -> None:
        """Add points (P, N) to the hash, and check each entry.

        Args:
            x: The points.
            name: The name of the data set, for the error.
            features: The names of the N features, for the error.
            prefix: `test ` for test points, for the error; empty for training points.

        Raises:
            UserError: An entry is not finite, or larger than `LARGEST_ENTRY`. The error names the
                first such entry and counts all of them.
        """
        if isinstance(x, SparsePoints):  # `_hash_blocks` yields no block of sparse points
            _refuse_stored_entries(x, name, features, prefix)
        first_bad, bad_count = None, 0
        for row, block in self._hash_blocks(x):
            # Two reductions need no temporary array; NaN fails the comparison. A mask of entries is
            # made only of a block with a bad entry.
            if not block.size or max(float(block.max()), -float(block.min())) <= LARGEST_ENTRY:
                continue
            bad_entries = np.argwhere(~(np.abs(block) <= LARGEST_ENTRY))
            bad_count += len(bad_entries)
            if first_bad is None:
                block_row, column = bad_entries[0]
                first_bad = row + block_row, features[column], block[block_row, column]
        if first_bad is not None:
            _refuse_entries(name, prefix, *first_bad, bad_count)

    def _hash_blocks(self, x: Points) -> Iterator[tuple[int, Array]]:
        """Hash rows block by block; yield the index of each block's first row, and the block.

        The hash is complete only once all blocks are taken. An array in memory is one block. Sparse
        points are hashed at once, and yield nothing.
        """
        # The same bytes in another shape or type are other points.
        self._hasher.update(f"{x.shape}{x.dtype}".encode())
        if isinstance(x, SparsePoints):
            for array in (x.csr.data, x.csr.indices, x.csr.indptr):
                self._hasher.update(array.data)
            return
        for rows, block in iterate_blocks(x):
            self._hasher.update(np.ascontiguousarray(block).data)
            yield rows.start, block


def digest(*arrays: Points) -> str:
    """Return the fingerprint of the content of some arrays, or points."""
    content = Content()
    for array in arrays:
        content.add(array)
    return content.fingerprint


def _refuse_stored_entries(
    x: SparsePoints, name: str, features: tuple[str, ...], prefix: str
) -> None:
    """Raise `UserError` where a stored entry of sparse points is not finite, or too large.

    The other entries are 0. The arguments are those of `Content.add_points`.
    """
    bad_entries = np.flatnonzero(~(np.abs(x.csr.data) <= LARGEST_ENTRY))
    if len(bad_entries):
        entry = bad_entries[0]
        # Row i holds the stored entries from indptr[i] to below indptr[i + 1].
        row = int(np.searchsorted(x.csr.indptr, entry, side="right")) - 1
        place = row, features[x.csr.indices[entry]], x.csr.data[entry]
        _refuse_entries(name, prefix, *place, len(bad_entries))


def _refuse_entries(name: str, prefix: str, row: int, feature: str, value: Any, count: int) -> None:
    """Raise the `UserError` for points with entries that are too large or not finite.

    Args:
        name: The name of the data set.
        prefix: `test ` for test points, empty for training points.
        row: The row of the first such entry, counted from 0.
        feature: The name of its feature.
        value: The entry itself.
        count: The number of such entries.
    """
    remedy = (
        f"its square overflows; rescale the feature (entries must be below {LARGEST_ENTRY:g})"
        if np.isfinite(value)
        else "drop those points or fill the gaps before the comparison"
    )
    raise UserError(
        f"data of {name}: feature {feature!r} of {prefix}point {row} (counted from 0) is "
        f"{value:g} ({count} in all); {remedy}"
    )
