"""The inputs of figures: rows and arrays of a sweep, and functions that build figures from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.merging import distinct_repeats, unmerged
from normbench.results.compare.reached import thresholds_that_hold
from normbench.results.figures.base import style
from normbench.results.store import dataset_inputs as inputs
from normbench.results.store.rows import as_rows, shared_value
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep, which_step

SchemeArrays = Mapping[str, Any]  # the recorded arrays of one scheme, by name
ArraysByLabel = Mapping[str, SchemeArrays]  # keys: the labels of the schemes
LOWEST_COST_NOTE = "the least cost is not known; the excess cost is over the lowest cost seen"
NEEDED_COLUMNS = (names.STEP_TAG.column, names.FINAL_COST.column, names.STEP_SIZE.column)
START_COST_COLUMN = "start_cost"  # a column of scheme rows, NaN where the cost is not known


@dataclass(frozen=True)
class Options:
    """The options of drawing, the same for all figures.

    Attributes:
        shape: the format of a figure, one of `style.FORMATS`.
        first: the iteration at which histories begin.
        scale: `linear`, `log`, `excess`, or None to choose the scale by the range of the values.
        steps: the step sizes whose histories are drawn; if empty, the best one of each scheme.
        components: the number of components that are drawn of a scheme; None for the default.
        by: the horizontal axis of histories, a key of `histories.HISTORY_AXES`.
    """

    shape: style.Shape = style.SCREEN
    first: int = 0
    scale: str | None = None
    steps: tuple[float, ...] = ()
    components: int | None = None
    by: str = "iterations"


class DrawnScheme(NamedTuple):
    """A scheme that a figure shows.

    Attributes:
        label: the scheme's label, the key of its arrays.
        row: the scheme's row.
        arrays: the scheme's recorded arrays, by name.
        look: the scheme's colour, marker and line style.
    """

    label: str
    row: Mapping[Any, Any]
    arrays: SchemeArrays
    look: style.Look


def with_arrays(schemes: pd.DataFrame, arrays: ArraysByLabel) -> list[DrawnScheme]:
    """Return the schemes that have recorded arrays, in the order of their rows.

    Args:
        schemes: One row for each scheme.
        arrays: The recorded arrays by the schemes' labels.

    Returns:
        The schemes to draw; those with the same normalizer have looks of their own.
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    looks = style.looks([row["normalizer"] for row in rows])
    return [
        DrawnScheme(row["label"], row, arrays[row["label"]], look) for row, look in zip(rows, looks)
    ]


Make = Callable[[Sweep, str, Options], Figure | None]


@dataclass(frozen=True)
class Maker:
    """How a figure is made of a sweep.

    Attributes:
        make: returns the figure of an experiment, None if nothing was recorded for it.
        why_not: returns the reasons why an experiment has no such figure.
        write_gif: writes an animation of an experiment to a file, with its provenance.
    """

    make: Make
    why_not: Callable[[Sweep, str], list[str]] | None = None
    write_gif: Callable[[Sweep, str, Path, Mapping[str, str]], None] | None = None


MAKERS: dict[str, Maker] = {}  # by the figures' names; their modules register them


def figure(name: str, **others: Any) -> Callable[[Make], Make]:
    """Return a decorator that registers a function as the one that makes a figure.

    Args:
        name: the name of the figure.
        **others: more fields of `Maker`.
    """

    def register(make: Make) -> Make:
        MAKERS[name] = Maker(make, **others)
        return make

    return register


def always(scheme_arrays: SchemeArrays) -> bool:
    """Return that the arrays of a scheme can be drawn."""
    return True


def schemes(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row for each scheme that did not fail, with the columns that figures need.

    The threshold 2/L is missing for optimizers to which it does not apply. If each step sees a
    batch of the points, the threshold is that of all points, see `threshold_label`.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The table of schemes.
    """
    rows = sweep.of_role(names.SCHEME, experiment)
    rows = thresholds_that_hold(rows[rows["verdict"] != names.FAILED], of_full_batch=True)
    return _with_needed_columns(rows)


def of_first_repeat(sweep: Sweep, rows: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with the values of the runs whose arrays and series are drawn.

    Of several splits or seeds that is the first run; a merged row has its id, and medians.

    Args:
        sweep: The sweep.
        rows: One row for each scheme, from `schemes`.

    Returns:
        The rows of these runs, with the labels of the given rows.
    """
    runs = unmerged(sweep).runs.set_index("run_id", drop=False).loc[rows["run_id"]]
    runs = thresholds_that_hold(runs, of_full_batch=True).assign(label=rows["label"].to_numpy())
    return _with_needed_columns(runs)


def threshold_label(schemes: pd.DataFrame, plain_label: str = "2/L, predicted") -> str:
    """Return the label of 2/L.

    Args:
        schemes: One row for each scheme.
        plain_label: The label where each step sees all points.

    Returns:
        `plain_label`; with batches, a text that the threshold is that of the full batch.
    """
    return "the full batch's 2/L" if passes.unit(schemes) is passes.PASS_UNIT else plain_label


def iteration_label(schemes: pd.DataFrame) -> str:
    """Return the label of an axis of iterations, or of records if there are several in a pass.

    A record is one evaluation of the cost; with batches, a pass may have several.
    """
    records = max(map(passes.records_per_pass, as_rows(schemes)), default=1)
    return f"record, {records} a pass" if records > 1 else passes.unit(schemes).one


def steps(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row for each scheme and step size, with the columns that figures need.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The table of step sizes.
    """
    return _with_needed_columns(sweep.of_role(names.STEP, experiment))


def gridless(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by row, whether the optimizer chooses its own step sizes, so that no grid exists."""
    return rows.get(names.GRIDLESS.column, pd.Series("", index=rows.index)) == "true"


def step_text(run: Mapping[Any, Any]) -> str:
    """Return the step size of a run as the end of its label.

    Empty where there is none, and where the optimizer finds its own step sizes.
    """
    is_gridless = run.get(names.GRIDLESS.column) == "true"
    return "" if is_gridless else style.step_text(run.get(names.STEP_TAG.column))


def skip_reasons(note: object, task: str) -> list[str]:
    """Return why a task was left out, as a scheme's note says it.

    Args:
        note: The note, whose parts are joined by `; `; not a text where there is none.
        task: A figure or a measure. A part on it is `task: reason`, or `task, other left out
            reason`.
    """
    reasons = []
    for part in str(note).split("; "):
        tasks, _, reason = part.partition(" left out ")
        if reason and task in tasks.split(", "):
            reasons.append(f"left out {reason}")
        elif part.startswith(f"{task}: "):
            reasons.append(part.removeprefix(f"{task}: "))
    return reasons


def _with_needed_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with all columns that figures need; those that were not recorded are empty."""
    return rows.assign(**{name: None for name in NEEDED_COLUMNS if name not in rows})


def ends_at_or_below_start(scheme: Mapping[Any, Any], cost: float) -> bool:
    """Return whether a final cost is at most the cost at the start; equal costs count.

    Args:
        scheme: The row of a scheme, with the cost at the start.
        cost: The final cost.

    Returns:
        True also if the cost at the start is not known, and if misclassified points are compared
        instead of costs.
    """
    # Where misclassified points are compared, the cost does not judge a step size.
    is_counted = scheme.get(names.COMPARED.column) == names.MISCLASSIFICATIONS
    start_cost = pd.to_numeric(scheme.get(START_COST_COLUMN), errors="coerce")
    return bool(is_counted or pd.isna(start_cost) or cost <= start_cost)


def with_start_costs(sweep: Sweep, rows: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with a column of the cost at the start.

    Args:
        sweep: The sweep.
        rows: One row for each scheme.

    Returns:
        The rows with `START_COST_COLUMN`, NaN where no cost is recorded.
    """
    cost_key = names.TRAIN_COST.key
    cost_histories = sweep.histories(rows, [cost_key])
    if cost_key not in cost_histories:
        return rows.assign(**{START_COST_COLUMN: float("nan")})
    start_costs = cost_histories[cost_histories["iteration"] == 0].set_index("run_id")[cost_key]
    return rows.assign(**{START_COST_COLUMN: rows["run_id"].map(start_costs)})


def histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the histories of runs: costs, misclassifications, and recorded quartiles.

    Args:
        sweep: The sweep.
        runs: One row for each run.

    Returns:
        One row for each run and recorded iteration.
    """
    return sweep.histories(runs, (*HISTORY_KEYS, *QUARTILE_KEYS))


def title(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title: the data set, points x features, the cost, and the number of test points.

    If some schemes were fitted on the test points too, the title says so.

    Args:
        experiment: the experiment's name, `<dataset>-<cost>`.
        rows: the scheme runs of the experiment; a value that differs between them, as between
            splits, is not part of the title.
    """
    # The setting or the recorded name, the first that all rows share; empty if they share neither.
    dataset_columns = (names.setting("dataset"), names.DATASET.column)
    dataset = next(filter(None, (shared_value(rows, name) for name in dataset_columns)), "")
    # Without a known data set, the whole name of the experiment stands in the title.
    cost_label = experiment.removeprefix(f"{dataset}-") if dataset else experiment
    dataset_sizes = [shared_value(rows, name) for name in inputs.SIZE_FIELDS]
    train, test, features = (f"{float(size):g}" if size else "" for size in dataset_sizes)
    test_label = f"{test} test points" if test not in ("", "0") else ""
    title_parts = [dataset.replace("_", " "), f"{train} x {features}" if train and features else ""]
    if cost_label != dataset:
        title_parts.append(cost_label.replace("_", " "))
    has_leak = names.FIT_ON in rows and (rows[names.FIT_ON] == "all").any()
    leak_note = "some schemes fitted on the test points too" if has_leak else ""
    return ", ".join(filter(None, [*title_parts, test_label, leak_note]))


def title_with_budget(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title with the number of iterations that the verdicts judge.

    Args:
        experiment: The name of the experiment.
        rows: The scheme runs of the experiment.

    Returns:
        The title, see `title`; the number is left out if the schemes differ in it.
    """
    return ", ".join(filter(None, [title(experiment, rows), passes.budget(rows)]))


def best_step_label(schemes: pd.DataFrame) -> str:
    """Return the legend's label of the step size that represents a scheme.

    Args:
        schemes: the scheme rows, which tell whether the user chose the step size, and whether costs
            or misclassified points are compared.
    """
    if which_step(schemes) == "shown":
        return "shown step, by choice"
    counted = names.COMPARED.column in schemes and schemes[names.COMPARED.column].notna().any()
    reached = "fewest misclassified" if counted else "lowest cost"
    return f"best step of the grid: first to the {reached}"


def grid_rows(sweep: Sweep, experiment: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the step rows, and the scheme rows with `START_COST_COLUMN`.

    Schemes whose optimizer chooses its own step sizes are left out.
    """
    rows = schemes(sweep, experiment)
    rows = rows[~gridless(rows)]
    step_rows = steps(sweep, experiment)
    return step_rows[step_rows["label"].isin(rows["label"])], with_start_costs(sweep, rows)


def title_of_first_repeat(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title; if there are several splits or seeds, it says that the first one is shown.

    Args:
        experiment: The name of the experiment.
        rows: The scheme runs of the experiment, over all splits and seeds.

    Returns:
        The title, see `title`.
    """
    repeats = distinct_repeats(rows)
    experiment_title = title(experiment, rows)
    return f"{experiment_title}, the first of {repeats[-1]}" if repeats else experiment_title


def drawable_arrays(
    sweep: Sweep,
    rows: pd.DataFrame,
    record_name: str,
    is_drawable: Callable[[SchemeArrays], bool] = always,
) -> ArraysByLabel:
    """Return the recorded arrays that can be drawn, by the label of their scheme.

    Args:
        sweep: the sweep that holds the runs.
        rows: the rows of the schemes.
        record_name: the name in the setting `record=[...]` that records the arrays.
        is_drawable: whether the arrays of one scheme can be drawn.
    """
    return {
        label: scheme_arrays
        for label, scheme_arrays in sweep.arrays(rows, record_name).items()
        if is_drawable(scheme_arrays)
    }
