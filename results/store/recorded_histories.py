"""Histories of runs as one table, from the store or, of long ones, from what a job keeps."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store import run_checks
from normbench.results.store.rows import as_rows

ABOUT = ("run_id", "experiment", "normalizer", "label", "step_size", "verdict")
Series = dict[str, pd.Series]
Descent = Callable[[str], Mapping[str, Any]]


def table(
    client: Any,
    runs: pd.DataFrame,
    metrics: Sequence[str],
    descent: Descent,
    known: dict[tuple[str, str], pd.Series],
    left_out: list[str],
) -> pd.DataFrame:
    """Return one row a run and iteration, see `Sweep.histories`.

    descent: gives the arrays of a scheme's descent, by the id of its run. known: histories by run
    and metric; those that are read are added, since several figures ask for them. left_out: gets a
    sentence on each run whose histories cannot be read; it has no rows.
    """
    rows = as_rows(runs)
    wanted: list[tuple[str, str]] = []
    series: dict[str, Series] = {}
    for row in rows:
        there = [name for name in metrics if pd.notna(row.get(f"{names.METRICS}{name}"))]
        whole = _whole(row, there, descent)
        if whole:
            series[row["run_id"]] = whole
        wanted += [(row["run_id"], name) for name in there if name not in whole]
    unread = [pair for pair in wanted if pair not in known]
    # One call a run and metric is the only way that every store supports: several at a time.
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda pair: client.get_metric_history(*pair), unread)
        for pair, points in zip(unread, found):
            known[pair] = pd.Series(
                {point.step: point.value for point in run_checks.history(points)}
            )
            if known[pair].empty and not run_checks.is_named(pair[0], left_out):
                left_out.append(run_checks.left_out(pair[0], f"its history {pair[1]} is not whole"))
    for run_id, metric in wanted:
        series.setdefault(run_id, {})[metric] = known[run_id, metric]
    frames = [
        _frame(row, own)
        for row in rows
        if (own := series.get(row["run_id"])) and not any(part.empty for part in own.values())
    ]
    if not frames:
        return pd.DataFrame(columns=[*ABOUT, "iteration"])
    return pd.concat(frames, ignore_index=True)


def _whole(row: Mapping[Any, Any], metrics: Sequence[str], descent: Descent) -> Series:
    """Return those of a run's histories of which MLflow has some points, with all of them."""
    if row.get(names.THINNED.column) != "true":
        return {}
    parts = descent(row["run_id"] if row["role"] == names.SCHEME else row["parent"])
    step = float(row[names.STEP_TAG.column])  # six digits of it
    number = int(np.argmin(np.abs(np.log(parts["step_sizes"] / step))))
    found = {name: parts[name][number, 0] for name in metrics if name in parts}
    return {name: pd.Series(values).dropna() for name, values in found.items()}


def _frame(row: Mapping[Any, Any], series: Series) -> pd.DataFrame:
    frame = pd.DataFrame(dict(series)).rename_axis("iteration").reset_index()
    about = {**row, names.STEP_SIZE.key: row.get(names.STEP_TAG.column)}
    for place, name in enumerate(ABOUT):
        frame.insert(place, name, about[name])
    return frame
