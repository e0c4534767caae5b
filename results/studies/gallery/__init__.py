"""Numbers of studies that no record holds: a module a folder of studies, a function a study.

Each returns `dict[str, float]` of what the sweep recorded, and reads no more. Its formulas stand in
the docstring. The pictures here are those of the README and the pages.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep


def of_only(sweep: Sweep, word: str) -> Mapping[str, Any]:
    """Return the arrays that the sweep's one scheme has recorded under a word."""
    (parts,) = sweep.arrays(sweep.of_role(names.SCHEME), word).values()
    return parts


def at_cost(sweep: Sweep, cost: float) -> pd.DataFrame:
    """Return the scheme runs where their training cost first is a cost.

    With the columns `iteration`, the first that has it or less, and, between that and the one
    before, by their costs: `test_cost` and `missed`, the share of the test points that is
    misclassified. NaN of a run that never comes there.
    """
    rows = sweep.of_role(names.SCHEME)
    columns = [names.TEST_COST.key, names.TEST_MISCLASSIFICATIONS.key]
    found = {}
    for run_id, own in sweep.histories(rows).groupby("run_id"):
        costs, values = own[names.TRAIN_COST.key].to_numpy(), own[columns].to_numpy(dtype=float)
        first = int(np.argmax(costs <= cost))
        if costs[first] <= cost:
            before = max(first - 1, 0)
            fall = costs[before] - costs[first]
            share = (costs[before] - cost) / fall if fall > 0 else 1.0
            between = values[before] + share * (values[first] - values[before])
            found[run_id] = [own["iteration"].to_numpy()[first], *between]
    named = ["iteration", *columns]
    table = pd.DataFrame.from_dict(found, orient="index", columns=named).reindex(rows["run_id"])
    wrong = table[names.TEST_MISCLASSIFICATIONS.key].to_numpy() / rows["test_points"].to_numpy()
    return rows.assign(
        iteration=table["iteration"].to_numpy(),
        test_cost=table[names.TEST_COST.key].to_numpy(),
        missed=wrong,
    )
