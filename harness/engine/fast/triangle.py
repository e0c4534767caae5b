"""Least squares on the rows of a triangle: a step does not depend on the number of points.

With `[1 X y] = Q R` the sum over points of `(s - y)^2` is that over the rows of R, N + 2 of them,
since Q keeps lengths (Golub, Van Loan, Matrix Computations, section 5.3).
"""

from dataclasses import dataclass

import numpy as np

from normbench.datasets.on_disk.points import is_in_memory, iterate_blocks
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine.fast.blocked import Blocked, Wrapper
from normbench.engine.problem import QUIET, Array, Evaluation, Workspace

# Rows of a block, in columns of the triangle: a ninth more work than all at once.
BLOCK_ROWS_PER_COLUMN = 8
MIN_BLOCK_ROWS = 4096
# How much longer an operation of a decomposition takes than one of a product.
DECOMPOSITION_FACTOR = 3.0
MAX_READ_FEATURES = 2000  # columns of a triangle of points that are read from disk
# The largest point or target: squares of larger ones overflow, without which the points' own costs
# can be computed.
MAX_SQUARABLE = 1e150


@dataclass(frozen=True, kw_only=True)
class Triangle(Wrapper):
    """The least-squares cost of real targets, evaluated on the rows of R in place of points.

    rows: `(n, N + 1)`, the columns of R that belong to `[1 X]`. target_column: `(n,)`, the column
    of R that belongs to the targets y.
    """

    rows: Array
    target_column: Array

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs and gradient; see `Problem.evaluate`.

        Args:
            weights: `(R, 1, N + 1)`, bias first.
            with_gradient: Whether the gradient is computed.
            workspace: Not used.

        Returns:
            Costs `(R,)` and gradient `(R, 1, N + 1)` or None, means over the P points; no counts.
        """
        with QUIET():
            residuals = weights[:, 0] @ self.rows.T - self.target_column
            costs = np.vecdot(residuals, residuals)
            gradient = 2 * (residuals @ self.rows)[:, None] if with_gradient else None
            return self.average_sums(weights, costs, gradient, None)


def pays_off(problem: Blocked, runs: int, iterations: int) -> bool:
    """Return whether a triangle has the same cost with less work than the points.

    The cost must be the squares of one real target, in float64, on points that are not sparse and
    where no square overflows. Of points in memory the decomposition takes some `6 P (N + 2)^2`
    operations, which must be fewer than it saves: `4 (P - N - 2) R (N + 1)` at each iteration. For
    points on disk a triangle with at most `MAX_READ_FEATURES` columns always pays off: a step then
    reads no points.

    Args:
        problem: The problem on points (P, N).
        runs: The number of runs R.
        iterations: The number of iterations of the descent.

    Returns:
        Whether `make_triangle` is worth its work.
    """
    if not problem.traits.squares or problem.classify or problem.classes > 1:
        return False
    x = problem.multiplied
    if x.dtype != np.float64 or not can_be_squared(problem.targets):
        return False
    count, width = len(x), x.shape[1] + 2
    if isinstance(x, SparsePoints):
        return False
    if not is_in_memory(x):
        return width <= MAX_READ_FEATURES
    # With each block the rows of R so far, a share of a block, are decomposed again.
    setup_work = DECOMPOSITION_FACTOR * 2 * count * width**2 * (1 + 1 / BLOCK_ROWS_PER_COLUMN)
    saved_work = 4.0 * (count - width) * (width - 1) * runs * iterations
    return setup_work < saved_work and can_be_squared(problem.points)


def can_be_squared(*arrays: Array) -> bool:
    """Return whether no number is so large that its square would overflow; False for NaN."""
    return all(array.min() > -MAX_SQUARABLE and array.max() < MAX_SQUARABLE for array in arrays)


def make_triangle(problem: Blocked) -> Triangle:
    """Return the problem on its triangle, computed in one pass over blocks of the points.

    The rows of R of the blocks so far are decomposed together with the next block.

    problem: one that `pays_off` accepts, on points (P, N) in memory or read by blocks.
    """
    x = problem.multiplied
    width = x.shape[1] + 2
    size = max(MIN_BLOCK_ROWS, BLOCK_ROWS_PER_COLUMN * width)
    upper = np.zeros((0, width))
    for block, x_block in iterate_blocks(x, size):
        block_rows = np.column_stack([np.ones(len(x_block)), x_block, problem.targets[block]])
        upper = np.asarray(np.linalg.qr(np.vstack([upper, block_rows]), mode="r"))
    # Rows of R are combinations of the rows `[1 x]`, as gradients are, and are mapped as these are.
    rows = problem.gradient_out(upper[:, :-1], len(upper))
    return Triangle.around(problem, rows=np.ascontiguousarray(rows), target_column=upper[:, -1])
