"""The largest step sizes of a grid that converge and that fall, and how many converged."""

from collections.abc import Sequence

from normbench import names
from normbench.measures.contract import STEP_VERDICTS, Findings, FinishedJob, Measure
from normbench.verdicts.judging import Step, largest_convergent, largest_falling

UNKNOWN = float("nan")


def take(job: FinishedJob) -> Findings:
    """Return the findings of the grid of a job, see `summarize_grid`."""
    return summarize_grid(job.descent.steps, job.descent.chosen)


def summarize_grid(steps: Sequence[Step], chosen: bool) -> Findings:
    """Return the largest convergent and falling step sizes, and how many step sizes converged.

    A tag for each of the two largest says whether no larger step size failed, so that the grid ends
    too early to show the limit (`censored`).

    Args:
        steps: The judged step sizes of the grid.
        chosen: Whether the setting `shown_step` chose the step size that represents the scheme;
            the tag `step_chosen` then says so.
    """
    convergent, falling = largest_convergent(steps), largest_falling(steps)
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or UNKNOWN,
        names.LARGEST_FALLING.key: falling.step_size or UNKNOWN,
        names.STEPS_LEVELLED.key: sum(step.verdict == names.CONVERGED for step in steps),
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
    }
    if chosen:
        tags[names.STEP_CHOSEN.key] = "true"
    return Findings(metrics, tags)


MEASURE = Measure(take, depends_on=STEP_VERDICTS)
