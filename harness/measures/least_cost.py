"""The least cost, its source, and the targets that follow from it."""

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure


def take(job: FinishedJob) -> Findings:
    """Return the least cost, its gradient norm, its source, and the targets.

    The targets are counts where step sizes are compared by misclassified points, and a tag says so.
    Otherwise they are costs.
    """
    least, context = job.descent.least, job.descent.judging_context
    # No higher than the lowest recorded cost, as the targets that runs are judged by.
    metrics = {names.MINIMUM.key: context.minimum, names.MINIMUM_GRADIENT.key: least.gradient_norm}
    goals = context.targets
    metrics |= {names.target(name).key: goal for name, goal in goals.items()}
    tags = {
        names.MINIMUM_SOURCE.key: least.source,
        names.MINIMUM_REACHED.key: str(least.is_solved).lower(),
        names.AT_INFINITY.key: str(least.at_infinity).lower(),
        names.MINIMUM_CASE.key: least.case,
    }
    if context.compared_points:
        tags[names.COMPARED.key] = names.MISCLASSIFICATIONS
    return Findings(metrics, tags)


MEASURE = Measure(take)
