"""Transform histories before they are drawn: percentages, decades, groups of equal runs."""

from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import passes
from normbench.results.figures import excess
from normbench.results.store.rows import as_rows

# The metrics of each panel: of the training points, and of the test points.
HISTORY_PAIRS = (names.HISTORIES[0::2], names.HISTORIES[1::2])
POINT_COUNTS = ("train_points", "test_points")  # columns of the runs
HISTORY_AXES = {
    "iterations": names.ITERATION,
    "passes": "pass over the points",
    "updates": "update of the weights",
    "seconds": "seconds of one run, after those of the scheme's fit",
}
ACROSS = "across"  # the column of the horizontal axis
SECONDS_COLUMNS = (names.FIT_SECONDS.column, names.SECONDS_A_STEP.column)
JOB_COLUMNS = (*SECONDS_COLUMNS, passes.BATCH_SETTING, passes.RECORDS, passes.TRAIN_POINTS)
EQUALITY_TOLERANCE = 1e-8  # relative: full whitenings have the same costs up to rounding


def place_across(
    histories: pd.DataFrame, runs: pd.DataFrame, by: str, first: int = 0
) -> pd.DataFrame:
    """Return histories with the positions on the horizontal axis, in a column `ACROSS`.

    With batches, an iteration is a pass over the points that may have several records, which the
    column `iteration` of the histories counts. `ACROSS` then has fractions of a pass.

    Args:
        histories: one row for each run and record (`run_id`, `iteration`).
        runs: one row for each run, with the settings of batches; for `seconds` also with the
            columns `SECONDS_COLUMNS`, see `with_job_columns`.
        by: a key of `HISTORY_AXES`, the unit of the axis. `iterations` and `passes` give the same
            numbers. The `seconds` of a run are those of the scheme's fit plus, for each
            iteration, the mean seconds of a step of one run.
        first: the first iteration that is returned.

    Returns:
        The rows from iteration `first` on; for `seconds`, without runs that have no recorded
        seconds.
    """
    rows = as_rows(runs)
    # For each row of the histories.
    records = histories["run_id"].map({run["run_id"]: passes.records_per_pass(run) for run in rows})
    is_drawn = histories["iteration"] >= first * records
    histories, records = histories[is_drawn], records[is_drawn]
    # Without batches, iterations remain integers.
    iterations = (
        histories["iteration"] if (records == 1).all() else histories["iteration"] / records
    )
    if by == "updates":
        # The updates of whole passes, and those until a record within a pass, rounded down.
        updates = histories["run_id"].map(
            {run["run_id"]: passes.updates_per_pass(run) for run in rows}
        )
        whole_passes, record = histories["iteration"].divmod(records)
        return histories.assign(**{ACROSS: whole_passes * updates + record * updates // records})
    if by != "seconds":
        return histories.assign(**{ACROSS: iterations})
    fit_seconds, step_seconds = (
        histories["run_id"].map(runs.set_index("run_id")[metric.column].astype(float))
        for metric in (names.FIT_SECONDS, names.SECONDS_A_STEP)
    )
    timed = histories.assign(**{ACROSS: fit_seconds + step_seconds * iterations})
    return timed.dropna(subset=ACROSS, ignore_index=True)


def with_job_columns(schemes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the columns `JOB_COLUMNS`, copied from the scheme run of each one's job.

    A value is NaN where it is not recorded.

    Args:
        schemes: the scheme runs, which have these columns.
        runs: scheme runs, or runs of single step sizes, whose `parent` is a scheme run.
    """
    # Of a scheme run its own id; of a run of a single step size the id of its parent.
    job_ids = runs["run_id"].where(runs["run_id"].isin(schemes["run_id"]), runs.get("parent"))
    by_job = schemes.set_index("run_id")
    columns = {name: by_job.get(name, pd.Series(dtype=float)) for name in JOB_COLUMNS}
    return runs.assign(**{name: job_ids.map(column) for name, column in columns.items()})


def has_metric(histories: pd.DataFrame, metric: names.Metric) -> bool:
    """Return whether histories have values of a metric."""
    return metric.key in histories and bool(histories[metric.key].notna().any())


def shares_an_axis(histories: pd.DataFrame, runs: pd.DataFrame) -> bool:
    """Return whether test misclassifications are recorded, and the numbers of all points known.

    Training and test misclassifications then share an axis, in percent.
    """
    counts_known = all(column in runs and runs[column].notna().all() for column in POINT_COUNTS)
    return counts_known and has_metric(histories, names.TEST_MISCLASSIFICATIONS)


def to_percent(histories: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories with misclassified points in percent of the training or test points.

    Args:
        histories: one row for each run and record, with counts of misclassified points.
        runs: one row for each run, with the columns `POINT_COUNTS`.
    """
    rates = histories.copy()
    runs_by_id = runs.set_index("run_id")
    # `HISTORY_PAIRS[1]`: the misclassified training points, and the misclassified test points.
    for metric, count_column in zip(HISTORY_PAIRS[1], POINT_COUNTS):
        point_counts = histories["run_id"].map(runs_by_id[count_column].astype(float))
        # The metric and its quartiles, as far as they are recorded.
        for column in {*excess.with_quartiles(metric)} & {*rates}:
            rates[column] = 100 * rates[column] / point_counts
    return rates


def to_decades(histories: pd.DataFrame) -> pd.DataFrame:
    """Return histories with costs as decimal logarithms of their ratio to the run's first cost.

    The first cost is that of the first row of the run, which is not the start if earlier iterations
    were removed. A cost of 0 becomes NaN.

    Args:
        histories: one row for each run and record, in the order of the iterations.
    """
    decades = histories.copy()
    cost_key = names.TRAIN_COST.key
    start_costs = histories.groupby("run_id")[cost_key].transform("first")
    # The logarithm of a cost of 0 is -inf, and becomes NaN below.
    with np.errstate(divide="ignore", invalid="ignore"):
        for column in {names.TEST_COST.key, *excess.with_quartiles(names.TRAIN_COST)} & {*decades}:
            decades[column] = np.log10(histories[column]) - np.log10(start_costs)
    return decades.replace(-np.inf, np.nan)


def equal_runs(histories: pd.DataFrame, runs: pd.DataFrame) -> list[list[str]]:
    """Return groups of two or more runs of one step size whose costs agree at every record.

    Training costs agree up to the relative difference `EQUALITY_TOLERANCE`. A group has the ids of
    its runs, in the order of the runs. A run without a history is in no group; without training
    costs there are no groups.

    Args:
        histories: one row for each run and record (`run_id`, `train/cost`).
        runs: one row for each run (`run_id`, optionally `tags.step_size`).
    """
    cost = names.TRAIN_COST.key
    if cost not in histories:
        return []
    by_run = {run_id: rows[cost].to_numpy() for run_id, rows in histories.groupby("run_id")}
    groups: list[tuple[str, Any, list[str]]] = []
    for run in as_rows(runs):
        costs, step_size = by_run.get(run["run_id"]), str(run.get(names.STEP_TAG.column))
        if costs is None:
            continue
        for group_step, group_costs, run_ids in groups:
            is_alike = step_size == group_step and len(group_costs) == len(costs)
            if is_alike and np.allclose(group_costs, costs, rtol=EQUALITY_TOLERANCE, atol=0):
                run_ids.append(run["run_id"])
                break
        else:  # the run equals none of the runs before it
            groups.append((step_size, costs, [run["run_id"]]))
    return [run_ids for *_, run_ids in groups if len(run_ids) > 1]
