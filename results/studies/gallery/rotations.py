"""The numbers of `research/rotations`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep

GOAL = 0.104  # cost


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `OPTIMIZER_fewest` and `OPTIMIZER_most`: iterations over the rotations.

    Of a rotation, those from which on the cost is at most 0.104, at the step size that takes the
    fewest; infinite where none comes there.
    """
    steps = sweep.of_role(names.STEP)
    histories = sweep.histories(steps, [names.TRAIN_COST.key])
    counts = {
        run_id: _from_then_on(part[names.TRAIN_COST.key].to_numpy())
        for run_id, part in histories.groupby("run_id")
    }
    best = steps.assign(count=steps["run_id"].map(counts)).groupby(
        [names.OPTIMIZER.column, "parent"]
    )["count"]
    found: dict[str, float] = {}
    for optimizer, own in best.min().groupby(level=0):
        found |= {f"{optimizer}_fewest": float(own.min()), f"{optimizer}_most": float(own.max())}
    return found


def _from_then_on(cost: np.ndarray) -> float:
    above = np.flatnonzero(~(cost <= GOAL))
    first = above[-1] + 1 if len(above) else 0
    return float(first) if first < len(cost) else np.inf
