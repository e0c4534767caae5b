"""Compute the theory of a job: its least cost, its curvature, its step size threshold."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points, is_in_memory
from normbench.engine.hessian import Hessian
from normbench.engine.linear import score_curvatures
from normbench.engine.problem import Cost, Problem
from normbench.names import OF_NETWORK, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import moment_rows
from normbench.theory import separability, sizes, spectra
from normbench.theory.minimum import (
    Minimum,
    minimize,
    spans_same_scores,
    sphere_problem,
    zero_at_infinity,
)
from normbench.theory.shared import PointsCache

SQUARABLE_LIMIT = 1e150  # of a coordinate: the squares of larger ones overflow
FEW_CLASSES = 50  # the second derivatives of one point of each class are then 1 MB
MAX_SOLVER_PRODUCTS = 1000  # of the Hessian, in all steps: measured, 24 to 348 on small data
NOT_ASKED = "not asked for (theory=none)"
NO_CURVATURE = "the cost has no second derivative to speak of (it is piecewise linear)"


@dataclass(frozen=True)
class Theory:
    """The theory of a scheme that is computed before its histories are judged.

    Attributes:
        spectrum: The spectrum of the Hessian's global bound, or, for a cost without a bound, of the
            Gram matrix; None where it was skipped.
        lipschitz: The global bound L of the curvature; None where the cost has none.
        at_start: The largest curvature at the start; None where it is unknown, and for a piecewise
            linear cost.
        exact: Whether the cost is quadratic, so that its curvature is the same everywhere.
        note: What does not exist, and why; may be empty.
        allows_point_theory: Whether more theory of the points can be computed: theory is wanted,
            and the points can be squared and their moments are known.
        has_threshold: Whether scores are linear in the weights, or the cost is convex in them; else
            the curvature at the start says nothing of other weights.
    """

    spectrum: spectra.Spectrum | None = None
    lipschitz: float | None = None
    at_start: float | None = None
    exact: bool = False
    note: str = ""
    allows_point_theory: bool = True
    has_threshold: bool = True

    @property
    def threshold(self) -> float | None:
        """`2 / L`, with the global bound as L, or else the curvature at the start.

        None where neither is known and positive.
        """
        if not self.has_threshold:
            return None
        curvature = self.lipschitz if self.lipschitz is not None else self.at_start
        return spectra.step_threshold(curvature) if curvature else None

    @property
    def threshold_source(self) -> str:
        """The curvature that the threshold is computed from."""
        if self.exact:
            return "exact: the curvature is the same everywhere"
        return "global bound" if self.lipschitz is not None else "curvature at the start"


def theorize(train: Problem, start: NDArray[Any], theory_setting: str) -> Theory:
    """Return the theory of descending a problem from the weights of one model.

    Only a model whose scores are linear in its weights has a global bound.

    Args:
        train: The problem of the training points.
        start: The weights of one model, of the problem's shape.
        theory_setting: The setting `theory`: `auto`, `full` or `none`.

    Returns:
        The spectrum of the Hessian's bound, L, the curvature at the start, and a note on what is
        missing.
    """
    if theory_setting == "none":
        return Theory(note=NOT_ASKED, allows_point_theory=False)
    gram = spectrum = lipschitz = bound = None
    exact = False
    linear = train.linear
    # Points in memory are their own moment rows; of others, few rows of the same moments are made.
    has_rows = linear is not None and (
        is_in_memory(linear.points) or sizes.allows_moments(theory_setting, linear.points)
    )
    if linear is not None and has_rows:
        rows = moment_rows(linear.points)
        if max(-rows.min(), rows.max()) > SQUARABLE_LIMIT:
            return Theory(note="the points are too large to be squared", allows_point_theory=False)
        bound = linear.traits.curvature
        exact = linear.traits.quadratic and bound is not None
        gram = spectrum = (
            spectra.spectrum(rows)
            if sizes.allows_spectrum(theory_setting, linear.points)
            else spectra.Spectrum(np.array([spectra.largest_gram(rows)]), is_complete=False)
        )
        if bound is not None:
            spectrum = spectra.penalize(spectrum, bound, linear.l2, rows)
            lipschitz = spectrum.largest
    at_start, note = _curvature_at_zero(linear, start, gram), ""
    if at_start is None and sizes.allows_second_derivatives(theory_setting, train):
        at_start, note = largest_curvature(train, start)
    if not bound and at_start == 0:  # no curvature is not a curvature of 0, and gives no threshold
        note, at_start = NO_CURVATURE, None
    return Theory(
        spectrum,
        lipschitz,
        at_start,
        exact,
        note,
        allows_point_theory=linear is None or has_rows,
        # Of a network the curvature at the start bounds no step.
        has_threshold=linear is not None or train.convex,
    )


def _curvature_at_zero(
    train: Problem | None, start: NDArray[Any], gram: spectra.Spectrum | None
) -> float | None:
    """Return the largest curvature at zero weights where one product gives it, else None.

    Where the points of every class have the same second derivatives at scores of 0, the Hessian is
    the Kronecker product of those with the Gram matrix: for multiclass softmax `I / C - 11' / C^2`.

    Args:
        train: The problem of the training points; None where its scores are not linear.
        start: The start of the descent; the curvature is that at the start only if it is 0.
        gram: The spectrum of the Gram matrix; None where it is unknown.
    """
    if gram is None or np.any(start) or train is None:
        return None
    # Of real targets there is no small number of classes, and a penalty adds its own curvature.
    if not train.classify or np.any(train.l2) or train.shape[0] > FEW_CLASSES:
        return None
    classes = np.unique(train.targets)
    try:
        second_derivatives = score_curvatures(
            train.cost, np.zeros((train.shape[0], len(classes))), classes
        )
    except (ValueError, TypeError, NotImplementedError):  # autograd has no second derivative
        return None
    if not np.allclose(second_derivatives, second_derivatives[:, :, :1], rtol=1e-12, atol=1e-15):
        return None
    return float(np.linalg.eigvalsh(second_derivatives[:, :, 0])[-1]) * gram.largest


def largest_curvature(train: Problem, weights: NDArray[Any]) -> tuple[float | None, str]:
    """Return the Hessian's largest eigenvalue at one model's weights.

    Args:
        train: The problem of the training points.
        weights: The weights of one model, of the problem's shape.

    Returns:
        The eigenvalue and an empty note; or None and a note that says why there is none. A failure
        is noted and not raised: the descent goes on without it.
    """
    from scipy.sparse.linalg import ArpackError

    try:
        curvature = train.hessian(weights).largest()
    except ArpackError as error:  # includes ArpackNoConvergence
        return None, f"Lanczos did not converge ({error})"
    except (ValueError, TypeError, NotImplementedError) as error:
        return None, f"autograd has no second derivative of the cost ({error})"
    return (curvature, "") if np.isfinite(curvature) else (None, "the curvature is not finite")


def extreme_curvatures(hessian: Hessian) -> tuple[float, float]:
    """Return the largest and the smallest eigenvalue of a Hessian by Lanczos's method.

    Both are NaN where the method does not converge.
    """
    from scipy.sparse.linalg import ArpackError

    try:
        return hessian.extremes()
    except ArpackError:
        return float("nan"), float("nan")


def find_least_cost(
    train: Problem,
    points_cache: PointsCache,
    lowest: float,
    theory_setting: str,
    proof: NDArray[Any] | None = None,
) -> Minimum:
    """Return the least cost of a job, and whether some weights attain it.

    All invertible affine schemes have the same least cost, so it is solved for once for a data set
    and a cost. For other schemes, and with an l2 penalty, which is on the weights of the scheme, it
    is solved for once for each scheme.

    Args:
        train: The problem of the training points.
        points_cache: The cache of the data set's points before any scheme, which keeps the results
            that schemes share.
        lowest: The lowest cost that the job saw, zero weights included, used where the least cost
            is not found.
        theory_setting: The setting `theory`: `auto`, `full` or `none`.
        proof: Weights of one model, from the descent, that misclassify no point; None where there
            are none.

    Returns:
        The least cost, with its source and the norm of its gradient.
    """
    linear = train.linear
    if linear is None:
        seen = _lowest_seen(lowest, "the scores are not linear in the weights")
        return replace(seen, case=OF_NETWORK)
    if theory_setting == "none":
        return _lowest_seen(lowest, NOT_ASKED)
    if not train.convex:
        return _lowest_seen(lowest, "the cost is not convex")
    penalized = bool(np.any(linear.l2))
    if (
        proof is not None
        and not penalized
        and sizes.allows(theory_setting, 0, _count_filled(linear.points))
        and separability.proves_separable(linear, proof)
    ):
        return zero_at_infinity()
    if not sizes.allows_least_cost(theory_setting, train, points_cache.x):
        minimum = _lowest_seen(lowest, f"the least cost is {sizes.LEFT_OUT}")
        return replace(minimum, case=separability.decide_by_rule(linear))
    try:
        minimum = _solve(linear, points_cache, lowest, theory_setting)
        case = separability.decide_by_rule(linear) if minimum.case == UNDECIDED else minimum.case
        if case == UNDECIDED and linear.traits.separable and not penalized:
            case = _decide_by_program(linear, points_cache, theory_setting)
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        # Autograd has no second derivative, or a decomposition fails: the descent goes on without.
        one_line = " ".join(str(error).split())
        minimum = _lowest_seen(lowest, f"no second-order solution ({one_line})")
        case = separability.decide_by_rule(linear)
    return zero_at_infinity() if case == STRICTLY else replace(minimum, case=case)


def _count_filled(x: Points) -> int:
    """Return the number of entries (P, N) of sparse points that are made dense; 0 of dense ones."""
    return 0 if sizes.density(x) == 1 else len(x) * x.shape[1]


def _solve(
    train: Problem, points_cache: PointsCache, lowest: float, theory_setting: str
) -> Minimum:
    """Return the least cost by a second-order solver.

    Where the solver fails, the lowest cost seen stands in for the least cost.

    Args:
        train: The problem of the training points.
        points_cache: The cache of the data set's points before any scheme.
        lowest: The lowest cost that the job saw, zero weights included.
        theory_setting: The setting `theory`; `full` for a solver without a limit of products.
    """
    classes = train.shape[0]
    if _piecewise_linear(train.cost, classes):
        return _lowest_seen(lowest, NO_CURVATURE)
    products = np.inf if theory_setting == "full" else MAX_SOLVER_PRODUCTS
    if np.any(train.l2):
        solution = minimize(sphere_problem(train), classes, products)
    else:
        solution = _solve_once(
            "least",
            train,
            points_cache,
            lambda problem: minimize(problem, classes, products),
            products,
        )
    if not solution.is_solved or not np.isfinite(solution.value):
        unreached = replace(solution, value=min(lowest, solution.value), is_solved=False)
        return replace(unreached, source=f"the lowest cost seen in this job; {solution.source}")
    return solution


def _decide_by_program(train: Problem, points_cache: PointsCache, theory_setting: str) -> str:
    """Return whether weights attain the least cost, one of `names.CASES`, by the linear program.

    UNDECIDED where it is too large.
    """
    margins = len(train.targets) * max(1, train.shape[0] - 1)
    if margins > separability.MAX_MARGINS or not sizes.allows(theory_setting, margins):
        return UNDECIDED
    return _solve_once("case", train, points_cache, separability.decide_by_program)


def _solve_once(
    quantity: str,
    train: Problem,
    points_cache: PointsCache,
    find: Callable[[Problem], Any],
    *key_values: float,
) -> Any:
    """Return what `find` returns for a problem without a penalty, on its points sphered.

    Schemes whose points have the same affine scores as the data set share one result, which is kept
    in the cache of the data set. Every other scheme has its own.

    Args:
        quantity: The name of the result in the cache.
        train: The problem of the training points under the scheme.
        points_cache: The cache of the data set's points, before any scheme.
        find: Computes the result from the problem on sphered points.
        *key_values: What else the result depends on, for the key of the cache.

    Returns:
        The result.
    """
    key = (quantity, train.cost, train.shape[0], len(train.targets), *key_values)
    # A scheme that drops features, or is not affine, has scores of its own.
    if not spans_same_scores(points_cache.basis, train.points):
        return find(sphere_problem(train))
    shared = train.on(points_cache.basis, 0.0)
    return points_cache.get_or_compute(key, lambda: find(shared))


def _lowest_seen(value: float, why: str) -> Minimum:
    """Return the lowest cost that the job saw, in place of the least cost.

    Args:
        value: That cost.
        why: Why the least cost is unknown, for the source.
    """
    return Minimum(value, float("nan"), f"the lowest cost seen in this job; {why}", False)


def _piecewise_linear(cost: Cost, classes: int) -> bool:
    """Return whether a cost of C scores a point is piecewise linear.

    It is one that has no curvature at a few random scores, which lie on no kink.
    """
    rng = np.random.default_rng(0)
    scores, classes_drawn = rng.standard_normal((classes, 8)), rng.integers(0, 2, 8)
    targets = classes_drawn if classes > 1 else np.where(classes_drawn, 1.0, -1.0)
    return not score_curvatures(cost, scores, targets).any()
