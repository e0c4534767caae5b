"""Find the least cost with a second-order solver on sphered points, with its gradient norm.

Every invertible affine scheme has the same minimum (it can reach the same scores), so it is solved
for once, where the problem is best conditioned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from normbench.datasets.on_disk.points import (
    TRANSFORMED_ROWS,
    Points,
    give_back,
    iterate_blocks,
    transform_rows,
)
from normbench.engine.hessian import Hessian
from normbench.engine.problem import Array, Problem
from normbench.names import PARTLY, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import Moments
from normbench.theory.separability import proves_separable

TOLERANCE = 1e-10  # of the gradient's norm, relative to that at zero weights
# The length of Newton's step, relative to the weights: where the minimum is at infinity it does not
# shrink.
SMALL_RELATIVE_STEP = 1e-4
STOPPED = "damped Newton, stopped after its largest number of products; theory=full goes on"
MAX_STEPS = 200
MAX_PRODUCTS = 500  # Hessian-vector products a step
MIN_DAMPING = 1e-10  # relative to the Hessian's diagonal


@dataclass(frozen=True)
class Minimum:
    """The least cost of a problem, and its source.

    Attributes:
        value: The least cost g*; the lowest that was seen, where it is not `is_solved`.
        gradient_norm: The norm of the gradient there, relative to that at zero weights; NaN where
            no solver ran.
        source: A text that says where the value is from.
        is_solved: Whether the solver met its tolerance, or the classes are known to be strictly
            separable.
        case: Whether weights attain the least cost, one of `names.CASES`.
        scores: The scores (C, P) of the points at the solver's last weights; None where the solver
            did not meet its tolerance, or the minimum is at infinity.
    """

    value: float
    gradient_norm: float
    source: str
    is_solved: bool
    case: str = UNDECIDED
    scores: Array | None = field(default=None, repr=False, compare=False)

    @property
    def at_infinity(self) -> bool:
        """Whether it is known that no weights attain the least cost."""
        return self.case in (STRICTLY, PARTLY)


def zero_at_infinity(gradient_norm: float = float("nan")) -> Minimum:
    """Return the least cost of strictly separable classes: 0, which no weights attain.

    Args:
        gradient_norm: The relative norm of the gradient where a solver stopped; NaN without one.
    """
    source = "0, at infinity: the classes are strictly separable"
    return Minimum(0.0, gradient_norm, source, True, STRICTLY)


class Sphered(NamedTuple):
    """Points x (P, N) sphered along the r directions above rounding.

    Attributes:
        basis: Uncorrelated points `(P, r)` of mean 0 and variance 1, `(x - mean) axes / sqrt(d)`,
            whose columns span the same space as those of centred x.
        variances: d `(r,)`, those of x along the directions, decreasing.
        axes: The directions, unit vectors as columns `(N, r)`.
    """

    basis: Array
    variances: Array
    axes: Array


def sphere_points(moments: Moments) -> Sphered:
    """Return points x (P, N) sphered, with their variances and directions before the sphering.

    The basis is in memory where x is an array in memory; otherwise it is a memory map.
    """
    mean, (variances, axes) = moments.factor.mean, moments.axes
    matrix = axes / np.sqrt(variances)
    basis = transform_rows(moments.x, lambda rows: (rows - mean) @ matrix, len(variances))
    return Sphered(basis, variances, axes)


def penalty_of_basis(l2: float | Array, variances: Array, axes: Array) -> Array:
    """Return the l2 on weights of a sphered basis that equals a penalty on weights of the points.

    One number becomes `l2 / d` `(r,)`. A matrix, or one number for each feature, becomes a matrix:
    that of the least `w l2 w'` over all weights w of x, in the points' span or not, with the scores
    of the basis's weights b.

    Args:
        l2: One number, one for each feature `(N,)`, or a matrix `(N, N)`.
        variances: d `(r,)`, of `sphere_points`.
        axes: `(N, r)`, of `sphere_points`.

    Returns:
        `(r,)` or `(r, r)`.
    """
    if np.ndim(l2) == 0:
        return np.asarray(l2 / variances)
    penalty = np.diag(l2) if np.ndim(l2) == 1 else np.asarray(l2, dtype=np.float64)
    reduced = axes.T @ penalty @ axes
    # Weights outside the span change no score: minimize the penalty over them (Schur complement).
    null_axes = linalg.null_space(axes.T)
    if null_axes.shape[1]:
        coupling = axes.T @ penalty @ null_axes
        reduced = reduced - coupling @ linalg.pinvh(null_axes.T @ penalty @ null_axes) @ coupling.T
    scale = np.sqrt(variances)
    return np.asarray(reduced / np.outer(scale, scale))


def sphere_problem(problem: Problem, moments: Moments) -> Problem:
    """Return the same problem on its points sphered, `(P, r)`, which has the same least cost.

    Its penalty is that of `penalty_of_basis`; `moments` are those of its points.
    """
    basis, variances, axes = sphere_points(moments)
    has_penalty = np.any(problem.l2)
    return problem.on(basis, penalty_of_basis(problem.l2, variances, axes) if has_penalty else 0.0)


def spans_same_scores(basis: Array, moments: Moments) -> bool:
    """Return whether normalized points and the data have the same affine scores.

    They then share their least cost. True under every invertible affine scheme and under no other:
    the columns of the normalized points lie in the span of the basis and the constants, and fill
    it.

    Args:
        basis: The points of the data set, sphered by `sphere_points`, (P, r).
        moments: The moments of the normalized points (P, M).

    Returns:
        Whether that holds, up to rounding.
    """
    if moments.live != basis.shape[1]:
        return False
    z, (mean, _, deviations) = moments.x, moments.factor
    products, squared_residuals = _products(basis, z, mean), np.zeros_like(mean)
    for block, rows in iterate_blocks(z, TRANSFORMED_ROWS):
        squared_residuals += np.square(rows - mean - basis[block] @ products).sum(axis=0)
        give_back(basis[block])
    # Relative to each centred column; the second term is for columns that are constant.
    return bool(np.all(np.sqrt(squared_residuals / len(z)) <= 1e-6 * deviations + 1e-12))


def _products(rows: Array, x: Points, mean: Array) -> Array:
    """Return `rows' (x - mean) / P` `(r, N)` of rows (P, r) and points (P, N), block by block."""
    products = np.zeros((rows.shape[1], len(mean)))
    for block, x_rows in iterate_blocks(x, TRANSFORMED_ROWS):
        products += rows[block].T @ (x_rows - mean)
        give_back(rows[block])
    return products / len(x)


def weights_of(scores: Array, z: Points) -> Array:
    """Return the weights under which points have given scores, the shortest of several.

    Args:
        scores: The scores (C, P) of the points, affine in z.
        z: The points (P, M).

    Returns:
        `(C, M + 1)`, bias first.
    """
    moments = Moments(z)
    mean, (variances, axes) = moments.factor.mean, moments.axes
    # The regression of the scores on the sphered points, in the coordinates of z.
    slopes = (_products(scores.T, z, mean) @ axes / variances) @ axes.T
    return np.column_stack([scores.mean(axis=1) - slopes @ mean, slopes])


def minimize(problem: Problem, max_products: float = np.inf) -> Minimum:
    """Return the least mean cost of a problem whose points are sphered.

    Damped Newton from zero weights, halving the step until the cost falls: Cholesky on the Hessian
    where it is small, conjugate gradients on Hessian-vector products where it is not.

    Args:
        problem: A problem whose points (P, r) are those of `sphere_points`, and whose l2 is that of
            `penalty_of_basis`, where the cost has a penalty on the weights of the points before
            sphering.
        max_products: The number of Hessian-vector products after which no further step is made.

    Returns:
        The least cost, with the scores (C, P) at it where the solver met its tolerance.
    """
    weights = np.zeros(problem.shape)
    cost, gradient = _evaluate(problem, weights)
    first_norm = norm = float(np.linalg.norm(gradient))
    if first_norm == 0:
        return _with_scores(_flat_start(problem, weights, cost), problem, weights)
    penalized = bool(np.any(problem.l2))
    relative_step, products = np.inf, 0
    for _ in range(MAX_STEPS):
        # With a penalty the least cost is above 0, even if some weights separate the classes.
        if not penalized and proves_separable(problem, weights):
            return zero_at_infinity(norm / first_norm)
        if norm <= TOLERANCE * first_norm and relative_step <= SMALL_RELATIVE_STEP:
            minimum = Minimum(cost, norm / first_norm, "damped Newton", True)
            return _with_scores(minimum, problem, weights)
        if products >= max_products:
            return Minimum(cost, norm / first_norm, STOPPED, False)
        step, step_products = _newton_step(problem.hessian(weights), gradient, norm / first_norm)
        products += step_products
        step_length = _backtrack(problem, weights, step, cost, float(np.sum(step * gradient)))
        if step_length == 0:  # no length lowers the cost
            break
        weights = weights + step_length * step
        relative_step = step_length * float(np.linalg.norm(step) / np.linalg.norm(weights))
        cost, gradient = _evaluate(problem, weights)
        norm = float(np.linalg.norm(gradient))
    minimum = _stalled_minimum(cost, norm / first_norm, float(relative_step))
    return _with_scores(minimum, problem, weights)


def _with_scores(minimum: Minimum, problem: Problem, weights: Array) -> Minimum:
    """Return a minimum with the scores (C, P) at the weights where the solver met its tolerance."""
    if not minimum.is_solved:
        return minimum
    scores = [problem.scores(weights, rows) for _, rows in iterate_blocks(problem.points)]
    return replace(minimum, scores=np.concatenate(scores, axis=1))


def _evaluate(problem: Problem, weights: Array) -> tuple[float, Array]:
    """Return the cost and the gradient (C, r + 1) at the weights (C, r + 1) of one model."""
    evaluation = problem.evaluate(weights[None])
    assert evaluation.gradient is not None
    return float(evaluation.costs[0]), evaluation.gradient[0]


def _flat_start(problem: Problem, weights: Array, cost: float) -> Minimum:
    """Return the minimum of a convex cost whose gradient is 0 at zero weights.

    Zero weights are then the minimum. Where the cost has no second derivative there either, the
    gradient may be that of a kink, and the minimum is unknown.

    Args:
        problem: The problem.
        weights: Zero weights (C, r + 1).
        cost: The cost there.
    """
    if not problem.hessian(weights).is_zero:
        return Minimum(cost, 0.0, "zero weights: the gradient is 0 there", True)
    return Minimum(cost, float("nan"), "not known: no second derivative at zero weights", False)


def _stalled_minimum(cost: float, norm: float, relative_step: float) -> Minimum:
    """Return the minimum where Newton's steps ended before the tolerance was met.

    It still counts as reached where the gradient is small, for one of two reasons: the weights grow
    for ever, or rounding stops the descent.

    Args:
        cost: The cost at the last weights.
        norm: The norm of the gradient there, relative to that at zero weights.
        relative_step: The length of the last step, relative to the weights.
    """
    if norm <= 1e-6 and relative_step > SMALL_RELATIVE_STEP:
        return Minimum(cost, norm, "damped Newton, weights still growing", True)
    if norm <= 1e-7:  # rounding stops the descent of the cost before that of the gradient
        return Minimum(cost, norm, "damped Newton, to rounding", True)
    return Minimum(cost, norm, "damped Newton, which did not come to rest", False)


def _newton_step(hessian: Hessian, gradient: Array, relative: float) -> tuple[Array, int]:
    """Return the step `-H^-1 g`, and the number of Hessian-vector products that it took.

    The step is exact, but for damping, where the matrix is small; otherwise conjugate gradients
    solve for it to a relative residual.

    Args:
        hessian: The Hessian H at the weights.
        gradient: The gradient g there (C, r + 1).
        relative: The norm of the gradient, over that of the first one. The residual falls with it,
            so that the steps approach Newton's.
    """
    if hessian.is_small:
        return _solve(hessian.matrix(), gradient, relative), 0
    return _conjugate_gradients(hessian.times, -gradient, min(0.5, np.sqrt(relative)))


def _solve(matrix: Array, gradient: Array, relative: float) -> Array:
    """Return `-(H + mu I)^-1 g` in the shape of g, by Cholesky's decomposition.

    mu falls with the gradient, and grows until the decomposition succeeds.

    Args:
        matrix: H, `(D, D)`.
        gradient: g, of D entries.
        relative: The norm of the gradient, over that of the first one.
    """
    scale = float(np.diag(matrix).max(initial=0.0)) or 1.0
    damping = scale * max(MIN_DAMPING, 1e-8 * min(relative, 1.0))  # mu
    while True:
        try:
            factor = linalg.cho_factor(matrix + damping * np.eye(len(matrix)))
            return np.asarray(-linalg.cho_solve(factor, gradient.ravel()).reshape(gradient.shape))
        except linalg.LinAlgError:
            damping *= 10


def _conjugate_gradients(
    times: Callable[[Array], Array], right_side: Array, share: float
) -> tuple[Array, int]:
    """Return an approximate solution of `H s = right_side`, and the number of products.

    The solution starts at 0, so that it has no part along directions without curvature. The
    iteration ends early where a curvature is not positive, or after `MAX_PRODUCTS` products.

    Args:
        times: Returns H times a direction, in the shape of the weights.
        right_side: The right side, in the same shape.
        share: The norm of the residual at which to end, as a share of that of the right side.
    """
    solution = np.zeros_like(right_side)
    residual, direction = right_side.copy(), right_side.copy()
    squared_norm = float(np.sum(right_side * right_side))  # of the residual
    squared_goal = share**2 * squared_norm
    for product_count in range(1, MAX_PRODUCTS + 1):
        product = times(direction)
        curvature = float(np.sum(direction * product))
        if curvature <= 0:
            # At the first product the right side, a descent direction, is the only one known.
            return (solution if solution.any() else right_side), product_count
        solution += squared_norm / curvature * direction
        residual -= squared_norm / curvature * product
        previous_squared_norm, squared_norm = squared_norm, float(np.sum(residual * residual))
        if squared_norm <= squared_goal:
            break
        direction = residual + squared_norm / previous_squared_norm * direction
    return solution, product_count


def _backtrack(problem: Problem, weights: Array, step: Array, cost: float, slope: float) -> float:
    """Return the first of the lengths 1, 1/2, 1/4, .. that lowers the cost enough, or 0 for none.

    Enough is Armijo's condition with 1e-4, up to rounding of the cost.

    Args:
        problem: The problem.
        weights: The weights (C, r + 1) before the step.
        step: The step of length 1 (C, r + 1).
        cost: The cost at the weights.
        slope: The derivative of the cost along the step, not positive.
    """
    step_length = 1.0
    rounding = 4 * np.finfo(np.float64).eps * abs(cost)
    while step_length > 1e-10:
        trial_cost = problem.evaluate(
            (weights + step_length * step)[None], with_gradient=False
        ).costs[0]
        if trial_cost <= cost + 1e-4 * step_length * slope + rounding:
            return step_length
        step_length /= 2
    return 0.0
