"""Group the runs of sweeps into problems and splits, on which schemes can be compared.

A problem is one data set, cost and setting. A split of a problem is one training set; runs of one
split share its data, whatever their start. Runs with equal results count as one run.
"""

import re
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.compare import passes
from normbench.results.store.rows import as_rows
from normbench.results.store.run_labels import with_requested_start
from normbench.results.store.runs import Sweep, split_command
from normbench.results.words.sentences import make_sentence
from normbench.settings import CYCLIC, SEEDS, Role, has_role, separates_problems

VALUE_PER_SCHEME = "each scheme's own"
BATCH_SEED, ORDER = names.setting("batch_seed"), names.setting("batch_order")
HYDRA_RANGE = re.compile(
    r"range\((?:start=)?(-?\d+)(?:,(?:stop=)?(-?\d+))?(?:,(?:step=)?(-?[1-9]\d*))?\)"
)
RESULT_TOLERANCE = 1e-9  # relative: the results of equal jobs differ by rounding
# Metrics that distinguish the results of two jobs: of the scheme, and at each step size.
SCHEME_RESULTS = (names.LIPSCHITZ, names.LIPSCHITZ_START, names.MINIMUM)
STEP_RESULTS = (
    *map(names.final_metric, names.HISTORIES),
    *(names.reached(target) for target in names.TARGETS),
)
PROBLEM_COLUMNS = ["experiment", "setting"]  # the columns that identify a problem
SCHEME_COLUMNS = [*PROBLEM_COLUMNS, "scheme"]  # the columns that identify a scheme on a problem
ResultsByScheme = dict[str, list[Mapping[str, float]]]  # by scheme: the results of each job
# The end of the sentence on a seed that has no effect.
IDLE_SEED_REMEDIES = {
    "seed": "; start=normal draws starts by it, and dataset.split_seed draws splits",
    "dataset.split_seed": "; dataset.test_fraction=0.25 holds points out by it",
    "dataset.seed": "",
    "batch_seed": "; batch=200 draws batches by it",
}


def scheme_runs(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return the scheme runs of sweeps whose job has a descent.

    They have the columns of `scheme_runs_with_groups`.
    """
    runs = scheme_runs_with_groups(sweeps)
    return runs[~without_descent(runs)].reset_index(drop=True)


def scheme_runs_with_groups(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return the scheme runs of sweeps, with the columns by which they are compared.

    If a job was run twice, the last run counts.

    Args:
        sweeps: The sweeps, numbered in this order.

    Returns:
        One row a scheme run. The additional columns are `sweep`, its number; `setting`, the
        settings that vary; `draw`, the seeds; `split`, a number that runs share if they have the
        same data or equal results throughout; `sample`, the number of what is repeated to compare
        schemes, the split, or in a problem of one split the order of the batches; and `scheme`, the
        normalizer with the options that vary.
    """
    if len(sweeps) == 1:
        return sweeps[0].get_or_compute("placed", lambda: _compute_runs_with_groups(sweeps)).copy()
    return _compute_runs_with_groups(sweeps)


def _compute_runs_with_groups(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return the table of `scheme_runs_with_groups`, whose columns are described there."""
    sweep_runs = [
        sweep.of_role(names.SCHEME).assign(sweep=number) for number, sweep in enumerate(sweeps)
    ]
    runs = pd.concat(sweep_runs, ignore_index=True)
    problem_settings = problems(runs, "sweep")
    names_by_run = scheme_names(runs)
    varied_settings = [
        {name: value for name, value in settings.items() if name not in SEEDS}
        for settings in problem_settings
    ]
    columns = {
        "setting": [
            ", ".join(f"{name}={settings[name]}" for name in settings)
            for settings in varied_settings
        ],
        "draw": [", ".join(draws) for draws in _seed_values(runs)],
        "scheme": [names_by_run[run_id] for run_id in runs["run_id"]],
    }
    # The columns hold text even without runs, because tables are merged by them.
    runs = runs.assign(
        **{
            name: pd.Series(column_values, runs.index, object)
            for name, column_values in columns.items()
        }
    )
    # Rows of one scheme, problem and seeds are runs of one job; of these the last is kept.
    runs = runs.drop_duplicates([*SCHEME_COLUMNS, "draw"], keep="last", ignore_index=True)
    runs = runs.assign(split=_splits(runs, job_results(sweeps, runs)))
    return runs.assign(sample=_samples(runs))


def _samples(runs: pd.DataFrame) -> "pd.Series[int]":
    """Return the column `sample` of `scheme_runs_with_groups`.

    It is the split, or the number of the order of the batches. Orders count in problems of one
    split, for runs whose seed draws the batches; a cyclic order is not drawn.

    Args:
        runs: The scheme runs, with the other columns of `scheme_runs_with_groups`.
    """
    if BATCH_SEED not in runs or runs.empty:  # no job draws batches
        return runs["split"]
    by_problem = runs.groupby(PROBLEM_COLUMNS, sort=False)
    orders = by_problem[BATCH_SEED].transform(lambda seeds: pd.factorize(seeds)[0])
    has_one_split = by_problem["split"].transform("nunique") == 1
    # Whether the order of the batches is drawn by the seed.
    drawn_flags = [passes.is_batched(row) and row.get(ORDER) != CYCLIC for row in as_rows(runs)]
    is_drawn = pd.Series(drawn_flags, runs.index)
    return runs["split"].where(~(has_one_split & is_drawn), orders)


def sample_name(jobs: pd.DataFrame) -> str:
    """Return what is repeated to compare schemes, as a plural noun.

    Args:
        jobs: Rows of `scheme_runs_with_groups`.
    """
    return "splits" if jobs["sample"].equals(jobs["split"]) else "orders of the batches"


def without_descent(schemes: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by run, whether the job only fits its scheme and has no descent: `iterations=0`."""
    iterations = schemes.get(names.setting("iterations"), pd.Series("", index=schemes.index))
    return iterations.astype(str) == "0"


def starts_of(scheme: Mapping[Any, Any]) -> int:
    """Return the number of starts of a scheme run's job; 1 where no number is recorded."""
    try:
        return int(scheme.get(names.setting("starts")) or 1)
    except ValueError:  # merged jobs that differ in it have a list as text, such as `1, 3`
        return 1


def has_networks(schemes: pd.DataFrame) -> bool:
    """Return whether the scores of some scheme runs are not linear in the weights.

    This is so for models other than `linear`, and for a linear model that normalizes its scores.
    """
    defaults = {"model": "linear", "model.normalize": "none"}
    return any(
        schemes.get(names.setting(key), pd.Series(default)).fillna(default).ne(default).any()
        for key, default in defaults.items()
    )


def minimize_different_functions(schemes: pd.DataFrame) -> bool:
    """Return whether each scheme minimizes another function of the features.

    It does with a penalty `cost.l2` on the transformed weights. With `cost.l2_in=features` all
    schemes minimize the same function.
    """
    none = pd.Series(dtype=str)  # no job has a penalty, or the setting was not recorded
    penalty = pd.to_numeric(schemes.get(names.setting("cost.l2"), none), errors="coerce")
    penalized_weights = schemes.get(names.setting("cost.l2_in"), none).reindex(penalty.index)
    return bool(((penalty > 0) & (penalized_weights != "features")).any())


def problems(schemes: pd.DataFrame, sweep: str | None = None) -> list[dict[str, str]]:
    """Return, by run, the varied settings that identify its problem.

    A setting that takes several values under one scheme of an experiment makes several problems.
    Within a sweep where it has one value per scheme (`${per_scheme:...}`), its value is
    `VALUE_PER_SCHEME` for all schemes. A setting with one value per scheme in all sweeps, or one
    value per optimizer or other choice, belongs to that and is left out.

    Args:
        schemes: One row a scheme run.
        sweep: The column with the number of each run's sweep; None where there is one sweep.

    Returns:
        For each run, in the order of the rows, its settings: values by names.
    """
    schemes = with_requested_start(schemes)
    settings_by_run: dict[Any, dict[str, str]] = {index: {} for index in schemes.index}
    problem_columns = [
        name
        for name in schemes.columns
        if name.startswith(names.PARAMS) and separates_problems(name.removeprefix(names.PARAMS))
    ]
    for _, rows in schemes.groupby("experiment", sort=False):
        for name in problem_columns:
            # It does not vary, or follows from the scheme in all sweeps.
            if rows[name].nunique(dropna=False) == 1 or _one_value_each(rows, name):
                continue
            choice = name.rpartition(".")[0]  # such as the optimizer's, whose options come with it
            group_columns = [
                column
                for column in (choice, names.setting("optimizer"))
                if column in rows and column != name
            ]
            if any(_one_value_each(rows, name, column) for column in group_columns):
                continue
            # Varied within a scheme: a problem for each value, or in a sweep where each scheme has
            # one value, `VALUE_PER_SCHEME` for all of them.
            for _, sweep_rows in rows.groupby(sweep) if sweep else [(None, rows)]:
                per_scheme = sweep_rows[name].nunique(dropna=False) > 1 and _one_value_each(
                    sweep_rows, name
                )
                for index, value in sweep_rows[name].dropna().items():
                    settings_by_run[index][name.removeprefix(names.PARAMS)] = (
                        VALUE_PER_SCHEME if per_scheme else names.as_typed(value)
                    )
    return list(settings_by_run.values())


def _one_value_each(schemes: pd.DataFrame, name: str, group_column: str = "normalizer") -> bool:
    """Return whether a setting has one value within each group of scheme runs.

    Args:
        schemes: The scheme runs.
        name: The column of the setting.
        group_column: The column by which the runs are grouped, such as that of the optimizer.
    """
    return bool((schemes.groupby(group_column)[name].nunique(dropna=False) <= 1).all())


def scheme_names(schemes: pd.DataFrame) -> dict[str, str]:
    """Return the names by which schemes are compared, by run id.

    A name is the normalizer with those options of the scheme, also inside a model, that vary among
    the runs of this normalizer, such as `pca_sphere, ridge=0.1`.

    Args:
        schemes: One row a scheme run.
    """
    option_prefix = names.setting("normalizer.")
    options = [
        name
        for name in schemes.columns
        if name.startswith((option_prefix, names.setting("model.")))
        and has_role(name.removeprefix(names.PARAMS), Role.SCHEME)
    ]
    names_by_run = {}
    for _, normalizer_runs in schemes.groupby("normalizer"):
        varied_options = [
            name for name in options if normalizer_runs[name].nunique(dropna=False) > 1
        ]
        for row in as_rows(normalizer_runs):
            option_values = [
                f"{name.removeprefix(option_prefix).removeprefix(names.PARAMS)}="
                f"{names.as_typed(row[name])}"
                for name in varied_options
            ]
            names_by_run[row["run_id"]] = ", ".join([names.normalizer_label(row), *option_values])
    return names_by_run


def _seed_values(schemes: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return, by run, the values of the settings `SEEDS` in their order; 0 for a missing one."""
    return [
        tuple(str(row.get(names.setting(name), "0")) for name in SEEDS) for row in as_rows(schemes)
    ]


def job_results(sweeps: Sequence[Sweep], schemes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the numbers by which the results of two jobs are compared.

    Args:
        sweeps: The sweeps, numbered as in the column `sweep` of the scheme runs.
        schemes: One row a scheme run.

    Returns:
        By the id of the scheme run: the recorded values of `SCHEME_RESULTS`, and those of
        `STEP_RESULTS` at each step size. The keys of the latter begin with the step size.
    """
    results_by_run = {
        row["run_id"]: _metric_values(row, SCHEME_RESULTS) for row in as_rows(schemes)
    }
    for sweep in sweeps:
        steps = sweep.of_role(names.STEP)
        if steps.empty:
            continue
        wanted_columns = [names.STEP_TAG.column, *(metric.column for metric in STEP_RESULTS)]
        columns = [column for column in wanted_columns if column in steps]
        for row in as_rows(steps[["parent", *columns]]):
            if row["parent"] in results_by_run:
                step_results = _metric_values(row, STEP_RESULTS)
                size = row[names.STEP_TAG.column]
                results_by_run[row["parent"]] |= {
                    f"{size} {key}": value for key, value in step_results.items()
                }
    return results_by_run


def _metric_values(row: Mapping[Any, Any], metrics: Sequence[names.Metric]) -> dict[str, float]:
    """Return the recorded values of some metrics of a row, by key; NaN is left out."""
    recorded_values = {metric.key: row.get(metric.column) for metric in metrics}
    return {
        # NaN is unequal to itself.
        key: value
        for key, value in recorded_values.items()
        if value is not None and value == value
    }


def equal_results(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    """Return whether the results of two jobs are equal up to rounding.

    Args:
        first: Numbers by name.
        second: Numbers by name.

    Returns:
        Whether the names are the same and the numbers agree to a relative `RESULT_TOLERANCE`; False
        if there are no numbers.
    """
    return (
        bool(first)
        and first.keys() == second.keys()
        and all(isclose(first[key], second[key], rel_tol=RESULT_TOLERANCE) for key in first)
    )


def _splits(schemes: pd.DataFrame, results_by_job: Mapping[str, Mapping[str, float]]) -> list[int]:
    """Return, by run, the number of its split within its problem.

    Runs are of one split if they have the same data, by its recorded fingerprint, or equal results
    throughout. A failed job has no fingerprint; it belongs to the split of the jobs with its seeds.

    Args:
        schemes: The scheme runs, with the columns `setting` and `scheme` of
            `scheme_runs_with_groups`.
        results_by_job: The results of each job, by the id of its scheme run, from `job_results`.
    """
    rows = as_rows(schemes)
    # Keys begin with experiment and setting. The first two of `SEEDS` are those of the data.
    seed_keys = [
        (row["experiment"], row["setting"], *draws[:2])
        for row, draws in zip(rows, _seed_values(schemes))
    ]
    # The data of each problem and pair of seeds, for the failed jobs that have no fingerprint.
    fingerprints = {key: row["data"] for key, row in zip(seed_keys, rows) if row.get("data")}
    # A label is the problem with the fingerprint of the data, or with the seeds if there is none.
    labels = [(*key[:2], fingerprints.get(key, key[2:])) for key in seed_keys]
    results_by_label: dict[Any, ResultsByScheme] = {}
    for row, label in zip(rows, labels):
        scheme_results = results_by_label.setdefault(label, {})
        scheme_results.setdefault(row["scheme"], []).append(results_by_job.get(row["run_id"], {}))
    numbers: dict[Any, int] = {}
    # A label with the results of an earlier one of its problem gets that one's number.
    for label, label_results in results_by_label.items():
        earlier_labels = [earlier for earlier in numbers if earlier[:2] == label[:2]]
        equal_numbers = (
            numbers[earlier]
            for earlier in earlier_labels
            if _equal_splits(label_results, results_by_label[earlier])
        )
        numbers[label] = next(equal_numbers, len(earlier_labels))
    return [numbers[label] for label in labels]


def _equal_splits(first: ResultsByScheme, second: ResultsByScheme) -> bool:
    """Return whether two splits have equal results under every scheme, in all their jobs.

    Args:
        first: The results of the jobs of one split, by scheme.
        second: The results of the jobs of the other split, by scheme.
    """
    return first.keys() == second.keys() and all(
        equal_results(first_results, second_results)
        for scheme in first
        for first_results in first[scheme]
        for second_results in second[scheme]
    )


def idle_seeds(sweeps: Sequence[Sweep]) -> list[str]:
    """Return a sentence for each seed that was varied and has no effect.

    A seed has no effect where the jobs that differ in it alone have equal results, or where a
    command that varies it has one run for all its values, because a job that does not draw by the
    seed is not run again.
    """
    schemes = scheme_runs(sweeps)
    results_by_job = job_results(sweeps, schemes)
    rows = list(zip(as_rows(schemes), _seed_values(schemes)))
    # By seed without effect: the number of its values.
    counts = _idle_seed_counts(sweeps)
    for position, name in enumerate(SEEDS):
        groups: dict[Any, list[str]] = {}
        for row, draws in rows:
            # Jobs with this key differ in this seed alone.
            key = (
                *(row[column] for column in SCHEME_COLUMNS),
                draws[:position],
                draws[position + 1 :],
            )
            groups.setdefault(key, []).append(row["run_id"])
        repeated_ids = [ids for ids in groups.values() if len(ids) > 1]
        # All jobs of a group equal its first one, in every group.
        if repeated_ids and all(
            equal_results(results_by_job[ids[0]], results_by_job[run_id])
            for ids in repeated_ids
            for run_id in ids
        ):
            counts[name] = max(map(len, repeated_ids))
    return [
        make_sentence(
            "idle_seed", name=name, count=counts[name], remedy=IDLE_SEED_REMEDIES[name]
        ).text
        for name in SEEDS
        if name in counts
    ]


def _idle_seed_counts(sweeps: Sequence[Sweep]) -> dict[str, int]:
    """Return how many values a command gives each seed that has one value in all its runs.

    A job that does not draw by a seed is recorded once for all values of that seed. Only seeds with
    several values in the command of a sweep are included.
    """
    idle_counts = {}
    for sweep in sweeps:
        runs = sweep.of_role(names.SCHEME)
        # Without an experiment, no job is recorded.
        for argument in split_command(sweep.command) if len(sweep.experiments) else ():
            name, _, values = argument.lstrip("+").rstrip(";").partition("=")
            column = names.setting(name)
            value_count = _value_count(values) if name in SEEDS else 1
            if value_count > 1 and column in runs and runs[column].nunique() == 1:
                idle_counts[name] = value_count
    return idle_counts


def _value_count(text: str) -> int:
    """Return how many values an override gives a seed, such as `0,1,2` or `range(0,3)`."""
    # The groups are start, stop and step; those that are not given are None.
    bounds = HYDRA_RANGE.fullmatch(text.replace(" ", ""))
    return len(range(*map(int, filter(None, bounds.groups())))) if bounds else text.count(",") + 1
