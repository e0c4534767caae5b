"""The least cost there is: by a second-order solver, on sphered points, with its gradient norm.

The minimum is the same under every invertible affine scheme (the same scores can be had), so it
is sought once, where the problem is best conditioned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg

from normbench.engine.hessian import Hessian
from normbench.engine.problem import Array, Linear
from normbench.names import PARTLY, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import blocks, compute_mean, mean_and_covariance
from normbench.theory.separability import separates

TOLERANCE = 1e-10  # of the gradient's norm, relative to that at zero weights
SMALL_STEP = 1e-4  # of Newton's step relative to the weights: at infinity it does not shrink
STOPPED = "damped Newton, stopped: more work than the descent; theory=full finishes it"
MOST_STEPS = 200
MOST_PRODUCTS = 500  # Hessian-vector products a step
LEAST_DAMPING = 1e-10  # relative to the Hessian's diagonal


@dataclass(frozen=True)
class Minimum:
    """The least cost g*, and how it is known.

    gradient_norm: relative to that at zero weights; NaN where there was no solver. source says
    where the number is from. reached: the solver came to its tolerance, or the classes are known
    to be strictly separable. case: whether weights attain it, one of `names.CASES`. scores (C, P):
    of the points at the solver's last weights, where it came to its tolerance.
    """

    value: float
    gradient_norm: float
    source: str
    reached: bool
    case: str = UNDECIDED
    scores: Array | None = field(default=None, repr=False, compare=False)

    @property
    def at_infinity(self) -> bool:
        """Whether it is known that no weights attain it."""
        return self.case in (STRICTLY, PARTLY)


def zero_at_infinity(gradient_norm: float = float("nan")) -> Minimum:
    """Return the least cost of strictly separable classes."""
    source = "0, at infinity: the classes are strictly separable"
    return Minimum(0.0, gradient_norm, source, True, STRICTLY)


def sphere(x: Array) -> tuple[Array, Array]:
    """Return points `(P, r)` that span what centred x (P, N) spans, each of variance 1; and d.

    d `(r,)`: the variances, decreasing, of the directions that are not rounding.
    """
    mean, covariance = mean_and_covariance(x)
    values, vectors = linalg.eigh(covariance, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > len(values) * np.finfo(np.float64).eps * max(values[0], 0.0)
    values, vectors = values[kept], vectors[:, kept]
    basis = np.empty((len(x), len(values)))
    for block in blocks(len(x)):
        basis[block] = (x[block] - mean) @ vectors / np.sqrt(values)
    return basis, values


def penalty_of_basis(l2: float | Array, x: Array, basis: Array, variances: Array) -> Array:
    """Return the l2 of weights b on a basis of points x (P, N), from `sphere`, of weights w on x.

    One number becomes `l2 / d` `(r,)`. A matrix, or one number a feature, becomes a matrix: that of
    the least `w l2 w'` over all w, in the points' span or not, that give the scores of b.
    """
    if np.ndim(l2) == 0:
        return np.asarray(l2 / variances)
    along = _products(basis, x, compute_mean(x)).T / np.sqrt(variances)  # the points' axes, (N, r)
    whole = np.diag(l2) if np.ndim(l2) == 1 else np.asarray(l2, dtype=np.float64)
    kept = along.T @ whole @ along
    across = linalg.null_space(along.T)
    if across.shape[1]:
        mixed = along.T @ whole @ across
        kept = kept - mixed @ linalg.pinvh(across.T @ whole @ across) @ mixed.T
    scale = np.sqrt(variances)
    return np.asarray(kept / np.outer(scale, scale))


def sphered(problem: Linear) -> Linear:
    """Return a problem on its points sphered, `(P, r)`, with the penalty of `penalty_of_basis`."""
    rows = problem.surrogate.moment_rows
    basis, variances = sphere(rows)
    l2: float | Array = 0.0
    if np.any(problem.l2):
        l2 = penalty_of_basis(problem.l2, rows, basis, variances)
    if problem.surrogate.holds_all_points:
        return problem.on(basis, l2)
    mean = rows.mean(axis=0)
    axes = _products(basis, rows, mean).T / np.sqrt(variances)
    return problem.on(problem.points.mapped((axes / np.sqrt(variances)).T, mean), l2)


def spans_the_same(basis: Array, z: Array) -> bool:
    """Return whether normalized points z (P, M) and the data have the same affine scores.

    basis: the data's, from `sphere`. True under every invertible affine scheme and under no other:
    the columns of z lie in the span of the basis and the constants, and fill it.
    """
    mean, covariance = mean_and_covariance(z)
    along, left = _products(basis, z, mean), np.zeros_like(mean)
    for block in blocks(len(z)):
        left += np.square(z[block] - mean - basis[block] @ along).sum(axis=0)
    size = np.sqrt(len(z) * np.maximum(np.diag(covariance), 0.0))
    if np.any(np.sqrt(left) > 1e-6 * size + 1e-12):
        return False
    values = np.linalg.eigvalsh(covariance)
    bound = len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    return int(np.count_nonzero(values > bound)) == basis.shape[1]


def _products(basis: Array, x: Array, mean: Array) -> Array:
    """Return `basis' (x - mean) / P` `(r, N)` of points x (P, N), in float64, block by block."""
    products = np.zeros((basis.shape[1], len(mean)))
    for block in blocks(len(x)):
        products += basis[block].T @ (x[block] - mean)
    return products / len(x)


def minimum(problem: Linear, classes: int, allowance: float = np.inf) -> Minimum:
    """Return the least mean cost of a problem whose points (P, r) are those of `sphere`.

    Its l2 is that of `penalty_of_basis`, where the cost has one on the weights of the points
    before they were sphered. Damped Newton, halving until the cost
    falls: Cholesky on the Hessian where it is small, conjugate gradients on Hessian-vector
    products where it is not. allowance: how many passes over the points may be made, each of the
    work of a gradient; a count and not a clock, so that the answer repeats.
    """
    found, weights = _newton(problem, classes, allowance)
    if not found.reached or found.at_infinity:
        return found
    return replace(found, scores=problem.scores(weights, problem.surrogate.moment_rows))


def weights_of(scores: Array, z: Array) -> Array:
    """Return the weights `(C, M + 1)`, bias first, under which rows z (n, M) have scores (C, n).

    The scores are affine in z; of several such weights, the shortest.
    """
    basis, variances = sphere(z)
    mean = compute_mean(z)
    scale = np.sqrt(variances)
    along = _products(basis, z, mean).T / scale  # the points' axes, (M, r)
    slopes = (scores @ basis / (len(z) * scale)) @ along.T
    return np.column_stack([scores.mean(axis=1) - slopes @ mean, slopes])


def _newton(problem: Linear, classes: int, allowance: float) -> tuple[Minimum, Array]:
    """Return what damped Newton comes to, and its last weights."""
    weights = np.zeros((classes, problem.shape[1]))
    here, gradient = _evaluate(problem, weights)
    first = norm = float(np.linalg.norm(gradient))
    if first == 0:
        return _flat_start(problem, weights, here), weights
    penalized, effort = bool(np.any(problem.l2)), problem.effort
    relative_step, passes = np.inf, 2.0
    for _ in range(MOST_STEPS):
        if not penalized and separates(problem, weights):
            return zero_at_infinity(norm / first), weights
        if norm <= TOLERANCE * first and relative_step <= SMALL_STEP:
            return Minimum(here, norm / first, "damped Newton", True), weights
        if passes + effort.made > allowance:
            return Minimum(here, norm / first, STOPPED, False), weights
        step, products = _newton_step(problem.hessian(weights), gradient, norm / first)
        passes += 2 + effort.made + (effort.matrix or products * effort.product)
        size = _backtrack(problem, weights, step, here, float(np.sum(step * gradient)))
        if size == 0:
            break
        weights = weights + size * step
        relative_step = size * float(np.linalg.norm(step) / np.linalg.norm(weights))
        here, gradient = _evaluate(problem, weights)
        norm = float(np.linalg.norm(gradient))
    return _stopped(here, norm / first, float(relative_step)), weights


def _evaluate(problem: Linear, weights: Array) -> tuple[float, Array]:
    """Return cost and gradient at the weights of one model."""
    here = problem.evaluate(weights[None])
    assert here.gradient is not None
    return float(here.costs[0]), here.gradient[0]


def _flat_start(problem: Linear, weights: Array, here: float) -> Minimum:
    if not problem.hessian(weights).is_zero:
        return Minimum(here, 0.0, "zero weights: the gradient is 0 there", True)
    return Minimum(here, float("nan"), "not known: no second derivative at zero weights", False)


def _stopped(here: float, norm: float, relative_step: float) -> Minimum:
    """Return what is known where Newton's steps came to an end before the tolerance."""
    if norm <= 1e-6 and relative_step > SMALL_STEP:
        return Minimum(here, norm, "damped Newton, weights still growing", True)
    if norm <= 1e-7:  # rounding stops the descent of the cost before that of the gradient
        return Minimum(here, norm, "damped Newton, to rounding", True)
    return Minimum(here, norm, "damped Newton, which did not come to rest", False)


def _newton_step(hessian: Hessian, gradient: Array, relative: float) -> tuple[Array, int]:
    """Return `-H^-1 g`, exactly where the matrix is small, else to a share of g.

    And the number of Hessian-vector products.

    relative: the gradient's norm relative to the first one; the share falls with it, so that the
    steps come ever nearer to Newton's own.
    """
    if hessian.is_small:
        return _solve(hessian.matrix(), gradient, relative), 0
    return _conjugate_gradients(hessian.times, -gradient, min(0.5, np.sqrt(relative)))


def _solve(matrix: Array, gradient: Array, relative: float) -> Array:
    """Return `-(H + mu I)^-1 g`; mu falls with the gradient, and grows until Cholesky succeeds."""
    scale = float(np.diag(matrix).max(initial=0.0)) or 1.0
    damping = scale * max(LEAST_DAMPING, 1e-8 * min(relative, 1.0))
    while True:
        try:
            factor = linalg.cho_factor(matrix + damping * np.eye(len(matrix)))
            return np.asarray(-linalg.cho_solve(factor, gradient.ravel()).reshape(gradient.shape))
        except linalg.LinAlgError:
            damping *= 10


def _conjugate_gradients(
    times: Callable[[Array], Array], right: Array, share: float
) -> tuple[Array, int]:
    """Return an approximate solution of `H s = right` whose residual is at most a share of it.

    From 0, so that directions without curvature are left alone; ends where curvature is not
    positive, with what it has. And the number of products.
    """
    solution = np.zeros_like(right)
    residual, direction = right.copy(), right.copy()
    square = goal = float(np.sum(right * right))
    goal *= share**2
    for made in range(1, MOST_PRODUCTS + 1):
        product = times(direction)
        bend = float(np.sum(direction * product))
        if bend <= 0:
            return (solution if solution.any() else right), made
        solution += square / bend * direction
        residual -= square / bend * product
        before, square = square, float(np.sum(residual * residual))
        if square <= goal:
            break
        direction = residual + square / before * direction
    return solution, made


def _backtrack(problem: Linear, weights: Array, step: Array, here: float, slope: float) -> float:
    """Return the first of 1, 1/2, 1/4, .. that lowers the cost enough (Armijo, 1e-4), or 0."""
    size = 1.0
    rounding = 4 * np.finfo(np.float64).eps * abs(here)
    while size > 1e-10:
        ahead = problem.evaluate((weights + size * step)[None], with_gradient=False).costs[0]
        if ahead <= here + 1e-4 * size * slope + rounding:
            return size
        size /= 2
    return 0.0
