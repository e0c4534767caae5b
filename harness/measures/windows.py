"""The directions of the cost at the start: how curved each is, and how much depends on it.

A step size trains a direction of curvature h within K iterations where `|1 - a h|^K <= 1/e`: from
`(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`. `normbench.results.figures.windows` draws them.
"""

from typing import Any, NamedTuple

import numpy as np

from normbench.engine.hessian import blocks
from normbench.engine.problem import Linear, Problem
from normbench.measures.contract import Array, Descended, Findings, Finished, Measure
from normbench.theory import spectra
from normbench.theory.analysis import FEW_CLASSES
from normbench.theory.budget import Work

DENSE = 2000  # weights: the eigenvectors of a matrix of that size take seconds
SAME = 1e-9  # relative: curvatures of one kind at every point


def take(made: Finished) -> Findings:
    """Return the live eigendirections of the Hessian at the first start, the stiffest first.

    `window_curvature` (n,): the eigenvalues h. `window_share` (n,): how much of the start's excess
    lies along each in the quadratic model there, `g^2 / (2 h)`. `window_times` (n,): how many
    directions each stands for: among those of one curvature none is told from another. By the
    points' singular values, else by the matrix; nothing where that is too large.
    """
    here = made.descent
    start = here.start[:1]
    gradient = here.train.evaluate(start).gradient
    assert gradient is not None
    gradient = gradient[0].astype(np.float64)
    spectrum, linear, kind = here.theory.spectrum, here.train.linear, _by_points(here)
    bound = linear.traits.curvature if linear else None
    if kind and bound and linear and spectrum:
        rows = linear.surrogate.moment_rows
        flat = spectra.quadratic(spectrum, rows, 0.0, gradient, linear.l2)
        values = flat.values * (kind.curvature / bound)
        return _grouped(values, flat.gradient / (2 * values), kind.times)
    if _size(here.train) > DENSE:
        return Findings()
    values, vectors = np.linalg.eigh(here.train.hessian(start[0]).matrix())
    live = len(spectra.live(values, len(values)))
    values, vectors = values[::-1][:live], vectors[:, ::-1][:, :live]
    return _grouped(values, (gradient.ravel() @ vectors) ** 2 / (2 * values), 1)


class _Kind(NamedTuple):
    """The curvature that every point has, in so many directions of its scores."""

    curvature: float
    times: int


def _by_points(here: Descended) -> _Kind | None:
    """Return what makes the Hessian a multiple of the points' Gram matrix; None where it is not."""
    spectrum, linear = here.theory.spectrum, here.train.linear
    if spectrum is None or not spectrum.whole or spectrum.condition_number > spectra.PREDICTED:
        return None
    if linear is None or not linear.traits.curvature:
        return None
    kind = _kind(linear, here.start[0])
    known = kind and (kind.curvature == linear.traits.curvature or not np.any(linear.l2))
    return kind if known else None


def _grouped(values: Array, shares: Array, times: int) -> Findings:
    """Return directions, decreasing, those of one curvature as one."""
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - SAME)])
    counts = np.diff(np.r_[first, len(values)])
    return Findings(
        arrays={
            "window_curvature": values[first],
            "window_share": np.add.reduceat(shares, first),
            "window_times": times * counts,
        }
    )


def _kind(train: Linear, weights: Array) -> _Kind | None:
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
    return _Kind(float(live[-1]), len(live)) if np.ptp(live) <= SAME * live[-1] else None


def _size(train: Problem) -> int:
    return int(np.prod(train.shape))


def _applies(made: Finished) -> bool:
    here = made.descent
    return here.plain and here.theory.threshold is not None


def _work(made: Finished) -> Work:
    """Return the passes of a decomposition of the points' Gram matrix, or of the dense Hessian."""
    train: Any = made.descent.train
    size = _size(train)
    if _by_points(made.descent) is not None:
        size = train.shape[-1]
    elif size > DENSE:
        return Work()  # there is nothing to be found
    return decomposition(size, made)


def decomposition(size: int, made: Finished) -> Work:
    """Return the work of a symmetric matrix's eigenvectors, in passes over the points."""
    one_pass = 4.0 * max(len(made.z), 1) * _size(made.descent.train)
    return Work(10 * size**3 / one_pass, 24.0 * size**2)


MEASURE = Measure(take, what="step-size windows", work=_work, applies=_applies)
