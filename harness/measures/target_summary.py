"""What the targets were taken for: classes or real numbers."""

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure


def take(job: FinishedJob) -> Findings:
    """Return the summary of the targets; no finding for unlabelled points."""
    summary = job.dataset.target_summary
    return Findings(tags={names.TARGET_SUMMARY.key: summary} if summary else {})


MEASURE = Measure(take, of_descent=False)
