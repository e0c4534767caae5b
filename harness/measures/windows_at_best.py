"""The curvatures at the last weights of the best step size: why steps above `2/L` work."""

import numpy as np

from normbench import names
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.theory import sizes, spectra


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
        and sizes.allows_matrix(descent.settings.theory, descent.train)
    )


MEASURE = Measure(take, applies=_applies, depends_on=BEST_STEP)
