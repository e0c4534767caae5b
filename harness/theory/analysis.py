"""Compute the theory of a job: its curvature, its step size threshold, directions at the start."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.linear import LinearHessian, score_curvatures
from normbench.engine.problem import Problem
from normbench.normalizers.decomposition import PointsCache
from normbench.theory import sizes, spectra

NOT_ASKED = "not asked for (theory=none)"
Array = NDArray[Any]
NO_CURVATURE = "the cost has no second derivative to speak of (it is piecewise linear)"
FEW_CLASSES = 50  # the second derivatives of one point of each class are then 1 MB
UNIFORM_TOLERANCE = 1e-9  # relative: curvatures of one kind at every point


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
        has_threshold: Whether scores are linear in the weights, or the cost is convex in them; else
            the curvature at the start says nothing of other weights.
        moments: The moments of the points under the scheme; None where they were not computed.
    """

    spectrum: spectra.Spectrum | None = None
    lipschitz: float | None = None
    at_start: float | None = None
    exact: bool = False
    note: str = ""
    has_threshold: bool = True
    moments: PointsCache | None = None

    @property
    def threshold(self) -> float | None:
        """`2 / L`, with the global bound as L, or else the curvature at the start.

        None where neither is known and positive.
        """
        curvature = self.lipschitz if self.lipschitz is not None else self.at_start
        return spectra.step_threshold(curvature) if self.has_threshold and curvature else None

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
        return Theory(note=NOT_ASKED)
    linear, note = train.linear, ""
    spectrum = moments = lipschitz = bound = at_start = None
    if linear is not None:
        bound = linear.traits.curvature
        if sizes.allows_spectrum(theory_setting, linear.points):
            moments = PointsCache(linear.points)
            spectrum = spectra.spectrum(moments)
        else:
            # The Gram matrix is the Hessian of a cost of one score with second derivatives 1.
            gram = LinearHessian(linear.points, np.ones((1, 1, len(linear.targets))))
            largest = gram.largest_by_lanczos()
            spectrum = spectra.Spectrum(np.array([largest]), is_complete=False)
        if linear.classify and not np.any(linear.l2) and not np.any(start):
            # The Hessian is the Kronecker product of the Gram matrix and what all points share.
            curvatures = shared_curvatures(linear, start)
            at_start = None if curvatures is None else float(curvatures[-1]) * spectrum.largest
        if bound is not None:
            spectrum = spectra.penalize(spectrum, bound, linear.l2)
            lipschitz = spectrum.largest
    if at_start is None and sizes.allows_second_derivatives(theory_setting, train):
        at_start, note = largest_curvature(train, start)
    if not bound and at_start == 0:  # no curvature is not a curvature of 0, and gives no threshold
        note, at_start = NO_CURVATURE, None
    exact = bound is not None and train.traits.quadratic
    # Of a network the curvature at the start bounds no step.
    has_threshold = linear is not None or train.convex
    return Theory(spectrum, lipschitz, at_start, exact, note, has_threshold, moments)


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


class Directions(NamedTuple):
    """Eigendirections of a Hessian above rounding, the largest curvature first.

    Attributes:
        curvature: The eigenvalues h, `(n,)`.
        vectors: The eigenvectors as columns: `(C (N + 1), n)`, of all weights, or `(N + 1, n)`
            where the weights of each score have the same ones.
        multiplicity: The number of eigendirections that each column stands for.
        lowest: The lowest eigenvalue, 0 where none can be negative.
    """

    curvature: Array
    vectors: Array
    multiplicity: int
    lowest: float

    @property
    def indefinite(self) -> bool:
        """Whether the cost curves down along some direction, beyond rounding."""
        largest = self.curvature[0] if len(self.curvature) else 0.0
        return self.lowest < -len(self.vectors) * np.finfo(np.float64).eps * largest

    def squared_components(self, gradients: Array) -> Array:
        """Return the squared length of R gradients along each direction, `(R, n)`.

        gradients: `(R, C, N + 1)`. Where a column of `vectors` stands for the weights of each
        score, the squares are summed over the scores.
        """
        rows = gradients.reshape(len(gradients), -1, len(self.vectors)).astype(np.float64)
        return np.asarray(((rows @ self.vectors) ** 2).sum(axis=1))


@dataclass(frozen=True)
class AtStart:
    """A problem at the start of a descent, with the eigendirections of its Hessian there.

    Attributes:
        train: The problem of the training points.
        start: The first start, weights of the problem's shape.
        spectrum: The spectrum of the Hessian's bound, which theory computed; None without one.
        theory_setting: The setting `theory`.
    """

    train: Problem
    start: Array
    spectrum: spectra.Spectrum | None
    theory_setting: str = "auto"

    @cached_property
    def uniform_curvature(self) -> tuple[float, int] | None:
        """The curvature that all points have at the start in common, and its multiplicity.

        The eigendirections then follow from the spectrum that theory computed. None where points
        differ, or where that spectrum is missing or not accurate enough.
        """
        spectrum, linear = self.spectrum, self.train.linear
        if spectrum is None or not spectrum.is_complete or linear is None:
            return None
        bound = linear.traits.curvature
        if not bound or spectrum.condition_number > spectra.MAX_PREDICTED_CONDITION:
            return None
        uniform = find_uniform_curvature(linear, self.start)
        # `directions` rescales the spectrum of the bound by the ratio of both curvatures, which
        # would rescale the penalty, too: with a penalty the ratio must be 1.
        return None if uniform and np.any(linear.l2) and uniform[0] != bound else uniform

    @cached_property
    def directions(self) -> Directions | None:
        """The eigendirections; None where a matrix of the Hessian is left out for its size.

        With a uniform curvature they follow from the spectrum that theory computed; otherwise from
        the Hessian as a matrix.
        """
        if self.uniform_curvature and self.spectrum:
            curvature, multiplicity = self.uniform_curvature
            values, vectors = spectra.eigenvectors(self.spectrum)
            values = values * (curvature / (self.train.traits.curvature or curvature))
            return Directions(values, vectors, multiplicity, 0.0)
        if not sizes.allows_matrix(self.theory_setting, self.train):
            return None
        values, vectors = np.linalg.eigh(self.train.hessian(self.start).matrix())
        live = len(spectra.eigenvalues_above_rounding(values, len(values)))
        return Directions(values[::-1][:live], vectors[:, ::-1][:, :live], 1, float(values[0]))


def find_uniform_curvature(train: Problem, weights: Array) -> tuple[float, int] | None:
    """Return the curvature that every point has, and its multiplicity among the scores' directions.

    For least squares 2, anywhere; at zero weights, for the softmax cost 1/4 and for multiclass
    softmax 1/C, in C - 1 directions.

    Args:
        train: The linear problem of the training points.
        weights: The weights of one model, `(C, N + 1)`.

    Returns:
        The nonzero eigenvalue of the second derivative of a point's cost in its scores, and its
        multiplicity; None where points or nonzero eigenvalues differ, or none is positive, and
        where `shared_curvatures` are unknown.
    """
    values = shared_curvatures(train, weights)
    if values is None or values[-1] <= 0:
        return None
    nonzero = values[values > UNIFORM_TOLERANCE * values[-1]]
    has_one_curvature = np.ptp(nonzero) <= UNIFORM_TOLERANCE * nonzero[-1]
    return (float(nonzero[-1]), len(nonzero)) if has_one_curvature else None


def shared_curvatures(train: Problem, weights: Array) -> Array | None:
    """Return the eigenvalues `(C,)` of the second derivative that a point's cost has in its scores.

    They are increasing. None where points differ, and where autograd has no second derivative. A
    cost that is not quadratic is tried only at zero weights, where every score is 0, and with few
    classes.
    """
    quadratic = train.traits.quadratic
    if not quadratic and (np.any(weights) or train.shape[0] > FEW_CLASSES):
        return None
    # A quadratic cost has the same second derivatives at all targets, of which there may be many.
    targets = np.unique(train.targets)[: 2 if quadratic else None]
    try:
        curvatures = score_curvatures(train.cost, np.zeros((train.shape[0], len(targets))), targets)
    except (ValueError, TypeError, NotImplementedError):
        return None
    values = np.linalg.eigvalsh(curvatures[:, :, 0])  # of the first target; all must agree
    differences = np.abs(curvatures - curvatures[:, :, :1])
    return values if differences.max() <= UNIFORM_TOLERANCE * abs(values[-1]) else None
