"""The verdict on a history: pure functions, each rule named.

A verdict is `settled`, `unsettled`, `cycling` or `diverged` (a job that fails has `failed`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

History = NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """The thresholds of the verdicts.

    tail: share of the run's iterations that is its tail; least_tail: and at least so many of
    them. variation: a settled tail varies by less than this share of the run's total drop.
    excess: a settled run ends under this share of the start's excess over the minimum.
    """

    tail: float = 0.1
    least_tail: int = 10
    variation: float = 0.01
    excess: float = 0.5


def verdict(history: History, diverged: bool, minimum: float, rules: Rules = Rules()) -> str:
    """Return the verdict on one run's costs `(k,)`, step 0 first.

    diverged: the run stopped being finite at step k. minimum: the cost that the start's excess is
    measured from; the lowest known.
    """
    if diverged:
        return "diverged"
    if settled(history, minimum, rules):
        return "settled"
    return "cycling" if cycling(history) else "unsettled"


def settled(history: History, minimum: float, rules: Rules = Rules()) -> bool:
    """Return whether the tail is flat and the cost has come down.

    The last tenth of the run, 10 iterations at least, varies by less than 1 percent of the total
    drop, and the cost at the end is above the minimum by less than half of the start's excess.
    """
    drop = history[0] - history.min()
    if drop <= 0 or len(history) < 2:
        return False
    length = max(rules.least_tail, round(rules.tail * (len(history) - 1)))
    tail = history[-(length + 1) :]
    flat = tail.max() - tail.min() < rules.variation * drop
    low = history[-1] - minimum < rules.excess * (history[0] - minimum)
    return bool(flat and low)


def cycling(history: History) -> bool:
    """Return whether the cost rises in the last fifth of the run and finds no new low there.

    No new low: the lowest cost of the last fifth is no lower than that of the fifth before.
    """
    fifth = (len(history) - 1) // 5
    if fifth < 1:
        return False
    last, before = history[-fifth:], history[-2 * fifth : -fifth]
    rises = bool(np.any(np.diff(history[-fifth - 1 :]) > 0))
    return rises and bool(last.min() >= before.min())


def best(final_costs: History, verdicts: list[str]) -> int | None:
    """Return the index of the best run: lowest final cost among the settled.

    Among the finite where none settled; None where none is finite. Ties go to the first.
    """
    for group in (("settled",), ("unsettled", "cycling")):
        members = [i for i, word in enumerate(verdicts) if word in group]
        if members:
            return min(members, key=lambda i: final_costs[i])
    return None


def last_finite(history: History) -> Any:
    """Return the costs up to the step before the run stopped being finite, `(k,)`."""
    return history[np.isfinite(history)]
