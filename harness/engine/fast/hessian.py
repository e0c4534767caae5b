"""Second derivatives of the linear model whose points are folded, or read by blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Points, iterate_blocks
from normbench.engine.fast.columns import Columns
from normbench.engine.hessian import (
    Effort,
    Hessian,
    LinearHessian,
    add_penalty,
    linear_effort,
    times_l2,
)
from normbench.engine.problem import linear_hessian

MAX_CACHE_BYTES = 1 << 26  # of the points' second derivatives in their scores


@dataclass(frozen=True)
class FoldedHessian(Hessian):
    """The Hessian in all features `(C, N + 1)`, from that in the columns that they fold to.

    inner: the Hessian in the columns, without a penalty. columns: maps weights of the features to
    weights of the columns, and derivatives back. l2: the penalty on the features' weights, one
    number, `(N,)` or `(N, N)`.
    """

    inner: Hessian
    columns: Columns
    l2: float | Array = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, `(C, N + 1)`."""
        return self.inner.shape[0], self.columns.features + 1

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return self.inner.is_zero and not np.any(self.l2)

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        product = self.columns.unfold(self.inner.times(self.columns.fold(direction)))
        product[:, 1:] += 2 * times_l2(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`."""
        spread = self.columns.spread(self.inner.matrix(), self.inner.shape[0])
        return add_penalty(spread, self.l2, self.shape)


@dataclass(frozen=True)
class ReadHessian(Hessian):
    """The Hessian of a cost on points x (P, N) that are no array in memory.

    weights: of one model, `(C, N + 1)`, where the derivatives are taken. l2: see `LinearHessian`.
    Each product and each matrix is a pass over the points. The points' second derivatives are
    cached, by the first row of their block, where they are small; else each pass computes them.
    """

    cost: Callable[[Any, Any], Any]
    x: Points
    targets: Array
    weights: Array
    l2: float | Array = 0.0
    _cache: dict[int, Array] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, `(C, N + 1)`."""
        return self.weights.shape

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return not np.any(self.l2) and all(
            block_hessian.is_zero for block_hessian in self._block_hessians()
        )

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        product = self._mean(lambda block_hessian: block_hessian.times(direction))
        product[:, 1:] += 2 * times_l2(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`."""
        return add_penalty(
            self._mean(lambda block_hessian: block_hessian.matrix()), self.l2, self.shape
        )

    def _mean(self, product: Callable[[LinearHessian], Array]) -> Array:
        """Return the mean over all points of what `product` returns for each block's Hessian.

        A block's Hessian is a mean over its points, so each block is weighted by its number of
        points.
        """
        total: Any = 0.0
        for block_hessian in self._block_hessians():
            total = total + len(block_hessian.x) * product(block_hessian)
        return np.asarray(total / len(self.x))

    def _block_hessians(self) -> Iterator[LinearHessian]:
        """Yield the Hessian of each block of points, without the penalty."""
        for rows, x in iterate_blocks(self.x):
            second_derivatives = self._cache.get(rows.start)
            if second_derivatives is None:
                block_hessian = linear_hessian(self.cost, x, self.targets[rows], self.weights, 0.0)
            else:
                block_hessian = LinearHessian(x.astype(np.float64, copy=False), second_derivatives)
            if fits_cache(len(self.x), len(self.weights)):  # the blocks of all points together
                self._cache[rows.start] = block_hessian.second
            yield block_hessian


def fits_cache(points: int, classes: int) -> bool:
    """Return whether the points' second derivatives in their scores, `(C, C, P)`, fit the cache.

    points: P. classes: C.
    """
    return 8 * classes**2 * points <= MAX_CACHE_BYTES


def read_effort(points: int, rows: int, classes: int, width: int) -> Effort:
    """Return the effort of a `ReadHessian`.

    Without a cache there is no setup: each product and each matrix computes the points' second
    derivatives again.

    Args:
        points: The number of points P.
        rows: The number of points that are in memory at a time.
        classes: The number of scores of a point C.
        width: The number of weights of a score, N + 1.

    Returns:
        The effort, whose memory is that of one block of points, and the cache where it is used.
    """
    full_effort = linear_effort(points, classes, width)
    memory = linear_effort(min(rows, points), classes, width).memory
    if fits_cache(points, classes):
        return full_effort._replace(memory=memory + MAX_CACHE_BYTES)
    matrix = None if full_effort.matrix is None else full_effort.setup + full_effort.matrix
    product = full_effort.setup + full_effort.product
    return Effort(setup=0.0, product=product, matrix=matrix, memory=memory)
