"""The numbers of `research/does_the_choice_matter`."""

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

# After so many iterations: by what is left to descend on the training points, and by the error.
BY = {"descent_": names.FOLDS_TRAIN_COST, "error_": names.FOLDS_ERROR}


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return places and ranks by `descent` and by `error`, and what the choice is worth.

    `BY_place_SCHEME`, `BY_rank_SCHEME`, `BY_low_SCHEME`, `BY_high_SCHEME`: its place, its mean rank
    and the interval, see `ranks`. `BY_lead`: the second's low minus the first's high, above 0 where
    the intervals are apart. `agreement`: the rank correlation of both mean ranks. `spread`: the
    largest over the data sets of the worst scheme's error minus the best's; `harm`: that of the
    worst scheme's error minus the error without one.
    """
    found: dict[str, float] = {}
    orders = {}
    for by, metric in BY.items():
        table = orders[by] = ranks(sweep, metric)
        for place, (name, row) in enumerate(table.iterrows(), 1):
            found[f"{by}place_{name}"] = float(place)
            found |= {f"{by}{key}_{name}": float(value) for key, value in row.items()}
        found[f"{by}lead"] = float(table["low"].iloc[1] - table["high"].iloc[0])
    first, second = (orders[by]["rank"] for by in BY)
    found["agreement"] = float(first.corr(second, method="spearman"))
    rows = sweep.of_role(names.SCHEME)
    errors = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.FOLDS_ERROR.column
    )
    found["spread"] = float((errors.max(axis=1) - errors.min(axis=1)).max())
    found["harm"] = float((errors.max(axis=1) - errors["identity"]).max())
    return found


def ranks(sweep: Sweep, metric: names.Metric) -> pd.DataFrame:
    """Return one row a scheme, the best first: its mean `rank`, and the interval `low` to `high`.

    Schemes are ranked on each data set and seed, equal ones sharing the mean of their ranks. The
    five folds of a seed share their data: a seed is one value, its mean rank over the data sets,
    and the interval of its median is over the seeds. It says what other splits of these data sets
    would change, and nothing of other data sets.
    """
    rows = [
        (row[names.DATASET.column], seed, row["normalizer"], value)
        for row in as_rows(sweep.of_role(names.SCHEME))
        for seed, value in sweep.series(row["run_id"], names.of_seed(metric).key).items()
    ]
    table = pd.DataFrame(rows, columns=["data", "seed", "scheme", "value"])
    table["rank"] = table.groupby(["data", "seed"])["value"].rank()
    by_seed = table.groupby(["scheme", "seed"])["rank"].mean().unstack()
    low, high = evidence.interval(by_seed.to_numpy())
    mean = np.asarray(by_seed.mean(axis=1))
    found = pd.DataFrame({"rank": mean, "low": low, "high": high}, index=by_seed.index)
    return found.sort_values("rank")
