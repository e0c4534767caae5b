"""Histories of runs as one table, read from metrics or, if thinned there, from saved arrays."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store import run_checks
from normbench.results.store.rows import as_rows

RUN_COLUMNS = ("run_id", "experiment", "normalizer", "label", "step_size", "verdict")
Series = dict[str, pd.Series]  # by metric: a run's history, indexed by iteration
Descent = Callable[[str], Mapping[str, Any]]


def table(
    client: Any,
    runs: pd.DataFrame,
    metrics: Sequence[str],
    load_descent: Descent,
    cache: dict[tuple[str, str], pd.Series],
    left_out: list[str],
    threads: int = 1,
) -> pd.DataFrame:
    """Return one row a run and iteration, see `Sweep.histories`.

    Args:
        client: MLflow's client.
        runs: The rows of the runs.
        metrics: The names of the metrics.
        load_descent: Returns the arrays of a scheme's descent, by the id of the scheme's run.
        cache: Histories by run and metric. Those that are read are added for later calls.
        left_out: Gets a sentence about each run whose histories cannot be read and which therefore
            has no rows.
        threads: The number of threads that read: one for a file of this machine, since Python runs
            one thread at a time, and threads that read it wait for each other.

    Returns:
        The table.
    """
    rows = as_rows(runs)
    requested: list[tuple[str, str]] = []
    series: dict[str, Series] = {}
    for row in rows:
        recorded_metrics = [name for name in metrics if pd.notna(row.get(f"{names.METRICS}{name}"))]
        # Empty for a run whose metrics have all points.
        archived = _archived_histories(row, recorded_metrics, load_descent)
        if archived:
            series[row["run_id"]] = archived
        requested += [(row["run_id"], name) for name in recorded_metrics if name not in archived]
    unread = [pair for pair in requested if pair not in cache]
    # Every store supports one call per run and metric only.
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        fetched = (pool.map if pool else map)(lambda pair: client.get_metric_history(*pair), unread)
        for pair, points in zip(unread, fetched):
            cache[pair] = pd.Series(
                {point.step: point.value for point in run_checks.history(points)}
            )
            # `run_checks.history` returns no point of a damaged history. A run is named once.
            if cache[pair].empty and not run_checks.is_named(pair[0], left_out):
                left_out.append(
                    run_checks.left_out_sentence(pair[0], f"its history {pair[1]} is not whole")
                )
    for run_id, metric in requested:
        series.setdefault(run_id, {})[metric] = cache[run_id, metric]
    # A run without histories, or with one that is damaged, has no rows.
    whole = [
        (row, pd.DataFrame(histories))
        for row in rows
        if (histories := series.get(row["run_id"]))
        and not any(history.empty for history in histories.values())
    ]
    if not whole:
        return pd.DataFrame(columns=[*RUN_COLUMNS, "iteration"])
    joined = pd.concat([frame for _, frame in whole]).rename_axis("iteration").reset_index()
    lengths = [len(frame) for _, frame in whole]
    for position, name in enumerate(RUN_COLUMNS):
        key = names.STEP_TAG.column if name == names.STEP_SIZE.key else name
        values = pd.Series([row.get(key) for row, _ in whole]).repeat(lengths)
        joined.insert(position, name, values.to_numpy())
    return joined


def _archived_histories(
    row: Mapping[Any, Any], metrics: Sequence[str], load_descent: Descent
) -> Series:
    """Return the complete histories of a run whose metrics were thinned, else nothing.

    Args:
        row: The row of a scheme's or a step's run.
        metrics: The names of the metrics.
        load_descent: Returns the arrays of a scheme's descent, by the id of the scheme's run.

    Returns:
        The histories by metric, for those metrics that the arrays hold; without an entry for a run
        that was not thinned.
    """
    if row.get(names.THINNED.column) != "true":
        return {}
    descent_arrays = load_descent(row["run_id"] if row["role"] == names.SCHEME else row["parent"])
    # The tag is rounded to six digits, so the nearest step size of the grid is taken.
    step_size = float(row[names.STEP_TAG.column])
    grid_index = int(np.argmin(np.abs(np.log(descent_arrays["step_sizes"] / step_size))))
    # Histories are thinned only if there is one start, which has the index 0.
    arrays = {
        name: descent_arrays[name][grid_index, 0] for name in metrics if name in descent_arrays
    }
    return {name: pd.Series(values).dropna() for name, values in arrays.items()}
