"""Scores that are linear in the weights: their sums over points, and their second derivatives."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from normbench.datasets.on_disk.points import give_back
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine import threads
from normbench.engine.hessian import Hessian, LinearHessian, score_curvatures, times_l2
from normbench.engine.problem import QUIET, Array, Problem, Share, Sums, differentiate
from normbench.engine.products import in_float64, multiply, multiply_back

# The points and scores of a block, in bytes. Measured at 784 features: smaller blocks slow the
# products down by more than a second trip to memory takes; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
# Scores times (features plus the elementwise work of a score) from which a second thread pays.
PARALLEL_WORK = 20_000_000
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
# A score of 0 by rounding, as a share of what `bound_rounding` multiplies. Measured in float64: up
# to 3e-12 where 1,600 points are sphered together, in coordinates of their span.
ZERO_SCORE = {"float64": 1e-10, "float32": 1e-6}


class Prepared(NamedTuple):
    """Weights as they are multiplied with the points.

    rows: `(k, N + 1)`, by run and then by score; without the last class by class and then by run.
    runs: R. bounds: `(R,)`, below which scores of held-out points are 0 but for rounding; None
    where all scores stay as they are.
    """

    rows: Array
    runs: int
    bounds: Array | None


@dataclass(frozen=True)
class Linear:
    """Scores `s = w0 + x w` of weights `(C, N + 1)`, bias first.

    has_bias_column: the points have a first column for the bias, which is 1 elsewhere.
    leaves_out_class: of a cost that a number added to all scores of a point does not change, C - 1
    rows of weights are multiplied: the last class's weights are subtracted from the others', and
    its derivative is minus the sum of theirs. Rules that amplify rounding need all C rows.
    """

    has_bias_column: bool = False
    leaves_out_class: bool = False
    is_linear = True

    def shape(self, features: int, scores: int) -> tuple[int, ...]:
        """Return the shape of one model's weights, `(C, N + 1)`."""
        return scores, features if self.has_bias_column else features + 1

    def shares(self, problem: Problem, runs: int, points: int, is_step: bool) -> list[Share]:
        """See `Model.shares`: threads share the points."""
        multiplied = points * (problem.shape[1] + ELEMENTWISE)
        count = problem.count_threads(runs * problem.classes * multiplied / PARALLEL_WORK)
        size = self._points_of_block(problem, runs)
        spans = threads.split(slice(0, points), count)
        return [[(slice(0, runs), threads.blocks(span, size))] for span in spans]

    def prepare(self, problem: Problem, weights: Array, is_step: bool) -> Prepared:
        """See `Model.prepare`."""
        bounds = None
        if problem.training is not None and problem.classify:
            bounds = bound_rounding(weights, problem.entry_sizes)
        # Of a cost with kinks, rounding would choose the derivative where scores are equal.
        is_smooth = problem.traits.shift_invariant and not problem.traits.piecewise
        is_fused = hasattr(problem.cost, "fused") and problem.classes > 1
        if self.leaves_out_class and is_smooth and is_fused:
            by_class = weights.swapaxes(0, 1)
            weights = np.subtract(by_class[:-1], by_class[-1], order="C")
            return Prepared(weights.reshape(-1, weights.shape[-1]), weights.shape[1], bounds)
        rows = np.ascontiguousarray(weights).reshape(-1, weights.shape[-1])
        return Prepared(rows, len(weights), bounds)

    def sums(
        self, problem: Problem, prepared: Prepared, x: Any, targets: Array, with_gradient: bool
    ) -> Sums:
        """See `Model.sums`."""
        rows, runs, bounds = prepared
        is_left_out = len(rows) < runs * problem.classes
        scores = threads.scratch("scores", (runs * problem.classes, len(targets)), rows.dtype)
        derivative = scores[: len(rows)]
        if self.has_bias_column:
            np.matmul(rows, x.T, out=derivative)
        else:
            multiply(rows, x, derivative)
        scores[len(rows) :] = 0  # of a class that is left out
        if is_left_out:
            by_run = scores.reshape(problem.classes, runs, -1).swapaxes(0, 1)
        else:
            by_run = scores.reshape(runs, problem.classes, -1)
        if bounds is not None:
            # Points that are sphered together with the training points can be orthogonal to all of
            # these. Weights that descend from zero give them the score 0, and rounding must not
            # choose their class.
            is_rounding = np.abs(by_run) < bounds[:, None, None]
            if is_rounding.any():  # else the assignment would take as long as the comparison
                by_run[is_rounding] = 0
        costs, counts = differentiate(
            problem.cost, by_run, targets, problem.classify, with_gradient
        )
        if not with_gradient:
            return Sums(costs, counts, None)
        slopes = np.empty(rows.shape, rows.dtype)
        if self.has_bias_column:
            np.matmul(derivative, x, out=slopes)
        else:
            multiply_back(derivative, x, slopes)
        shape = (runs, problem.classes, rows.shape[1])
        if not is_left_out:
            return Sums(costs, counts, slopes.reshape(shape))
        by_class = slopes.reshape(-1, runs, rows.shape[1])
        gradient = np.empty(shape, rows.dtype)
        gradient[:, :-1] = by_class.swapaxes(0, 1)
        np.negative(by_class.sum(axis=0), out=gradient[:, -1])
        return Sums(costs, counts, gradient)

    def descended(self, problem: Problem) -> slice:
        """See `Model.descended`: all weights."""
        return slice(None)

    def penalty(self, problem: Problem, weights: Array) -> tuple[Array, Array]:
        """See `Model.penalty`: `sum l2 w^2`, or `sum w l2 w'` of a matrix, not on the bias."""
        slopes = weights[:, :, 1:]
        products = times_l2(problem.l2, slopes)
        gradient = np.zeros_like(weights)
        gradient[:, :, 1:] = 2 * products
        return np.einsum("rcn,rcn->r", products, slopes), gradient

    def scores(self, problem: Problem, weights: Array, x: Array) -> Array:
        """See `Model.scores`."""
        return np.asarray(weights[:, 1:] @ x.T + weights[:, :1])

    def hessian(self, problem: Problem, weights: Array) -> Hessian:
        """See `Model.hessian`."""
        weights = weights.astype(np.float64, copy=False)
        scores = np.empty((len(weights), len(problem.targets)))
        size = self._points_of_block(problem, 1)
        for block in threads.blocks(slice(0, len(problem.targets)), size):
            x = problem.points[block]
            multiply(weights, in_float64(x), scores[:, block])
            give_back(x)
        second = score_curvatures(problem.cost, scores, problem.targets)
        return LinearHessian(problem.points, second, problem.l2)

    def _points_of_block(self, problem: Problem, runs: int) -> int:
        """Return how many points are evaluated at once: they stay in a cache with their scores."""
        width = 0 if isinstance(problem.points, SparsePoints) else problem.points.shape[1]
        numbers = runs * problem.classes + width
        return max(1, BLOCK_BYTES // (problem.points.dtype.itemsize * numbers))


def bound_rounding(weights: Array, sizes: Array) -> Array:
    """Return the size below which a run's scores are 0 but for rounding.

    Args:
        weights: `(R, C, N + 1)`.
        sizes: The sizes of the entries of a point `[1 x]` `(N + 1,)`.

    Returns:
        A bound for each run `(R,)`: `ZERO_SCORE * sqrt(D)` of the largest score whose terms do not
        cancel, `max_c sum |w_c| sizes`, with D = C (N + 1). Each feature's size meets its own
        weight, so that units of the features do not matter.
    """
    factor = ZERO_SCORE[weights.dtype.name] * weights[0].size ** 0.5
    with QUIET():
        return np.asarray((np.abs(weights) @ (factor * sizes)).max(axis=1))
