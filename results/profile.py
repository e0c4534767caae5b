"""What `python -m results profile` prints: schemes compared over any set of sweeps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from results import comparisons, tables, theory
from results.errors import ResultsError
from results.runs import Sweep, load, sweeps

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, float("inf"))


def tell(store: str, sweep_ids: Sequence[str], target: str, measure: str) -> None:
    """Print predictions, pairs, ranks, profiles and the leaderboard of sweeps, all without ids.

    Raises ResultsError on a sweep that is not there, a target or a measure that does not exist.
    """
    for name, value, choices in (
        ("target", target, comparisons.TARGETS),
        ("by", measure, comparisons.MEASURES),
    ):
        if value not in choices:
            raise ResultsError(f"--{name} {value}: choose one of {', '.join(choices)}")
    # The latest last, so that a job that was run again counts as it was then.
    ids = list(sweep_ids) or list(dict.fromkeys(sweeps(store)["sweep"]))[::-1]
    if not ids:
        raise ResultsError(f"--store {store}: holds no sweep; run python -m harness first")
    loaded = [load(store, sweep_id) for sweep_id in ids]
    table = comparisons.reached(loaded, target, measure)
    print(f"{measure} to the target of {target} of the excess, each scheme at its best step size\n")
    _show("prediction against observation", _predictions(loaded))
    _show("median and quartiles over starts and splits", comparisons.spread(table))
    _show("pairs: ratio is how much longer the other takes", comparisons.paired(table))
    _show("mean rank by experiment", comparisons.ranks(table).reset_index())
    _show("performance profile: share of problems within a factor of the fastest", wide(table))
    _show("leaderboard", comparisons.leaderboard(table))


def _predictions(loaded: list[Sweep]) -> pd.DataFrame:
    parts = []
    for sweep in loaded:
        part = theory.predictions(sweep)
        if "experiment" not in part and len(part):
            part.insert(0, "experiment", sweep.experiments[0])
        parts.append(part)
    return pd.concat(parts, ignore_index=True).drop_duplicates(ignore_index=True)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the profiles at a few factors, one row a scheme: what a terminal has room for."""
    tidy = comparisons.profile(table)
    rows = []
    for name in dict.fromkeys(tidy["scheme"]):
        own = tidy[tidy["scheme"] == name]
        shares = {
            f"x{factor:g}" if np.isfinite(factor) else "at all": own.loc[
                own["factor"] <= factor, "share"
            ].max()
            for factor in FACTORS
        }
        rows.append({"scheme": name, **{key: f"{value:.2f}" for key, value in shares.items()}})
    return pd.DataFrame(rows)


def _show(title: str, table: pd.DataFrame) -> None:
    if table.empty:
        print(f"{title}: nothing to compare (no problem on which two schemes were run)\n")
        return
    print(f"{title}\n{tables.text(table)}\n")
