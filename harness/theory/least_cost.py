"""Find the least cost of a job, and whether some weights attain it.

The least cost comes from a second-order solver on sphered points, with its gradient norm. Every
invertible affine scheme has the same minimum (it can reach the same scores), so it is solved for
once, where the problem is best conditioned. Whether it is attained is one of four cases.

Of points `[1 z]` with scores `W [1 z]'`, a margin is `(w_own - w_other) [1 z]'`: one for each other
class of each point (with one score a point and targets y = -1, +1: `y w [1 z]'`). A cost of the
trait `separable` falls in every margin and goes to 0 as all of them grow. It is convex, so a
direction W with no margin below 0 lowers it for ever where a margin is above 0, from any weights:

- strictly separable: some W has all margins above 0. The least cost is 0, at infinity.
- partly separable: some W has no margin below 0 and one above 0, but none has all above 0. The
  least cost is above 0 (the margins that are 0 along every such W have a minimum of their own),
  and it is not attained.
- attained: no such W. Every direction that changes a score lowers some margin, and the cost grows
  along it. (Albert and Anderson, "On the existence of maximum likelihood estimates in logistic
  regression models", Biometrika 71, 1984.)
- not decided: no rule below says, or the program is too large.

One program tells them apart. Maximize the sum of t over W and t, `0 <= t <= 1`, margins >= t. Such
directions add up and may be scaled, so each t of the solution is 0 or 1, and it is 1 for every
margin that some direction makes positive.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from normbench.datasets.on_disk import points
from normbench.engine.hessian import Hessian
from normbench.engine.problem import Array, Problem
from normbench.names import ATTAINED, OF_NETWORK, PARTLY, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import PointsCache, rounding_share
from normbench.theory import sizes
from normbench.theory.analysis import NO_CURVATURE, NOT_ASKED
from normbench.theory.spectra import penalty_root

TOLERANCE = 1e-10  # of the gradient's norm, relative to that at zero weights
# The length of Newton's step, relative to the weights: where the minimum is at infinity it does not
# shrink.
SMALL_RELATIVE_STEP = 1e-4
STOPPED = "damped Newton, stopped after its largest number of products; theory=full goes on"
MAX_STEPS = 200
MAX_PRODUCTS = 500  # Hessian-vector products a step
MAX_HALVINGS = 34  # of a step, to a length of 1e-10
MIN_DAMPING = 1e-10  # relative to the Hessian's diagonal
MAX_SOLVER_PRODUCTS = 1000  # of the Hessian, in all steps: measured, 24 to 348 on small data
MAX_MARGINS = 20_000  # margins: beyond, the program takes minutes and more
# Of the weights of sphered points: a gap below a millionth of the points' spread is not seen.
MAX_WEIGHT = 1e6
# A t below it is 0, and a t above 1 minus it is 1; between, the program has not decided.
PROGRAM_TOLERANCE = 1e-3


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


def sphere_points(moments: PointsCache) -> Array:
    """Return points x (P, N) sphered along the r directions above rounding, `(P, r)`.

    They are uncorrelated, of mean 0 and variance 1, and their columns span the same space as those
    of centred x. They are in memory where x is an array in memory; otherwise a memory map.
    """
    variances, axes = moments.axes
    return _map_centred(moments, axes / np.sqrt(variances))


def _map_centred(moments: PointsCache, matrix: Array) -> Array:
    """Return points x (P, N), centred, times a matrix (N, r)."""
    mean = moments.factor.mean
    return points.transform_rows(moments.x, lambda rows: (rows - mean) @ matrix, matrix.shape[1])


def sphere_problem(problem: Problem, moments: PointsCache) -> Problem:
    """Return a problem with the same least cost on points `(P, r)` that are nearly round.

    Its points are those of `sphere_points`, with the penalty `l2 / d`, d the variances. Features
    with penalties of their own, or a matrix of them, are sphered together with the penalty: along
    the singular vectors of the points' root, above a root of `2 l2`.

    Args:
        problem: The problem.
        moments: The moments of its points.
    """
    if np.ndim(problem.l2) == 0:
        l2 = problem.l2 / moments.axes[0] if problem.l2 else 0.0
        return problem.on(sphere_points(moments), l2)
    root = moments.factor.root
    roots = penalty_root(problem.l2, root.shape[1] + 1)[:, 1:]
    _, lengths, axes = linalg.svd(np.vstack([root, roots]), full_matrices=False)
    live = lengths > rounding_share(root.shape[1]) * lengths[0]
    matrix = axes[live].T / lengths[live]
    sphered_roots = roots @ matrix
    return problem.on(_map_centred(moments, matrix), sphered_roots.T @ sphered_roots / 2)


def spans_same_scores(basis: Array, moments: PointsCache) -> bool:
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
    for block, rows in points.iterate_blocks(z, points.TRANSFORMED_ROWS):
        squared_residuals += np.square(rows - mean - basis[block] @ products).sum(axis=0)
        points.give_back(basis[block])
    # Relative to each centred column; the second term is for columns that are constant.
    return bool(np.all(np.sqrt(squared_residuals / len(z)) <= 1e-6 * deviations + 1e-12))


def _products(rows: Array, x: points.Points, mean: Array) -> Array:
    """Return `rows' (x - mean) / P` `(r, N)` of rows (P, r) and points (P, N), block by block."""
    products = np.zeros((rows.shape[1], len(mean)))
    for block, x_rows in points.iterate_blocks(x, points.TRANSFORMED_ROWS):
        products += rows[block].T @ (x_rows - mean)
        points.give_back(rows[block])
    return products / len(x)


def weights_of(scores: Array, z: points.Points) -> Array:
    """Return the weights under which points have given scores, the shortest of several.

    Args:
        scores: The scores (C, P) of the points, affine in z.
        z: The points (P, M).

    Returns:
        `(C, M + 1)`, bias first.
    """
    moments = PointsCache(z)
    mean, (variances, axes) = moments.factor.mean, moments.axes
    # The regression of the scores on the sphered points, in the coordinates of z.
    slopes = (_products(scores.T, z, mean) @ axes / variances) @ axes.T
    return np.column_stack([scores.mean(axis=1) - slopes @ mean, slopes])


def minimize(problem: Problem, max_products: float = np.inf) -> Minimum:
    """Return the least mean cost of a problem whose points are sphered.

    Damped Newton from zero weights, halving the step until the cost falls: by eigenvectors of the
    Hessian where it is small, by conjugate gradients on Hessian-vector products where it is not.

    Args:
        problem: A problem of `sphere_problem`, of a convex cost with a second derivative.
        max_products: The number of Hessian-vector products after which no further step is made.

    Returns:
        The least cost, with the scores (C, P) at it where the solver met its tolerance.
    """
    weights = np.zeros(problem.shape)
    cost, gradient = _evaluate(problem, weights)
    first_norm = float(np.linalg.norm(gradient))
    # With a penalty the least cost is above 0, even if some weights separate the classes.
    may_separate = not np.any(problem.l2)
    # The norm of the gradient, over the first; the last step's, over that of the weights.
    share, relative_step, products, source = 1.0, np.inf, 0, ""
    if first_norm == 0:
        share, source = 0.0, "zero weights: the gradient is 0 there"
    for _ in range(MAX_STEPS):
        if may_separate and proves_separable(problem, weights):
            return zero_at_infinity(share)
        if share <= TOLERANCE and relative_step <= SMALL_RELATIVE_STEP:
            source = "damped Newton"
        if source:
            break
        if products >= max_products:
            return Minimum(cost, share, STOPPED, False)
        step, step_products = _newton_step(problem.hessian(weights), gradient, share)
        products += step_products
        step_length = _backtrack(problem, weights, step, cost, float(np.sum(step * gradient)))
        if step_length == 0:  # no length lowers the cost
            break
        weights = weights + step_length * step
        relative_step = step_length * float(np.linalg.norm(step) / np.linalg.norm(weights))
        cost, gradient = _evaluate(problem, weights)
        share = float(np.linalg.norm(gradient)) / first_norm
    # Without its tolerance met, a solver has still reached the minimum where the gradient is small:
    # the weights grow for ever, or rounding stops the cost before the gradient.
    if not source and share <= 1e-6 and relative_step > SMALL_RELATIVE_STEP:
        source = "damped Newton, weights still growing"
    elif not source and share <= 1e-7:
        source = "damped Newton, to rounding"
    if not source:
        return Minimum(cost, share, "damped Newton, which did not come to rest", False)
    scores = [problem.scores(weights, rows) for _, rows in points.iterate_blocks(problem.points)]
    return Minimum(cost, share, source, True, scores=np.concatenate(scores, axis=1))


def _evaluate(problem: Problem, weights: Array) -> tuple[float, Array]:
    """Return the cost and the gradient (C, r + 1) at the weights (C, r + 1) of one model."""
    evaluation = problem.evaluate(weights[None])
    assert evaluation.gradient is not None
    return float(evaluation.costs[0]), evaluation.gradient[0]


def _newton_step(hessian: Hessian, gradient: Array, share: float) -> tuple[Array, int]:
    """Return the step `-H^-1 g`, and the number of Hessian-vector products that it took.

    The step is exact, but for a damping that falls with the gradient, where the matrix is small;
    otherwise conjugate gradients solve for it to a relative residual, which falls, too. They start
    at 0, so that the step has no part along directions without curvature.

    Args:
        hessian: The Hessian H at the weights.
        gradient: The gradient g there (C, r + 1).
        share: The norm of the gradient, over that of the first one.
    """
    right_side = -gradient.ravel()
    if hessian.is_small:
        matrix = hessian.matrix()
        scale = float(np.diag(matrix).max(initial=0.0)) or 1.0
        damping = scale * max(MIN_DAMPING, 1e-8 * min(share, 1.0))
        values, vectors = np.linalg.eigh(matrix)
        step = vectors @ ((vectors.T @ right_side) / (np.maximum(values, 0.0) + damping))
        return step.reshape(gradient.shape), 0
    operator = LinearOperator(
        (hessian.size, hessian.size),
        matvec=lambda direction: hessian.times(direction.reshape(gradient.shape)).ravel(),
        dtype=np.float64,
    )
    solutions: list[Array] = []  # one after each product
    residual = min(0.5, np.sqrt(share))
    with np.errstate(all="ignore"):  # where there is no curvature along a direction
        options: Any = {"rtol": residual, "maxiter": MAX_PRODUCTS, "callback": solutions.append}
        step, _ = cg(operator, right_side, **options)
    step = step if np.isfinite(step).all() else right_side
    return step.reshape(gradient.shape), len(solutions)


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
    rounding = 4 * np.finfo(np.float64).eps * abs(cost)
    for step_length in 0.5 ** np.arange(MAX_HALVINGS):
        trial_weights = (weights + step_length * step)[None]
        trial_cost = problem.evaluate(trial_weights, with_gradient=False).costs[0]
        if trial_cost <= cost + 1e-4 * step_length * slope + rounding:
            return float(step_length)
    return 0.0


def decide_by_rule(problem: Problem) -> str:
    """Return the case where the cost or its penalty decides it for any points; else UNDECIDED.

    A quadratic or piecewise linear cost has a minimum. A penalty on all slopes makes the cost grow
    along every slope. Along the biases the cost grows if every class occurs in the data. So the
    least cost is then attained.

    Args:
        problem: The problem, on any points.

    Returns:
        ATTAINED or UNDECIDED, see the module.
    """
    traits = problem.traits
    if traits.quadratic or traits.piecewise:
        return ATTAINED
    if traits.separable and _penalizes_all(problem.l2):
        classes = max(2, problem.shape[0])
        return ATTAINED if len(np.unique(problem.targets)) == classes else UNDECIDED
    return UNDECIDED


def _penalizes_all(l2: float | Array) -> bool:
    """Return whether a penalty grows in every direction of the slopes, beyond rounding."""
    penalty = np.asarray(l2, dtype=np.float64)
    if penalty.ndim < 2:
        return bool(np.all(penalty > 0))
    return bool(np.linalg.matrix_rank(penalty, hermitian=True) == len(penalty))


def proves_separable(problem: Problem, weights: Array) -> bool:
    """Return whether weights prove that the points are strictly separable.

    They do where every margin of every point is above the rounding error of 0. False for a cost
    without the trait `separable`, whose least cost does not follow from margins.

    Args:
        problem: The problem, on points (P, M).
        weights: One model, `(C, M + 1)`.
    """
    if not problem.traits.separable:
        return False
    for rows, x in points.iterate_blocks(problem.points):
        scores, targets = problem.scores(weights, x).astype(np.float64), problem.targets[rows]
        if len(scores) == 1:
            margins = targets * scores[0]
        else:
            own_scores = scores[targets, np.arange(len(targets))]
            scores[targets, np.arange(len(targets))] = -np.inf  # leaves those of other classes
            margins = own_scores - scores.max(axis=0)
        largest = np.maximum(x.max(axis=0), -x.min(axis=0))  # the largest size of each feature
        # No score of these points is larger in size than this bound.
        score_scale = (np.abs(weights[:, 1:]) @ largest + np.abs(weights[:, 0])).max()
        rounding = 4 * weights.shape[1] * np.finfo(weights.dtype).eps * float(score_scale)
        if not np.all(margins > rounding):
            return False
    return True


def decide_by_program(problem: Problem) -> str:
    """Return the case of a `separable` cost without a penalty, by the linear program.

    Args:
        problem: The problem on sphered points (P, r).

    Returns:
        STRICTLY, PARTLY, ATTAINED or UNDECIDED, see the module.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    # Each row is the product of one margin with the flat weights. With one score the targets are -1
    # and +1, and the margin is `y w [1 z]'`.
    targets, classes = problem.targets, problem.shape[0]
    x, signs = np.insert(problem.points[:], 0, 1.0, axis=1), targets[:, None]
    if classes > 1:
        # A row has the point in the columns of its own class, its negative in those of another. A
        # number added to all scores changes no margin: the weights of class 0 are left at 0.
        is_own = targets[:, None] == np.arange(classes)
        other_classes = np.nonzero(~is_own)[1]
        own, x = (np.repeat(rows, classes - 1, axis=0) for rows in (is_own, x))
        signs = (own - np.eye(classes)[other_classes])[:, 1:]
    rows = hstack([csr_array(x * sign[:, None]) for sign in signs.T], format="csr")
    # The unknowns are W, flat, and t; the constraints `t - rows W <= 0` are `margins >= t`.
    count, width = rows.shape
    solution = linprog(
        np.r_[np.zeros(width), -np.ones(count)],
        A_ub=hstack([-rows, eye_array(count)], format="csr"),
        b_ub=np.zeros(count),
        bounds=[(-MAX_WEIGHT, MAX_WEIGHT)] * width + [(0, 1)] * count,
        method="highs-ds",
    )
    if solution.status != 0:
        return UNDECIDED
    weights, t = solution.x[:width], solution.x[width:]
    if np.any((t > PROGRAM_TOLERANCE) & (t < 1 - PROGRAM_TOLERANCE)):
        return UNDECIDED
    if not np.any(t > PROGRAM_TOLERANCE):
        return ATTAINED
    if not np.all(t > PROGRAM_TOLERANCE):
        return PARTLY
    # The solver's tolerance is no proof: the margins themselves must be above rounding.
    rounding = 4 * width * np.finfo(np.float64).eps * (abs(rows) @ np.abs(weights))
    return STRICTLY if np.all(rows @ weights > rounding) else UNDECIDED


def find_least_cost(
    train: Problem,
    data_moments: PointsCache,
    lowest: float,
    theory_setting: str,
    proof: NDArray[Any] | None = None,
    moments: PointsCache | None = None,
) -> Minimum:
    """Return the least cost of a job, and whether some weights attain it.

    All invertible affine schemes have the same least cost, so it is solved for once for a data set
    and a cost. For other schemes, and with an l2 penalty, which is on the weights of the scheme, it
    is solved for once for each scheme.

    Args:
        train: The problem of the training points.
        data_moments: The moments of the data set's points before any scheme, which keep the
            results that schemes share.
        lowest: The lowest cost that the job saw, zero weights included, used where the least cost
            is not found.
        theory_setting: The setting `theory`: `auto`, `full` or `none`.
        proof: Weights of one model, from the descent, that misclassify no point; None where there
            are none.
        moments: The moments of the points of the problem; None to compute them.

    Returns:
        The least cost, with its source and the norm of its gradient.
    """
    linear = train.linear
    if linear is None:
        return _lowest_seen(lowest, "the scores are not linear in the weights", OF_NETWORK)
    if theory_setting == "none":
        return _lowest_seen(lowest, NOT_ASKED)
    if not train.convex:
        return _lowest_seen(lowest, "the cost is not convex")
    is_filled = sizes.allows(theory_setting, 0, sizes.count_filled(linear.points))
    may_separate = is_filled and not np.any(linear.l2)
    if proof is not None and may_separate and proves_separable(linear, proof):
        return zero_at_infinity()
    case = decide_by_rule(linear)
    if not sizes.allows_least_cost(theory_setting, train, data_moments.x):
        return _lowest_seen(lowest, f"the least cost is {sizes.LEFT_OUT}", case)
    try:
        if linear.hessian(np.zeros(linear.shape)).is_zero:
            return _lowest_seen(lowest, NO_CURVATURE, case)
        minimum = _solve(
            linear, data_moments, theory_setting, moments or PointsCache(linear.points)
        )
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        # Autograd has no second derivative, or a decomposition fails: the descent goes on without.
        one_line = " ".join(str(error).split())
        return _lowest_seen(lowest, f"no second-order solution ({one_line})", case)
    case = case if minimum.case == UNDECIDED else minimum.case
    if case == STRICTLY:
        return zero_at_infinity()
    if minimum.is_solved and np.isfinite(minimum.value):
        return replace(minimum, case=case)
    seen = _lowest_seen(min(lowest, minimum.value), minimum.source, case)
    return replace(seen, gradient_norm=minimum.gradient_norm)


def _solve(
    train: Problem, data_moments: PointsCache, theory_setting: str, moments: PointsCache
) -> Minimum:
    """Return the least cost by a second-order solver, and its case by the linear program.

    Both are computed on sphered points. Schemes whose points have the same affine scores as the
    data set share them without a penalty, with the moments of the data set; every other scheme,
    such as one that drops features, or is not affine, has its own.

    Args:
        train: The problem of the training points.
        data_moments: The moments of the data set's points before any scheme.
        theory_setting: The setting `theory`; `full` for a solver without a limit of products.
        moments: The moments of the points of the problem.
    """
    may_separate = train.traits.separable and not np.any(train.l2)
    products = np.inf if theory_setting == "full" else MAX_SOLVER_PRODUCTS
    problem = None
    if not np.any(train.l2):
        basis = sphere_points(data_moments)
        if spans_same_scores(basis, moments):
            moments, problem = data_moments, train.on(basis, 0.0)
    sphered = problem or sphere_problem(train, moments)
    key = (train.cost, train.shape[0], len(train.targets), products)
    minimum: Minimum = moments.get_or_compute(("least", *key), lambda: minimize(sphered, products))
    margins = len(train.targets) * max(1, train.shape[0] - 1)
    is_small = margins <= MAX_MARGINS and sizes.allows(theory_setting, margins)
    if minimum.case != UNDECIDED or not may_separate or not is_small:
        return minimum
    case = moments.get_or_compute(("case", *key), lambda: decide_by_program(sphered))
    return replace(minimum, case=case)


def _lowest_seen(value: float, why: str, case: str = UNDECIDED) -> Minimum:
    """Return the lowest cost that the job saw, in place of the least cost.

    Args:
        value: That cost.
        why: Why the least cost is unknown, for the source.
        case: Whether weights attain the least cost.
    """
    source = f"the lowest cost seen in this job; {why}"
    return Minimum(value, float("nan"), source, False, case)
