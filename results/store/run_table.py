"""The runs of a store as one table, labelled and in the order of the jobs."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs as inputs
from normbench.results.store.rows import as_table
from normbench.results.store.run_labels import labels


def tabulate(
    runs: Sequence[Any], experiment_names: Mapping[str, str], sweep_id: str
) -> pd.DataFrame:
    """Return one row a run; the schemes of a sweep by experiment, in the order of its jobs.

    Args:
        runs: The runs as MLflow's objects.
        experiment_names: The experiments' names, by their ids.
        sweep_id: The sweep whose jobs give the order; of any other id, the start time gives it.

    Returns:
        The table, with the columns of `_row`, the columns of the order (`place`: the number of the
        job in the sweep; `first`: the least place of the experiment; `size`: the step size), and
        those of `add_labels`.
    """
    line = lru_cache(maxsize=None)(clean.recorded_line)  # most runs share most of their texts
    rows = [_row(run, line(experiment_names[run.info.experiment_id]), line) for run in runs]
    table = as_table(rows)
    table["place"] = pd.to_numeric(table.get(names.membership(sweep_id).column), errors="coerce")
    table["first"] = table.groupby("experiment")["place"].transform("min")
    # The size orders the runs of a job, which have the same start time.
    table["size"] = pd.to_numeric(table.get(names.STEP_TAG.column), errors="coerce")
    order = ["first", "place", "started", "size", "run_id"]
    return add_labels(table.sort_values(order, ignore_index=True, na_position="first"))


def _row(run: Any, experiment: str, line: Callable[[str], str]) -> dict[str, Any]:
    """Return a run as a row of the table.

    Args:
        run: The run as MLflow's object.
        experiment: The name of its experiment.
        line: Sanitizes a text of the run.

    Returns:
        Values by column; those of tags, params and metrics under `tags.*`, `params.*`, `metrics.*`.
    """
    tags = {line(key): line(text) for key, text in run.data.tags.items()}
    params = {line(key): line(text) for key, text in run.data.params.items()}
    ended = run.info.end_time or run.info.start_time  # a run without an end takes 0 s
    return {
        "run_id": run.info.run_id,
        "parent": tags.get(names.PARENT.key, ""),
        "experiment": experiment,
        "experiment_id": run.info.experiment_id,
        "role": tags.get(names.ROLE.key, ""),
        "name": line(run.info.run_name or ""),
        "status": run.info.status,
        "started": run.info.start_time,
        "seconds": (ended - run.info.start_time) / 1000,
        "normalizer": tags.get(names.NORMALIZER.key, ""),
        "verdict": tags.get(names.VERDICT.key, ""),
        "reason": tags.get(names.REASON.key, ""),
        "data": line(inputs.describe(run)),
        **inputs.sizes(run),
        **{f"{names.TAGS}{key}": text for key, text in tags.items()},
        **{names.setting(key): text for key, text in params.items()},
        **{f"{names.METRICS}{line(key)}": value for key, value in run.data.metrics.items()},
    }


def add_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Add each run's label to a table of runs, in place, and return the table.

    A step run gets the label and the data's sizes of its scheme's run, which it does not record;
    NaN where the table lacks that run. A missing column of step sizes is added, with NaN.
    """
    table["label"] = labels(table)
    if names.STEP_SIZE.column not in table:  # every job failed, or its step runs were deleted
        table[names.STEP_SIZE.column] = np.nan
    by_run_id = table.set_index("run_id")
    steps = table["role"] == names.STEP
    for name in ("label", *inputs.SIZE_FIELDS):
        if name in table:
            table[name] = table[name].where(~steps, table["parent"].map(by_run_id[name]))
    return table


def tags_of(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the tags of a run by key, from its row in a table of runs."""
    return {
        str(column).removeprefix(names.TAGS): str(value)
        for column, value in row.items()
        if str(column).startswith(names.TAGS) and pd.notna(value)
    }
