"""Few points of many features in coordinates of their span: a step costs P^2 instead of P N.

The gradient is a sum of points, so a rotation-equivariant rule never leaves the span of the points
and of the starts. With Q of orthonormal columns that span it, the scores of `x w` are those of `(x
Q) (Q'w)`, and lengths are the same. Q is not formed: from independent rows B, with `B B' = T T'` by
Cholesky, `Q' = T^-1 B`. That squares the rows' condition number, so rows must be clearly
independent or, as centred points are, dependent to rounding. Other points are left unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg

from normbench.engine.fast import threads
from normbench.engine.fast.triangle import can_be_squared
from normbench.engine.problem import Array, Linear
from normbench.optimizers import Optimizer

MIN_FEATURE_RATIO = 2  # times as many features as coordinates, at least
# The work of `find_span`, in products of all rows with all; measured: 0.9 at 200 and 1,000 rows.
SETUP_PRODUCTS = 1.5
# An independent row has at least this share of its squared length outside the span of the others.
INDEPENDENCE = 1e-6
DEPENDENCE = 1e-12  # a dependent row has at most this share of its length outside that span


@dataclass(frozen=True)
class Span:
    """Coordinates of weights in a basis: orthonormal columns Q `(N, K)`.

    rows: `(K, N)`, B of the module. triangle: `(K, K)`, T, lower. points: `(P, K)`, the points in
    these coordinates.
    """

    rows: Array
    triangle: Array
    points: Array

    def train(self, problem: Linear) -> Linear:
        """Return the problem on the points in these coordinates, with the same costs."""
        return problem.on(self.points, problem.l2)

    def test(self, problem: Linear) -> Linear:
        """Return the problem on other points in these coordinates, with the same costs.

        Components of the points outside the span are dropped: the weights lie in the span, so that
        these components change no score.
        """
        return problem.on(self._project(problem.points), problem.l2)

    def inward(self, weights: Array) -> Array:
        """Return weights `(R, C, N + 1)` in these coordinates, `(R, C, K + 1)`."""
        return _change_coordinates(weights, self._project, len(self.rows))

    def outward(self, weights: Array) -> Array:
        """Return weights in these coordinates as those of the features, `(R, C, N + 1)`."""
        return _change_coordinates(weights, self._lift, self.rows.shape[1])

    def _project(self, rows: Array) -> Array:
        """Return rows `(r, N)` in the coordinates of the span: `rows Q`, `(r, K)`."""
        return np.ascontiguousarray(self._solve(self.rows @ rows.T, "N").T)

    def _lift(self, rows: Array) -> Array:
        """Return rows `(r, K)` of coordinates as rows of features: `rows Q'`, `(r, N)`."""
        return self._solve(rows.T, "T").T @ self.rows

    def _solve(self, right_side: Array, trans: str) -> Array:
        """Return the solution `(K, r)` of a system with T (trans `N`) or its transpose (`T`)."""
        with threads.limit_threads(self.triangle.size):
            return np.asarray(
                linalg.solve_triangular(self.triangle, right_side, lower=True, trans=trans)
            )


def pays_off(
    problem: Linear, optimizer: Optimizer, start: Array, runs: int, iterations: int
) -> bool:
    """Return whether coordinates of the span give the same descent with less work.

    The descent is the same under a rotation-equivariant rule that needs only gradients, with a
    penalty that treats all features equally, in float64. It is less work if there are at least
    twice as many features as coordinates K, and the setup of some `3 N K^2` operations is less than
    the saving of `4 P (N - K) R C` operations a step.

    Args:
        problem: A problem on points (P, N) in memory.
        optimizer: The step rule.
        start: Distinct starts `(A, C, N + 1)`.
        runs: The number of runs R.
        iterations: The number of iterations of the descent.

    Returns:
        Whether `find_span` is worth its work.
    """
    is_equivariant = optimizer.rotation_equivariant and not optimizer.uses_objective
    if not is_equivariant or np.ndim(problem.l2) or problem.points.dtype != np.float64:
        return False
    points, features = problem.points.shape
    coordinates = points + len(_nonzero_rows(start))  # K, at most: all rows independent
    setup_work = SETUP_PRODUCTS * 2 * features * coordinates**2
    saved_work = 4.0 * points * (features - coordinates) * runs * problem.shape[0] * iterations
    return (
        MIN_FEATURE_RATIO * coordinates <= features
        and setup_work < saved_work
        and can_be_squared(problem.points, start)
    )


def find_span(x: Array, start: Array) -> Span | None:
    """Return coordinates of the span of points and of starts.

    Args:
        x: Points (P, N), in float64.
        start: Starts `(A, C, N + 1)`, bias first; a bias needs no coordinate.

    Returns:
        The coordinates; None where some rows are nearly dependent, neither independent nor
        dependent to rounding.
    """
    rows = np.concatenate([x, _nonzero_rows(start)])
    # The products of all rows with all, on this program's threads: the library's own threads wait
    # for one another at length where other programs use the cores.
    count = threads.available_threads()
    bounds = [rows.shape[1] * number // count for number in range(count + 1)]
    column_blocks = [rows[:, slice(*both)] for both in pairwise(bounds)]
    products = np.sum(
        threads.map_parallel(lambda column_block: column_block @ column_block.T, column_blocks),
        axis=0,
    )
    lengths = np.sqrt(products.diagonal())
    scale = np.where(lengths > 0, lengths, 1.0)
    products /= scale * scale[:, None]  # of rows at unit length; rows of zeros stay zeros
    # Pivoted Cholesky decomposition of the rows at unit length; it ends where the rest depends.
    with threads.limit_threads(products.size):
        factor, order, rank, _ = linalg.lapack.dpstrf(products, lower=1, tol=INDEPENDENCE)
    order = order - 1  # Fortran counts from 1
    coordinates = np.empty((len(rows), rank))
    coordinates[order] = np.tril(factor)[:, :rank]
    coordinates *= scale[:, None]
    # Row i of `rows` is `coordinates[i] Q'`; those of the independent rows are the triangle T.
    independent, dependent = order[:rank], order[rank:]
    span = Span(rows[independent], coordinates[independent], coordinates[: len(x)])
    residuals = np.linalg.norm(rows[dependent] - span._lift(coordinates[dependent]), axis=1)
    return span if np.all(residuals <= DEPENDENCE * lengths[dependent]) else None


def _nonzero_rows(start: Array) -> Array:
    """Return the rows `(r, N)` of starts `(A, C, N + 1)`, one a score, without biases.

    Rows of zeros are left out.
    """
    rows = start[:, :, 1:].reshape(-1, start.shape[2] - 1)
    return rows[rows.any(axis=1)]


def _change_coordinates(weights: Array, change: Callable[[Array], Array], size: int) -> Array:
    """Return weights with unchanged biases and the other weights in other coordinates.

    Rows of zeros stay zeros.

    Args:
        weights: `(R, C, n + 1)`, bias first.
        change: A function from rows `(r, n)` to rows `(r, size)`.
        size: The number of the other coordinates.

    Returns:
        `(R, C, size + 1)`.
    """
    rows = weights.reshape(-1, weights.shape[2])
    changed = np.zeros((len(rows), 1 + size))
    changed[:, 0] = rows[:, 0]
    is_nonzero = rows[:, 1:].any(axis=1)
    if is_nonzero.any():
        changed[is_nonzero, 1:] = change(rows[is_nonzero, 1:])
    return changed.reshape(*weights.shape[:2], -1)
