"""Cost histories, and misclassification histories beside or below them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.merging import distinct_repeats
from normbench.results.figures import excess, transforms
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import (
    LABEL_LINE,
    LINES_AROUND_PANEL,
    End,
    end_labels,
)
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

RATE_LABEL = "misclassified points, percent"
SQUASHING_RATIO = 8.0  # a curve that ends this factor above the median squashes the others
Panel = tuple[names.Metric, ...]
STEP_SIZE = names.STEP_SIZE.column
GRIDLESS = names.GRIDLESS.column
TAG_TOLERANCE = 1e-5  # relative: step sizes in tables have six digits
MAX_ADJACENT_CURVES = 6  # with more curves, the panels are stacked
LONG_LABEL = 24  # letters: with longer labels of schemes, the panels are stacked
DECADES_LABEL = "cost, decades above its start"
EXCESS_SCALE = "excess"  # a value of the option `scale`
ANNOTATION_LABELS = ("_lead", "_lost", "_slope")  # labels of lines that are not histories
INVISIBLE_RATIO = 20  # a curve with this factor fewer iterations than another looks vertical
DIVERGED_GID = "lost"  # the id of the curve of a run that diverged


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
            `verdict`, optionally the columns of `transforms.with_job_columns`).
        title: the title of the figure.
        first: the first iteration.
        scale: `linear` or `log`; `excess` if the costs are excess, from `excess.histories`, and
            the runs have slopes; None chooses by the range.
        shape: the format of the figure.
        by: the horizontal axis, a key of `transforms.HISTORY_AXES`; for `seconds`, the runs have
            the seconds of the fit and of an iteration. With a batch, iterations are passes.
    """
    drawn_histories = transforms.place_across(histories, runs, by, first)
    is_of_passes = by == "iterations" and passes.unit(runs) is passes.PASS_UNIT
    axis_name = "passes" if is_of_passes else by
    in_percent = transforms.shares_an_axis(drawn_histories, runs)
    if in_percent:
        drawn_histories = transforms.to_percent(drawn_histories, runs)
    all_diverged = bool(len(runs)) and bool((runs["verdict"] == names.DIVERGED).all())
    if all_diverged:  # matplotlib draws no axis of 300 decades
        drawn_histories, scale = transforms.to_decades(drawn_histories), "linear"
    drawn_panels = [
        panel
        for panel in transforms.HISTORY_PAIRS  # the cost, and the misclassified points
        if transforms.has_metric(drawn_histories, panel[0])
    ]
    longest_label = max(map(len, runs["label"]), default=0)
    # Long labels beside side-by-side panels leave too little width for curves.
    is_stacked = (
        shape.width < 8
        or len(runs) > MAX_ADJACENT_CURVES
        or longest_label > LONG_LABEL
        or all_diverged
    )
    columns = 1 if is_stacked else max(len(drawn_panels), 1)
    label_lines = LABEL_LINE * len(runs) + LINES_AROUND_PANEL  # the labels fit beside the panel
    height = max(0.62 * max(shape.width / 2, 3.3), label_lines * shape.font / 72)
    with style.figure_style(shape):
        ratio = height / (shape.width / columns)
        figure, axes = style.panels(max(len(drawn_panels), 1), shape, title, ratio, columns)
        if not drawn_panels:
            style.write_on_empty_panel(axes[0], f"no run has a history from iteration {first} on")
        for axis, panel in zip(axes, drawn_panels):
            _draw_panel(axis, drawn_histories, runs, panel, scale, shape, height, all_diverged, by)
            is_linear = axis.get_xscale() == "linear"
            axis_label = transforms.HISTORY_AXES[axis_name]
            axis.set_xlabel(axis_label if is_linear else f"{axis_label}, logarithmic")
            axis.set_ylabel(_vertical_label(panel[0], scale, in_percent, all_diverged))
        notes = _notes(drawn_histories, runs, scale)
        if notes:
            style.add_note(figure, shape, notes)
    return figure


def _vertical_label(
    metric: names.Metric, scale: str | None, in_percent: bool, all_diverged: bool
) -> str:
    """Return the label of the vertical axis of a panel.

    Args:
        metric: the metric of the training points.
        scale: as for `draw`.
        in_percent: whether misclassified points are in percent.
        all_diverged: whether all runs diverged, so that costs are in decades.
    """
    if metric == names.TRAIN_MISCLASSIFICATIONS:
        return RATE_LABEL if in_percent else metric.heading
    if scale == EXCESS_SCALE:
        return excess.EXCESS_LABEL
    return DECADES_LABEL if all_diverged else metric.heading


def _draw_panel(
    axis: Any,
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    panel: Panel,
    scale: str | None,
    shape: Shape,
    height: float,
    all_diverged: bool,
    by: str,
) -> None:
    """Draw the curves of one panel with their labels; set its scales, limits and ticks.

    Args:
        axis: the panel.
        histories: the histories, with the column `ACROSS`; costs are in decades if all runs
            diverged.
        runs: as for `draw`.
        panel: the metric of the training points, and that of the test points.
        scale: as for `draw`.
        shape: the format of the figure.
        height: inches of the panel with its title, labels and ticks.
        all_diverged: whether all runs diverged, so that costs are in decades.
        by: as for `draw`.
    """
    by_run = dict(list(histories.groupby("run_id")))
    curve_ends = []
    looks = style.looks(list(runs["normalizer"]))
    labels = dict(zip(runs["run_id"], runs["label"]))
    groups = transforms.equal_runs(histories, runs)  # of curves that coincide
    for run, look in zip(as_rows(runs), looks):
        run_rows = by_run.get(run["run_id"])
        if run_rows is None or run_rows[panel[0].key].isna().all():  # nothing to draw
            continue
        _draw_curve(axis, run_rows, panel, look)
        curve_label = f"{run['label']}{material.step_text(run)}"
        axis.lines[-1].set_label(curve_label)  # the training history, which is drawn last
        metric_values = run_rows[panel[0].key].dropna()
        if run["verdict"] == names.DIVERGED:
            curve_label += _divergence_text(
                run_rows, run, panel[0], all_diverged and panel[0] == names.TRAIN_COST
            )
            _mark_divergence(axis, run_rows, panel[0], look)
        elif panel[0] == names.TRAIN_COST and scale == EXCESS_SCALE:
            _draw_slope(axis, run_rows, run, look)
        run_ids = next((group for group in groups if run["run_id"] in group), [run["run_id"]])
        # Curves that coincide have one label, at the first of them, with the names of all.
        if run["run_id"] == run_ids[0]:
            equal_names = style.join_names([labels[run_id] for run_id in run_ids])
            curve_label = f"{equal_names}{curve_label.removeprefix(run['label'])}"
            curve_ends.append(End(curve_label, float(metric_values.iloc[-1]), look))
    last = style.limit_to_iterations(axis, axis.lines)
    # Seconds are no integers, and their axis begins at 0, before the fit of the scheme.
    if by != "seconds":
        _set_iteration_ticks(axis, last)
    else:
        axis.set_xlim(0, last)
        axis.xaxis.set_major_locator(MaxNLocator(4))
    _lead_to_labels(axis, last)
    _set_scale(axis, [curve_end.value for curve_end in curve_ends], panel[0], scale)
    end_labels(axis, curve_ends, shape, height, has_markers=False)


def _divergence_text(
    rows: pd.DataFrame, run: Mapping[Any, Any], metric: names.Metric, in_decades: bool
) -> str:
    """Return the text that a run diverged, and if it overflowed, at which iteration or pass.

    Args:
        rows: the history of the run.
        run: the row of the run, with the reason of its verdict.
        metric: the metric of the panel; the run diverged after its last value that is not NaN.
        in_decades: whether the values are decades above the first cost; the text then tells how
            many the cost rose.
    """
    costs = rows[metric.key].dropna()
    # The iteration after the last value, or of a batch the fraction of a pass.
    stop = (int(rows.loc[costs.index[-1], "iteration"]) + 1) / passes.records_per_pass(run)
    overflowed = "stopped being finite" in str(run.get(names.REASON.column))
    text = f" diverged at {passes.count_text(stop)}" if overflowed else " diverged"
    return f"{text}, {costs.iloc[-1]:.0f} decades up" if in_decades else text


def _mark_divergence(axis: Any, rows: pd.DataFrame, metric: names.Metric, look: Look) -> None:
    """Mark the last finite iteration of a run that diverged, whose curve was drawn last.

    The curve gets the id `DIVERGED_GID`: `_set_iteration_ticks` and `_lead_to_labels` leave out
    curves with this id.

    Args:
        axis: the panel.
        rows: the history of the run, with the column `ACROSS`.
        metric: the metric of the panel.
        look: the look of the run's scheme.
    """
    axis.lines[-1].set_gid(DIVERGED_GID)
    last_index = rows[metric.key].dropna().index[-1]
    position = rows.loc[last_index, transforms.ACROSS], rows.loc[last_index, metric.key]
    color, marker = style.text_color(look.color), style.VERDICT_LOOKS[names.DIVERGED][1]
    axis.plot(*position, marker=marker, color=color, ls="", label="_lost", zorder=4)


def _draw_slope(axis: Any, rows: pd.DataFrame, run: Mapping[Any, Any], look: Look) -> None:
    """Draw the slope that theory predicts beside the second half of a curve, if it predicts one.

    Args:
        axis: the panel of the cost, on the scale `excess`.
        rows: the history of the run.
        run: the row of the run; `excess.SLOPE` is the factor of the excess at each iteration.
        look: the look of the run's scheme.
    """
    cost = rows[names.TRAIN_COST.key].to_numpy(dtype=float)
    iterations, factor = rows["iteration"].to_numpy(), run.get(excess.SLOPE, float("nan"))
    finite_indices = np.flatnonzero(np.isfinite(cost))
    # A slope is drawn between two values; theory predicts none if it is NaN or no decrease.
    if len(finite_indices) < 2 or not 0 < factor < 1:
        return
    last_index = finite_indices[-1]
    line_ends = [last_index - max(1, last_index // 2), last_index]  # indices of records
    end_iterations = iterations[line_ends]
    # The line runs through the last value times 1.6, so that it does not cover the curve.
    slope_costs = (
        1.6 * cost[last_index] * factor ** (end_iterations - end_iterations[-1]).astype(float)
    )
    across = rows[transforms.ACROSS].to_numpy()
    axis.plot(
        across[line_ends],
        slope_costs,
        color=style.text_color(look.color),
        ls=(0, (1, 1)),
        label="_slope",
        zorder=3,
    )


def _set_iteration_ticks(axis: Any, last_iteration: float) -> None:
    """Set the ticks of the iterations; the axis is logarithmic if a short curve looks vertical.

    Runs that diverged are short, too, but do not count: they have a mark.

    Args:
        axis: the panel, with its curves.
        last_iteration: the upper limit of the horizontal axis.
    """
    # Labels of lines that are no training histories begin with `_`.
    finite_curves = [
        line for line in axis.lines if line.get_label()[0] != "_" and line.get_gid() != DIVERGED_GID
    ]
    # The usual case: even the shortest curve is wide enough.
    if last_iteration <= INVISIBLE_RATIO * min(
        (line.get_xdata().max() for line in finite_curves), default=last_iteration
    ):
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return
    axis.set_xscale("symlog", linthresh=1, linscale=0.5)
    axis.xaxis.set_major_locator(FixedLocator([0, *(10**power for power in range(7))]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter("{x:.0f}")


def _lead_to_labels(axis: Any, last_iteration: float) -> None:
    """Mark the ends of curves that end before the last iteration; draw a hairline to their labels.

    Curves of runs that diverged are left out: they have a mark of their own.

    Args:
        axis: the panel, with its curves.
        last_iteration: the upper limit of the horizontal axis, where the labels stand.
    """
    for line in list(axis.lines):
        x, y = (np.asarray(data, dtype=float) for data in line.get_data())
        is_curve = line.get_label()[0] != "_" and line.get_gid() != DIVERGED_GID
        # Curves up to the last iteration end beside their labels.
        if is_curve and len(x) and x[-1] < last_iteration:
            ends, heights = [x[-1], last_iteration], [y[-1]] * 2
            leader = {"color": line.get_color(), "lw": 0.5, "alpha": 0.5}
            axis.plot(ends, heights, **leader, marker="o", ms=4, markevery=[0], label="_lead")


def _draw_curve(axis: Any, rows: pd.DataFrame, panel: Panel, look: Look) -> None:
    """Draw one run: a band of quartiles, a dashed test history, a solid training history.

    The training history is drawn last, so that it is the last of the panel's lines.

    Args:
        axis: the panel.
        rows: the history of the run, with the column `ACROSS`.
        panel: the metric of the training points, and that of the test points.
        look: the look of the run's scheme.
    """
    across = rows[transforms.ACROSS]
    train, test = panel
    curve_style = style.unmarked_curve(look)
    if transforms.has_metric(rows, test):
        test_style = {"ls": (0, (4, 3)), "alpha": 0.55}
        axis.plot(across, rows[test.key], label="_test", **curve_style | test_style)
    low, high = (names.quartile(train, quartile).key for quartile in names.QUARTILES)
    # Quartiles are recorded over several starts, or computed over several splits.
    if low in rows:
        axis.fill_between(across, rows[low], rows[high], color=look.color, alpha=0.2, lw=0)
    axis.plot(across, rows[train.key], **curve_style)


def _set_scale(axis: Any, end_values: list[float], metric: names.Metric, scale: str | None) -> None:
    """Choose the vertical scale and limits, so that no curve makes the others unreadable.

    Args:
        axis: the panel, with its curves.
        end_values: the last value of each curve.
        metric: the metric of the panel, the cost or the misclassified points.
        scale: as for `draw`.
    """
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axis.lines])
    values = values[np.isfinite(values)]
    curves = [line.get_ydata() for line in axis.lines if line.get_label() not in ANNOTATION_LABELS]
    # The reference for steep curves: the highest first value of a training or test history.
    highest_start = max(float(heights[0]) for heights in curves if len(heights))
    if metric == names.TRAIN_COST:
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
    is_squashed = max(end_values) > SQUASHING_RATIO * max(float(np.median(end_values)), 1.0) or max(
        values
    ) > 10 * max(end_values)
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


def _notes(histories: pd.DataFrame, runs: pd.DataFrame, scale: str | None) -> str:
    """Return the notes that explain dashed lines, bands and slopes, as lines in one text.

    Each note is left out if the figure does not show what it explains; the text may be empty.

    Args:
        histories: the drawn histories.
        runs: as for `draw`.
        scale: as for `draw`.
    """
    notes = []
    if transforms.has_metric(histories, names.TEST_COST) or transforms.has_metric(
        histories, names.TEST_MISCLASSIFICATIONS
    ):
        notes.append("solid: training points, dashed and pale: test points")
    if transforms.has_metric(histories, names.quartile(names.TRAIN_COST, names.QUARTILES[0])):
        notes.append(f"curves: medians, bands: quartiles, over {_repeats_text(runs)}")
    if scale == EXCESS_SCALE:
        notes += _excess_notes(runs)
    return "\n".join(notes)


def _repeats_text(runs: pd.DataFrame) -> str:
    """Return what medians and quartiles are computed over, such as `4 splits` or `3 starts`."""
    repeats = distinct_repeats(runs)
    column = names.setting("starts")
    starts = pd.to_numeric(runs[column], errors="coerce").max() if column in runs else float("nan")
    if not starts > 1:  # also if the number is NaN
        return ", ".join(repeats) or "the starts"
    # The value of a split is the median over its starts.
    prefix = f"{repeats[0]}, each the median of " if repeats else ""
    return f"{prefix}{starts:.0f} starts"


def _excess_notes(runs: pd.DataFrame) -> list[str]:
    """Return the notes on dotted slopes, and on a least cost that is not known."""
    notes = []
    if (pd.to_numeric(runs.get(excess.SLOPE), errors="coerce") > 0).any():
        notes.append("dotted: the slope that theory predicts")
    minimum_reached = runs.get(names.MINIMUM_REACHED.column, pd.Series(dtype=str)).dropna()
    if (minimum_reached == "false").any():
        notes.append("the least cost is not known: the lowest that was seen stands for it")
    return notes


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if there are no histories to draw.

    By seconds, it is None also if no run has recorded seconds.

    Raises:
        ResultsError: A step size in `options.steps` was not tried.
    """
    runs = _select_runs(sweep, experiment, options.steps)
    figure_title = material.title(experiment, material.schemes(sweep, experiment))
    return draw_runs(sweep, experiment, runs, figure_title, options)


def draw_runs(
    sweep: Sweep, experiment: str, runs: pd.DataFrame, title: str, options: material.Options
) -> Figure | None:
    """Return the figure of runs of an experiment; with the scale `excess`, it has slopes.

    The figure is None if there are no histories, or by seconds, if no run has recorded seconds.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        runs: one row for each curve: scheme runs, or runs of single step sizes.
        title: the title of the figure.
        options: the options of drawing.
    """
    if options.scale == EXCESS_SCALE:
        table = excess.histories(sweep, runs)
        runs = excess.with_slopes(sweep, material.schemes(sweep, experiment), runs)
    else:
        table = material.histories(sweep, runs)
    if table.empty:
        return None
    runs = transforms.with_job_columns(material.schemes(sweep, experiment), runs)
    timed_runs = runs.dropna(subset=list(transforms.SECONDS_COLUMNS))["run_id"]
    # Without seconds no run has a position on the axis.
    if options.by == "seconds" and not table["run_id"].isin(timed_runs).any():
        return None
    first, scale = options.first, options.scale
    return draw(table, runs, title, first=first, scale=scale, shape=options.shape, by=options.by)


def _select_runs(sweep: Sweep, experiment: str, step_sizes: tuple[float, ...]) -> pd.DataFrame:
    """Return the runs to draw: the best run of each scheme, or the runs of chosen step sizes.

    A scheme that diverged or has no best step size is represented by the run of its smallest step
    size, or left out if it has no run.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        step_sizes: the chosen step sizes; if empty, the best run of each scheme is returned.

    Raises:
        ResultsError: A chosen step size was not tried.
    """
    all_steps = material.steps(sweep, experiment)
    if step_sizes:
        recorded_sizes = all_steps[STEP_SIZE].astype(float)
        missing_sizes = [
            step_size
            for step_size in step_sizes
            if not (abs(recorded_sizes / step_size - 1) < TAG_TOLERANCE).any()
        ]
        if missing_sizes:
            tried_sizes = ", ".join(
                f"{step_size:g}" for step_size in sorted(set(recorded_sizes.dropna()))
            )
            raise ResultsError(
                f"--steps {missing_sizes[0]:g}: was not tried; choose of {tried_sizes}"
            )
        return all_steps[
            [
                any(abs(step_size / chosen_size - 1) < TAG_TOLERANCE for chosen_size in step_sizes)
                for step_size in recorded_sizes
            ]
        ]
    best_runs = material.schemes(sweep, experiment)
    without_best = (best_runs["verdict"] == names.DIVERGED) | best_runs[
        names.STEP_TAG.column
    ].isna()
    smallest_steps = []
    for row in as_rows(best_runs[without_best]):
        scheme_steps = all_steps[all_steps["parent"] == row["run_id"]]
        if len(scheme_steps):
            # The run of a step size lacks this tag of its scheme, which its label depends on.
            smallest_step = scheme_steps.sort_values(STEP_SIZE).head(1)
            smallest_steps.append(smallest_step.assign(**{GRIDLESS: row.get(GRIDLESS)}))
    return pd.concat([best_runs[~without_best], *smallest_steps])
