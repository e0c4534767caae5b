"""The largest curvature at the last weights of the best step size."""

from normbench import names
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.measures.inputs import work_of_curvature
from normbench.measures.thresholds import curvature_metrics
from normbench.theory.analysis import largest_curvature


def take(job: FinishedJob) -> Findings:
    """Return the largest curvature at the best weights of the first start, and its threshold 2/L.

    No numbers where the curvature cannot be computed.
    """
    lipschitz, _ = largest_curvature(job.descent.train, job.descent.best_weights)
    return Findings(curvature_metrics(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, lipschitz))


def _applies(job: FinishedJob) -> bool:
    """Return whether there are best weights, and a threshold 2/L to compare with."""
    return job.descent.best is not None and job.descent.theory.threshold is not None


MEASURE = Measure(
    take,
    budget_label="curvature at the best weights",
    work=work_of_curvature,
    applies=_applies,
    depends_on=BEST_STEP,
)
