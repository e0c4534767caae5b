"""Numbers of studies that no record holds: a module a folder of studies, a function a study.

Each returns `dict[str, float]` of what the sweep recorded, and reads no more. Its formulas stand in
the docstring. The pictures here are the README's.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep


def of_only(sweep: Sweep, word: str) -> Mapping[str, Any]:
    """Return the arrays that the sweep's one scheme has recorded under a word."""
    (parts,) = sweep.arrays(sweep.of_role(names.SCHEME), word).values()
    return parts


def first_at(sweep: Sweep, cost: float) -> pd.DataFrame:
    """Return the scheme runs at the first iteration at which the training cost is at most `cost`.

    With the columns `iteration`, `test_cost` and `missed`, the share of the test points that is
    misclassified there; NaN of a run that never comes there.
    """
    rows = sweep.of_role(names.SCHEME)
    history = sweep.histories(rows)
    there = history[history[names.TRAIN_COST.key] <= cost].drop_duplicates("run_id")
    there = there.set_index("run_id").reindex(rows["run_id"])
    wrong = there[names.TEST_MISCLASSIFICATIONS.key].to_numpy() / rows["test_points"].to_numpy()
    return rows.assign(
        iteration=there["iteration"].to_numpy(),
        test_cost=there[names.TEST_COST.key].to_numpy(),
        missed=wrong,
    )
