"""Compute the eigendirections of a cost's Hessian at the start: curvatures and vectors."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.linear import score_curvatures
from normbench.engine.problem import Problem
from normbench.theory import sizes, spectra

Array = NDArray[Any]
FEW_CLASSES = 50  # the second derivatives of one point of each class are then 1 MB
UNIFORM_TOLERANCE = 1e-9  # relative: curvatures of one kind at every point


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
    def uniform_curvature(self) -> "UniformCurvature | None":
        """The curvature that all points have at the start in common, if they have one.

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
        if uniform and np.any(linear.l2) and uniform.curvature != bound:
            return None
        return uniform

    @cached_property
    def directions(self) -> Directions | None:
        """The eigendirections; None where a matrix of the Hessian is left out for its size.

        With a uniform curvature they follow from the spectrum that theory computed; otherwise from
        the Hessian as a matrix.
        """
        uniform, linear = self.uniform_curvature, self.train.linear
        if uniform and linear and linear.traits.curvature and self.spectrum:
            values, vectors = spectra.eigenvectors(self.spectrum)
            values = values * (uniform.curvature / linear.traits.curvature)
            return Directions(values, vectors, uniform.multiplicity, 0.0)
        if not sizes.allows_matrix(self.theory_setting, self.train):
            return None
        values, vectors = np.linalg.eigh(self.train.hessian(self.start).matrix())
        live = len(spectra.eigenvalues_above_rounding(values, len(values)))
        return Directions(values[::-1][:live], vectors[:, ::-1][:, :live], 1, float(values[0]))


class UniformCurvature(NamedTuple):
    """The second derivative of the cost of a point in its scores, where all points have the same.

    Attributes:
        curvature: The nonzero eigenvalue of that derivative, a matrix `(C, C)`.
        multiplicity: The multiplicity of this eigenvalue.
    """

    curvature: float
    multiplicity: int


def find_uniform_curvature(train: Problem, weights: Array) -> UniformCurvature | None:
    """Return the curvature that every point has, and its multiplicity among the scores' directions.

    For least squares 2, anywhere; at zero weights, for the softmax cost 1/4 and for multiclass
    softmax 1/C, in C - 1 directions.

    Args:
        train: The linear problem of the training points.
        weights: The weights of one model, `(C, N + 1)`.

    Returns:
        The curvature of a point's cost in its scores; None where points or nonzero eigenvalues
        differ, or none is positive, and where `shared_curvatures` are unknown.
    """
    values = shared_curvatures(train, weights)
    if values is None or values[-1] <= 0:
        return None
    nonzero = values[values > UNIFORM_TOLERANCE * values[-1]]
    has_one_curvature = np.ptp(nonzero) <= UNIFORM_TOLERANCE * nonzero[-1]
    return UniformCurvature(float(nonzero[-1]), len(nonzero)) if has_one_curvature else None


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
