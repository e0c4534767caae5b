"""Compute the theory of a job: its least cost, its curvature, its step size threshold."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import TRANSFORMED_ROWS, Points, is_in_memory, iterate_blocks
from normbench.engine.hessian import Hessian
from normbench.engine.linear import score_curvatures
from normbench.engine.problem import Cost, Problem
from normbench.names import OF_NETWORK, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import Moments
from normbench.theory import separability, sizes, spectra
from normbench.theory.directions import shared_curvatures
from normbench.theory.minimum import (
    Minimum,
    minimize,
    spans_same_scores,
    sphere_problem,
    zero_at_infinity,
)
from normbench.theory.shared import PointsCache

SQUARABLE_LIMIT = 1e150  # of a coordinate: the squares of larger ones overflow
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
        moments: The moments of the points under the scheme; None where they were not computed.
    """

    spectrum: spectra.Spectrum | None = None
    lipschitz: float | None = None
    at_start: float | None = None
    exact: bool = False
    note: str = ""
    allows_point_theory: bool = True
    has_threshold: bool = True
    moments: Moments | None = None

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
    linear, moments = train.linear, None
    spectrum = lipschitz = bound = at_start = None
    exact = has_moments = False
    if linear is not None:
        has_moments = is_in_memory(linear.points) or sizes.allows_moments(
            theory_setting, linear.points
        )
        bound = linear.traits.curvature
        exact = linear.traits.quadratic and bound is not None
    if linear is not None and has_moments:
        if _largest_magnitude(linear.points) > SQUARABLE_LIMIT:
            return Theory(note="the points are too large to be squared", allows_point_theory=False)
        if sizes.allows_spectrum(theory_setting, linear.points):
            moments = Moments(linear.points)
            spectrum = spectra.spectrum(moments)
        else:
            largest = spectra.largest_gram(linear.points)
            spectrum = spectra.Spectrum(np.array([largest]), is_complete=False)
        if linear.classify and not np.any(linear.l2) and not np.any(start):
            # The Hessian is the Kronecker product of the Gram matrix and what all points share.
            curvatures = shared_curvatures(linear, start)
            at_start = None if curvatures is None else float(curvatures[-1]) * spectrum.largest
        if bound is not None:
            spectrum = spectra.penalize(spectrum, bound, linear.l2)
            lipschitz = spectrum.largest
    note = ""
    if at_start is None and sizes.allows_second_derivatives(theory_setting, train):
        at_start, note = largest_curvature(train, start)
    if not bound and at_start == 0:  # no curvature is not a curvature of 0, and gives no threshold
        note, at_start = NO_CURVATURE, None
    return Theory(
        spectrum,
        lipschitz,
        at_start,
        exact and has_moments,
        note,
        allows_point_theory=linear is None or has_moments,
        # Of a network the curvature at the start bounds no step.
        has_threshold=linear is not None or train.convex,
        moments=moments,
    )


def _largest_magnitude(x: Points) -> float:
    """Return the largest magnitude of the coordinates of points."""
    return max(float(np.abs(rows).max()) for _, rows in iterate_blocks(x, TRANSFORMED_ROWS))


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
    moments: Moments | None = None,
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
        moments: The moments of the points of the problem; None to compute them.

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
    may_separate = not np.any(linear.l2) and sizes.allows(
        theory_setting, 0, sizes.count_filled(linear.points)
    )
    if proof is not None and may_separate and separability.proves_separable(linear, proof):
        return zero_at_infinity()
    case = separability.decide_by_rule(linear)
    if not sizes.allows_least_cost(theory_setting, train, points_cache.x):
        return replace(_lowest_seen(lowest, f"the least cost is {sizes.LEFT_OUT}"), case=case)
    try:
        if _piecewise_linear(linear.cost, linear.shape[0]):
            return replace(_lowest_seen(lowest, NO_CURVATURE), case=case)
        minimum = _solve(linear, points_cache, theory_setting, moments or Moments(linear.points))
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        # Autograd has no second derivative, or a decomposition fails: the descent goes on without.
        one_line = " ".join(str(error).split())
        return replace(_lowest_seen(lowest, f"no second-order solution ({one_line})"), case=case)
    if minimum.case == STRICTLY:
        return zero_at_infinity()
    if not minimum.is_solved or not np.isfinite(minimum.value):
        seen = _lowest_seen(min(lowest, minimum.value), minimum.source)
        minimum = replace(seen, gradient_norm=minimum.gradient_norm, case=minimum.case)
    return replace(minimum, case=case) if minimum.case == UNDECIDED else minimum


def _solve(
    train: Problem, points_cache: PointsCache, theory_setting: str, moments: Moments
) -> Minimum:
    """Return the least cost by a second-order solver, and its case by the linear program.

    Both are computed on sphered points. Schemes whose points have the same affine scores as the
    data set share them without a penalty, in the cache of the data set; every other scheme, such as
    one that drops features, or is not affine, has its own.

    Args:
        train: The problem of the training points.
        points_cache: The cache of the data set's points before any scheme.
        theory_setting: The setting `theory`; `full` for a solver without a limit of products.
        moments: The moments of the points of the problem.
    """
    penalized = bool(np.any(train.l2))
    products = np.inf if theory_setting == "full" else MAX_SOLVER_PRODUCTS
    if not penalized and spans_same_scores(points_cache.basis, moments):
        cache, problem = points_cache, train.on(points_cache.basis, 0.0)
    else:
        cache, problem = PointsCache(train.points), sphere_problem(train, moments)
    key = (train.cost, train.shape[0], len(train.targets), products)
    minimum = cache.get_or_compute(("least", *key), lambda: minimize(problem, products))
    rule_decides = separability.decide_by_rule(train) != UNDECIDED
    if rule_decides or minimum.case != UNDECIDED or penalized or not train.traits.separable:
        return minimum
    margins = len(train.targets) * max(1, train.shape[0] - 1)
    if margins > separability.MAX_MARGINS or not sizes.allows(theory_setting, margins):
        return minimum
    case = cache.get_or_compute(("case", *key), lambda: separability.decide_by_program(problem))
    return replace(minimum, case=case)


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
