"""Merge the runs of a scheme over its splits and seeds into one: medians and quartiles."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.compare.reached import excess_left, step_size, time_to_target
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORY_KEYS, Sweep
from normbench.verdicts.judging import best_step

QUARTILE_LEVELS = (0.25, 0.75)
MAX_DRAWN_SCHEMES = (
    40  # schemes that figures tell apart; a panel each of hundreds would take minutes
)
REPEATS = "repeats"  # the column that names what a row's medians are over, such as `4 splits`
# By metric of a largest step size: the tag that marks the step size as a lower bound.
LOWER_BOUND_TAGS = {
    names.LARGEST_CONVERGENT.column: names.CENSORED.column,
    names.LARGEST_FALLING.column: names.CENSORED_FALLING.column,
    names.CRITICAL.column: names.CENSORED_CRITICAL.column,
}


@dataclass(frozen=True, kw_only=True)
class Merged(Sweep):
    """A sweep whose scheme and step runs are merged over splits and seeds.

    Histories are medians with quartiles. Arrays and series belong to the first split alone.

    source: the original sweep with all runs. members: by the id of a merged run, the ids of the
    runs that it represents.
    """

    source: Sweep = field(repr=False)
    members: Mapping[str, Sequence[str]] = field(repr=False)

    def histories(self, runs: pd.DataFrame, metrics: Sequence[str] = HISTORY_KEYS) -> pd.DataFrame:
        """Return the histories of merged runs, in the form of `Sweep.histories`.

        The history of a merged run is the median of the histories of its members, with quartiles.
        A run whose members have no history is left out.

        Args:
            runs: Rows of this sweep.
            metrics: The keys of the metrics.
        """
        scheme_histories = []
        runs_by_id = self.source.runs.set_index("run_id", drop=False)
        for row in as_rows(runs):
            member_runs = runs_by_id.loc[members_of(self, row["run_id"])]
            member_histories = self.source.histories(member_runs, metrics)
            if len(member_histories):
                scheme_histories.append(over_members(member_histories, row, len(member_runs)))
        return (
            pd.concat(scheme_histories, ignore_index=True)
            if scheme_histories
            else super().histories(runs.iloc[:0])  # an empty table with the columns
        )

    def only(self, experiment: str) -> "Merged":
        """Return the part of the sweep that belongs to one experiment, as `Sweep.only`."""
        in_experiment = self.runs["experiment"] == experiment
        if in_experiment.all():  # it has no other experiment, and keeps its cache
            return self
        return self.get_or_compute(
            ("only", experiment),
            lambda: replace(
                self, runs=self.runs[in_experiment], source=self.source.only(experiment)
            ),
        )


def merged(sweep: Sweep) -> Sweep:
    """Return the sweep with the runs of each scheme and setting merged into one.

    Where each scheme and setting has one job, nothing is merged: the result is the sweep, without
    the earlier runs of jobs that were run twice. The sweep caches the result.
    """
    return sweep.get_or_compute("merged", lambda: _compute_merged(sweep))


def _compute_merged(sweep: Sweep) -> Sweep:
    """Return the sweep with the jobs of each scheme merged into one run a step size.

    Failed jobs and copies of equal results are left out before. A sweep that is merged already, or
    has no scheme run, is returned as it is.
    """
    if isinstance(sweep, Merged) or sweep.of_role(names.SCHEME).empty:
        return sweep
    jobs = problems.scheme_runs_with_groups([sweep])
    # One job a scheme and setting: there is nothing to merge.
    if not jobs.duplicated(problems.SCHEME_COLUMNS).any():
        return _without_reruns(sweep, jobs)
    jobs = _without_copies(jobs, problems.job_results([sweep], jobs))
    # A failed job counts only where every job of its scheme failed.
    jobs = jobs[(jobs["verdict"] != names.FAILED) | ~_scheme_has_run(jobs)]
    jobs["group"] = jobs.groupby(problems.SCHEME_COLUMNS, sort=False).ngroup()
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(jobs["run_id"])]
    schemes = _merge_schemes(jobs)
    grid, representatives = _merge_steps(steps, jobs, schemes)
    schemes = _with_representatives(schemes, representatives)
    other_runs = sweep.runs[~sweep.runs["role"].isin([names.SCHEME, names.STEP])]
    runs = pd.concat([other_runs, schemes, grid], ignore_index=True)
    members = {
        run_id: list(ids)
        for rows in (grid, schemes)  # a scheme has the members of the step size that represents it
        for run_id, ids in zip(rows["run_id"], rows["members"])
    }
    runs = runs.drop(columns=["members", "group"]).copy()  # a contiguous frame
    sweep_fields = (sweep.store, sweep.sweep_id, runs, sweep.records)
    return Merged(*sweep_fields, source=sweep, members=members)


def _without_reruns(sweep: Sweep, jobs: pd.DataFrame) -> Sweep:
    """Return a sweep without the earlier runs of jobs that were run twice, and without their steps.

    Args:
        sweep: The sweep.
        jobs: The scheme runs from `problems.scheme_runs_with_groups`, which keeps the last run of
            each job.

    Returns:
        The sweep; the same object where no job was run twice.
    """
    schemes = sweep.of_role(names.SCHEME)["run_id"]
    earlier = set(schemes) - set(jobs["run_id"])
    if not earlier:
        return sweep
    # A step run is named by its parent, the scheme run.
    ids = sweep.runs[["run_id", "parent"]]
    return replace(sweep, runs=sweep.runs[~ids.isin(earlier).any(axis=1)])


def unmerged(sweep: Sweep) -> Sweep:
    """Return the sweep with the runs of every split and seed, the inverse of `merged`."""
    return sweep.source if isinstance(sweep, Merged) else sweep


def every_job(sweep: Sweep, experiment: str | None = None) -> pd.DataFrame:
    """Return the scheme runs of all splits and seeds, each with the label of its merged row.

    Args:
        sweep: The sweep, merged or not.
        experiment: The experiment; None for all of them.

    Returns:
        One row a job; the columns of `problems.scheme_runs_with_groups` only if jobs are merged.
    """
    runs = merged(sweep)
    if not isinstance(runs, Merged):  # each scheme has one job, whose label is that of its row
        return runs.of_role(names.SCHEME, experiment)
    jobs = problems.scheme_runs_with_groups([runs.source])
    jobs = jobs.assign(label=_labels(jobs))
    return jobs if experiment is None else jobs[jobs["experiment"] == experiment]


def members_of(sweep: Sweep, run_id: str) -> list[str]:
    """Return the ids of the runs that a run represents; in a sweep that is not merged, its own."""
    return list(sweep.members.get(run_id, [run_id])) if isinstance(sweep, Merged) else [run_id]


def counts_to_target(sweep: Sweep, target: str, measure: str = "iterations") -> "pd.Series[float]":
    """Return what each scheme run of the merged sweep takes to a target, by its id.

    Args:
        sweep: The sweep.
        target: The target, a key of `names.TARGETS`; schemes share its goal, as in
            `time_to_target`.
        measure: `iterations` or `seconds`.

    Returns:
        The upper medians over the splits, or over the orders of the batches, of each scheme; NaN
        where the median is infinite, since the target is not reached, and where a scheme has no row
        in `time_to_target`.
    """
    jobs = unmerged(sweep)
    table = time_to_target([jobs], target, measure)
    by_scheme = table.groupby(problems.SCHEME_COLUMNS, sort=False)["value"]
    medians = by_scheme.quantile(0.5, interpolation="higher").rename("count")
    schemes = problems.scheme_runs([jobs]).set_index("run_id")[problems.SCHEME_COLUMNS]
    counts = schemes.join(medians, on=problems.SCHEME_COLUMNS)["count"]
    # A merged run has the id of the first job that it represents.
    merged_ids = merged(sweep).of_role(names.SCHEME)["run_id"]
    return counts.reindex(merged_ids).astype(float).replace(np.inf, np.nan)


def _without_copies(
    jobs: pd.DataFrame, results_by_job: Mapping[str, Mapping[str, float]]
) -> pd.DataFrame:
    """Return jobs without those whose results equal an earlier job's of their scheme and split.

    Args:
        jobs: The scheme runs, from `problems.scheme_runs_with_groups`.
        results_by_job: The results of each job, by the id of its scheme run.
    """
    kept_indexes: list[Any] = []  # of the first job of each distinct result
    for _, split_jobs in jobs.groupby([*problems.SCHEME_COLUMNS, "split"], sort=False):
        distinct_results: list[Mapping[str, float]] = []
        for index, run_id in split_jobs["run_id"].items():
            if not any(
                problems.equal_results(results_by_job[run_id], earlier)
                for earlier in distinct_results
            ):
                distinct_results.append(results_by_job[run_id])
                kept_indexes.append(index)
    return jobs.loc[sorted(kept_indexes)].copy()


def _scheme_has_run(jobs: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by job, whether any job of its scheme on its problem did not fail.

    Args:
        jobs: The scheme runs, from `problems.scheme_runs_with_groups`.
    """
    keys = [jobs[column] for column in problems.SCHEME_COLUMNS]
    return (jobs["verdict"] != names.FAILED).groupby(keys).transform("any")


def _merge_schemes(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return one merged row for each group of jobs, a scheme on a problem.

    Args:
        jobs: The scheme runs; the column `group` has the number of the group.
    """
    schemes = _merge_rows(jobs, "group")
    return schemes.assign(
        label=_labels(schemes),
        **{REPEATS: [describe_repeats(scheme_jobs) for _, scheme_jobs in jobs.groupby("group")]},
    )


def _labels(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return the labels of schemes on their problems: the scheme, and the setting if it varies."""
    return rows[["scheme", "setting"]].apply(lambda row: ", ".join(filter(None, row)), axis=1)


def describe_repeats(jobs: pd.DataFrame) -> str:
    """Return the numbers of splits and seeds of a scheme's jobs, such as `4 splits x 3 seeds`.

    A number of 1 is left out; the text is empty for a single job.

    Args:
        jobs: The scheme runs of one scheme on one problem, with the column `split`.
    """
    splits = jobs["split"].nunique()
    seeds = -(-len(jobs) // max(splits, 1))  # rounded up: a split may lack a seed
    counts = [f"{splits} splits" if splits > 1 else "", f"{seeds} seeds" if seeds > 1 else ""]
    return " x ".join(count for count in counts if count)


def distinct_repeats(rows: pd.DataFrame) -> list[str]:
    """Return the distinct values of the column `REPEATS` of merged rows, by their numbers."""
    texts = set(rows.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""}
    return sorted(texts, key=lambda text: [int(number) for number in re.findall(r"\d+", text)])


def _merge_steps(
    steps: pd.DataFrame, jobs: pd.DataFrame, schemes: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the merged step rows, and those of them that represent their scheme.

    Args:
        steps: The step runs of the jobs.
        jobs: The scheme runs, whose column `group` numbers the scheme on its problem.
        schemes: The merged scheme rows, one a group.

    Returns:
        One row a scheme and step size, and one row a scheme: that of its best or chosen step size.
        Both are empty where no job has a descent.
    """
    if steps.empty:  # no job has a descent; callers drop these two columns
        return steps.assign(group=0, members=None), steps.assign(group=0, members=None)
    jobs_by_id = jobs.set_index("run_id")
    group = steps["parent"].map(jobs_by_id["group"])
    rows = as_rows(steps)
    sizes = pd.Series([step_size(row) for row in rows], index=steps.index)
    # The runs of one cell, a group and a step size, are merged into one row.
    cells = pd.Series(list(zip(group, sizes)), index=steps.index)
    grid_rows = _merge_rows(steps.assign(cell=cells), "cell")
    grid_rows[["group", "size"]] = grid_rows["cell"].tolist()
    schemes_by_group = schemes.set_index("group")
    # Columns of a step row, each with the column of its scheme's row that it is taken from.
    sources = (("label", "label"), (REPEATS, REPEATS), ("parent", "run_id"))
    grid_rows = _with_columns(
        grid_rows,
        {column: grid_rows["group"].map(schemes_by_group[source]) for column, source in sources},
    )
    # Verdicts need the column `REPEATS` of the rows above.
    grid_rows = _with_columns(grid_rows, _verdicts(steps, cells, grid_rows))
    parents = jobs_by_id.to_dict("index")
    remaining_excess = pd.Series(
        [excess_left(row, parents[row["parent"]]) for row in rows], index=steps.index
    )
    representative_sizes = {
        group_number: _representative_size(
            scheme_steps, sizes, remaining_excess, jobs[jobs["group"] == group_number]
        )
        for group_number, scheme_steps in steps.groupby(group)
    }
    is_representative = grid_rows["size"] == grid_rows["group"].map(representative_sizes)
    grid_rows[names.BEST.column] = is_representative.map({True: "true", False: "false"})
    grid_rows = grid_rows.drop(columns=["cell", "size"])
    return grid_rows, grid_rows[is_representative]


def _with_representatives(schemes: pd.DataFrame, step_rows: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with the outcome of the step size that represents each scheme.

    A scheme without a step run keeps its own values.

    Args:
        schemes: The merged scheme rows, one a group.
        step_rows: The merged step rows that represent a scheme, at most one a group.
    """
    # The outcome: metrics of the run at that step size, its final values, step size and verdict.
    # Theory and other columns stay those of the scheme.
    families = tuple(
        names.METRICS + family
        for family in (names.TRAIN_PREFIX, names.TEST_PREFIX, names.OWN_UNITS)
    )
    final_columns = [names.final_metric(metric).column for metric in names.HISTORIES]
    outcome_columns = [names.STEP_TAG.column, names.VERDICT.column, "verdict", "reason", "members"]
    columns = [
        column
        for column in step_rows
        if column.startswith(families) or column in (*final_columns, *outcome_columns)
    ]
    representatives = step_rows.set_index("group")[columns]
    schemes_by_group = schemes.set_index("group")
    # Also a missing value of a representative replaces the scheme's own.
    has_representative = pd.Series(
        schemes_by_group.index.isin(representatives.index), index=schemes_by_group.index
    )
    missing = pd.Series(None, index=schemes_by_group.index, dtype=object)
    new_columns = {
        column: representatives[column]
        .reindex(schemes_by_group.index)
        .where(has_representative, schemes_by_group.get(column, missing))
        for column in columns
    }
    return _with_columns(schemes_by_group, new_columns).reset_index()


def _with_columns(rows: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows with columns replaced in one concatenation, which keeps the frame contiguous."""
    other_columns = rows.drop(columns=[name for name in columns if name in rows])
    return pd.concat([other_columns, pd.DataFrame(dict(columns), index=rows.index)], axis=1).copy()


def _merge_rows(rows: pd.DataFrame, group_column: str) -> pd.DataFrame:
    """Return one row a group of runs: the first run, with medians of its metrics.

    A parameter that varies within the group becomes the list of its values; a tag that varies
    becomes None. The final values of histories have quartiles too. The metrics of
    `LOWER_BOUND_TAGS` are the smallest of the group instead of the median.

    Args:
        rows: The runs.
        group_column: The column with the key of each run's group.

    Returns:
        The merged rows; the column `members` has the ids of the runs of the group.
    """
    groups = rows.groupby(group_column, sort=False)
    merged_rows = rows.drop_duplicates(group_column).set_index(group_column)
    merged_rows = _with_columns(merged_rows, {"members": groups["run_id"].agg(list)})
    if not rows[group_column].duplicated().any():  # every group is a single run
        return merged_rows.reset_index()
    metric_columns = [name for name in rows if name.startswith(names.METRICS)]
    final_columns = {metric: names.final_metric(metric).column for metric in names.HISTORIES}
    new_columns: dict[str, Any] = dict(groups[metric_columns].median().items())
    new_columns |= {
        names.quartile(metric, quartile).column: groups[final].quantile(level)
        for metric, final in final_columns.items()
        for quartile, level in zip(names.QUARTILES, QUARTILE_LEVELS)
        if final in rows
    }
    text_columns = [name for name in rows if name.startswith((names.PARAMS, names.TAGS))]
    has_several_values = groups[text_columns].nunique(dropna=False) > 1
    for name in has_several_values.columns[has_several_values.any()]:
        # None replaces a tag, such as a verdict, that is not the same for all runs.
        joined = groups[name].agg(lambda values: ", ".join(dict.fromkeys(values.dropna())))
        joined_values = joined if name.startswith(names.PARAMS) else None
        new_columns[name] = (
            merged_rows[name].astype(object).where(~has_several_values[name], joined_values)
        )
    for name in (name for name in LOWER_BOUND_TAGS if name in rows):
        smallest_sizes, bounds = zip(
            *(_smallest_step_size(group_rows, name) for _, group_rows in groups)
        )
        new_columns |= {
            name: pd.Series(smallest_sizes, merged_rows.index),
            LOWER_BOUND_TAGS[name]: pd.Series(bounds, merged_rows.index),
        }
    return _with_columns(merged_rows, new_columns).reset_index()


def _smallest_step_size(rows: pd.DataFrame, name: str) -> tuple[float, str]:
    """Return the smallest of the jobs' largest step sizes, and whether it is a lower bound.

    Step sizes up to the smallest one work in every job.

    Args:
        rows: The runs that are merged into one.
        name: The column of the largest step size, a key of `LOWER_BOUND_TAGS`.

    Returns:
        The step size, NaN where one job has none; and `true` or `false` as text, as tags have it:
        `true` only where it is a lower bound for every job that has this smallest step size.
    """
    if rows[name].isna().any():
        return float("nan"), "false"
    smallest = float(rows[name].min())
    tag = LOWER_BOUND_TAGS[name]
    smallest_tags = rows.loc[rows[name] == smallest, tag] if tag in rows else pd.Series(dtype=str)
    return smallest, str(bool(len(smallest_tags)) and bool((smallest_tags == "true").all())).lower()


def _verdicts(
    steps: pd.DataFrame, cells: "pd.Series[Any]", grid_rows: pd.DataFrame
) -> dict[str, list[str]]:
    """Return the columns of the verdict and the reason for merged step rows.

    The verdict is the worst of the runs of a step size; the reason counts the verdicts where they
    differ.

    Args:
        steps: The step runs of the jobs.
        cells: The group and step size of each of `steps`.
        grid_rows: The merged step rows, one a cell.
    """
    order = list(names.VERDICTS)  # from good to bad
    worst_verdicts, reasons = [], []
    verdicts_by_cell = dict(list(steps["verdict"].groupby(cells)))
    for cell, repeats_text in zip(grid_rows["cell"], grid_rows[REPEATS]):
        verdicts = list(verdicts_by_cell[cell])
        counts = {verdict: verdicts.count(verdict) for verdict in order if verdict in verdicts}
        counts_text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        worst_verdicts.append(max(verdicts, key=order.index))
        reasons.append(f"of {repeats_text}: {counts_text}" if len(counts) > 1 else "")
    return {"verdict": worst_verdicts, names.VERDICT.column: worst_verdicts, "reason": reasons}


def _representative_size(
    steps: pd.DataFrame,
    sizes: "pd.Series[float]",
    remaining_excess: "pd.Series[float]",
    jobs: pd.DataFrame,
) -> float:
    """Return the step size that represents a scheme on all splits: the chosen or the best one.

    Where the chosen one diverged on a split, it is the best one.

    Args:
        steps: The step runs of the scheme.
        sizes: The step size of each step run, by index; those of other schemes are ignored.
        remaining_excess: The share of the excess that each leaves, likewise.
        jobs: The scheme runs of the scheme.
    """
    is_chosen = jobs.get(names.STEP_CHOSEN.column, pd.Series("", jobs.index)) == "true"
    if is_chosen.all():  # the setting `shown_step` chose it, and it diverged on no split
        # Perhaps rounded to six digits, so the nearest is taken.
        chosen_size = step_size(jobs.iloc[0])
        return float(min(sizes[steps.index], key=lambda size: abs(size - chosen_size)))
    iterations_to_lowest = pd.to_numeric(
        steps.get(names.TO_LOWEST.column, pd.Series(np.nan, index=steps.index))
    )
    run_sizes = sizes[steps.index]
    # A job that did not run a step size counts as one that does not get to the lowest cost with it.
    iterations_by_size = iterations_to_lowest.fillna(np.inf).groupby(run_sizes)
    unreached_counts = (
        iterations_by_size.agg(lambda iterations: np.isinf(iterations).sum())
        + len(jobs)
        - iterations_by_size.size()
    )
    upper_quartiles = iterations_by_size.quantile(0.75, interpolation="higher")
    median_excess = remaining_excess[steps.index].groupby(run_sizes).median()
    best_index = best_step(
        [*upper_quartiles.index], upper_quartiles, unreached_counts, median_excess
    )
    assert best_index is not None  # given an excess, `best_step` chooses some step size
    return float(upper_quartiles.index[best_index])


def over_members(histories: pd.DataFrame, row: Mapping[Any, Any], count: int) -> pd.DataFrame:
    """Return the median history of several runs, with quartiles over the runs.

    Args:
        histories: The histories of the runs, one row a run and iteration.
        row: The merged run that represents them.
        count: The number of runs.

    Returns:
        One row an iteration, up to the end of the shortest history. The history of a single run is
        returned as it is, without quartiles of its own.
    """
    if count == 1:
        return histories.assign(run_id=row["run_id"], label=row["label"], verdict=row["verdict"])
    by_iteration = histories.groupby("iteration")
    in_all_runs = by_iteration.size() == count  # False beyond the end of the shortest history
    metrics = [metric.key for metric in names.HISTORIES if metric.key in histories]
    table = by_iteration[metrics].median()
    for metric in names.HISTORIES:
        for quartile, level in (
            zip(names.QUARTILES, QUARTILE_LEVELS) if metric.key in histories else ()
        ):
            table[names.quartile(metric, quartile).key] = by_iteration[metric.key].quantile(level)
    table = table[in_all_runs].reset_index()
    row_values = {**row, "step_size": row.get(names.STEP_TAG.column)}
    leading_columns = ("run_id", "experiment", "normalizer", "label", "step_size", "verdict")
    for position, name in enumerate(leading_columns):
        table.insert(position, name, row_values[name])
    return table


def has_too_many_schemes(sweep: Sweep, experiment: str) -> bool:
    """Return whether an experiment has more than `MAX_DRAWN_SCHEMES` schemes that did not fail."""
    rows = merged(sweep).of_role(names.SCHEME, experiment)
    return int((rows["verdict"] != names.FAILED).sum()) > MAX_DRAWN_SCHEMES
