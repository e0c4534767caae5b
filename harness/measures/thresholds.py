"""The curvature and the threshold `2/L`, where theory has them before the descent is judged."""

from normbench import names
from normbench.measures.contract import Findings, Finished, Measure
from normbench.theory.spectra import effective_rank, step_threshold

NOTHING = float("nan")


def take(made: Finished) -> Findings:
    """Return L, its threshold, the spectrum's condition number and rank, and what they speak of.

    The effective rank is that of the covariance of the points descended on.
    """
    assert made.descended is not None
    found, plain = made.descended.theory, made.descended.plain
    metrics = {
        names.LIPSCHITZ.key: found.lipschitz if found.lipschitz is not None else NOTHING,
        names.THRESHOLD.key: found.threshold or NOTHING,
        **curvature(names.LIPSCHITZ_START, names.THRESHOLD_START, found.at_start),
    }
    linear = made.descended.train.linear
    bound = linear.traits.curvature if linear is not None else None
    if bound is not None:
        metrics[names.COST_CURVATURE.key] = bound
    notes = []
    if found.spectrum is not None:
        metrics[names.SPECTRUM_LARGEST.key] = found.spectrum.largest
        if found.spectrum.is_complete and not found.spectrum.lost:
            metrics[names.CONDITION.key] = found.spectrum.condition_number
            metrics[names.RANK.key] = found.spectrum.rank
        elif found.spectrum.is_complete:
            metrics[names.CONDITION_LIMIT.key] = found.spectrum.limit
            notes.append(
                f"the condition number is more than {found.spectrum.limit:.2g}: directions are "
                "lost in rounding, so that rank and predicted histories are not told"
            )
        else:
            notes.append("rank and condition number are not known: Lanczos gives L alone")
        if found.spectrum.variances is not None:
            metrics[names.EFFECTIVE_RANK.key] = effective_rank(found.spectrum.variances)
    if made.descended.optimizer.note:
        notes.append(made.descended.optimizer.note)
    if found.threshold and not plain:
        notes.append("2/L speaks of plain gradient descent, not of this optimizer")
    tags = {
        names.BASIS.key: found.basis if found.threshold else "none",
        names.PLAIN.key: str(plain).lower(),
    }
    return Findings(metrics, tags, notes=tuple(notes))


def curvature(
    largest: names.Metric, threshold: names.Metric, lipschitz: float | None
) -> dict[str, float]:
    """Return the largest curvature at a place, and the threshold that follows; empty for None."""
    if lipschitz is None:
        return {}
    return {
        largest.key: lipschitz,
        threshold.key: step_threshold(lipschitz),
    }


MEASURE = Measure(take)
