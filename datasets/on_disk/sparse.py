"""Sparse points: of each row, only the entries that are not 0 are in memory."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class SparsePoints:
    """Points `csr - offset` (P, N): sparse ones stay sparse where a scheme centres them.

    Attributes:
        csr: A canonical `scipy.sparse.csr_array` (P, N): no entry twice, columns in order.
        offset: Subtracted from every row, `(N,)`; zeros of points that are not centred.
        shape: (P, N).
        dtype: The type of the entries.
    """

    ndim = 2

    def __init__(self, csr: Any, offset: Array | None = None) -> None:
        self.csr = csr
        self.shape, self.dtype = csr.shape, csr.dtype
        self.offset = np.zeros(self.shape[1], self.dtype) if offset is None else offset

    @classmethod
    def of_matrix(cls, matrix: Any, dtype: Any) -> Self:
        """Return a sparse matrix (P, N), in any of scipy's formats, as points of a type.

        The matrix stays as it is; canonical ones of that type already share its memory.
        """
        from scipy import sparse

        csr = sparse.csr_array(matrix, dtype=dtype)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        return cls(csr)

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def size(self) -> int:
        """The number of entries with the zeros, P N."""
        return int(self.shape[0] * self.shape[1])

    @property
    def density(self) -> float:
        """The share of the entries that is stored; above 0, also without entries."""
        return max(self.csr.nnz, 1) / max(self.size, 1)

    def __getitem__(self, rows: slice | Array) -> "SparsePoints":
        """Return some rows (p, N), by a slice, a mask (P,), or indices (p,)."""
        return SparsePoints(self.csr[rows], self.offset)

    def toarray(self) -> Array:
        """Return the points as an array (P, N), with their zeros."""
        rows: Array = self.csr.toarray()
        if self.offset.any():
            rows -= self.offset
        return rows

    def astype(self, dtype: Any) -> "SparsePoints":
        """Return the points in another type; themselves in their own."""
        if self.dtype == dtype:
            return self
        return SparsePoints(self.csr.astype(dtype), self.offset.astype(dtype))
