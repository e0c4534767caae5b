"""Equal smaller problems: other points with the same costs, and the map that brings weights back.

A descent on them has the same histories, to rounding. Each applies to the linear model alone.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from normbench.datasets.on_disk.points import is_in_memory, iterate_blocks
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine.plan import Plan
from normbench.engine.problem import Array, Problem
from normbench.optimizers import Optimizer

MIN_POINT_ENTRIES = 1_000_000  # numbers in the points: below, a step is too short to gain
MAX_TRIANGLE_FEATURES = 2000  # of points on a disk, whose triangle always pays off
MIN_FEATURE_RATIO = 2  # times as many features as coordinates of the span, at least
# Rows of a block that is decomposed, in columns of the triangle.
BLOCK_ROWS_PER_COLUMN, MIN_BLOCK_ROWS = 8, 4096
DECOMPOSITION_FACTOR = 3.0  # how much longer an operation of a decomposition takes


class Smaller(NamedTuple):
    """The problem that is descended in place of an equal one.

    train, test: the problems of the training and of the test points, None without these. start:
    `(A, *shape)`. to_given: maps weights `(R, *shape)` to those of the given problem.
    """

    train: Problem
    test: Problem | None
    start: Array
    to_given: Callable[[Array], Array] = lambda weights: weights


def smaller_problem(
    train: Problem, test: Problem | None, start: Array, optimizer: Optimizer, plan: Plan, runs: int
) -> Smaller:
    """Return an equal problem whose steps take less work; the given one where there is none.

    Args:
        train: The problem of the training points.
        test: That of the test points; None without these.
        start: The starts `(A, *shape)`.
        optimizer: The step rule; one that preconditions has the size of the given weights.
        plan: The plan of the descent.
        runs: The number of runs.
    """
    given, points, work = Smaller(train, test, start), train.points, runs * plan.records
    is_sparse, has_scheme = isinstance(points, SparsePoints), optimizer.scheme is not None
    if train.linear is None or plan.batches or has_scheme or is_sparse:
        return given
    if not optimizer.curved and _is_triangular(given, work):
        triangle = _triangle_of(train)
        return given._replace(
            train=triangle, test=test and replace(_triangle_of(test), training=triangle)
        )
    if is_in_memory(points):
        if _is_in_span(given, optimizer, work * train.classes):
            return _in_span(given)
        if points.size >= MIN_POINT_ENTRIES:
            return _without_zero_columns(given)
    return given


def _without_zero_columns(given: Smaller) -> Smaller:
    """Return the problem without the features that are 0 at all training points.

    Their weights stay where they start, at 0: nothing but a penalty has a derivative by them.
    """
    train, test, start, _ = given
    is_used = np.any(train.points, axis=0) | start[:, :, 1:].any(axis=(0, 1))
    if is_used.all() or np.ndim(train.l2) == 2:
        return given
    l2 = train.l2[is_used] if isinstance(train.l2, np.ndarray) else train.l2
    with_bias = np.r_[True, is_used]

    def to_given(weights: Array) -> Array:
        all_weights = np.zeros((*weights.shape[:2], len(with_bias)), weights.dtype)
        all_weights[:, :, with_bias] = weights
        return all_weights

    smaller = train.on(train.points.compress(is_used, axis=1), l2)
    smaller_test = test and smaller.held_out(test.points.compress(is_used, axis=1), test.targets)
    return Smaller(smaller, smaller_test, start[:, :, with_bias], to_given)


def _is_triangular(given: Smaller, work: float) -> bool:
    """Return whether a triangle has the costs of least squares with less work than the points.

    The targets must be real. Of points on a disk it always pays off.
    """
    train = given.train
    x, count, width = train.points, len(train.targets), train.points.shape[1] + 2
    is_least_squares = train.traits.squares and not train.classify and train.classes == 1
    if not is_least_squares or x.dtype != np.float64:
        return False
    if not is_in_memory(x):
        return width <= MAX_TRIANGLE_FEATURES
    setup = DECOMPOSITION_FACTOR * 2 * count * width**2 * (1 + 1 / BLOCK_ROWS_PER_COLUMN)
    saved = 4.0 * (count - width) * (width - 1) * work
    return setup < saved


def _triangle_of(problem: Problem) -> Problem:
    """Return least squares on N + 2 points in place of all, from one pass over blocks.

    With `[1 X y] = Q R` the sum over points of `(s - y)^2` is that over the rows of R, since Q
    keeps lengths (Golub, Van Loan, Matrix Computations, section 5.3), and that over H R of an
    orthogonal H. Helmert's matrix turns the first column of R, 0 but for one entry, to ones.
    """
    x, targets = problem.points, problem.targets
    width = x.shape[1] + 2
    size = max(MIN_BLOCK_ROWS, BLOCK_ROWS_PER_COLUMN * width)
    upper = np.zeros((0, width))
    for block, x_rows in iterate_blocks(x, size):
        rows = np.column_stack([np.ones(len(x_rows)), x_rows, targets[block]])
        upper = np.asarray(np.linalg.qr(np.vstack([upper, rows]), mode="r"))
    # The mean is over the points, of which there are other ones than rows.
    upper *= np.sign(upper[0, 0]) * np.sqrt(len(upper) / len(x))
    rows = linalg.helmert(len(upper), full=True).T @ upper
    return replace(problem, points=np.ascontiguousarray(rows[:, 1:-1]), targets=rows[:, -1])


def _is_in_span(given: Smaller, optimizer: Optimizer, work: float) -> bool:
    """Return whether coordinates of the points' span give the same descent with less work.

    The rule must be rotation equivariant and need gradients alone, and the penalty must treat all
    features equally. The setup of some `4 N K^2` operations must take less than what steps save.
    """
    train, is_equivariant = given.train, optimizer.rotation_equivariant
    is_plain = train.points.dtype == np.float64 and not np.ndim(train.l2)
    if not is_equivariant or optimizer.uses_problem or not is_plain:
        return False
    points, features = train.points.shape
    coordinates = points + len(_nonzero_rows(given.start))
    setup, saved = 4 * features * coordinates**2, 4.0 * points * (features - coordinates) * work
    return MIN_FEATURE_RATIO * coordinates <= features and setup < saved


def _in_span(given: Smaller) -> Smaller:
    """Return the problem in coordinates of the span of the points and the starts.

    The gradient is a sum of points, so that the weights never leave that span. With Q of
    orthonormal columns that span it, the scores of `x w` are those of `(x Q) (Q'w)`.
    """
    train, test, start, _ = given
    rows = np.concatenate([train.points, _nonzero_rows(start).astype(train.points.dtype)])
    axes = linalg.qr(rows.T, mode="economic", check_finite=False)[0]  # Q, (N, K)

    def change(weights: Array, matrix: Array) -> Array:
        """Return weights with the same bias, and their slopes times a matrix."""
        return np.concatenate([weights[:, :, :1], weights[:, :, 1:] @ matrix], axis=2)

    smaller = train.on(train.points @ axes, train.l2)
    smaller_test = test and smaller.held_out(test.points @ axes, test.targets)
    return Smaller(
        smaller, smaller_test, change(start, axes), lambda weights: change(weights, axes.T)
    )


def _nonzero_rows(start: Array) -> Array:
    """Return the rows `(r, N)` of starts `(A, C, N + 1)`, one a score, that are not all 0."""
    rows = start[:, :, 1:].reshape(-1, start.shape[2] - 1)
    return rows[rows.any(axis=1)]
