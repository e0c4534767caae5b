"""The numbers of `research/whitening_and_generalization`."""

from normbench import names
from normbench.results.store.runs import Sweep

COST = 0.1
SIZES = (100, 300, 450, 500, 600, 1200)  # of training points, to rounding


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_FIT_cost_POINTS` and `SCHEME_FIT_error_POINTS`, of the test points.

    At the first iteration at which the training cost is 0.1 or less; error: the share that is
    misclassified. FIT: whose statistics the scheme learnt, `train` or `all`. POINTS: those to train
    on. `SCHEME_FIT_peak`: those that have the largest error.
    """
    rows = sweep.of_role(names.SCHEME).set_index("run_id", drop=False)
    found: dict[str, float] = {}
    largest: dict[str, float] = {}
    histories = sweep.histories(sweep.of_role(names.SCHEME))
    for run_id, history in histories.groupby("run_id", sort=False):  # of equal ones the first
        row = rows.loc[run_id]
        there = history[history[names.TRAIN_COST.key] <= COST]
        if len(there):
            place = f"{row['normalizer']}_{row[names.FIT_ON]}"
            count = int(row["train_points"])
            points = min(SIZES, key=lambda size: abs(size - count))
            last = there.iloc[0]
            found[f"{place}_cost_{points}"] = float(last[names.TEST_COST.key])
            wrong = float(last[names.TEST_MISCLASSIFICATIONS.key] / row["test_points"])
            found[f"{place}_error_{points}"] = wrong
            if wrong > largest.get(place, -1.0):
                largest[place], found[f"{place}_peak"] = wrong, float(points)
    return found
