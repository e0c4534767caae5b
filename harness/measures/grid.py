"""What a grid comes to: the largest step sizes that pass, and how many level."""

from collections.abc import Sequence

from normbench import names
from normbench.measures.contract import VERDICTS, Findings, Finished, Measure
from normbench.verdicts.convergence import largest_convergent, largest_falling
from normbench.verdicts.judging import Step

NOTHING = float("nan")


def take(made: Finished) -> Findings:
    """Return the largest convergent and falling step sizes, and whether anything above failed.

    And the tag `step_chosen` where `shown_step` chose the run that stands for its scheme.
    """
    return largest(made.descent.steps, made.descent.chosen)


def largest(steps: Sequence[Step], chosen: bool) -> Findings:
    """Return what the steps of a grid come to; chosen: the one that stands for them was."""
    sizes = [step.step_size for step in steps]
    judgements = [step.judgement for step in steps]
    convergent = largest_convergent(sizes, judgements)
    falling = largest_falling(sizes, judgements)
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or NOTHING,
        names.LARGEST_FALLING.key: falling.step_size or NOTHING,
        names.STEPS_LEVELLED.key: sum(each.verdict == names.CONVERGED for each in judgements),
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
    }
    if chosen:
        tags[names.STEP_CHOSEN.key] = "true"
    return Findings(metrics, tags)


MEASURE = Measure(take, follows=VERDICTS)
