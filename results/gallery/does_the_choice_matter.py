"""The numbers of `research/does_the_choice_matter`."""

import pandas as pd

from normbench.results import comparisons, names
from normbench.results.reached import reached
from normbench.results.rows import as_rows
from normbench.results.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `error_SCHEME`, `descent_SCHEME`: a scheme's place; and `spread`.

    By error: schemes are ranked on each data set and seed by the cross-validated error, equal ones
    sharing the mean of their ranks; the mean over seeds, then over data sets, makes the order. By
    descent: the order of `comparisons.leaderboard`, by iterations to 1e-2 of the excess. spread:
    the largest over the data sets of the worst scheme's error minus the best's.
    """
    order = ranks(sweep).sort_values().index
    found = {f"error_{name}": float(place) for place, name in enumerate(order, 1)}
    board = comparisons.leaderboard(reached([sweep]))["scheme"]
    found |= {f"descent_{name}": float(place) for place, name in enumerate(board, 1)}
    errors = sweep.of_role(names.SCHEME).groupby(names.DATASET.column)[names.FOLDS_ERROR.column]
    return found | {"spread": float((errors.max() - errors.min()).max())}


def ranks(sweep: Sweep) -> "pd.Series[float]":
    """Return each scheme's mean rank by error, the best lowest."""
    rows = [
        (row[names.DATASET.column], seed, row["normalizer"], rate)
        for row in as_rows(sweep.of_role(names.SCHEME))
        for seed, rate in sweep.series(row["run_id"], names.of_seed(names.FOLDS_ERROR).key).items()
    ]
    table = pd.DataFrame(rows, columns=["data", "seed", "scheme", "rate"])
    table["rank"] = table.groupby(["data", "seed"])["rate"].rank()
    return table.groupby(["data", "scheme"])["rank"].mean().groupby(level="scheme").mean()
