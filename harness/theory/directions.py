"""The eigendirections of a cost's Hessian at the start: curvatures and vectors."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.hessian import blocks
from normbench.engine.problem import Linear, Problem
from normbench.theory import spectra
from normbench.theory.analysis import FEW_CLASSES
from normbench.theory.budget import Work

Array = NDArray[Any]
DENSE = 2000  # weights: the eigenvectors of a matrix of that size take seconds
SAME = 1e-9  # relative: curvatures of one kind at every point


class Directions(NamedTuple):
    """Live eigendirections of a Hessian, the stiffest first.

    curvature `(n,)`: the eigenvalues h. vectors: `(N + 1, n)`, of the weights of every score alike,
    or `(C (N + 1), n)`, of all weights. times: how many directions each stands for. lowest: the
    lowest eigenvalue, 0 where none can be negative.
    """

    curvature: Array
    vectors: Array
    times: int
    lowest: float

    @property
    def indefinite(self) -> bool:
        """Whether the cost curves down along some direction, beyond rounding."""
        largest = self.curvature[0] if len(self.curvature) else 0.0
        return self.lowest < -len(self.vectors) * np.finfo(np.float64).eps * largest

    def along(self, gradients: Array) -> Array:
        """Return the squared length of gradients `(R, C, N + 1)` along each direction, `(R, n)`."""
        rows = gradients.reshape(len(gradients), -1, len(self.vectors)).astype(np.float64)
        return np.asarray(((rows @ self.vectors) ** 2).sum(axis=1))


@dataclass(frozen=True)
class AtStart:
    """A problem seen from the start (C, N + 1), with what theory knows of its spectrum."""

    train: Problem
    start: Array
    spectrum: spectra.Spectrum | None

    @property
    def size(self) -> int:
        """The number of weights."""
        return int(np.prod(self.train.shape))

    @cached_property
    def kind(self) -> "Kind | None":
        """What makes the Hessian a multiple of the points' Gram matrix; None where it is not."""
        spectrum, linear = self.spectrum, self.train.linear
        if spectrum is None or not spectrum.whole or spectrum.condition_number > spectra.PREDICTED:
            return None
        if linear is None or not linear.traits.curvature:
            return None
        kind = kind_of(linear, self.start)
        known = kind and (kind.curvature == linear.traits.curvature or not np.any(linear.l2))
        return kind if known else None

    @cached_property
    def directions(self) -> Directions | None:
        """By the points' singular values, else by the matrix; None where that is too large."""
        linear = self.train.linear
        if self.kind and linear and linear.traits.curvature and self.spectrum:
            rows = linear.surrogate.moment_rows
            values, vectors = spectra.eigenvectors(self.spectrum, rows, linear.l2)
            values = values * (self.kind.curvature / linear.traits.curvature)
            return Directions(values, vectors, self.kind.times, 0.0)
        if self.size > DENSE:
            return None
        values, vectors = np.linalg.eigh(self.train.hessian(self.start).matrix())
        live = len(spectra.live(values, len(values)))
        return Directions(values[::-1][:live], vectors[:, ::-1][:, :live], 1, float(values[0]))

    def work(self, points: int) -> Work:
        """Return the work of `directions`; none where they are known, or are not looked for."""
        if "directions" in vars(self):
            return Work()
        if self.kind is not None:
            return decomposition(self.train.shape[-1], points, self.size)
        return decomposition(self.size, points, self.size) if self.size <= DENSE else Work()


def decomposition(size: int, points: int, weights: int) -> Work:
    """Return the work of a symmetric matrix's eigenvectors, in passes over the points."""
    return Work(10 * size**3 / (4.0 * max(points, 1) * weights), 24.0 * size**2)


class Kind(NamedTuple):
    """The curvature that every point has, in so many directions of its scores."""

    curvature: float
    times: int


def kind_of(train: Linear, weights: Array) -> Kind | None:
    """Return the curvature that every point has, and in how many directions of its scores.

    Of least squares anywhere 2; at zero weights, of the softmax cost 1/4 and of multiclass softmax
    1/C, in C - 1 directions. None where points differ, and for many classes, which are not tried.
    """
    quadratic = train.traits.quadratic
    if not quadratic and (np.any(weights) or train.shape[0] > FEW_CLASSES):
        return None
    kinds = np.unique(train.targets)[: 2 if quadratic else None]
    second = blocks(train.cost, np.zeros((train.shape[0], len(kinds))), kinds)
    values = np.linalg.eigvalsh(second[:, :, 0])
    live = values[values > SAME * values[-1]]
    if values[-1] <= 0 or not np.allclose(second, second[:, :, :1], rtol=SAME):
        return None
    return Kind(float(live[-1]), len(live)) if np.ptp(live) <= SAME * live[-1] else None
