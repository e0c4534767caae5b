"""Numbers of studies that are computed from the records: one module a folder, one function a study.

Each function takes a sweep and returns a `dict[str, float]`, computed from the records alone, but
for scikit-learn's own descents in `exercises.scaling_sgd`. Its docstring gives the formulas. The
pictures here are those of the README and the pages.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep


def arrays_of_only_scheme(sweep: Sweep, group: str) -> Mapping[str, Any]:
    """Return a group of recorded arrays of the sweep's only scheme.

    Args:
        sweep: A sweep of one scheme.
        group: The name of the group, such as `biplot`.

    Returns:
        The arrays by name.
    """
    (arrays,) = sweep.arrays(sweep.of_role(names.SCHEME), group).values()
    return arrays


def at_cost(sweep: Sweep, cost: float) -> pd.DataFrame:
    """Return the state of each scheme run when its training cost first reaches a cost.

    Args:
        sweep: The sweep.
        cost: The training cost.

    Returns:
        The scheme runs, with the columns `iteration`, the first whose training cost is at most
        `cost`, and `test_cost` and `missed`, the share of misclassified test points, both
        interpolated linearly in the training cost between that iteration and the one before. NaN
        for a run that does not reach the cost.
    """
    rows = sweep.of_role(names.SCHEME)
    columns = [names.TEST_COST.key, names.TEST_MISCLASSIFICATIONS.key]
    interpolated = {}  # by run id: the iteration, then the values of `columns`
    for run_id, history in sweep.histories(rows).groupby("run_id"):
        costs, values = (
            history[names.TRAIN_COST.key].to_numpy(),
            history[columns].to_numpy(dtype=float),
        )
        first = int(np.argmax(costs <= cost))  # 0 where no cost is that low, too
        if costs[first] <= cost:
            previous = max(first - 1, 0)  # the start itself, if its cost is low enough
            fall = costs[previous] - costs[first]
            share = (costs[previous] - cost) / fall if fall > 0 else 1.0
            interpolated_values = values[previous] + share * (values[first] - values[previous])
            interpolated[run_id] = [history["iteration"].to_numpy()[first], *interpolated_values]
    table_columns = ["iteration", *columns]
    # Reindexing gives a row of NaN to a run that does not reach the cost.
    table = pd.DataFrame.from_dict(interpolated, orient="index", columns=table_columns).reindex(
        rows["run_id"]
    )
    missed = table[names.TEST_MISCLASSIFICATIONS.key].to_numpy() / rows["test_points"].to_numpy()
    return rows.assign(
        iteration=table["iteration"].to_numpy(),
        test_cost=table[names.TEST_COST.key].to_numpy(),
        missed=missed,
    )
