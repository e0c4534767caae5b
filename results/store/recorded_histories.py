"""Histories of runs as one table, from metrics or, if thinned there, from saved arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows

RUN_COLUMNS = ("run_id", "experiment", "normalizer", "label", "step_size", "verdict")
Descent = Callable[[str], Mapping[str, Any]]


def table(
    runs: pd.DataFrame,
    metrics: Sequence[str],
    series_of: Callable[[str], Mapping[str, Mapping[int, float]]],
    load_descent: Descent,
) -> pd.DataFrame:
    """Return one row a run and iteration, see `Sweep.histories`.

    Args:
        runs: The rows of the runs.
        metrics: The names of the metrics.
        series_of: Returns the values of each metric by step, by the id of a run.
        load_descent: Returns the arrays of a scheme's descent, by the id of the scheme's run.

    Returns:
        The table; runs without histories have no rows.
    """
    frames: list[tuple[dict[Any, Any], pd.DataFrame]] = []
    for row in as_rows(runs):
        recorded = [name for name in metrics if pd.notna(row.get(f"{names.METRICS}{name}"))]
        if not recorded:
            continue
        series = series_of(row["run_id"])
        histories = {name: pd.Series(series[name]) for name in recorded}
        histories |= _archived_histories(row, recorded, load_descent)
        frames.append((row, pd.DataFrame(histories)))
    if not frames:
        return pd.DataFrame(columns=[*RUN_COLUMNS, "iteration"])
    joined = pd.concat([frame for _, frame in frames]).rename_axis("iteration").reset_index()
    lengths = [len(frame) for _, frame in frames]
    for position, name in enumerate(RUN_COLUMNS):
        key = names.STEP_TAG.column if name == names.STEP_SIZE.key else name
        values = pd.Series([row.get(key) for row, _ in frames]).repeat(lengths)
        joined.insert(position, name, values.to_numpy())
    return joined


def _archived_histories(
    row: Mapping[Any, Any], metrics: Sequence[str], load_descent: Descent
) -> "dict[str, pd.Series[float]]":
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
