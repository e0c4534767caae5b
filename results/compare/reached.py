"""Measure the iterations or seconds in which each scheme reaches a target.

Each scheme is measured at its best step size for that target.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import passes, problems
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.settings import SEEDS
from normbench.verdicts.search import (
    DECIDED_BY_ROUNDING,
    FINE_RADIUS,
    SIZES_PER_DECADE,
    step_size_of,
)

REACHED_NUMBERS = ["step", "value", "excess", "least"]
REACHED_COLUMNS = [*problems.SCHEME_COLUMNS, "split", *REACHED_NUMBERS, "finer", "end"]
# In the column `setting`: what says how steps see the points, and changes no cost.
SETTINGS_OF_ORDER = r"(?:^|, )(?:batch|batch_order|records_per_pass)=[^,]*"
ZEROS = ("zeros", "None", "")  # recorded values of the setting `start` for zero weights
FINER_IS_LOWER = "finer_is_lower"  # the column of `with_finer_minima`
FEWEST_STEP_SIZES = 3  # step sizes of a grid that has ends: of fewer, each would be one
# The end of the grid at which a scheme's best step size is; ABOVE: the whole grid is above 2/L.
LOW, HIGH, ABOVE = "low", "high", "above"


def time_to_target(
    sweeps: Sequence[Sweep], target: str = "1e-2", measure: str = "iterations"
) -> pd.DataFrame:
    """Return the iterations or seconds in which each scheme reaches a target and stays below it.

    The target is the same for all schemes of a problem. Where the least cost is only the lowest
    cost that a job saw, it is computed from the lowest of all jobs. Where a penalty makes each
    scheme minimize another function, each scheme has its own target.

    Args:
        sweeps: The sweeps.
        target: The target, a key of `names.TARGETS`.
        measure: `iterations` or `seconds`.

    Returns:
        One row a problem, split and scheme, the median over its jobs, such as those of several
        seeds of the start. The orders of batches count as splits where there is one split, see
        `problems.scheme_runs_with_groups`. A job without recorded seconds has no row; neither has a
        job of several starts whose target was lowered, because the costs of its starts are not
        recorded, nor one of a problem without a target, whose cost at zero weights is not finite.

        - step: the step size that takes the fewest iterations on that split;
        - value: the iterations or seconds at that step size; infinite where no step size tried
          reaches the target, and where the job failed;
        - excess: the share of the excess at zero weights that remains at the end;
        - least: the least value that a step size between those tried might have, NaN where it is
          unknown;
        - finer: whether step sizes between those of the grid were tried;
        - end: `LOW`, `HIGH` or `ABOVE` where the best step size is at an end of the grid, else
          empty.
    """
    if len(sweeps) == 1:  # a sweep caches the table; the copy may be modified
        key = ("reached", target, measure)
        return (
            sweeps[0]
            .get_or_compute(key, lambda: _compute_time_to_target(sweeps, target, measure))
            .copy()
        )
    return _compute_time_to_target(sweeps, target, measure)


def _compute_time_to_target(sweeps: Sequence[Sweep], target: str, measure: str) -> pd.DataFrame:
    """Return the table of `time_to_target`: rows of jobs, merged where a split has several jobs."""
    schemes = problems.scheme_runs(sweeps)
    rows: list[list[Any]] = []
    if len(schemes):
        schemes = with_finer_minima(sweeps, schemes)
        schemes = _with_targets(schemes.join(goals(schemes, target)))
        rows = [
            row
            for number, sweep in enumerate(sweeps)
            for row in _sweep_rows(sweep, schemes[schemes["sweep"] == number], target, measure)
        ]
    # The columns hold numbers even without rows, because callers take their medians.
    table = pd.DataFrame(rows, columns=REACHED_COLUMNS).astype(
        dict.fromkeys(REACHED_NUMBERS, float)
    )
    # NaN: seconds that were not recorded, or a lowered target of several starts.
    table = table.dropna(subset="value", ignore_index=True)
    keys = [*problems.SCHEME_COLUMNS, "split"]
    if not table.duplicated(keys).any():
        return table
    return _upper_medians(table.groupby(keys, sort=False)).reset_index()


def _with_targets(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the scheme runs of problems that have a target, or whose jobs all failed.

    A problem has none where the cost at zero weights is not finite, such as that of scores that are
    normalized without an epsilon.

    Args:
        schemes: The scheme runs, joined with `goals`.
    """
    problem_keys = [schemes[column] for column in problems.PROBLEM_COLUMNS]
    is_known = schemes[["goal", "minimum"]].notna().groupby(problem_keys).transform("any")
    return schemes[is_known["goal"] | ~is_known["minimum"]]


def _sweep_rows(sweep: Sweep, schemes: pd.DataFrame, target: str, measure: str) -> list[list[Any]]:
    """Return the rows of `time_to_target` of one sweep's jobs, before jobs of one split are merged.

    Args:
        sweep: The sweep.
        schemes: The sweep's scheme runs, joined with `goals`. `lowered` marks those whose goal is
            below their own target, or that have none: they recorded no iterations to the goal.
        target: The target, a key of `names.TARGETS`.
        measure: `iterations` or `seconds`.

    Returns:
        One row a scheme run, with values in the order of `REACHED_COLUMNS`.
    """
    iterations_by_run = _iterations_held(sweep, schemes[schemes["lowered"]])
    sizes_by_run: dict[str, list[float]] = {}
    for step in as_rows(sweep.of_role(names.STEP)):
        sizes_by_run.setdefault(step["parent"], []).append(step_size(step))
    rows = []
    for scheme in as_rows(thresholds_that_hold(schemes)):
        excess = _remaining_excess(scheme, scheme, scheme["minimum"], scheme["start"])
        if scheme["lowered"]:  # the iterations are counted in the histories
            by_size = sorted(iterations_by_run.get(scheme["run_id"], {}).items())
            # The fewest iterations; of equal ones, the smallest step size.
            size, iterations = min(by_size, key=lambda pair: pair[1], default=(np.nan, np.inf))
            value, least = _in_measure(scheme, iterations, measure), np.nan
            finer = bool(finer_histories(sweep, scheme))
            if problems.starts_of(scheme) > 1:  # only the costs of the median are recorded
                value = np.nan
        else:
            size = number_in(scheme, names.best_step_for_target(target).column)
            value = _recorded_value(scheme, target, measure)
            least = _in_measure(scheme, number_in(scheme, names.least(target).column), measure)
            finer = target in parse_refinement(scheme).get("targets", ())
        scheme_and_split = [scheme[column] for column in (*problems.SCHEME_COLUMNS, "sample")]
        # Where no step size of the grid reaches the target, the best one is that of the lowest
        # final cost.
        best_size = size if np.isfinite(value) or finer else _lowest_step_size(scheme)
        end = _grid_end(scheme, sizes_by_run.get(scheme["run_id"], []), best_size, finer)
        rows.append([*scheme_and_split, size, value, excess, least, finer, end])
    return rows


def _lowest_step_size(scheme: Mapping[Any, Any]) -> float:
    """Return the step size with the lowest final cost; NaN where the user chose the step size."""
    is_chosen = scheme.get(names.STEP_CHOSEN.column) == "true"
    has_step_size = isinstance(scheme.get(names.STEP_TAG.column), str)
    return step_size(scheme) if has_step_size and not is_chosen else np.nan


def _grid_end(scheme: Mapping[Any, Any], sizes: Sequence[float], best: float, finer: bool) -> str:
    """Return at which end of the grid the best step size is: the column `end` of `time_to_target`.

    Args:
        scheme: The scheme run.
        sizes: The step sizes of the grid.
        best: The best step size, NaN for none.
        finer: Whether step sizes between those of the grid were tried.

    Returns:
        `LOW`, `HIGH` or `ABOVE`; empty where the best step size is inside the grid, is unknown, or
        the grid has fewer than `FEWEST_STEP_SIZES`.
    """
    if len(sizes) < FEWEST_STEP_SIZES:
        return ""
    # A threshold of NaN, which does not hold for this optimizer, is not below any step size.
    threshold = scheme.get(names.THRESHOLD.column)
    if threshold is not None and threshold < min(sizes):
        return ABOVE
    # The finer step sizes reach a decade beyond the ends of the grid: the best one is at an end if
    # it lies at most `FINE_RADIUS` step sizes short of the end of that decade.
    reach_factor = 10 ** (1 - FINE_RADIUS / SIZES_PER_DECADE) if finer else 1.0
    return (
        HIGH
        if best >= max(sizes) * reach_factor
        else LOW
        if best <= min(sizes) / reach_factor
        else ""
    )


def parse_refinement(scheme: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Return what was found at step sizes between those of a scheme's grid, from its tag.

    Args:
        scheme: The scheme run.

    Returns:
        `numbers`, the numbers of these step sizes, see `step_size_of`; `by_rounding`, those of
        runs that rounding decides, where there are any; `targets`, the targets that
        were looked for; and under each target the iterations to it at each of the step sizes, None
        where it is not reached. Empty without the tag.
    """
    text = scheme.get(names.REFINED.column)
    return json.loads(text) if isinstance(text, str) and text else {}


def finer_histories(sweep: Sweep, scheme: Mapping[Any, Any]) -> dict[float, NDArray[np.float64]]:
    """Return the recorded costs of a job at step sizes between those of its grid.

    Left out are runs that did not stay finite, and those that rounding decides.

    Args:
        sweep: The sweep, not merged.
        scheme: The scheme run of the job.

    Returns:
        The costs `(K + 1,)` by step size; the median over the starts.
    """
    tag = parse_refinement(scheme)
    if not tag.get("numbers") or scheme["verdict"] == names.FAILED:  # which has no arrays
        return {}
    arrays = sweep.arrays(pd.DataFrame([scheme]), names.DESCENT_ARRAYS).get(scheme["label"], {})
    costs = np.median(np.asarray(arrays["refined_cost"]), axis=1) if arrays else ()
    return {
        step_size_of(int(number)): history
        for number, history in zip(tag["numbers"], costs)
        if np.isfinite(history[-1]) and number not in tag.get(DECIDED_BY_ROUNDING, ())
    }


def with_finer_minima(sweeps: Sequence[Sweep], schemes: pd.DataFrame) -> pd.DataFrame:
    """Return scheme runs whose unknown least cost is the lowest of all costs that the job recorded.

    A job that does not solve for the least cost records the lowest cost of its grid, although its
    runs at step sizes between those of the grid may go lower.

    Args:
        sweeps: The sweeps, not merged.
        schemes: Scheme runs of these, with the number of the sweep in the column `sweep` where
            there are several.

    Returns:
        The runs with a lower least cost, and with targets over it. The column `FINER_IS_LOWER` is
        true where this is so: the recorded iterations are then to higher targets.
    """
    guessed = schemes.get(names.MINIMUM_REACHED.column, pd.Series("", schemes.index)) == "false"
    lower = {}
    for index, row in zip(schemes.index[guessed], as_rows(schemes[guessed])):
        histories = finer_histories(sweeps[int(row.get("sweep", 0))], row)
        if not histories or compared_metric(row) is not names.TRAIN_COST:
            continue
        lowest = min(float(costs.min()) for costs in histories.values())
        if lowest < row[names.MINIMUM.column]:
            zero_weights = row[names.MINIMUM.column] + start_excess(row)
            lower[index] = {names.MINIMUM.column: lowest} | {
                names.target(target).column: lowest + share * (zero_weights - lowest)
                for target, share in names.TARGETS.items()
            }
    lowered = schemes.assign(**{FINER_IS_LOWER: schemes.index.isin([*lower])})
    for index, values in lower.items():
        lowered.loc[index, [*values]] = [*values.values()]
    return lowered


def tuned_once(sweep: Sweep, target: str = "1e-2") -> pd.DataFrame:
    """Return the best single step size of each scheme for all its splits.

    Of the step sizes that every split ran, it is the one that brings the most splits to the target;
    ties are broken by the lowest upper quartile of iterations, then the lowest median, then the
    smallest step size.

    Args:
        sweep: The sweep.
        target: The target, a key of `names.TARGETS`.

    Returns:
        One row a problem and scheme with several splits: `step`, the step size, NaN where none
        brings a split to the target; `reached`, the number of splits that it brings there, of
        `splits`; `median` and `q3` of the iterations, infinite for splits that do not reach it. A
        split all of whose jobs failed does not reach the target.
    """
    columns = [*problems.SCHEME_COLUMNS, "step", "reached", "splits", "median", "q3"]
    schemes = problems.scheme_runs([sweep])
    if schemes.empty:
        return pd.DataFrame(columns=columns)
    schemes = with_finer_minima([sweep], schemes)
    schemes = schemes.join(goals(schemes, target))
    steps = dict(list(sweep.of_role(names.STEP).groupby("parent")))
    iterations_by_run = _iterations_held(sweep, schemes[schemes["lowered"]])
    rows = []
    for scheme, scheme_jobs in schemes.groupby(problems.SCHEME_COLUMNS, sort=False):
        splits = scheme_jobs["sample"].nunique()
        descended_jobs = scheme_jobs[scheme_jobs["run_id"].isin(steps)]
        split_iterations = []
        for _, jobs in descended_jobs.groupby("sample"):
            rows_of_split = as_rows(jobs)
            job_iterations = [
                _iterations_by_size(job, steps, iterations_by_run, target) for job in rows_of_split
            ]
            split_iterations.append(_upper_median_by_size(job_iterations))
        if splits < 2 or not split_iterations:
            continue
        # One row a step size that every split ran, one column a split.
        table = pd.concat(split_iterations, axis=1, join="inner").sort_index()
        if table.empty:
            continue
        # A column of infinite iterations for each split all of whose jobs failed.
        values = np.pad(
            table, ((0, 0), (0, splits - len(split_iterations))), constant_values=np.inf
        )
        missed_counts = np.isinf(values).sum(axis=1)
        median, upper = np.quantile(values, [0.5, 0.75], axis=1, method="higher")
        # The index n is the last key, because the step sizes are sorted.
        best_index = min(
            range(len(values)), key=lambda n: (missed_counts[n], upper[n], median[n], n)
        )
        reached_count = splits - missed_counts[best_index]
        numbers = (
            table.index[best_index] if reached_count else np.nan,
            reached_count,
            splits,
            median[best_index],
            upper[best_index],
        )
        rows.append([*scheme, *numbers])
    return pd.DataFrame(rows, columns=columns)


def _upper_median_by_size(job_iterations: Sequence[Mapping[float, float]]) -> "pd.Series[float]":
    """Return the iterations of a split by step size: the upper median over its jobs.

    Args:
        job_iterations: The iterations of each job by step size. Only step sizes that all jobs ran
            are in the result.
    """
    columns = [pd.Series(iterations, dtype=float) for iterations in job_iterations]
    table = pd.concat(columns, axis=1, join="inner")
    medians: pd.Series[float] = table.quantile(0.5, axis=1, interpolation="higher")
    return medians


def _iterations_by_size(
    scheme: Mapping[Any, Any],
    steps: Mapping[str, pd.DataFrame],
    iterations_by_run: Mapping[str, Mapping[float, float]],
    target: str,
) -> Mapping[float, float]:
    """Return a job's iterations to a target by step size, on the grid and between its step sizes.

    None is below those of the job's best step size, which are a median over neighbouring step
    sizes, since a single one may be lucky. Step sizes between those of the grid count only for a
    target that they were tried for.

    Args:
        scheme: The scheme run of the job, joined with `goals`.
        steps: The step runs of each scheme run, by its id.
        iterations_by_run: From `_iterations_held`, for the jobs whose goal is lowered.
        target: The target, a key of `names.TARGETS`.

    Returns:
        The iterations by step size, infinite where the target is not reached.
    """
    if scheme["lowered"]:  # the goal of another scheme, to which the job recorded no iterations
        return iterations_by_run.get(scheme["run_id"], {})
    tag = parse_refinement(scheme)
    is_refined = target in tag.get("targets", ())
    finer = zip(tag.get("numbers", ()), tag.get(target, ())) if is_refined else ()
    finer_iterations = {
        step_size_of(int(number)): np.inf if count is None else count for number, count in finer
    }
    rows = as_rows(steps[scheme["run_id"]])
    # A step size that is on the grid too has the iterations of its own run.
    iterations = finer_iterations | {
        step_size(step): _recorded_value(step, target, "iterations") for step in rows
    }
    fewest = _recorded_value(scheme, target, "iterations")
    return {size: max(count, fewest) for size, count in iterations.items()}


def goals(schemes: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return, by run, the goal (the cost or count to reach) and the costs that define it.

    Args:
        schemes: The scheme runs, as `problems.scheme_runs` returns them.
        target: The target, a key of `names.TARGETS`.

    Returns:
        One row a run. The columns are `goal`, `minimum`, `start` (the starting excess) and
        `lowered`: whether the goal is lower than the target that the run recorded, by more than
        the rounding of a least cost: that of another scheme of the problem, of another size of the
        batch, or of the run's own finer step sizes.
    """
    missing = pd.Series(np.nan, index=schemes.index)
    targets, minimum, tenth_target = (
        schemes.get(metric.column, missing).astype(float)
        for metric in (names.target(target), names.MINIMUM, names.target("1e-1"))
    )
    is_counted = compares_counts(schemes)
    minimum = minimum.mask(is_counted, 0.0)  # the least number of misclassified points
    # The target 1e-1 is the minimum plus a tenth of the starting excess.
    goal_table = pd.DataFrame(
        {"goal": targets, "minimum": minimum, "start": (tenth_target - minimum) * 10}
    )
    # The recorded iterations are to another goal.
    goal_table["lowered"] = schemes.get(FINER_IS_LOWER, False)
    for _, rows in schemes[~is_counted].groupby(_columns_of_one_cost(schemes), sort=False):
        if problems.minimize_different_functions(rows):
            continue  # each scheme keeps its own goal
        group_targets, group_minima = targets[rows.index], minimum[rows.index]
        if group_targets.notna().any():
            row = goal_table.loc[group_targets.idxmin()]
            lowest_seen, lowest = _lower_target(
                *(row["minimum"], row["goal"], names.TARGETS[target], group_minima, group_targets)
            )
            # The cost of the start is the same; its excess is over the lowest cost seen.
            start = row["start"] + row["minimum"] - lowest_seen
            goal_table.loc[rows.index, ["goal", "minimum", "start"]] = lowest, lowest_seen, start
            has_no_target = group_targets.isna() & group_minima.notna()
            is_lowered = has_no_target | (group_targets - lowest > 1e-6 * abs(lowest))
            goal_table.loc[rows.index, "lowered"] |= is_lowered
    return goal_table


def _lower_target(
    minimum: float,
    target: float,
    share: float,
    minima: "pd.Series[float]",
    targets: "pd.Series[float]",
) -> tuple[float, float]:
    """Return a least cost and target, lower where a job without a target saw a lower cost.

    A job whose cost at zero weights is not finite has no target of its own, such as that of scores
    that are normalized without an epsilon.

    Args:
        minimum: The least cost.
        target: The target over it.
        share: The share of the excess of zero weights that the target leaves.
        minima: The least cost of each job, NaN for a job that failed.
        targets: The target of each job, NaN for none.

    Returns:
        The least cost m' = min(minimum, lowest cost of the jobs without a target), and the target
        m' + share * (c - m'), where c is the cost at zero weights. Since the given target is
        minimum + share * (c - minimum), it moves by (1 - share) * (m' - minimum).
    """
    lowest = minima[targets.isna()].min()
    if not lowest < minimum:  # also where every job has a target, and `lowest` is NaN
        return minimum, target
    return lowest, target + (1 - share) * (lowest - minimum)


def _columns_of_one_cost(schemes: pd.DataFrame) -> list[Any]:
    """Return the keys by which runs of the same cost on the same points are grouped.

    They are the problem and the split. The size of the batch changes no cost, so runs of all sizes
    share a goal: where it varies, it is removed from the settings, and the content of the data
    replaces the number of the split, since splits are numbered within a problem.
    """
    settings = schemes["setting"].str.replace(SETTINGS_OF_ORDER, "", regex=True)
    # The size of the batch does not vary, or the data have no fingerprint.
    if "data" not in schemes or settings.eq(schemes["setting"]).all():
        return [*problems.PROBLEM_COLUMNS, "split"]
    return ["experiment", settings, "data"]


def _upper_medians(groups: Any) -> pd.DataFrame:
    """Return one row of `time_to_target` a group.

    It has upper medians, whether all rows are finer, and one end. Upper medians are order
    statistics, because infinite values have no mean. If ends differ, the last in alphabetical order
    is returned, which is never the empty one: it says that some job's best step size is at an end.

    Args:
        groups: Rows of `time_to_target`, grouped by problem, scheme and split.
    """
    medians: pd.DataFrame = groups[REACHED_NUMBERS].quantile(0.5, interpolation="higher")
    return medians.assign(finer=groups["finer"].all(), end=groups["end"].max())


def compares_counts(schemes: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by scheme run, whether step sizes and targets are judged by misclassified points."""
    missing = pd.Series("", index=schemes.index)
    return schemes.get(names.COMPARED.column, missing) == names.MISCLASSIFICATIONS


def compared_metric(scheme: Mapping[Any, Any]) -> names.Metric:
    """Return the history by which a scheme run's step sizes are judged: the cost or the count."""
    is_counted = scheme.get(names.COMPARED.column) == names.MISCLASSIFICATIONS
    return names.TRAIN_MISCLASSIFICATIONS if is_counted else names.TRAIN_COST


def excess_left(run: Mapping[Any, Any], scheme: Mapping[Any, Any]) -> float:
    """Return the share of the excess at zero weights that remains at the end of a run.

    Where counts are compared, it is the share of misclassified points.

    Args:
        run: A step run, or the scheme run itself, which has the costs of its best step size.
        scheme: The scheme run.

    Returns:
        The share; infinite where the run diverged, is decided by rounding or has no final cost; NaN
        where no least cost is recorded, or where zero weights have no excess.
    """
    is_counted = compared_metric(scheme) is not names.TRAIN_COST
    scheme = {**scheme, names.MINIMUM.column: 0.0} if is_counted else scheme
    return _remaining_excess(
        run, scheme, scheme.get(names.MINIMUM.column, np.nan), start_excess(scheme)
    )


def with_lowest_seen(schemes: pd.DataFrame, jobs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return scheme runs with a shared least cost for those whose job did not solve for one.

    The runs are returned as they are where every job solved for it, where each scheme minimizes
    another function, and where no target is recorded.

    A job that does not solve for the least cost records the lowest cost that it saw itself, over
    which the best step size of even the slowest scheme would leave nothing. The shared least cost
    is the lowest that any of these jobs saw of the same cost on the same data, whatever the start,
    the model and the descent were.

    Args:
        schemes: The scheme runs.
        jobs: All jobs of these, with the lowest costs that they saw (`with_finer_minima`); by
            default the scheme runs themselves.
    """
    goal, minimum = names.target("1e-1").column, names.MINIMUM.column
    # These jobs recorded the lowest cost that they saw as their least cost.
    guessed = schemes.get(names.MINIMUM_REACHED.column, pd.Series(index=schemes.index)) == "false"
    if not guessed.any() or problems.minimize_different_functions(schemes) or goal not in schemes:
        return schemes
    shared, jobs = schemes.copy(), schemes if jobs is None else jobs
    job_costs = _compared_costs(jobs)
    compared = schemes[guessed & ~compares_counts(schemes)]
    for cost, rows in compared.groupby(_compared_costs(schemes), sort=False):
        minima, targets = (jobs[job_costs == cost][name].astype(float) for name in (minimum, goal))
        if targets.notna().any():
            own = minima[targets.idxmin()], targets.min()
            shared.loc[rows.index, [minimum, goal]] = _lower_target(
                *own, names.TARGETS["1e-1"], minima, targets
            )
    return shared


def over_lowest_seen(sweep: Sweep) -> pd.DataFrame:
    """Return the scheme runs of a sweep, their unknown least costs the lowest seen on their points.

    Args:
        sweep: The sweep, not merged.

    Returns:
        One row a job, as of `with_lowest_seen` for the jobs of each training set.
    """
    jobs = with_finer_minima([sweep], problems.scheme_runs_with_groups([sweep]))
    points = jobs["data"].fillna("") if "data" in jobs else jobs["split"]
    shared = [with_lowest_seen(rows) for _, rows in jobs.groupby(points, sort=False)]
    return pd.concat(shared).sort_index() if shared else jobs


def _compared_costs(schemes: pd.DataFrame) -> "pd.Series[str]":
    """Return, by run, the text that runs of the same cost on the same data share.

    It is the experiment with those varied settings that are of the data or of the cost. Seeds are
    left out.
    """
    settings = [
        {
            name: value
            for name, value in varied.items()
            if name.startswith(("dataset", "cost")) and name not in SEEDS
        }
        for varied in problems.problems(schemes)
    ]
    return schemes["experiment"] + pd.Series([str(varied) for varied in settings], schemes.index)


def resting_above_lowest(sweep: Sweep, schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes whose best run counts as converged only over its own job's lowest cost.

    Over the lowest cost that any scheme of the problem saw, that run leaves at least the share of
    its starting excess below which a run converges (`rules.excess`).

    Args:
        sweep: The sweep.
        schemes: The scheme runs of an experiment.

    Returns:
        The rows of these schemes; their least cost is the lowest that any scheme saw.
    """
    key, rule = names.TRAIN_COST.key, names.setting("rules.excess")
    schemes = with_lowest_seen(schemes[schemes["verdict"] != names.FAILED])
    rows = schemes[schemes["verdict"] == names.CONVERGED]
    histories = sweep.histories(rows, [key]) if len(rows) else pd.DataFrame()
    if key not in histories or rule not in rows:  # no run converged, or its costs are not recorded
        return rows.iloc[:0]
    start = rows["run_id"].map(histories[histories["iteration"] == 0].set_index("run_id")[key])
    columns = names.MINIMUM.column, names.FINAL_COST.column
    minimum, end = (rows[column].astype(float) for column in columns)
    share = (end - minimum) / (start - minimum)  # of the start's excess, left at the end
    return rows[share >= rows[rule].astype(float)]


def start_excess(scheme: Mapping[Any, Any]) -> float:
    """Return the excess cost at the start of a scheme run; NaN where the least cost is unknown."""
    minimum, tenth_target = (
        scheme.get(metric.column, np.nan) for metric in (names.MINIMUM, names.target("1e-1"))
    )
    # The target 1e-1 is the minimum plus a tenth of the starting excess.
    return float((tenth_target - minimum) * 10)


def start_ratio(scheme: Mapping[Any, Any], arrays: Mapping[str, Any]) -> float:
    """Return the excess cost of a job's first start, as a multiple of that of zero weights.

    By it, a share of the excess of that start becomes one of zero weights, as `excess_left` is.

    Args:
        scheme: The scheme run.
        arrays: The arrays of its descent: the costs `(S, starts, K + 1)` and the least cost.

    Returns:
        The ratio; 1 for a start at zero weights, and where points instead of costs are compared.
    """
    is_zero = scheme.get(names.setting("start")) in (*ZEROS, None)
    if is_zero or compared_metric(scheme) is not names.TRAIN_COST:
        return 1.0
    minimum, first = float(arrays["minimum"]), float(arrays[names.TRAIN_COST.key][0, 0, 0])
    zero_weights = scheme.get(names.MINIMUM.column, np.nan) + start_excess(scheme)
    return (first - minimum) / (zero_weights - minimum) if zero_weights > minimum else 1.0


def excess_shown(run: Mapping[Any, Any], scheme: Mapping[Any, Any]) -> float | None:
    """Return the excess that a run leaves, as a table shows it; see `excess_left`.

    Args:
        run: The row of a scheme's run or of a step's.
        scheme: The row of its scheme.

    Returns:
        At least 0; None where it is not finite.
    """
    remaining_excess = excess_left(run, scheme)
    return max(remaining_excess, 0.0) if np.isfinite(remaining_excess) else None


def _remaining_excess(
    run: Mapping[Any, Any], scheme: Mapping[Any, Any], minimum: float, start: float
) -> float:
    """Return the share of the starting excess that remains, as `excess_left` defines it.

    Args:
        run: A step run, or the scheme run itself.
        scheme: The scheme run, which says whether counts are compared.
        minimum: The least cost, 0 for counts.
        start: The starting excess over it.

    Returns:
        Infinite where the run's verdict is in `names.UNRANKED` or it has no final value; NaN where
        the start has no excess.
    """
    final = run.get(names.final_metric(compared_metric(scheme)).column)
    if run["verdict"] in names.UNRANKED or final is None or pd.isna(final):
        return float("inf")
    # A share below 0 by rounding is kept.
    return float((final - minimum) / start) if start else float("nan")


def step_size(step: Mapping[Any, Any]) -> float:
    """Return a step run's size: the metric has all digits, the tag only six."""
    size = step.get(names.STEP_SIZE.column)
    return float(step[names.STEP_TAG.column] if size is None or pd.isna(size) else size)


def finds_own_steps(scheme: Mapping[Any, Any]) -> bool:
    """Return whether the optimizer of a scheme run finds its own step sizes, on no grid."""
    return scheme.get(names.GRIDLESS.column) == "true"


def step_text(scheme: Mapping[Any, Any]) -> str | None:
    """Return the step size of a scheme run as it is recorded.

    Returns:
        None where there is none, and where the optimizer finds its own.
    """
    step = scheme.get(names.STEP_TAG.column)
    return step if isinstance(step, str) and not finds_own_steps(scheme) else None


def _recorded_value(run: Mapping[Any, Any], target: str, measure: str) -> float:
    """Return the recorded iterations or seconds to a target; infinite if it is not reached.

    Seconds are NaN where the target is reached but they were not recorded.

    Args:
        run: A scheme run or a step run.
        target: The target, a key of `names.TARGETS`.
        measure: `iterations` or `seconds`.
    """
    is_reached = np.isfinite(number_in(run, names.reached(target).column))
    return number_in(run, names.reached(target, measure).column) if is_reached else np.inf


def _in_measure(scheme: Mapping[Any, Any], iterations: float, measure: str) -> float:
    """Convert iterations to the given measure, `iterations` or `seconds`.

    The seconds include those of fitting the scheme; they are NaN where none are recorded.
    """
    if measure == "iterations":
        return iterations
    fit_seconds, seconds_per_step = (
        scheme.get(metric.column, np.nan) for metric in (names.FIT_SECONDS, names.SECONDS_A_STEP)
    )
    return float(fit_seconds + iterations * seconds_per_step)


def _iterations_held(sweep: Sweep, schemes: pd.DataFrame) -> dict[str, dict[float, float]]:
    """Return, by step size, the iteration from which the costs meet a job's goal and stay there.

    Args:
        sweep: The sweep.
        schemes: Scheme runs of it, joined with `goals`.

    Returns:
        The iterations by the id of the scheme run and the step size; infinite where the costs do
        not stay at the goal, and where rounding decides the run.
    """
    goal_by_run = dict(zip(schemes["run_id"], schemes["goal"]))
    records_by_run = {job["run_id"]: passes.records_per_pass(job) for job in as_rows(schemes)}
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(goal_by_run)]
    iterations_by_run: dict[str, dict[float, float]] = {
        job["run_id"]: {
            size: first_iteration_below(dict(enumerate(costs)), job["goal"])
            / records_by_run[job["run_id"]]
            for size, costs in finer_histories(sweep, job).items()
        }
        for job in as_rows(schemes)
    }
    for step in as_rows(steps):
        iterations_by_run.setdefault(step["parent"], {})[step_size(step)] = np.inf
    steps = steps[steps["verdict"] != names.BY_ROUNDING]  # these stay infinite
    if steps.empty:
        return iterations_by_run
    steps_by_id = {str(step["run_id"]): step for step in as_rows(steps)}
    table = sweep.histories(steps, (names.TRAIN_COST.key,))
    for run_id, rows in table.groupby("run_id"):
        step = steps_by_id[str(run_id)]
        costs = dict(zip(rows["iteration"], rows[names.TRAIN_COST.key]))
        records = first_iteration_below(costs, goal_by_run[step["parent"]])
        iterations = records / records_by_run[step["parent"]]
        iterations_by_run[step["parent"]][step_size(step)] = iterations
    return iterations_by_run


def first_iteration_below(costs: Mapping[int, float], goal: float) -> float:
    """Return the iteration from which the costs stay at or below a goal; infinite if they do not.

    Args:
        costs: The costs by iteration, in order.
        goal: The cost to reach.

    Returns:
        The iteration as a float.
    """
    # `not <=` instead of `>`, so that NaN counts as above.
    iterations_above = [step for step, cost in costs.items() if not cost <= goal]
    first = max(iterations_above, default=-1) + 1  # not in `costs` if the last one is above
    return float(first) if first in costs else float("inf")


def thresholds_that_hold(schemes: pd.DataFrame, of_full_batch: bool = False) -> pd.DataFrame:
    """Return scheme rows with 2/L only where it holds, for plain gradient descent; else NaN.

    Args:
        schemes: The scheme rows.
        of_full_batch: Whether 2/L of all points is kept where a step sees a batch of them.
    """
    threshold, plain = names.THRESHOLD.column, names.PLAIN.column
    # Without theory there is no 2/L to remove.
    if plain not in schemes or threshold not in schemes:
        return schemes
    is_plain = schemes[plain] != "false"
    if of_full_batch and names.BATCHED.column in schemes:
        is_plain |= schemes[names.BATCHED.column] == "true"
    return schemes.assign(**{threshold: schemes[threshold].where(is_plain)})
