"""What `normbench results profile` tells and draws: schemes compared over any set of sweeps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from normbench.results import comparisons, names, tables, theory
from normbench.results.errors import ResultsError
from normbench.results.figures import profiles, style
from normbench.results.runs import Sweep, load, sweeps

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, float("inf"))
FILE = "profiles"  # the figure's, without its suffix
NO_PROBLEM = "no job with a descent"
NO_PAIR = "no problem on which two schemes were run"
NOT_ALL = "no problem on which every scheme was run; name the sweeps that share their schemes"


def tell(
    store: str,
    sweep_ids: Sequence[str],
    target: str,
    measure: str,
    folder: Path | None = None,
    shape: style.Shape = style.SCREEN,
) -> None:
    """Print predictions, pairs, ranks, profiles and the leaderboard of sweeps, all without ids.

    folder: where the figure of the profiles goes, in a shape; none is drawn without. Raises
    ResultsError on a sweep that is not there, a target or a measure that does not exist, a folder
    that cannot be written, and a figure of no problem.
    """
    for name, value, choices in (
        ("target", target, comparisons.TARGETS),
        ("by", measure, names.MEASURES),
    ):
        if value not in choices:
            raise ResultsError(f"--{name} {value}: choose one of {', '.join(choices)}")
    # The latest last, so that a job that was run again counts as it was then.
    ids = list(sweep_ids) or list(dict.fromkeys(sweeps(store)["sweep"]))[::-1]
    if not ids:
        raise ResultsError(f"--store {store}: holds no sweep; run normbench first")
    loaded = [load(store, sweep_id) for sweep_id in ids]
    table = comparisons.reached(loaded, target, measure)
    print(f"{measure} to the target of {target} of the excess, each scheme at its best step size\n")
    _show("prediction against observation", _predictions(loaded), NO_PROBLEM)
    _show("median and quartiles over starts and splits", comparisons.spread(table), NO_PROBLEM)
    pairs = f"pairs: ratio is how much longer the other takes ({comparisons.SURE})"
    _show(pairs, comparisons.paired(table), NO_PAIR)
    _show("mean rank by experiment", comparisons.ranks(table).reset_index(), NOT_ALL)
    _show(
        "performance profile: share of problems within a factor of the fastest",
        wide(table),
        NOT_ALL,
    )
    _show("leaderboard", comparisons.leaderboard(table), NOT_ALL)
    if folder is not None:
        title = f"{measure} to {target} of the excess"
        _draw(comparisons.profile(table), title, folder, shape, {"sweep": ", ".join(ids)})


def _draw(
    table: pd.DataFrame, title: str, folder: Path, shape: style.Shape, facts: dict[str, str]
) -> None:
    """Draw the profiles into a folder; print the files."""
    if table.empty:
        raise ResultsError(f"--out {folder}: nothing to draw; {NOT_ALL}")
    figure = profiles.draw(table, title, shape=shape)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = style.save(figure, folder / FILE, facts, ("png", "svg", "pdf"))
    except OSError as error:
        raise ResultsError(f"--out {folder}: cannot be written ({error.strerror})") from error
    for file in files:
        print(f"{'figure':10} {file}")


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


def _show(title: str, table: pd.DataFrame, nothing: str) -> None:
    """Print a table under its title, or why there is none."""
    if table.empty:
        print(f"{title}: nothing to compare ({nothing})\n")
        return
    print(f"{title}\n{tables.text(table)}\n")
