"""Tables of runs and their rows: the same values as pandas gives, without its detours."""

import numpy as np
import pandas as pd

from normbench.results.store.rows import as_rows, as_table
from normbench.results.store.runs import Sweep

ROWS = [
    {"label": "a", "tags.x": "1", "metrics.cost": 0.5, "started": 3, "kept": True},
    {"label": "b", "metrics.cost": np.nan, "started": 4, "kept": False},
    {"label": "c", "tags.x": None, "started": 5, "kept": True},
]


def test_rows_are_those_of_pandas():
    for table in (pd.DataFrame(ROWS), as_table(ROWS), as_table(ROWS).iloc[:0]):
        pandas_own = table.to_dict("records")
        assert str(as_rows(table)) == str(pandas_own)  # nan is not equal to itself
        assert [[*map(type, row.values())] for row in as_rows(table)] == [
            [*map(type, row.values())] for row in pandas_own
        ]


def test_a_sweep_of_one_experiment_is_its_own_part(three):
    assert three.sweep.only(three.name) is three.sweep
    other = three.sweep.runs.assign(experiment="other")
    both = Sweep(three.sweep.store, "both", pd.concat([three.sweep.runs, other]))
    assert len(both.only("other").runs) == len(other)
