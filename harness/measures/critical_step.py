"""The critical step size, by bisection: each time a descent of a few step sizes."""

from collections.abc import Sequence

import numpy as np

from normbench import names
from normbench.measures.contract import RULES, Findings, Finished, Measure
from normbench.verdicts.search import critical_step


def take(made: Finished) -> Findings:
    """Return the bracket of the critical step size, and how many descents it took."""
    here = made.descent

    def fails(step_sizes: Sequence[float]) -> list[bool]:
        found = here.again(step_sizes, here.start)
        parts = (len(step_sizes), len(here.start))
        costs = found.cost.reshape(*parts, -1)
        diverged_at = found.diverged_at.reshape(parts)
        return [
            here.bench.judge_starts(*runs)[0].fails for runs in zip(costs, diverged_at, step_sizes)
        ]

    threshold = here.theory.threshold
    known = threshold and np.isfinite(threshold)
    first = threshold if threshold and known else here.settings.step_sizes[0]
    found = critical_step(fails, first / 2, here.search.width)
    metrics = {
        names.CRITICAL.key: found.lower or np.nan,
        names.CRITICAL_UPPER.key: found.upper or np.nan,
        names.CRITICAL_DESCENTS.key: found.descents,
    }
    return Findings(metrics, {names.CENSORED_CRITICAL.key: str(found.upper is None).lower()})


def _applies(made: Finished) -> bool:
    return made.descent.search.critical


MEASURE = Measure(take, asked=True, applies=_applies, follows=RULES)
