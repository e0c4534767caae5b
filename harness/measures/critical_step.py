"""The critical step size, by bisection: each round descends a few step sizes."""

from collections.abc import Sequence

import numpy as np

from normbench import names
from normbench.measures.contract import RULES, Findings, FinishedJob, Measure
from normbench.verdicts.search import critical_step


def take(job: FinishedJob) -> Findings:
    """Return the bracket of the critical step size, and the number of descents of the search.

    The critical step size is the smallest that fails, see `Judgement.fails`. An end of the bracket
    is NaN where nothing passed, or nothing failed. The tag says whether the search
    ended without a failure, so that the bracket has no upper end.
    """
    descent = job.descent

    def fails(step_sizes: Sequence[float]) -> list[bool]:
        """Descend step sizes from all starts; return for each whether it was too large."""
        steps, _ = descent.descend_finer(step_sizes)
        return [step.judgement.fails for step in steps]

    threshold = descent.theory.threshold
    # Without a finite threshold 2/L the search starts from the first step size of the grid.
    theory_applies = threshold and np.isfinite(threshold)
    first = threshold if threshold and theory_applies else descent.settings.step_sizes[0]
    # Half of it: the first descent then has step sizes on both sides of 2/L.
    bracket = critical_step(fails, first / 2, descent.search.width)
    metrics = {
        names.CRITICAL.key: bracket.lower or np.nan,
        names.CRITICAL_UPPER.key: bracket.upper or np.nan,
        names.CRITICAL_DESCENTS.key: bracket.descents,
    }
    return Findings(metrics, {names.CENSORED_CRITICAL.key: str(bracket.upper is None).lower()})


def _applies(job: FinishedJob) -> bool:
    """Return whether the user asked for the critical step size."""
    return job.descent.search.critical


MEASURE = Measure(take, has_setting=True, applies=_applies, depends_on=RULES)
