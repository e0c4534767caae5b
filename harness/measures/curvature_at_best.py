"""The largest curvature at the last weights of the best step size."""

from normbench import names
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.measures.thresholds import curvature_metrics
from normbench.theory.analysis import largest_curvature
from normbench.theory.sizes import allows_second_derivatives


def take(job: FinishedJob) -> Findings:
    """Return the largest curvature at the best weights of the first start, and its threshold 2/L.

    No numbers where the curvature cannot be computed.
    """
    lipschitz, _ = largest_curvature(job.descent.train, job.descent.best_weights)
    return Findings(curvature_metrics(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, lipschitz))


def _applies(job: FinishedJob) -> bool:
    """Return whether there are best weights, a threshold to compare with, and a curvature."""
    descent = job.descent
    return (
        descent.best is not None
        and descent.theory.threshold is not None
        and allows_second_derivatives(descent.settings.theory, descent.train)
    )


MEASURE = Measure(take, applies=_applies, depends_on=BEST_STEP)
