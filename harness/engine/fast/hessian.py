"""Second derivatives of the linear model where its points are folded, or read by blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows, iterate_blocks
from normbench.engine.fast.columns import Columns
from normbench.engine.hessian import (
    Effort,
    Hessian,
    LinearHessian,
    linear_effort,
    weighted,
    with_penalty,
)
from normbench.engine.problem import linear_hessian
from normbench.engine.scheme.probed import Probed

KEPT_BYTES = 1 << 26  # of the points' second derivatives in their scores


# Weights of features `(.., N + 1)` as weights of other columns `(.., M + 1)`, bias first.
WeightMap = Columns | Probed


@dataclass(frozen=True)
class FoldedHessian(Hessian):
    """The Hessian in all features `(C, N + 1)`, from that in the columns that they fold to.

    inner: in the columns, without a penalty. l2: of the features, one number, `(N,)` or `(N, N)`.
    """

    inner: Hessian
    columns: WeightMap
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
        product[:, 1:] += 2 * weighted(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`."""
        spread = self.columns.spread(self.inner.matrix(), self.inner.shape[0])
        return with_penalty(spread, self.l2, self.shape)


@dataclass(frozen=True)
class ReadHessian(Hessian):
    """The Hessian of a cost on points x (P, N) that are read by blocks.

    l2: as of `LinearHessian`. Each product and each matrix is a pass over the points. Their own
    second derivatives are kept where they are small, else made anew in each pass.
    """

    cost: Callable[[Any, Any], Any]
    x: Rows
    targets: Array
    weights: Array
    l2: float | Array = 0.0
    _kept: dict[int, Array] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, `(C, N + 1)`."""
        return self.weights.shape

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return not np.any(self.l2) and all(part.is_zero for part in self._parts())

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        product = self._mean(lambda part: part.times(direction))
        product[:, 1:] += 2 * weighted(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`."""
        return with_penalty(self._mean(lambda part: part.matrix()), self.l2, self.shape)

    def _mean(self, of: Callable[[LinearHessian], Array]) -> Array:
        total: Any = 0.0
        for part in self._parts():
            total = total + len(part.x) * of(part)
        return np.asarray(total / len(self.x))

    def _parts(self) -> Iterator[LinearHessian]:
        for rows, x in iterate_blocks(self.x):
            second = self._kept.get(rows.start)
            if second is None:
                part = linear_hessian(self.cost, x, self.targets[rows], self.weights, 0.0)
            else:
                part = LinearHessian(x.astype(np.float64, copy=False), second)
            if kept(len(self.x), len(self.weights)):
                self._kept[rows.start] = part.second
            yield part


def kept(points: int, classes: int) -> bool:
    """Return whether the second derivatives of all points in their scores are kept."""
    return 8 * classes**2 * points <= KEPT_BYTES


def read_effort(points: int, rows: int, classes: int, width: int) -> Effort:
    """Return the effort of a `ReadHessian`, `rows` points of which are in memory at a time."""
    whole = linear_effort(points, classes, width)
    memory = linear_effort(min(rows, points), classes, width).memory
    if kept(points, classes):
        return whole._replace(memory=memory + KEPT_BYTES)
    matrix = None if whole.matrix is None else whole.made + whole.matrix
    return Effort(0.0, whole.made + whole.product, matrix, memory)
