"""Sparse points in the two products of a step, and in the Hessian's."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from normbench.datasets.on_disk.points import Array
from normbench.engine.fast.hessian import ReadHessian
from normbench.engine.hessian import score_curvatures, times_l2


class SparseBlock(NamedTuple):
    """A block of sparse points `(p, N)`, a CSR array."""

    x: Any

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under k rows of weights `(k, N + 1)`, bias first, to out `(k, p)`."""
        np.add((self.x @ weights[:, 1:].T).T, weights[:, :1], out=out)

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
        # Transposed twice, because scipy's sparse array is the left factor.
        target[:, 1:] = (self.x.T @ derivative.T).T
        if has_begun:
            out += scratch


class SparseHessian(ReadHessian):
    """The Hessian of a cost on sparse points.

    Products are of the sparse points; the matrix is summed over blocks of points made dense.
    """

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        csr = self.x.csr  # in products it is the left factor, so that these are transposed
        scores = (csr @ direction[:, 1:].T).T + direction[:, :1]
        score_products = np.einsum("cdp,dp->cp", self._second_derivatives, scores) / len(self.x)
        product = np.empty_like(direction)
        product[:, 0] = score_products.sum(axis=1)
        product[:, 1:] = (csr.T @ score_products.T).T + 2 * times_l2(self.l2, direction[:, 1:])
        return product

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return not (self._second_derivatives.any() or np.any(self.l2))

    @cached_property
    def _second_derivatives(self) -> Array:
        """The points' second derivatives in their scores `(C, C, P)`."""
        weights = self.weights.astype(np.float64, copy=False)
        scores = np.asarray((self.x.csr @ weights[:, 1:].T).T + weights[:, :1])
        return score_curvatures(self.cost, scores, self.targets)
