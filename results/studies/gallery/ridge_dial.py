"""The numbers of `research/ridge_dial`."""

from normbench import names
from normbench.results.store.runs import Sweep

COST = 0.3


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `error_RIDGE`: the share of test points misclassified where the training cost is 0.3.

    At the first iteration at which it is that or less; of ridges that come there.
    """
    rows = sweep.of_role(names.SCHEME)
    ridges = dict(zip(rows["run_id"], rows[names.setting("normalizer.ridge")].astype(float)))
    points = dict(zip(rows["run_id"], rows["test_points"].astype(float)))
    found = {}
    for run_id, history in sweep.histories(rows).groupby("run_id"):
        there = history[history[names.TRAIN_COST.key] <= COST]
        if len(there):
            wrong = there[names.TEST_MISCLASSIFICATIONS.key].iloc[0]
            found[f"error_{ridges[run_id]:g}"] = float(wrong / points[run_id])
    return found
