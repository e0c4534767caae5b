"""Sparse points in the two products of a step, and in the Hessian's."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from normbench.datasets.on_disk.sparse import Array, SparsePoints
from normbench.engine.fast.hessian import ReadHessian
from normbench.engine.hessian import score_curvatures, times_l2


class SparseBlock(NamedTuple):
    """A block of sparse points `(p, N)`."""

    x: SparsePoints

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under k rows of weights `(k, N + 1)`, bias first, to out `(k, p)`."""
        np.add(_times(self.x, weights[:, 1:]), weights[:, :1], out=out)

    def gradient(self, derivative: Array, out: Array, scratch: Array, has_begun: bool) -> None:
        """Write, or add, a derivative times the points [1 x].

        Args:
            derivative: The derivative by the scores, `(k, p)`.
            out: `(k, N + 1)`.
            scratch: `(k, N + 1)`, overwritten where the product is added.
            has_begun: Whether the product is added to `out`; otherwise it replaces it.
        """
        target = scratch if has_begun else out
        derivative.sum(axis=1, out=target[:, 0])
        target[:, 1:] = _sum_rows(self.x, derivative)
        if has_begun:
            out += scratch


def _times(x: SparsePoints, slopes: Array) -> Array:
    """Return `slopes x'` `(k, P)`, of slopes `(k, N)` and points (P, N)."""
    # Transposed twice, because scipy's sparse array is the left factor.
    return np.asarray((x.csr @ slopes.T).T - (slopes @ x.offset)[:, None])


def _sum_rows(x: SparsePoints, factors: Array) -> Array:
    """Return `factors x` `(k, N)`, of factors `(k, P)` and points (P, N)."""
    return np.asarray((x.csr.T @ factors.T).T - factors.sum(axis=1)[:, None] * x.offset)


class SparseHessian(ReadHessian):
    """The Hessian of a cost on sparse points.

    Products are of the sparse points; the matrix is summed over blocks of points made dense.
    """

    x: SparsePoints

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        scores = _times(self.x, direction[:, 1:]) + direction[:, :1]
        score_products = np.einsum("cdp,dp->cp", self._second_derivatives, scores) / len(self.x)
        product = np.empty_like(direction)
        product[:, 0] = score_products.sum(axis=1)
        slopes = _sum_rows(self.x, score_products)
        product[:, 1:] = slopes + 2 * times_l2(self.l2, direction[:, 1:])
        return product

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return not (self._second_derivatives.any() or np.any(self.l2))

    @cached_property
    def _second_derivatives(self) -> Array:
        """The points' second derivatives in their scores `(C, C, P)`."""
        weights = self.weights.astype(np.float64, copy=False)
        scores = _times(self.x, weights[:, 1:]) + weights[:, :1]
        return score_curvatures(self.cost, scores, self.targets)
