"""Cost histories, or those of the excess, and misclassification histories beside or below them.

The excess is the cost minus the least cost; theory predicts its slopes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from normbench import names
from normbench.results.compare import merging, passes
from normbench.results.compare.reached import over_lowest_seen
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import (
    LABEL_LINE,
    LINES_AROUND_PANEL,
    End,
    end_labels,
)
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep

Panel = tuple[names.Metric, ...]  # the metric of the training points, and that of the test points
HISTORY_PAIRS: tuple[Panel, Panel] = (names.HISTORIES[0::2], names.HISTORIES[1::2])
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
TAG_TOLERANCE = 1e-5  # relative: step sizes in tables have six digits
EXCESS_SCALE = "excess"  # a value of the option `scale`
EXCESS_LABEL = "excess cost: cost minus least cost"
DECADES_LABEL = "cost, decades above its start"
RATE_LABEL = "misclassified points, percent"
MAX_ADJACENT_CURVES = 6  # with more curves, the panels are stacked
LONG_LABEL = 24  # letters: with longer labels of schemes, the panels are stacked
SQUASHING_RATIO = 8.0  # a curve that ends this factor above the median squashes the others
INVISIBLE_RATIO = 20  # a curve with this factor fewer iterations than another looks vertical
ANNOTATION_LABELS = ("_lead", "_lost", "_slope")  # labels of lines that are not histories
DIVERGED_GID = "lost"  # the id of the curve of a run that diverged
SLOPE = "slope"  # a column of runs: the factor of the excess at each iteration
EXCESS_ROUNDING = 1e-14  # of the start's cost: a smaller excess is rounding error
BEST_CURVATURES = names.CURVATURES_BEST.key
START_CURVATURES, EXCESS_SHARES = "layer_curvature", "layer_share"
TRAIN_COST = names.TRAIN_COST.key
STEP_SIZE, STEP_TAG = names.STEP_SIZE.column, names.STEP_TAG.column
GRIDLESS = names.GRIDLESS.column
CLOSER_SCHEMES = names.setting("study.closer")


class View(NamedTuple):
    """How histories are shown.

    Attributes:
        scale: `linear` or `log`; `excess` if the costs are excess and the runs have slopes; None
            chooses by the range.
        by: the horizontal axis, a key of `HISTORY_AXES`.
        all_diverged: whether all runs diverged, so that costs are in decades.
        in_percent: whether misclassified points are in percent.
    """

    scale: str | None
    by: str
    all_diverged: bool
    in_percent: bool


def draw(
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    *,
    first: int = 0,
    scale: str | None = None,
    shape: Shape = SCREEN,
    by: str = "iterations",
) -> Figure:
    """Return the figure: one curve for each run, with dashed test histories and quartile bands.

    Misclassified points of training and test sets, which differ in size, are shown in percent.

    Args:
        histories: one row for each run and record (`run_id`, `iteration`, `train/cost` ...).
        runs: one row for each curve (`run_id`, `label`, `normalizer`, `tags.step_size`,
            `verdict`, optionally the columns of `with_job_columns`).
        title: the title of the figure.
        first: the first iteration.
        scale: see `View`; for `excess`, the histories are from `excess_histories`.
        shape: the format of the figure.
        by: the horizontal axis, a key of `HISTORY_AXES`; for `seconds`, the runs have the seconds
            of the fit and of an iteration. With a batch, iterations are passes.
    """
    histories = place_across(histories, runs, by, first)
    # Training and test misclassifications share an axis where the numbers of points are known.
    counts_known = all(column in runs and runs[column].notna().all() for column in POINT_COUNTS)
    in_percent = counts_known and _has_metric(histories, names.TEST_MISCLASSIFICATIONS)
    if in_percent:
        histories = to_percent(histories, runs)
    all_diverged = bool(len(runs)) and bool((runs["verdict"] == names.DIVERGED).all())
    if all_diverged:  # matplotlib draws no axis of 300 decades
        histories, scale = to_decades(histories), "linear"
    view = View(scale, by, all_diverged, in_percent)
    drawn_panels = [panel for panel in HISTORY_PAIRS if _has_metric(histories, panel[0])]
    # Long labels beside side-by-side panels leave too little width for curves.
    is_stacked = (
        shape.width < 8
        or len(runs) > MAX_ADJACENT_CURVES
        or max(map(len, runs["label"]), default=0) > LONG_LABEL
        or all_diverged
    )
    columns = 1 if is_stacked else max(len(drawn_panels), 1)
    label_lines = LABEL_LINE * len(runs) + LINES_AROUND_PANEL  # the labels fit beside the panel
    height = max(0.62 * max(shape.width / 2, 3.3), label_lines * shape.font / 72)
    is_of_passes = by == "iterations" and passes.unit(runs) is passes.PASS_UNIT
    across_label = HISTORY_AXES["passes" if is_of_passes else by]
    with style.figure_style(shape):
        ratio = height / (shape.width / columns)
        figure, axes = style.panels(max(len(drawn_panels), 1), shape, title, ratio, columns)
        if not drawn_panels:
            style.write_on_empty_panel(axes[0], f"no run has a history from iteration {first} on")
        for axis, panel in zip(axes, drawn_panels):
            ends = _draw_panel(axis, histories, runs, panel, view)
            end_labels(axis, ends, shape, height, has_markers=False)
            is_linear = axis.get_xscale() == "linear"
            axis.set_xlabel(across_label if is_linear else f"{across_label}, logarithmic")
            axis.set_ylabel(_vertical_label(panel[0], view))
        notes = _notes(histories, runs, scale)
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def _vertical_label(metric: names.Metric, view: View) -> str:
    """Return the label of the vertical axis of the panel of a metric of the training points."""
    if metric == names.TRAIN_MISCLASSIFICATIONS:
        return RATE_LABEL if view.in_percent else metric.heading
    if view.scale == EXCESS_SCALE:
        return EXCESS_LABEL
    return DECADES_LABEL if view.all_diverged else metric.heading


def _draw_panel(
    axis: Any, histories: pd.DataFrame, runs: pd.DataFrame, panel: Panel, view: View
) -> list[End]:
    """Draw the curves of one panel; set its scales, limits and ticks; return the curves' ends.

    Args:
        axis: the panel.
        histories: the histories, with the column `ACROSS`.
        runs: as for `draw`.
        panel: the metric of the training points, and that of the test points.
        view: how histories are shown.
    """
    metric, is_cost = panel[0], panel[0] == names.TRAIN_COST
    by_run = dict(list(histories.groupby("run_id")))
    curve_ends = []
    labels = dict(zip(runs["run_id"], runs["label"]))
    groups = equal_runs(histories, runs)  # of curves that coincide
    for run, look in zip(as_rows(runs), style.looks(list(runs["normalizer"]))):
        rows = by_run.get(run["run_id"])
        if rows is None or rows[metric.key].isna().all():  # nothing to draw
            continue
        _draw_curve(axis, rows, panel, look)
        curve_label = material.step_text(run)
        axis.lines[-1].set_label(f"{run['label']}{curve_label}")
        last = rows.loc[rows[metric.key].last_valid_index()]
        if run["verdict"] == names.DIVERGED:
            curve_label += _divergence_text(last, run)
            if view.all_diverged and is_cost:
                curve_label += f", {last[metric.key]:.0f} decades up"
            axis.lines[-1].set_gid(DIVERGED_GID)
            mark: Any = {"marker": style.VERDICT_LOOKS[names.DIVERGED][1], "ls": "", "zorder": 4}
            mark |= {"color": style.text_color(look.color), "label": "_lost"}
            axis.plot(last[ACROSS], last[metric.key], **mark)
        elif is_cost and view.scale == EXCESS_SCALE:
            _draw_slope(axis, rows, run, look)
        run_ids = next((group for group in groups if run["run_id"] in group), [run["run_id"]])
        # Curves that coincide have one label, at the first of them, with the names of all.
        if run["run_id"] == run_ids[0]:
            equal_names = style.join_names([labels[run_id] for run_id in run_ids])
            curve_ends.append(End(f"{equal_names}{curve_label}", float(last[metric.key]), look))
    last_across = style.limit_to_iterations(axis, axis.lines)
    # Seconds are no integers, and their axis begins at 0, before the fit of the scheme.
    if view.by != "seconds":
        _set_iteration_ticks(axis, last_across)
    else:
        axis.set_xlim(0, last_across)
        axis.xaxis.set_major_locator(MaxNLocator(4))
    # The ends of curves that end before are marked, and hairlines lead to their labels.
    for line in _whole_curves(axis):
        x, y = (np.asarray(data, dtype=float) for data in line.get_data())
        if len(x) and x[-1] < last_across:
            leader: Any = {"color": line.get_color(), "lw": 0.5, "alpha": 0.5, "label": "_lead"}
            ends = [x[-1], last_across]
            axis.plot(ends, [y[-1]] * 2, marker="o", ms=4, markevery=[0], **leader)
    _set_vertical_scale(axis, [end.value for end in curve_ends], is_cost, view.scale)
    return curve_ends


def _whole_curves(axis: Any) -> list[Any]:
    """Return the training histories of a panel, without those of runs that diverged."""
    return [
        line for line in axis.lines if line.get_label()[0] != "_" and line.get_gid() != DIVERGED_GID
    ]


def _draw_curve(axis: Any, rows: pd.DataFrame, panel: Panel, look: Look) -> None:
    """Draw one run: a band of quartiles, a dashed test history, a solid training history.

    The training history is drawn last, so that it is the last of the panel's lines.
    """
    across, curve_style = rows[ACROSS], style.unmarked_curve(look)
    train, test = panel
    if _has_metric(rows, test):
        test_style = curve_style | {"ls": (0, (4, 3)), "alpha": 0.55, "label": "_test"}
        axis.plot(across, rows[test.key], **test_style)
    _, low, high = with_quartiles(train)
    # Quartiles are recorded over several starts, or computed over several splits.
    if low in rows:
        axis.fill_between(across, rows[low], rows[high], color=look.color, alpha=0.2, lw=0)
    axis.plot(across, rows[train.key], **curve_style)


def _divergence_text(last: "pd.Series[Any]", run: Mapping[Any, Any]) -> str:
    """Return the text that a run diverged, and if it overflowed, at which iteration or pass.

    Args:
        last: the last record of the run's history whose value is not NaN.
        run: the row of the run, with the reason of its verdict.
    """
    if "stopped being finite" not in str(run.get(names.REASON.column)):
        return " diverged"
    # The iteration after the last value, or of a batch the fraction of a pass.
    stop = (int(last["iteration"]) + 1) / passes.records_per_pass(run)
    return f" diverged at {passes.count_text(stop)}"


def _draw_slope(axis: Any, rows: pd.DataFrame, run: Mapping[Any, Any], look: Look) -> None:
    """Draw the slope that theory predicts beside the second half of a curve, if it predicts one."""
    cost, factor = rows[TRAIN_COST].to_numpy(dtype=float), run.get(SLOPE, float("nan"))
    finite_indices = np.flatnonzero(np.isfinite(cost))
    # A slope is drawn between two values; theory predicts none if it is NaN or no decrease.
    if len(finite_indices) < 2 or not 0 < factor < 1:
        return
    last_index = finite_indices[-1]
    ends = rows.iloc[[last_index - max(1, last_index // 2), last_index]]
    iterations = ends["iteration"].to_numpy(dtype=float)
    # The line runs through the last value times 1.6, so that it does not cover the curve.
    slope_costs = 1.6 * cost[last_index] * factor ** (iterations - iterations[-1])
    slope_style: Any = {"color": style.text_color(look.color), "ls": (0, (1, 1)), "zorder": 3}
    axis.plot(ends[ACROSS], slope_costs, label="_slope", **slope_style)


def _set_iteration_ticks(axis: Any, last_iteration: float) -> None:
    """Set the ticks of the iterations; the axis is logarithmic if a short curve looks vertical.

    Runs that diverged are short, too, but do not count: they have a mark.
    """
    ends = [line.get_xdata().max() for line in _whole_curves(axis)]
    # The usual case: even the shortest curve is wide enough.
    if last_iteration <= INVISIBLE_RATIO * min(ends, default=last_iteration):
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return
    axis.set_xscale("symlog", linthresh=1, linscale=0.5)
    axis.xaxis.set_major_locator(FixedLocator([0, *(10**power for power in range(7))]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter("{x:.0f}")


def _set_vertical_scale(
    axis: Any, end_values: list[float], is_cost: bool, scale: str | None
) -> None:
    """Choose the vertical scale and limits, so that no curve makes the others unreadable.

    Args:
        axis: the panel, with its curves.
        end_values: the last value of each curve.
        is_cost: whether the panel shows the cost, and not the misclassified points.
        scale: see `View`.
    """
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axis.lines])
    values = values[np.isfinite(values)]
    curves = [line.get_ydata() for line in axis.lines if line.get_label() not in ANNOTATION_LABELS]
    # The reference for steep curves: the highest first value of a training or test history.
    highest_start = max(float(heights[0]) for heights in curves if len(heights))
    if is_cost:
        # Of more than one decade; a cost of 0 has no place on a log axis.
        spans_decades = values.min() > 0 and values.max() > 10 * values.min()
        if scale in ("log", EXCESS_SCALE) or (scale is None and spans_decades):
            # A run that rises steeply leaves the panel, so that the others stay readable. Set the
            # limits before the scale, because margins of 300 decades overflow.
            if values.max() > 1e3 * highest_start > 0:
                axis.set_ylim(values[values > 0].min() / 2, 1e3 * highest_start)
            axis.set_yscale("log", nonpositive="mask")
            ticks.set_log_ticks(axis.yaxis)
        elif values.max() > 3 * highest_start > 0:  # a linear axis that a steep curve would fill
            # Set both limits: the default lower margin would depend on the curve that leaves.
            low, high = min(float(values.min()), highest_start), 1.5 * highest_start
            axis.set_ylim(low - 0.05 * (high - low), high)
        return
    # Misclassified points have no excess scale: there, the range decides.
    # One curve ends far above the median, or the starts lie far above all ends.
    highest_end, median_end = max(end_values), max(float(np.median(end_values)), 1.0)
    is_squashed = highest_end > SQUASHING_RATIO * median_end or values.max() > 10 * highest_end
    if scale == "log" or (scale in (None, EXCESS_SCALE) and is_squashed):
        axis.set_yscale("symlog", linthresh=1, linscale=0.5)
        axis.set_ylim(bottom=0)
        ticks_above_zero = [unit * 10**power for power in range(7) for unit in (1, 2, 5)]
        axis.set_yticks([0, *(tick for tick in ticks_above_zero if tick <= values.max())])
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:.0f}")
    else:
        are_counts = bool((values == np.round(values)).all())  # counts; rates are not
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=are_counts))


def _notes(histories: pd.DataFrame, runs: pd.DataFrame, scale: str | None) -> list[str]:
    """Return the notes that explain the dashed lines, bands and slopes that the figure shows."""
    notes = []
    if any(_has_metric(histories, test) for _, test in HISTORY_PAIRS):
        notes.append("solid: training points, dashed and pale: test points")
    if _has_metric(histories, names.quartile(names.TRAIN_COST, names.QUARTILES[0])):
        notes.append(f"curves: medians, bands: quartiles, over {_repeats_text(runs)}")
    if scale == EXCESS_SCALE:
        if (pd.to_numeric(runs.get(SLOPE), errors="coerce") > 0).any():
            notes.append("dotted: the slope that theory predicts")
        if (runs.get(names.MINIMUM_REACHED.column, pd.Series(dtype=str)) == "false").any():
            notes.append("the least cost is not known: the lowest that was seen stands for it")
    return notes


def _repeats_text(runs: pd.DataFrame) -> str:
    """Return what medians and quartiles are computed over, such as `4 splits` or `3 starts`."""
    repeats = merging.distinct_repeats(runs)
    column = names.setting("starts")
    starts = pd.to_numeric(runs[column], errors="coerce").max() if column in runs else float("nan")
    if not starts > 1:  # also if the number is NaN
        return ", ".join(repeats) or "the starts"
    # The value of a split is the median over its starts.
    prefix = f"{repeats[0]}, each the median of " if repeats else ""
    return f"{prefix}{starts:.0f} starts"


# What is drawn of a sweep.


@material.figure("histories")
def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if there are no histories to draw.

    By seconds, it is None also if no run has recorded seconds.

    Raises:
        ResultsError: A step size in `options.steps` was not tried.
    """
    if options.steps:
        runs = _runs_of_steps(material.steps(sweep, experiment), options.steps)
    else:
        runs = _best_runs(sweep, experiment)
    title = material.title(experiment, material.schemes(sweep, experiment))
    return _draw_runs(sweep, experiment, runs, title, options)


@material.figure("closer")
def make_closer(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of the histories of the normalizers in the setting `study.closer`.

    The histories begin at iteration 1, or later if `options.first` says so: without the start,
    the scale is that of the later costs. The figure is None if there is nothing to draw, as without
    this setting.
    """
    rows = material.schemes(sweep, experiment)
    # The setting is recorded as the text of a list, and is the same for all schemes.
    settings = rows.get(CLOSER_SCHEMES, pd.Series(dtype=str)).dropna()
    normalizers = settings.iloc[0].strip("[]").replace("'", "").split(", ") if len(settings) else []
    first = max(options.first, 1)  # 0 would be the start
    title = f"{material.title(experiment, rows)}, from iteration {first}"
    runs = rows[rows["normalizer"].isin(normalizers)]
    return _draw_runs(sweep, experiment, runs, title, replace(options, first=first))


def _draw_runs(
    sweep: Sweep, experiment: str, runs: pd.DataFrame, title: str, options: material.Options
) -> Figure | None:
    """Return the figure of scheme runs or runs of single step sizes; None without histories."""
    schemes = material.schemes(sweep, experiment)
    if options.scale == EXCESS_SCALE:
        table = excess_histories(sweep, runs)
        runs = with_slopes(sweep, schemes, runs)
    else:
        table = material.histories(sweep, runs)
    if table.empty:
        return None
    runs = with_job_columns(schemes, runs)
    timed_runs = runs.dropna(subset=list(SECONDS_COLUMNS))["run_id"]
    # Without seconds no run has a position on the axis.
    if options.by == "seconds" and not table["run_id"].isin(timed_runs).any():
        return None
    first, scale = options.first, options.scale
    return draw(table, runs, title, first=first, scale=scale, shape=options.shape, by=options.by)


def _runs_of_steps(steps: pd.DataFrame, step_sizes: tuple[float, ...]) -> pd.DataFrame:
    """Return the runs of chosen step sizes.

    Raises:
        ResultsError: A chosen step size was not tried.
    """
    recorded_sizes = steps[STEP_SIZE].astype(float)
    # (runs, chosen step sizes).
    ratios = recorded_sizes.to_numpy()[:, None] / np.array(step_sizes)
    is_chosen = np.abs(ratios - 1) < TAG_TOLERANCE
    if not is_chosen.any(axis=0).all():
        missing_size = step_sizes[int(np.argmin(is_chosen.any(axis=0)))]
        tried_sizes = ", ".join(f"{size:g}" for size in sorted(set(recorded_sizes.dropna())))
        raise ResultsError(f"--steps {missing_size:g}: was not tried; choose of {tried_sizes}")
    return steps[is_chosen.any(axis=1)]


def _best_runs(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return the best run of each scheme.

    A scheme that diverged or has no best step size is represented by the run of its smallest step
    size, or left out if it has no run.
    """
    steps, runs = material.steps(sweep, experiment), material.schemes(sweep, experiment)
    without_best = (runs["verdict"] == names.DIVERGED) | runs[STEP_TAG].isna()
    smallest_steps = []
    for row in as_rows(runs[without_best]):
        smallest_step = steps[steps["parent"] == row["run_id"]].sort_values(STEP_SIZE).head(1)
        # The run of a step size lacks this tag of its scheme, which its label depends on.
        smallest_steps.append(smallest_step.assign(**{GRIDLESS: row.get(GRIDLESS)}))
    drawn_steps = [smallest_step for smallest_step in smallest_steps if len(smallest_step)]
    return pd.concat([runs[~without_best], *drawn_steps])


# Histories are transformed before they are drawn.


def _has_metric(histories: pd.DataFrame, metric: names.Metric) -> bool:
    """Return whether histories have values of a metric."""
    return metric.key in histories and bool(histories[metric.key].notna().any())


def with_quartiles(metric: names.Metric) -> list[str]:
    """Return the columns of a metric and of its quartiles."""
    return [metric.key, *(names.quartile(metric, quartile).key for quartile in names.QUARTILES)]


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
    across = histories["iteration"] if (records == 1).all() else histories["iteration"] / records
    if by == "updates":
        # The updates of whole passes, and those until a record within a pass, rounded down.
        updates = {run["run_id"]: passes.updates_per_pass(run) for run in rows}
        updates_per_pass = histories["run_id"].map(updates)
        whole_passes, record = histories["iteration"].divmod(records)
        across = whole_passes * updates_per_pass + record * updates_per_pass // records
    elif by == "seconds":
        seconds = runs.set_index("run_id")[list(SECONDS_COLUMNS)].astype(float)
        fit_seconds, step_seconds = (histories["run_id"].map(seconds[name]) for name in seconds)
        across = fit_seconds + step_seconds * across
    placed = histories.assign(**{ACROSS: across})
    return placed.dropna(subset=ACROSS, ignore_index=True) if by == "seconds" else placed


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


def to_percent(histories: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories with misclassified points in percent of the training or test points.

    Args:
        histories: one row for each run and record, with counts of misclassified points.
        runs: one row for each run, with the columns `POINT_COUNTS`.
    """
    rates, runs_by_id = histories.copy(), runs.set_index("run_id")
    for metric, count_column in zip(HISTORY_PAIRS[1], POINT_COUNTS):
        point_counts = histories["run_id"].map(runs_by_id[count_column].astype(float))
        # The metric and its quartiles, as far as they are recorded.
        for column in {*with_quartiles(metric)} & {*rates}:
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
    start_costs = histories.groupby("run_id")[TRAIN_COST].transform("first")
    # The logarithm of a cost of 0 is -inf, and becomes NaN below.
    with np.errstate(divide="ignore", invalid="ignore"):
        for column in {names.TEST_COST.key, *with_quartiles(names.TRAIN_COST)} & {*decades}:
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
    if TRAIN_COST not in histories:
        return []
    costs_by_run = {
        run_id: rows.to_numpy() for run_id, rows in histories.groupby("run_id")[TRAIN_COST]
    }
    drawn_runs = [run for run in as_rows(runs) if run["run_id"] in costs_by_run]

    def is_equal(run: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
        costs, other_costs = costs_by_run[run["run_id"]], costs_by_run[other["run_id"]]
        has_step = str(run.get(STEP_TAG)) == str(other.get(STEP_TAG))
        return (
            has_step
            and len(costs) == len(other_costs)
            and np.allclose(other_costs, costs, rtol=EQUALITY_TOLERANCE, atol=0)
        )

    groups = style.group_equal(drawn_runs, is_equal)
    return [[run["run_id"] for run in group] for group in groups if len(group) > 1]


# The excess, and the slopes that theory predicts.


def excess_histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories as `material.histories` does, with training costs as excess.

    Test costs are left out. A least cost that is not known is the lowest cost that was seen on the
    training points. Each split or seed has its own least cost: the excess of a merged run
    is computed for each of its members before these are merged. An excess at the level of rounding
    is NaN.

    Args:
        sweep: the sweep, of which a run may be merged from the runs of several splits or seeds.
        runs: one row for each run.

    Returns:
        One row for each run and iteration; without rows, only the column `iteration`.
    """
    whole_sweep = merging.unmerged(sweep)
    all_runs = whole_sweep.runs.set_index("run_id", drop=False)
    jobs = over_lowest_seen(whole_sweep).set_index("run_id")
    least_costs = jobs.get(names.MINIMUM.column, pd.Series(np.nan, index=jobs.index))
    # The least cost is recorded for a scheme; runs of single step sizes have that of their parent.
    own_least_costs = pd.concat([least_costs, all_runs["parent"].map(least_costs).dropna()])
    tables = [pd.DataFrame(columns=["iteration"])]
    for row in as_rows(runs):
        member_ids = merging.members_of(sweep, row["run_id"])
        table = whole_sweep.histories(all_runs.loc[member_ids], (*HISTORY_KEYS, *QUARTILE_KEYS))
        if len(table):
            table = _subtract_least_cost(table, table["run_id"].map(own_least_costs))
            tables.append(merging.over_members(table, row, len(member_ids)))
    return pd.concat(tables[1:], ignore_index=True) if len(tables) > 1 else tables[0]


def _subtract_least_cost(histories: pd.DataFrame, least_costs: "pd.Series[float]") -> pd.DataFrame:
    """Return histories without test costs, and with training costs and quartiles as excess.

    Args:
        histories: one row for each run and iteration, that of the start first.
        least_costs: for each row the least cost of its run.

    Returns:
        The histories; an excess below `EXCESS_ROUNDING` of the start's cost is NaN.
    """
    columns = [column for column in with_quartiles(names.TRAIN_COST) if column in histories]
    excess = histories[columns].sub(least_costs, axis=0)
    start_costs = histories.groupby("run_id")[TRAIN_COST].transform("first").abs()
    excess = excess.where(excess.gt(EXCESS_ROUNDING * start_costs, axis=0))
    training_histories = histories.drop(columns=with_quartiles(names.TEST_COST), errors="ignore")
    return training_histories.assign(**{column: excess[column] for column in columns})


def with_slopes(sweep: Sweep, schemes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the column `SLOPE`, which theory predicts; NaN where it predicts none.

    The slope of a run is the factor by which each iteration multiplies its excess in the end.
    Plain gradient descent with step size a multiplies the excess along a direction of curvature h
    by `(1 - a h)^2`. For a quadratic cost the slope is that of the direction with most of the
    excess at the last iteration. For other costs, at the best step size, it is that of the slowest
    direction at the last weights; there is none if no weights attain the least cost. Runs merged
    over several splits or seeds have none.

    Args:
        sweep: the sweep that holds the runs.
        schemes: one row for each scheme, with the tags of theory.
        runs: one row for each run (`label`, `tags.step_size`); the label is that of its scheme.
    """
    arrays = sweep.arrays(schemes, names.DESCENT_ARRAYS)
    rows_by_label = {row["label"]: row for row in as_rows(schemes)}
    # `REPEATS` is empty for a run of a single split and seed.
    repeat_flags = runs.get(merging.REPEATS, pd.Series("", index=runs.index)).fillna("") != ""
    slopes = [
        float("nan")
        if is_repeated
        else _slope(run, rows_by_label.get(run["label"], {}), arrays.get(run["label"]))
        for run, is_repeated in zip(as_rows(runs), repeat_flags)
    ]
    return runs.assign(**{SLOPE: slopes})


def _slope(
    run: Mapping[Any, Any], scheme: Mapping[Any, Any], scheme_arrays: Mapping[str, Any] | None
) -> float:
    """Return the slope that theory predicts of one run, see `with_slopes`; NaN if it predicts none.

    Args:
        run: the row of the run.
        scheme: the row of its scheme.
        scheme_arrays: the recorded arrays of the scheme's descent, None if there are none.
    """
    step_size = number_in(run, STEP_TAG)
    is_plain = scheme.get(names.PLAIN.column) != "false"
    # The formula needs curvatures, a step size, and plain gradient descent.
    if scheme_arrays is None or np.isnan(step_size) or not is_plain:
        return float("nan")
    # Exact: the curvature is the same everywhere, as of a quadratic cost.
    is_quadratic = str(scheme.get(names.BASIS.column, "")).startswith(names.EXACT)
    if is_quadratic and START_CURVATURES in scheme_arrays:
        return _quadratic_slope(scheme_arrays, step_size, int(scheme[names.setting("iterations")]))
    has_minimum = scheme.get(names.MINIMUM_CASE.column) == names.ATTAINED
    # The curvatures at the last weights are those of the run that represents the scheme.
    is_shown_step = scheme.get(STEP_TAG) == run.get(STEP_TAG)
    if has_minimum and is_shown_step and len(scheme_arrays.get(BEST_CURVATURES, ())):
        return float(np.abs(1 - step_size * scheme_arrays[BEST_CURVATURES]).max() ** 2)
    return float("nan")


def _quadratic_slope(scheme_arrays: Mapping[str, Any], step_size: float, iterations: int) -> float:
    """Return the slope of the direction with the most excess at the last iteration.

    If all excess falls to the level of rounding earlier, the slope is that at the iteration where
    it does. It is NaN if the step size does not shrink the excess along every direction.

    Args:
        scheme_arrays: the curvatures `layer_curvature` (n,) and the excess `layer_share` (n,)
            along each direction at the start.
        step_size: the step size.
        iterations: the number of iterations.
    """
    factors = np.abs(1 - step_size * scheme_arrays[START_CURVATURES])
    if factors.max() >= 1:  # the descent does not converge
        return float("nan")
    # A direction without excess that vanishes in one step is 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_shares = np.log(scheme_arrays[EXCESS_SHARES] / np.sum(scheme_arrays[EXCESS_SHARES]))
        log_decay = -2 * np.log(factors)
        # At most the iteration at which the last direction reaches the level of rounding; one
        # without excess never was above it.
        rounding_iterations = (log_shares - np.log(EXCESS_ROUNDING)) / log_decay
        last_iteration = min(iterations, float(np.fmax.reduce(rounding_iterations)))
        # The excess of each direction there; none after the first step if its factor is 0.
        log_excess = log_shares - np.where(log_decay < np.inf, last_iteration * log_decay, np.inf)
    return float(factors[np.argmax(log_excess)] ** 2)
