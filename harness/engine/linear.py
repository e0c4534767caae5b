"""Scores that are linear in the weights: their sums over points, and their second derivatives.

A cost is a sum over points, so its second derivative in the scores of one point is a block `(C,
C)`; autograd computes all blocks in C passes, for any cost. The Hessian times a vector is then two
products with the points.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from autograd import grad
from autograd.core import make_vjp

from normbench.datasets.on_disk.points import Points, as_array, give_back
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine import threads
from normbench.engine.hessian import Hessian
from normbench.engine.problem import Array, Cost, Evaluation, Problem, Share, differentiate
from normbench.engine.settings import Settings

# The points and scores of a block, in bytes. Measured at 784 features: smaller blocks slow the
# products down by more than a second trip to memory takes; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
HESSIAN_ROWS = 4096  # points of a block of a Hessian: 25 MB of float64 at 784 features
# Scores times (features plus the elementwise work of a score) from which a second thread pays.
PARALLEL_WORK = 20_000_000
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
# A score of 0 by rounding, see `Linear.prepare`. Measured in float64: up to 3e-12 where 1,600
# points are sphered together, in coordinates of their span.
ZERO_SCORE = {"float64": 1e-10, "float32": 1e-6}


@dataclass(frozen=True)
class Linear:
    """Scores `s = w0 + x w` of weights `(C, N + 1)`, bias first.

    leaves_out_class: of a cost that a number added to all scores of a point does not change, C - 1
    rows of weights are multiplied: the last class's weights are subtracted from the others', and
    its derivative is minus the sum of theirs. Rules that amplify rounding need all C rows.
    """

    leaves_out_class: bool = False
    is_linear = True

    def shape(self, features: int, scores: int) -> tuple[int, ...]:
        """Return the shape of one model's weights, `(C, N + 1)`."""
        return scores, features + 1

    def start(self, settings: Settings, features: int, scores: int, rng: Any) -> Array:
        """Return normal numbers `(starts, *shape)` of the scale of the settings to start from."""
        shape = settings.starts, *self.shape(features, scores)
        return np.asarray(settings.start_scale * rng.standard_normal(shape))

    def shares(self, problem: Problem, runs: int, points: int, is_step: bool) -> list[Share]:
        """Return what each thread sums of so many runs and points, in blocks: a part of the points.

        is_step: whether the points are those that a step sees, and not those of a record.
        """
        multiplied = points * (problem.shape[1] + ELEMENTWISE)
        count = problem.count_threads(runs * problem.classes * multiplied / PARALLEL_WORK)
        # How many points are evaluated at once: they stay in a cache with their scores.
        width = 0 if isinstance(problem.points, SparsePoints) else problem.points.shape[1]
        bytes_per_point = problem.points.dtype.itemsize * (runs * problem.classes + width)
        size = max(1, BLOCK_BYTES // bytes_per_point)
        spans = threads.split(slice(0, points), count)
        return [[(slice(0, runs), threads.blocks(span, size))] for span in spans]

    def prepare(self, problem: Problem, weights: Array, is_step: bool) -> Any:
        """Return what the sums over all blocks of points need of weights `(R, *shape)`.

        They are the weights as they are multiplied with the points, `(R, C, N + 1)` or, without the
        last class, `(C - 1, R, N + 1)`; and of held-out points a bound for each run `(R,)`, below
        which scores are 0 but for rounding. It is `ZERO_SCORE * sqrt(D)` of the largest score whose
        terms do not cancel, D = C (N + 1). Each feature's size meets its own weight, so that units
        of the features do not matter.
        """
        bounds = None
        if problem.training is not None and problem.classify:
            share = ZERO_SCORE[weights.dtype.name] * weights[0].size ** 0.5
            bounds = (np.abs(weights) @ (share * problem.entry_sizes)).max(axis=1)
        if not self._is_class_left_out(problem):
            return np.ascontiguousarray(weights), bounds
        by_class = weights.swapaxes(0, 1)
        return np.subtract(by_class[:-1], by_class[-1], order="C"), bounds

    def sums(self, problem: Problem, prepared: Any, x: Any, y: Array, with_gradient: bool) -> Any:
        """Return the sums over points x (p, N) with targets y (p,), without the penalty."""
        weights, bounds = prepared
        first, second, width = weights.shape
        is_left_out = self._is_class_left_out(problem)
        scores = np.empty((first + is_left_out, second, len(y)), weights.dtype)
        scores[first:] = 0
        multiplied = scores[:first].reshape(first * second, -1)
        multiply(weights.reshape(-1, width), x, multiplied)
        by_run = scores.swapaxes(0, 1) if is_left_out else scores
        if bounds is not None:
            # Points that are sphered together with the training points can be orthogonal to all of
            # these. Weights that descend from zero give them the score 0, and rounding must not
            # choose their class.
            is_rounding = np.abs(by_run) < bounds[:, None, None]
            if is_rounding.any():  # else the assignment would take as long as the comparison
                by_run[is_rounding] = 0
        costs, counts = differentiate(problem, by_run, y, with_gradient)
        if not with_gradient:
            return Evaluation(costs, None, counts)
        gradient = np.empty_like(weights)
        multiply_back(multiplied, x, gradient.reshape(-1, width))
        if is_left_out:
            both = np.concatenate([gradient, -gradient.sum(axis=0, keepdims=True)])
            gradient = np.ascontiguousarray(both.swapaxes(0, 1))
        return Evaluation(costs, gradient, counts)

    def _is_class_left_out(self, problem: Problem) -> bool:
        """Return whether the weights of one class less are multiplied."""
        # Of a cost with kinks, rounding would choose the derivative where scores are equal.
        is_smooth = problem.traits.shift_invariant and not problem.traits.piecewise
        is_fused = hasattr(problem.cost, "fused") and problem.classes > 1
        return self.leaves_out_class and is_smooth and is_fused

    def descended(self, problem: Problem) -> slice:
        """Return which of the last axis of the weights are descended: all."""
        return slice(None)

    def penalty(self, problem: Problem, weights: Array) -> tuple[Array, Array]:
        """Return the penalty `(R,)` at weights `(R, *shape)` and its gradient `(R, *shape)`.

        It is `sum l2 w^2`, or `sum w l2 w'` of a matrix, not on the bias.
        """
        slopes = weights[:, :, 1:]
        products = times_l2(problem.l2, slopes)
        gradient = np.zeros_like(weights)
        gradient[:, :, 1:] = 2 * products
        return np.einsum("rcn,rcn->r", products, slopes), gradient

    def scores(self, problem: Problem, weights: Array, x: Array) -> Array:
        """Return the scores `(C, p)` of points (p, N) under the weights of one model."""
        return np.asarray(weights[:, 1:] @ x.T + weights[:, :1])

    def hessian(self, problem: Problem, weights: Array) -> Hessian:
        """Return the second derivatives at the weights of one model."""
        weights = weights.astype(np.float64, copy=False)
        scores = np.empty((len(weights), len(problem.targets)))
        for block, x in iterate_float64(problem.points):
            multiply(weights, x, scores[:, block])
        second = score_curvatures(problem.cost, scores, problem.targets)
        return LinearHessian(problem.points, second, problem.l2)


def score_curvatures(cost: Cost, scores: Array, targets: Array) -> Array:
    """Return each point's second derivatives in its scores.

    Args:
        cost: A function of scores `(1, C, P)` and targets; its plain `formula` is differentiated
            where it has a fused derivative, which autograd cannot differentiate again.
        scores: (C, P).
        targets: (P,).

    Returns:
        `(C, C, P)`: entry `[c, d, p]` is the second derivative of point p's cost in its scores c
        and d, not divided by P. Each c takes one backward pass.

    Raises:
        ValueError, TypeError, NotImplementedError: Autograd has no second derivative of the cost.
    """
    plain = getattr(cost, "formula", cost)
    slopes = grad(lambda s: plain(s[None], targets)[0])
    # Zero times s is added so that a constant slope depends on s: autograd warns otherwise.
    pull_back, _ = make_vjp(lambda s: slopes(s) + 0 * s, scores)
    # For each c the derivatives of the slopes in score c, of all points at once.
    units = (np.broadcast_to(unit[:, None], scores.shape) for unit in np.eye(len(scores)))
    return np.stack([pull_back(unit) for unit in units])


class LinearHessian(Hessian):
    """The Hessian of a cost of linear scores, as an operator on weights `(C, N + 1)`.

    x: points (P, N), an array or sparse. second: `(C, C, P)`, the points' second derivatives in
    their scores, from `score_curvatures`. l2: adds `2 l2`, not on the bias: one number, one for
    each feature `(N,)` or a matrix `(N, N)`.
    """

    def __init__(self, x: Any, second: Array, l2: float | Array = 0.0) -> None:
        self.x, self.second, self.l2 = x, second, l2
        self.shape = len(second), x.shape[1] + 1
        self.is_zero = not (second.any() or np.any(l2))

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        product, of_block = np.zeros_like(direction), np.empty_like(direction)
        for block, x in iterate_float64(self.x):
            scores = np.empty((len(direction), len(x)))
            multiply(direction, x, scores)
            multiply_back(np.einsum("cdp,dp->cp", self.second[..., block], scores), x, of_block)
            product += of_block
        product /= len(self.x)
        product[:, 1:] += 2 * times_l2(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`.

        Its block of classes c and d is the mean over points of `h_cd [1 x]'[1 x]`, with h of
        `second`; the penalty is added.
        """
        classes, width = self.shape
        hessian = np.zeros((classes, width, classes, width))
        for block, x in iterate_float64(self.x):
            points = np.insert(as_array(x), 0, 1, axis=1)
            for d, c in combinations_with_replacement(range(classes), 2):  # the lower blocks
                hessian[c, :, d] += (points * self.second[c, d, block][:, None]).T @ points
        hessian /= len(self.x)
        penalty = 2 * np.asarray(self.l2, dtype=np.float64)
        if penalty.ndim < 2:
            penalty = np.diag(np.broadcast_to(penalty, (width - 1,)))
        for d, c in combinations_with_replacement(range(classes), 2):
            hessian[d, :, c] = hessian[c, :, d]  # the upper blocks, by symmetry
            hessian[c, 1:, d, 1:] += penalty * (c == d)
        return hessian.reshape(self.size, -1)


def times_l2(l2: float | Array, slopes: Array) -> Array:
    """Return slopes times an l2: half of the gradient of the penalty `sum l2 w^2`, or `w l2 w'`.

    Args:
        l2: One number, one for each feature `(N,)`, or a symmetric matrix `(N, N)`.
        slopes: The weights without their bias, `(.., N)`.

    Returns:
        `(.., N)`.
    """
    return np.asarray(slopes @ l2 if np.ndim(l2) == 2 else l2 * slopes)


def multiply(weights: Array, x: Points, out: Array) -> None:
    """Write the scores of points under k rows of weights.

    Args:
        weights: `(k, N + 1)`, bias first.
        x: Points (p, N).
        out: `(k, p)`.
    """
    slopes = weights[:, 1:]
    if isinstance(x, SparsePoints):  # the left factor, so that the product is transposed
        out[...] = (x.csr @ slopes.T).T
        out -= (slopes @ x.offset)[:, None]
    else:
        np.matmul(slopes, x.T, out=out)
    out += weights[:, :1]


def multiply_back(derivative: Array, x: Points, out: Array) -> None:
    """Write derivatives by scores times the points `[1 x]`.

    Args:
        derivative: `(k, p)`.
        x: Points (p, N).
        out: `(k, N + 1)`.
    """
    derivative.sum(axis=1, out=out[:, 0])
    if isinstance(x, SparsePoints):
        out[:, 1:] = (x.csr.T @ derivative.T).T
        out[:, 1:] -= out[:, :1] * x.offset
    else:
        np.matmul(derivative, x, out=out[:, 1:])


def iterate_float64(x: Points) -> Iterator[tuple[slice, Any]]:
    """Yield the blocks of points as slices of their rows, and the points themselves in float64."""
    for block in threads.blocks(slice(0, len(x)), HESSIAN_ROWS):
        rows = x[block]
        yield block, rows if rows.dtype == np.float64 else rows.astype(np.float64)
        give_back(rows)
