"""The runs of comparisons as one table, labelled and in the order of the jobs."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs as inputs
from normbench.results.store.comparison_files import Comparison
from normbench.results.store.job_records import JobRecord, RunRecord
from normbench.results.store.rows import as_table
from normbench.results.store.run_labels import labels

Line = lru_cache(maxsize=100_000)(clean.recorded_line)  # most runs share most of their texts


def tabulate(comparisons: Iterable[Comparison], records: Mapping[str, JobRecord]) -> pd.DataFrame:
    """Return one row a run, by experiment, in the order of the jobs.

    Args:
        comparisons: The comparisons; a job of two stands with the first of them.
        records: The records of their jobs by key; jobs without one are left out.

    Returns:
        The table. Columns: run_id (the key of the job, and of a step its number behind a dot),
        parent (of a step, its job's), experiment, role, name, started (ms since 1970), normalizer,
        verdict, reason, data, its sizes, label, and those of tags, params and metrics
        (the last value) under `tags.*`, `params.*`, `metrics.*`.
    """
    rows: dict[str, list[dict[str, Any]]] = {}  # by experiment
    taken: set[str] = set()
    for comparison in comparisons:
        started = datetime.fromisoformat(comparison.started).timestamp() * 1000
        begun: set[str] = set()  # the experiments that have the row of this comparison
        for key in comparison.keys:
            if key not in records or key in taken:
                continue
            taken.add(key)
            record = records[key]
            of_experiment = rows.setdefault(record.experiment, [])
            if record.experiment not in begun:
                begun.add(record.experiment)
                run = RunRecord(comparison.id, comparison.run_tags)
                run_id = Line(f"{comparison.id}/{record.experiment}")
                of_experiment.append(_row(run_id, run, names.SWEEP) | {"started": started})
            for row in _rows_of_job(key, record):
                row |= {names.SWEEP_ID.column: comparison.id, "started": started}
                of_experiment.append(row)
    every = [
        row | {"experiment": Line(experiment)} for experiment in rows for row in rows[experiment]
    ]
    return add_labels(as_table(every))


def _rows_of_job(key: str, record: JobRecord) -> Iterator[dict[str, Any]]:
    """Yield the rows of a job's run, and of the runs of its step sizes."""
    yield {
        **_row(key, record.scheme, names.SCHEME),
        "data": Line(inputs.describe(record.dataset)),
        **inputs.sizes(record.dataset),
        **{names.setting(Line(name)): Line(text) for name, text in record.params.items()},
    }
    for number, step in enumerate(record.steps):
        yield {**_row(f"{key}.{number}", step, names.STEP), "parent": key}


def _row(run_id: str, run: RunRecord, role: str) -> dict[str, Any]:
    """Return the columns that a row of each role has.

    Args:
        run_id: The id of the run.
        run: The run.
        role: `sweep`, `scheme` or `step`.
    """
    tags = {Line(key): Line(text) for key, text in run.tags.items()}
    return {
        "run_id": run_id,
        "parent": "",
        "role": role,
        "name": Line(run.name),
        "normalizer": tags.get(names.NORMALIZER.key, ""),
        "verdict": tags.get(names.VERDICT.key, ""),
        "reason": tags.get(names.REASON.key, ""),
        "data": "",
        **{f"{names.TAGS}{key}": text for key, text in tags.items()},
        **{f"{names.METRICS}{Line(key)}": value for key, value, _ in run.metrics},
    }


def add_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Add each run's label to a table of runs, in place, and return the table.

    A step run gets the label and the data's sizes of its scheme's run, which it does not record;
    NaN where the table lacks that run. A missing column of step sizes is added, with NaN.
    """
    table["label"] = labels(table)
    if names.STEP_SIZE.column not in table:  # every job failed, or has no descent
        table[names.STEP_SIZE.column] = np.nan
    by_run_id = table.set_index("run_id")
    steps = table["role"] == names.STEP
    for name in ("label", *inputs.SIZE_FIELDS):
        if name in table:
            table[name] = table[name].where(~steps, table["parent"].map(by_run_id[name]))
    return table
