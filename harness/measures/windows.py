"""The directions of the cost at the start: how curved each is, and how much depends on it.

A step size trains a direction of curvature h within K iterations where `|1 - a h|^K <= 1/e`: from
`(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`. `normbench.results.figures.windows` draws them.
"""

import numpy as np

from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.theory.budget import Work
from normbench.theory.directions import UNIFORM_TOLERANCE


def take(made: Finished) -> Findings:
    """Return the live eigendirections of the Hessian at the first start, the stiffest first.

    `window_curvature` (n,): the eigenvalues h. `window_share` (n,): how much of the start's excess
    lies along each in the quadratic model there, `g^2 / (2 h)`. `window_times` (n,): how many
    directions each stands for: among those of one curvature none is told from another. Nothing
    where there are too many directions.
    """
    here = made.descent
    directions = here.at_start.directions
    if directions is None or not len(directions.curvature):
        return Findings()
    values, times = directions.curvature, directions.times
    gradient = here.train.evaluate(here.start[:1]).gradient
    assert gradient is not None
    return _grouped(values, directions.along(gradient)[0] / (2 * values), times)


def _grouped(values: Array, shares: Array, times: int) -> Findings:
    """Return directions, decreasing, those of one curvature as one."""
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - UNIFORM_TOLERANCE)])
    counts = np.diff(np.r_[first, len(values)])
    return Findings(
        arrays={
            "window_curvature": values[first],
            "window_share": np.add.reduceat(shares, first),
            "window_times": times * counts,
        }
    )


def _applies(made: Finished) -> bool:
    here = made.descent
    return here.plain and here.theory.threshold is not None


def _work(made: Finished) -> Work:
    """Return the passes of a decomposition of the points' Gram matrix, or of the dense Hessian."""
    return made.descent.at_start.work(len(made.z))


MEASURE = Measure(take, what="step-size windows", work=_work, applies=_applies)
