"""What a job's descent is held against: the least cost, the curvature, the threshold."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.hessian import LANCZOS, blocks
from normbench.engine.problem import Cost, Linear, Problem
from normbench.names import STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import POINTS_PER_BLOCK, QR_ROWS_PER_COLUMN
from normbench.theory import spectra
from normbench.theory.budget import SKIPPED, TOO_MUCH_MEMORY, Budget, Work, allowance
from normbench.theory.minimum import (
    Minimum,
    minimum,
    spans_the_same,
    sphere,
    sphered,
    zero_at_infinity,
)
from normbench.theory.separability import by_program, by_rule, separates, work
from normbench.theory.shared import OfPoints

TOO_LARGE = 1e150
FEW_CLASSES = 50  # one second derivative a class is then 1 MB
NOT_ASKED = "not asked for (theory=none)"
NO_CURVATURE = "the cost has no second derivative to speak of (it is piecewise linear)"


@dataclass(frozen=True)
class Theory:
    """What is known of a scheme before its histories are judged.

    spectrum: of the Hessian's global bound, or, for a cost without one, of the Gram matrix; None
    where it was skipped. lipschitz: the global bound L; None where the cost has none. at_start: the
    largest curvature there. exact: the cost is quadratic, its curvature everywhere the same. note:
    what does not exist, and why. more: more theory of the points can be of use.
    """

    spectrum: spectra.Spectrum | None = None
    lipschitz: float | None = None
    at_start: float | None = None
    exact: bool = False
    note: str = ""
    more: bool = True

    @property
    def threshold(self) -> float | None:
        """`2 / L`, of the global bound, or else of the curvature at the start."""
        curved = self.lipschitz if self.lipschitz is not None else self.at_start
        return spectra.step_threshold(curved) if curved else None

    @property
    def basis(self) -> str:
        """Which curvature the threshold is from."""
        if self.exact:
            return "exact: the curvature is the same everywhere"
        return "global bound" if self.lipschitz is not None else "curvature at the start"


def theorize(train: Problem, start: NDArray[Any], budget: Budget | None) -> Theory:
    """Return what theory says of descending a problem from the weights of one model.

    The bound first, then the curvature at the start, as far as the budget allows; without one,
    nothing is asked for. The bound is that of a model whose scores are linear in its weights.
    """
    if budget is None:
        return Theory(note=NOT_ASKED, more=False)
    gram = spectrum = lipschitz = bound = None
    exact = False
    linear = train.linear
    if linear is not None:
        if not _has_moments(linear, budget):
            return _of_start(train, start, budget)
        rows = linear.surrogate.moment_rows
        if max(-rows.min(), rows.max()) > TOO_LARGE:
            return Theory(note="the points are too large to be squared", more=False)
        bound = linear.traits.curvature
        exact = linear.traits.quadratic and bound is not None
        gram = spectrum = (
            _spectrum(rows, train.shape[0], budget)
            if linear.surrogate.holds_all_points
            else spectra.spectrum(rows)  # of few rows: it costs next to nothing
        )
        if bound is not None and spectrum is not None:
            spectrum = spectra.penalized(spectrum, bound, linear.l2, rows)
            lipschitz = spectrum.largest
    at_start, note = _at_zero(linear, start, gram), ""
    if at_start is None and budget.affords("curvature at the start", curvature_work(train)):
        at_start, note = largest_curvature(train, start)
    if not bound and at_start == 0:
        note, at_start = NO_CURVATURE, None
    return Theory(spectrum, lipschitz, at_start, exact, note)


def _has_moments(train: Linear, budget: Budget) -> bool:
    """Return whether the points are at hand, or few of the same moments may be found for them.

    By a decomposition of points that are not copied, three times the work of a product.
    """
    width, classes = train.shape[1], train.shape[0]
    if isinstance(train.points, np.ndarray):
        return True
    decomposed = Work(1.7 * width / classes, 8.0 * (QR_ROWS_PER_COLUMN + 2) * width**2)
    return width <= spectra.MOST_FEATURES and budget.affords("the points' moments", decomposed)


def _of_start(train: Problem, start: NDArray[Any], budget: Budget) -> Theory:
    """Return the curvature at the start alone, of points whose moments are not known."""
    if not budget.affords("curvature at the start", curvature_work(train)):
        return Theory(more=False)
    at_start, note = largest_curvature(train, start)
    return Theory(at_start=at_start or None, note=note, more=False)


def _at_zero(
    train: Linear | None, start: NDArray[Any], gram: spectra.Spectrum | None
) -> float | None:
    """Return the largest curvature at zero weights where one product gives it, else None.

    Where every class's points have the same second derivatives at scores of 0, the Hessian is
    their Kronecker product with the Gram matrix: of multiclass softmax `I / C - 11' / C^2`.
    """
    if gram is None or np.any(start) or train is None:
        return None
    if not train.classify or np.any(train.l2) or train.shape[0] > FEW_CLASSES:
        return None
    kinds = np.unique(train.targets)
    try:
        second = blocks(train.cost, np.zeros((train.shape[0], len(kinds))), kinds)
    except (ValueError, TypeError, NotImplementedError):
        return None
    if not np.allclose(second, second[:, :, :1], rtol=1e-12, atol=1e-15):
        return None
    return float(np.linalg.eigvalsh(second[:, :, 0])[-1]) * gram.largest


def _spectrum(x: NDArray[Any], classes: int, budget: Budget) -> spectra.Spectrum | None:
    """Return the Gram matrix's spectrum, with the most digits that the budget allows.

    By singular values: an orthogonal decomposition of the points and about 20 N^3. By eigenvalues:
    two products of matrices and about 30 N^3. Or the largest alone by Lanczos, with products of
    one column each.
    """
    size = min(x.shape[0], x.shape[1] + 1)
    cubes = size**3 / (4 * x.size)
    held = 8.0 * x.size + 36.0 * size * (x.shape[1] + 1)
    singular = Work((2 * size + 20 * cubes) / classes, held)
    if size <= spectra.MOST_FEATURES and budget.allows(singular):
        budget.affords("singular values", singular)
        return spectra.spectrum(x)
    copies = 24.0 * x.size if x.shape[1] >= len(x) else 0.0  # of few points, products of their own
    eigen = Work((size + 30 * cubes) / classes, copies + 48.0 * size**2)
    if size <= spectra.MOST_FEATURES and budget.affords("rank and condition number", eigen):
        return spectra.gram_spectrum(x)
    if budget.affords("L", Work(LANCZOS / classes, 8.0 * x.size if x.itemsize < 8 else 0.0)):
        return spectra.Spectrum(np.array([spectra.largest_gram(x)]), whole=False)
    return None


def facts_work(train: Problem, x: NDArray[Any]) -> Work:
    """Return the work of the facts of a data set's own points x (P, N)."""
    raw = x.shape[1] + 1  # a scheme may keep few of the features
    passes = raw * (raw + 30 * raw**2 / (2 * len(x))) / np.prod(train.shape)
    return Work(float(passes), 8.0 * (min(len(x), POINTS_PER_BLOCK) * x.shape[1] + 4 * raw**2))


def curvature_work(train: Problem) -> Work:
    """Return the work of one largest curvature."""
    return Work(train.effort.largest, train.effort.memory)


def largest_curvature(train: Problem, weights: NDArray[Any]) -> tuple[float | None, str]:
    """Return the Hessian's largest eigenvalue at one model's weights, and a note where None."""
    from scipy.sparse.linalg import ArpackNoConvergence

    try:
        found = train.hessian(weights).largest()
    except ArpackNoConvergence as error:
        return None, f"Lanczos did not converge ({error})"
    except (ValueError, TypeError, NotImplementedError) as error:
        return None, f"autograd has no second derivative of the cost ({error})"
    return (found, "") if np.isfinite(found) else (None, "the curvature is not finite")


def least(
    train: Problem,
    known: OfPoints,
    lowest: float,
    asked: str,
    made: int,
    proof: NDArray[Any] | None = None,
) -> Minimum:
    """Return the least cost of a job, and whether some weights attain it.

    lowest: the lowest cost that its own runs saw, used where nothing better is known. Solved once
    for a data set and a cost under all invertible affine schemes; for other schemes, and with an l2
    (whose weights are the scheme's), once for the scheme. asked: as in `allowance`, or `none`;
    made: the passes of the descent. proof: weights of the descent that leave no point
    misclassified.
    """
    if asked == "none":
        return _lowest(lowest, NOT_ASKED)
    linear = train.linear
    if linear is None:
        return _lowest(lowest, "the scores are not linear in the weights")
    if not train.convex:
        return _lowest(lowest, "the cost is not convex")
    penalized = bool(np.any(linear.l2))
    if proof is not None and not penalized and separates(linear, proof):
        return zero_at_infinity()
    allowed = _allowed(linear, known, asked, made)
    try:
        found = _solved(linear, known, lowest, allowed)
        case = by_rule(linear) if found.case == UNDECIDED else found.case
        if case == UNDECIDED and linear.traits.separable and not penalized:
            case = _by_program(linear, known, allowed)
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        found = _lowest(lowest, f"no second-order solution ({' '.join(str(error).split())})")
        case = by_rule(linear)
    return zero_at_infinity() if case == STRICTLY else replace(found, case=case)


def _allowed(train: Linear, known: OfPoints, asked: str, made: int) -> Work:
    """Return what a solution for the least cost may take, beside sphering the points."""
    features = max(train.shape[1] - 1, known.x.shape[1])  # a scheme may keep few of them
    if features > spectra.MOST_FEATURES:
        return Work()
    classes = train.shape[0]
    allowed = allowance(asked, made, len(known.x), classes * (features + 1))
    return allowed._replace(passes=allowed.passes - 1.5 * (features + 1) / classes)


def _solved(train: Linear, known: OfPoints, lowest: float, allowed: Work) -> Minimum:
    """Return the least cost by a second-order solver, as far as that is allowed."""
    if allowed.passes <= train.effort.made:
        return _lowest(lowest, SKIPPED)
    if train.effort.memory > allowed.memory:
        return _lowest(lowest, TOO_MUCH_MEMORY)
    classes = train.shape[0]
    if _piecewise_linear(train.cost, classes):
        return _lowest(lowest, NO_CURVATURE)
    if np.any(train.l2):
        found = minimum(sphered(train), classes, allowed.passes)
    else:
        found = _once(
            "least",
            train,
            known,
            lambda sphered: minimum(sphered, classes, allowed.passes),
            allowed.passes,
        )
    if not found.reached or not np.isfinite(found.value):
        why = replace(found, value=min(lowest, found.value), reached=False)
        return replace(why, source=f"the lowest cost seen in this job; {found.source}")
    return found


def _by_program(train: Linear, known: OfPoints, allowed: Work) -> str:
    """Return the case by the linear program, where it is allowed."""
    needed = work(len(train.targets), train.shape[0], train.shape[1] - 1)
    if needed.passes >= allowed.passes or needed.memory > allowed.memory:
        return UNDECIDED
    return _once("case", train, known, by_program)


def _once(
    what: str,
    train: Linear,
    known: OfPoints,
    find: Callable[[Linear], Any],
    *more: float,
) -> Any:
    """Return what is found of sphered points; once for all schemes of the same affine scores."""
    surrogate = train.surrogate
    key = (what, train.cost, train.shape[0], len(surrogate), *more)
    if not surrogate.holds_all_points:
        before = known.decompositions.centred_rows
        aligned = train.points.map is not None and len(surrogate) == len(before)
        same = aligned and spans_the_same(sphere(before)[0], surrogate.moment_rows)
        return known.once(key, lambda: find(sphered(train))) if same else find(sphered(train))
    if not spans_the_same(known.basis, train.points):
        return find(sphered(train))
    shared = train.on(known.basis, 0.0)
    return known.once(key, lambda: find(shared))


def _lowest(value: float, why: str, norm: float = float("nan")) -> Minimum:
    return Minimum(value, norm, f"the lowest cost seen in this job; {why}", False)


def _piecewise_linear(cost: Cost, classes: int) -> bool:
    """Return whether the cost has no curvature at a few scores that lie on no kink."""
    rng = np.random.default_rng(0)
    scores, drawn = rng.standard_normal((classes, 8)), rng.integers(0, 2, 8)
    return not blocks(cost, scores, drawn if classes > 1 else np.where(drawn, 1.0, -1.0)).any()
