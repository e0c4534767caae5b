"""The largest curvature L and the threshold `2/L`, as theory predicts them before the descent."""

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.settings import RUNNING_STATISTICS, WINDOW_STATISTICS
from normbench.theory.spectra import LIMIT, effective_rank, step_threshold

UNKNOWN = float("nan")
BATCHES = (
    "a step sees a batch of the points: 2/L is that of all points, and neither finer step sizes "
    "nor shadows were descended"
)
NETWORK_BATCHES = "a step sees a batch of the points: no shadows were descended"
MOVING = (
    "statistics={statistics}: costs are those of all points under the scheme of the latest step, "
    "whose function moves without a step; theory and other measures are of statistics=fitted"
)


def take(job: FinishedJob) -> Findings:
    """Return L, the threshold 2/L, the condition number and rank of the spectrum, and their basis.

    Numbers that theory does not know are left out or NaN, and a note says why. The basis, a tag,
    says which curvature the threshold comes from. The effective rank is that of the covariance of
    the points under the scheme.
    """
    assert job.judged_descent is not None
    theory, plain = job.judged_descent.theory, job.judged_descent.plain
    metrics = {
        names.LIPSCHITZ.key: theory.lipschitz if theory.lipschitz is not None else UNKNOWN,
        names.THRESHOLD.key: theory.threshold or UNKNOWN,
        **curvature_metrics(names.LIPSCHITZ_START, names.THRESHOLD_START, theory.at_start),
    }
    linear = job.judged_descent.train.linear
    bound = linear.traits.curvature if linear is not None else None
    if bound is not None:
        metrics[names.COST_CURVATURE.key] = bound
    notes = []
    if theory.spectrum is not None:
        metrics[names.SPECTRUM_LARGEST.key] = theory.spectrum.largest
        # A condition number needs every eigenvalue; of one with lost directions it has a bound.
        if theory.spectrum.is_complete and not theory.spectrum.lost:
            metrics[names.CONDITION.key] = theory.spectrum.condition_number
            metrics[names.RANK.key] = theory.spectrum.rank
        elif theory.spectrum.is_complete:
            metrics[names.CONDITION_LIMIT.key] = LIMIT
            notes.append(
                f"the condition number is more than {LIMIT:.2g}: directions are "
                "lost in rounding, so that rank and predicted histories are not told"
            )
        if theory.spectrum.variances is not None:
            metrics[names.EFFECTIVE_RANK.key] = effective_rank(theory.spectrum.variances)
    if job.judged_descent.optimizer.note:
        notes.append(job.judged_descent.optimizer.note)
    if theory.threshold and not job.judged_descent.optimizer.plain:
        notes.append("2/L speaks of plain gradient descent, not of this optimizer")
    tags = {
        names.BASIS.key: theory.threshold_source if theory.threshold else "none",
        names.PLAIN.key: str(plain).lower(),
    }
    if job.judged_descent.plan.order:  # empty where every update sees all points
        # The scores are not linear, nor the cost convex: there is no 2/L for the note to speak of.
        is_network = linear is None and not job.judged_descent.train.convex
        notes.append(NETWORK_BATCHES if is_network else BATCHES)
        statistics = job.judged_descent.settings.statistics
        if statistics in (RUNNING_STATISTICS, WINDOW_STATISTICS):
            notes.append(MOVING.format(statistics=statistics))
        tags[names.BATCHED.key] = str(job.judged_descent.optimizer.plain).lower()
    return Findings(metrics, tags, notes=tuple(notes))


def curvature_metrics(
    largest: names.Metric, threshold: names.Metric, lipschitz: float | None
) -> dict[str, float]:
    """Return the values of two metrics by their keys: a largest curvature and its threshold 2/L.

    Args:
        largest: The metric of the curvature.
        threshold: The metric of the threshold.
        lipschitz: The largest curvature L; None, which gives no values, where it is unknown.
    """
    if lipschitz is None:
        return {}
    return {
        largest.key: lipschitz,
        threshold.key: step_threshold(lipschitz),
    }


MEASURE = Measure(take)
