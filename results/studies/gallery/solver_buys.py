"""The numbers of `research/solver_buys`."""

import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `DATASET_SCHEME_reached`: 1 where lbfgs comes to 1e-2 of the excess, else 0."""
    rows = sweep.of_role(names.SCHEME)
    own = rows[rows[names.OPTIMIZER.column] == "lbfgs"]
    count = own[names.reached("1e-2").column]
    keys = own[names.DATASET.column] + "_" + own["normalizer"]
    return {f"{key}_reached": float(pd.notna(value)) for key, value in zip(keys, count)}
