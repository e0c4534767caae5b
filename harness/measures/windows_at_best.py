"""The curvatures at the last weights of the best step size: why steps above `2/L` work."""

import numpy as np

from normbench import names
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.theory import spectra
from normbench.theory.budget import Work
from normbench.theory.directions import MAX_DENSE_WEIGHTS, decomposition_work


def take(job: FinishedJob) -> Findings:
    """Return the eigenvalues (n,) above rounding of the Hessian at the best weights, decreasing."""
    descent = job.descent
    matrix = descent.train.hessian(descent.best_weights).matrix()
    values = spectra.eigenvalues_above_rounding(
        np.linalg.eigvalsh(matrix).astype(np.float64), len(matrix)
    )
    return Findings(arrays={names.CURVATURES_BEST.key: values})


def _applies(job: FinishedJob) -> bool:
    """Return whether windows of step sizes at the best weights exist and differ from the start's.

    They exist in plain descent with a threshold 2/L, and with few enough weights for the Hessian as
    a matrix. They differ unless the curvature is the same everywhere (`exact`).
    """
    descent = job.descent
    return (
        descent.plain
        and descent.best is not None
        and descent.theory.threshold is not None
        and not descent.theory.exact
        and int(np.prod(descent.train.shape)) <= MAX_DENSE_WEIGHTS
    )


def _work(job: FinishedJob) -> Work:
    """Return the work of the dense Hessian and of its eigenvalues."""
    effort = job.descent.train.effort
    size = int(np.prod(job.descent.train.shape))
    eigen_work = decomposition_work(size, len(job.z), size)
    passes = effort.setup + size * effort.product + eigen_work.passes
    return Work(passes, effort.memory + eigen_work.memory)


MEASURE = Measure(
    take,
    budget_label="curvatures at the best weights",
    work=_work,
    applies=_applies,
    depends_on=BEST_STEP,
)
