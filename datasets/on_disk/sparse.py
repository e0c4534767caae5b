"""Sparse points: of each row, only the entries that are not 0 are in memory."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Array, Points, Rows


class SparsePoints(Points):
    """Points (P, N) as a CSR array; rows are filled with zeros when they are read.

    Attributes:
        csr: The points, a canonical `scipy.sparse.csr_array`: no entry twice, columns in order.
    """

    always_in_blocks = True  # as one array the zeros would take memory, too

    def __init__(self, csr: Any) -> None:
        self.csr = csr
        self.shape, self.dtype = csr.shape, csr.dtype
        self.density = max(csr.nnz, 1) / max(self.size, 1)  # above 0, also without entries

    @classmethod
    def of_matrix(cls, matrix: Any, dtype: Any) -> Self:
        """Return any sparse matrix of scipy as points of a type.

        The points share the memory of a matrix that is canonical CSR (no entry twice, columns in
        order) of that type already, in contiguous arrays. The matrix is never changed.

        Args:
            matrix: A sparse matrix (P, N), in any of scipy's formats.
            dtype: The type.
        """
        from scipy import sparse

        csr = sparse.csr_array(matrix)
        arrays = (csr.data, csr.indices, csr.indptr)
        if not (csr.has_canonical_format and all(array.flags.c_contiguous for array in arrays)):
            csr = csr.copy()  # contiguous; the caller's matrix stays as it is
            csr.sum_duplicates()
        return cls(csr.astype(dtype, copy=False))

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as a dense array, in the first rows of out if given.

        See `Points.read`.
        """
        rows = self.csr_rows(slice(first, last))
        if out is None:
            return np.asarray(rows.toarray())
        return np.asarray(rows.toarray(out=out[: last - first]))

    def csr_rows(self, block: slice) -> Any:
        """Return a slice of the rows as a CSR array that shares the memory of these points.

        Args:
            block: A slice with a start and a stop within the rows, without a step.
        """
        from scipy import sparse

        # Row i holds the stored entries from indptr[i] to below indptr[i + 1].
        first, last = self.csr.indptr[block.start], self.csr.indptr[block.stop]
        indptr = self.csr.indptr[block.start : block.stop + 1] - first
        rows = sparse.csr_array((len(indptr) - 1, self.shape[1]), dtype=self.dtype)
        # The arrays are assigned: the constructor of `csr_array` copies a slice that is less than
        # half of its array.
        rows.data, rows.indices = self.csr.data[first:last], self.csr.indices[first:last]
        rows.indptr = indptr
        return rows

    def select(self, mask: NDArray[np.bool_]) -> "SparsePoints":
        """Return the rows that a mask (P,) selects."""
        return SparsePoints(self.csr[np.flatnonzero(mask)])

    def astype(self, dtype: Any) -> "SparsePoints":
        """Return the points in another type; themselves in their own."""
        if self.dtype == dtype:
            return self
        return SparsePoints(self.csr.astype(dtype))


def sparse_or_none(x: Rows) -> SparsePoints | None:
    """Return the points themselves if they are sparse, else None."""
    return x if isinstance(x, SparsePoints) else None
