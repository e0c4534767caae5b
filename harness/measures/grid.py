"""The largest step sizes of a grid that converge and that fall, and how many converged."""

from collections.abc import Sequence

from normbench import names
from normbench.measures.contract import STEP_VERDICTS, Findings, FinishedJob, Measure
from normbench.verdicts.convergence import largest_convergent, largest_falling
from normbench.verdicts.judging import Step

UNKNOWN = float("nan")


def take(job: FinishedJob) -> Findings:
    """Return the largest convergent and falling step sizes, and whether larger ones failed.

    The tag `step_chosen` marks a scheme whose step size `shown_step` chose.
    """
    return summarize_grid(job.descent.steps, job.descent.chosen)


def summarize_grid(steps: Sequence[Step], chosen: bool) -> Findings:
    """Return the findings of a grid; chosen: whether the user chose the step size it shows."""
    sizes = [step.step_size for step in steps]
    judgements = [step.judgement for step in steps]
    convergent = largest_convergent(sizes, judgements)
    falling = largest_falling(sizes, judgements)
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or UNKNOWN,
        names.LARGEST_FALLING.key: falling.step_size or UNKNOWN,
        names.STEPS_LEVELLED.key: sum(
            judgement.verdict == names.CONVERGED for judgement in judgements
        ),
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
    }
    if chosen:
        tags[names.STEP_CHOSEN.key] = "true"
    return Findings(metrics, tags)


MEASURE = Measure(take, follows=STEP_VERDICTS)
