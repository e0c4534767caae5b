"""What a job's descent is held against: the least cost, the curvature, the predicted histories.

Nothing here may take longer than the descent that it explains. Work is counted, in passes over
the points of the size of one run's gradient, and never timed, so that two runs of one sweep
decide alike; what is skipped says so, and `theory=full` asks for it.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.hessian import DENSE, blocks
from normbench.engine.problem import Cost, Objective
from normbench.theory import spectra
from normbench.theory.minimum import Minimum, minimum, spans_the_same, sphere

if TYPE_CHECKING:
    from normbench.job import Job

Array = NDArray[np.float64]
SMALL = 1e8  # multiplications: what a tenth of a second does is done whatever the descent
LANCZOS_PASSES = 160
TOO_LARGE = 1e150
SKIPPED = "skipped: more work than the descent; theory=full asks for it"
NO_CURVATURE = "the cost has no second derivative to speak of (it is piecewise linear)"


class Facts(NamedTuple):
    """What a data set's own points say, under whatever scheme.

    raw, centred, standard: the largest eigenvalue of the Gram matrix of the points as they are,
    centred, and centred and scaled to variance 1. variances `(N,)`: the covariance's eigenvalues,
    decreasing, rounding included.
    """

    raw: float
    centred: float
    standard: float
    variances: Array


@dataclass(frozen=True)
class Theory:
    """What is known of a scheme before its histories are judged.

    spectrum: of the Hessian's global bound, or, for a cost without one, of the Gram matrix; None
    where it was skipped. lipschitz: the global bound L; None where the cost has none. at_start:
    the largest curvature there. exact: the cost is quadratic, its curvature everywhere the same.
    note: what does not exist, and why. budget: the work that is left for more.
    """

    spectrum: spectra.Spectrum | None = None
    lipschitz: float | None = None
    at_start: float | None = None
    facts: Facts | None = None
    exact: bool = False
    note: str = ""
    budget: "Budget | None" = None

    @property
    def notes(self) -> str:
        """The note, and what the work did not allow up to now."""
        skipped = self.budget.note if self.budget else ""
        return "; ".join(part for part in (self.note, skipped) if part)

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


def allowance(job: "Job", classes: int, features: int) -> float:
    """Return how many passes over the points theory may make: half of what the descent makes.

    And what a tenth of a second does in any case. Infinite with theory=full.
    """
    settings = job.settings
    if settings.theory == "full":
        return float("inf")
    made = settings.iterations * len(settings.step_sizes) * settings.starts
    small = SMALL / (4 * len(job.dataset.x) * (features + 1) * classes)
    return max(made / 2, small)


class Budget:
    """Passes over the points that are left to spend; it is asked before each piece of work."""

    def __init__(self, passes: float) -> None:
        self.left = passes
        self.refused: list[str] = []

    def affords(self, what: str, passes: float) -> bool:
        """Return whether there is enough left, and take it; remember what there was not."""
        if passes > self.left:
            self.refused.append(what)
            return False
        self.left -= passes
        return True

    @property
    def note(self) -> str:
        """What was skipped, and how to ask for it; empty where nothing was."""
        return f"{', '.join(self.refused)} {SKIPPED}" if self.refused else ""


def theorize(job: "Job", train: Objective, start: NDArray[Any]) -> Theory:
    """Return what theory says of descending an objective from weights start `(C, N + 1)`.

    The bound first, the curvature at the start and the data's own facts as far as the work allows.
    """
    if job.settings.theory == "none":
        return Theory(note="not asked for (theory=none)")
    if max(-train.x.min(), train.x.max()) > TOO_LARGE:
        return Theory(note="the points are too large to be squared")
    classes, width = start.shape
    budget = Budget(allowance(job, classes, width - 1))
    bound = spectra.bound(job.cost)
    spectrum, lipschitz = _spectrum(train.x, classes, budget), None
    if bound is not None and spectrum is not None:
        spectrum = spectra.penalized(spectrum, bound, job.l2, train.x)
        lipschitz = spectrum.largest
    at_start, note, facts = None, "", None
    if budget.affords("curvature at the start", curvature_passes(width, classes)):
        at_start, note = largest_curvature(train, start)
    raw = job.dataset.x.shape[1] + 1  # a scheme may keep few of the features
    matrices = raw * (raw + 30 * raw**2 / (2 * len(train.x))) / (width * classes)
    if raw <= spectra.DENSE and budget.affords("the covariance's spectrum", matrices):
        facts = _facts(job.dataset.fingerprint, _Held(job.dataset.x))
    if not bound and at_start == 0:
        note, at_start = NO_CURVATURE, None
    exact = getattr(job.cost, "__name__", "") == "least_squares" and bound is not None
    return Theory(spectrum, lipschitz, at_start, facts, exact, note, budget)


def _spectrum(x: NDArray[Any], classes: int, budget: Budget) -> spectra.Spectrum | None:
    """Return the Gram matrix's spectrum; its largest eigenvalue alone where that is dear.

    A product of matrices and about 10 N^3 for the eigenvalues; or Lanczos, with products of one
    column each.
    """
    size = min(x.shape[0], x.shape[1] + 1)
    dense = (size / 2 + 10 * size**3 / (4 * x.size)) / classes
    if size <= spectra.DENSE and budget.affords("rank and condition number", dense):
        return spectra.gram_spectrum(x)
    if budget.affords("L", LANCZOS_PASSES / classes):
        return spectra.Spectrum(np.array([spectra.largest_gram(x)]), whole=False)
    return None


def curvature_passes(width: int, classes: int) -> float:
    """Return the work of one largest curvature: the points' blocks, and a matrix or products."""
    small = classes * width <= DENSE
    return 2 * classes + (width * (classes + 1) / 4 if small else LANCZOS_PASSES)


def largest_curvature(train: Objective, weights: NDArray[Any]) -> tuple[float | None, str]:
    """Return the Hessian's largest eigenvalue at weights `(C, N + 1)`, and a note where None."""
    from scipy.sparse.linalg import ArpackNoConvergence

    try:
        found = train.hessian(weights).largest()
    except ArpackNoConvergence as error:
        return None, f"Lanczos did not converge ({error})"
    except (ValueError, TypeError, NotImplementedError) as error:
        return None, f"autograd has no second derivative of the cost ({error})"
    return (found, "") if np.isfinite(found) else (None, "the curvature is not finite")


def least(job: "Job", train: Objective, classes: int, lowest: float) -> Minimum:
    """Return the least cost of a job; lowest: what its own runs saw, where nothing better is known.

    Solved once a process for a data set and a cost under all invertible affine schemes; for other
    schemes, and with an l2 (whose weights are the scheme's), once for the scheme.
    """
    settings = job.settings
    if settings.theory == "none":
        return _lowest(lowest, "not asked for (theory=none)")
    features = max(train.x.shape[1], job.dataset.x.shape[1])  # a scheme may keep few of them
    left = allowance(job, classes, features) - 1.5 * (features + 1) / classes
    if left <= 0 or features > spectra.DENSE:
        return _lowest(lowest, SKIPPED)
    key = job.dataset.fingerprint
    try:
        if _piecewise_linear(job, classes):
            return _lowest(lowest, NO_CURVATURE)
        basis = _basis(key, _Held(job.dataset.x))
        if not job.l2 and spans_the_same(basis, train.x):
            found = _shared(key, job.cost, classes, left, _Held(replace(train, x=basis)))
        else:
            basis, variances = sphere(train.x)
            penalty = job.l2 / variances if job.l2 else 0.0
            found = minimum(replace(train, x=basis, l2=penalty), classes, left)
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        return _lowest(lowest, f"no second-order solution ({' '.join(str(error).split())})")
    if not found.reached or not np.isfinite(found.value):
        return _lowest(min(lowest, found.value), found.source, found.gradient_norm)
    return found


def _lowest(value: float, why: str, norm: float = float("nan")) -> Minimum:
    return Minimum(value, norm, f"the lowest cost seen in this job; {why}", False)


def _piecewise_linear(job: "Job", classes: int) -> bool:
    """Return whether the cost has no curvature at a few scores that lie on no kink."""
    rng = np.random.default_rng(0)
    count = min(8, len(job.dataset.y))
    scores = rng.standard_normal((classes, count))
    targets = rng.integers(0, 2, count)
    return not blocks(job.cost, scores, targets if classes > 1 else 2.0 * targets - 1).any()


class _Held:
    """A value that is no part of a cache's key: the key beside it says all that it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _basis(fingerprint: str, points: _Held) -> Array:
    return sphere(points.value)[0]


@lru_cache(maxsize=8)
def _shared(fingerprint: str, cost: Cost, classes: int, allowance: float, points: _Held) -> Minimum:
    """Return the least cost on a data set's sphered points, under any invertible affine scheme."""
    return minimum(points.value, classes, allowance)


@lru_cache(maxsize=8)
def _facts(fingerprint: str, points: _Held) -> Facts:
    x = points.value
    gram = spectra.gram(x)
    mean = gram[0, 1:]
    centred = x.astype(np.float64) - mean
    covariance = centred.T @ centred / len(x)
    variances = np.linalg.eigvalsh(covariance)[::-1]
    scale = np.sqrt(np.diag(covariance))
    tiny = len(x) * np.finfo(np.float64).eps * (np.abs(mean) + scale)
    scale = np.where(scale > tiny, scale, 1.0)
    correlation = np.linalg.eigvalsh(covariance / np.outer(scale, scale))[-1]
    return Facts(
        raw=float(np.linalg.eigvalsh(gram)[-1]),
        centred=max(1.0, float(variances[0])),
        standard=max(1.0, float(correlation)),
        variances=np.maximum(variances, 0.0),
    )
