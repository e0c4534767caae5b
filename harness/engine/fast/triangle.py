"""Least squares on the rows of a triangle: a step does not depend on the number of points.

With `[1 X y] = Q R` the sum over points of `(s - y)^2` is that over the rows of R, N + 2 of them,
for Q turns without stretching (Golub, Van Loan, Matrix Computations, section 5.3).
"""

from dataclasses import dataclass

import numpy as np

from normbench.engine.fast.blocked import Blocked, Wrapper
from normbench.engine.problem import QUIET, Array, Evaluation, Workspace

DEEP = 8  # rows of a block, in columns of the triangle: a ninth more work than all at once
LEAST_ROWS = 4096
FACTOR = 3.0  # how much longer an operation of a decomposition takes than one of a product
MOST_FEATURES = 2000  # of a triangle of points that are read
LARGEST = 1e150  # of points: beyond, squares overflow that the points' own costs do without


@dataclass(frozen=True, kw_only=True)
class Triangle(Wrapper):
    """Squares of real targets, evaluated on rows `(n, N + 1)`, ends `(n,)`, and not on points."""

    rows: Array
    ends: Array

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs and gradient at weights `(R, 1, N + 1)`, as `Objective.evaluate` does."""
        with QUIET():
            left = weights[:, 0] @ self.rows.T - self.ends
            costs = np.vecdot(left, left)
            gradient = 2 * (left @ self.rows)[:, None] if with_gradient else None
            return self.mean(weights, costs, gradient, None)


def pays(points: Blocked, runs: int, iterations: int) -> bool:
    """Return whether a triangle is the same cost and takes less than the points.

    That is: the squares of real targets, in float64; and its operations, some `2 P (N + 2)^2`, are
    fewer than what they save of `4 P R (N + 1)` a step. Of points that are read it always is, as
    far as it fits in memory: a step then reads none.
    """
    if not points.traits.squares or points.classify or points.classes > 1:
        return False
    x = points.multiplied
    if x.dtype != np.float64 or not moderate(points.targets):
        return False
    count, width = len(x), x.shape[1] + 2
    if not isinstance(x, np.ndarray):
        return width <= MOST_FEATURES
    made = FACTOR * 2 * count * width**2 * (1 + 1 / DEEP)
    saved = 4.0 * (count - width) * (width - 1) * runs * iterations
    return made < saved and moderate(points.surrogate.moment_rows)


def moderate(*arrays: Array) -> bool:
    """Return whether no number is so large that its square would overflow."""
    return all(part.min() > -LARGEST and part.max() < LARGEST for part in arrays)


def triangle(points: Blocked) -> Triangle:
    """Return the problem on its triangle, made in one pass over blocks of the points.

    Of folded points the rows are those before the scheme; its map is then theirs, too.
    """
    whole = points.multiplied
    width = whole.shape[1] + 2
    size = max(LEAST_ROWS, DEEP * width)
    triangle = np.zeros((0, width))
    for first in range(0, len(whole), size):
        block = slice(first, first + size)
        x = whole[block]
        rows = np.column_stack([np.ones(len(x)), x, points.targets[block]])
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
    rows = points.gradient_out(triangle[:, :-1], len(triangle))  # as if of the scores' derivatives
    return Triangle.around(points, rows=np.ascontiguousarray(rows), ends=triangle[:, -1])
