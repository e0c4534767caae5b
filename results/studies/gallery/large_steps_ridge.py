"""The numbers of `research/large_steps_ridge`."""

import numpy as np

from normbench import names
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the exponents `small` and `large` of the iterations in kappa, over the ridges.

    kappa is `L / (2 l2)`. The iterations are those from which on `cost - least cost <= l2`: `small`
    at the smallest step size, `large` at the one that takes the fewest. An exponent is the slope of
    least squares through the logarithms.
    """
    rows = []
    for job in as_rows(sweep.of_role(names.SCHEME)):
        steps = sweep.of_role(names.STEP)
        histories = sweep.histories(steps[steps["parent"] == job["run_id"]])
        l2 = float(job[names.setting("cost.l2")])
        goal = float(job[names.MINIMUM.column]) + l2
        counts = {
            float(step): _from_then_on(part[names.TRAIN_COST.key].to_numpy(), goal)
            for step, part in histories.groupby("step_size")
        }
        kappa = float(job[names.LIPSCHITZ.column]) / (2 * l2)
        rows.append((kappa, counts[min(counts)], min(counts.values())))
    kappa, small, large = np.log(np.array(rows)).T
    return {
        "small": float(np.polyfit(kappa, small, 1)[0]),
        "large": float(np.polyfit(kappa, large, 1)[0]),
    }


def _from_then_on(cost: np.ndarray, goal: float) -> float:
    """Return the iteration from which on a history is at most a goal; infinite where it is not."""
    above = np.flatnonzero(~(cost <= goal))
    first = above[-1] + 1 if len(above) else 1
    return float(first) if first < len(cost) else np.inf
