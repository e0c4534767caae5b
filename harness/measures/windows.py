"""The eigendirections of the Hessian at the start: curvatures, and shares of the excess.

A step size trains a direction of curvature h within K iterations where `|1 - a h|^K <= 1/e`: from
`(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`. `normbench.results.figures.windows` draws them.
"""

import numpy as np

from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.theory.directions import UNIFORM_TOLERANCE


def take(job: FinishedJob) -> Findings:
    """Return the eigendirections above rounding of the Hessian at the first start, stiffest first.

    Directions of equal curvature are one entry. `window_curvature` (n,): the eigenvalues h.
    `window_share` (n,): how much of the start's excess lies along each in the quadratic model
    there, `g^2 / (2 h)`. `window_times` (n,): the number of directions of that curvature. No arrays
    where the Hessian is too large a matrix to decompose, or has no eigenvalue above rounding.
    """
    descent = job.descent
    directions = descent.at_start.directions
    if directions is None or not len(directions.curvature):
        return Findings()
    values, times = directions.curvature, directions.multiplicity
    gradient = descent.train.evaluate(descent.start[:1]).gradient
    assert gradient is not None
    return _grouped(values, directions.squared_components(gradient)[0] / (2 * values), times)


def _grouped(values: Array, shares: Array, times: int) -> Findings:
    """Return the arrays of `take`, with directions of equal curvature joined.

    Their eigenvectors are arbitrary within their space, and so is the share of each.

    Args:
        values: Curvatures (d,), decreasing.
        shares: The share of the excess along each direction (d,).
        times: The number of directions that each entry stands for.
    """
    # The index at which each group of equal curvatures begins.
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - UNIFORM_TOLERANCE)])
    counts = np.diff(np.r_[first, len(values)])
    return Findings(
        arrays={
            "window_curvature": values[first],
            "window_share": np.add.reduceat(shares, first),
            "window_times": times * counts,
        }
    )


def _applies(job: FinishedJob) -> bool:
    """Return whether windows of step sizes exist: of plain descent with a threshold 2/L."""
    descent = job.descent
    return descent.plain and descent.theory.threshold is not None


MEASURE = Measure(take, applies=_applies)
