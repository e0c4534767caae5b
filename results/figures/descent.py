"""What a descent comes to and meets on its way: curvature, landings, layers, the fitted model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.compare import merging, passes
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import (
    ArraysByLabel,
    DrawnScheme,
    step_text,
    with_arrays,
)
from normbench.results.figures.base.panels import Panel, arrays_figure, panel_figure
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

# The sharpness along the path: `step x L / 2` against 1, the edge of stability.

MIN_SHARPNESS = 1e-9  # lower values count as no curvature
FLAT_SHARPNESS = 1e-2  # a run that falls below for a few iterations leaves the panel
SHARPNESS = names.SHARPNESS.key
BAND_NOTE = "bands: the lowest and the highest of three consecutive iterations"


def draw_sharpness(
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    *,
    first: int = 0,
    scale: str | None = None,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: one curve of `step x L / 2` for each scheme, and a line at 1.

    L is the largest eigenvalue of the cost's Hessian at the weights. Below 1 a step of plain
    gradient descent lowers a quadratic cost; above 1 the stiffest direction overshoots.

    The values may alternate between iterations. Each curve is the middle between the lowest and
    the highest of three consecutive iterations, with a band between them.

    Args:
        histories: one row for each run and record (`run_id`, `iteration`, `theory/sharpness`: the
            scheme's step size times L / 2).
        runs: one row for each scheme (`run_id`, `label`, `normalizer`, `tags.step_size`).
        title: the title of the figure.
        first: the first iteration; with batches the first pass, which has several records.
        scale: the vertical scale, `linear` or `log`; None chooses by the range of the values.
        shape: the format of the figure.
    """
    # The panel is high enough for the curves' names beside it, one below the other.
    height = max(0.5 * shape.width, (len(runs) + 2) * 1.25 * shape.font / 72)
    records = {run["run_id"]: passes.records_per_pass(run) for run in as_rows(runs)}
    # With batches, the column `iteration` counts records, several in a pass.
    is_drawn = histories["iteration"] >= first * histories["run_id"].map(records)
    drawn_histories = histories[is_drawn & histories[SHARPNESS].notna()]
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        if drawn_histories.empty:
            style.write_on_empty_panel(axis, "no scheme has a recorded sharpness")
            return figure
        by_run = dict(list(drawn_histories.groupby("run_id")))
        curve_ends = []
        for run, look in zip(as_rows(runs), style.looks(list(runs["normalizer"]))):
            rows = by_run.get(run["run_id"])
            if rows is None:  # a run without recorded sharpness
                continue
            curve_label = f"{run['label']}{step_text(run)}"
            low, high = bands(rows["iteration"], rows[SHARPNESS])
            axis.fill_between(rows["iteration"], low, high, color=look.color, alpha=0.2, lw=0)
            middle, curve_style = (low + high) / 2, style.marked_curve(look, len(rows))
            axis.plot(rows["iteration"], middle, label=curve_label, **curve_style)
            curve_ends.append(End(curve_label, float(middle[-1]), look))
        _set_sharpness_axes(axis, scale)
        axis.set_xlabel(material.iteration_label(runs))
        # A band whose vertices all have the same height cannot be seen.
        if any(np.diff(band.get_paths()[0].vertices[:, 1]).any() for band in axis.collections):
            style.add_note(figure, shape, BAND_NOTE)
        end_labels(axis, curve_ends, shape, height)
    return figure


def bands(iteration: Any, values: Any) -> tuple[Any, Any]:
    """Return the minimum and the maximum over each iteration and its neighbours, each `(k,)`.

    Neighbours are the iterations directly before and after; those not recorded are left out.

    Args:
        iteration: `(k,)`, the recorded iterations.
        values: `(k,)`, their values.
    """
    recorded = pd.Series(np.asarray(values, dtype=float), index=np.asarray(iteration, dtype=int))
    # Rows: the values at each iteration, the one before and the one after; NaN if not recorded.
    neighbours = [recorded.reindex(recorded.index + offset).to_numpy() for offset in (0, -1, 1)]
    return np.nanmin(neighbours, axis=0), np.nanmax(neighbours, axis=0)


def _set_sharpness_axes(axis: Any, scale: str | None) -> None:
    """Set the scale, limits and labels of the axes; draw the edge of stability, the line at 1.

    Args:
        axis: the panel, with all curves drawn and nothing else.
        scale: the vertical scale, `linear` or `log`; None chooses `log` if the positive values and
            1 span more than a factor of 20.
    """
    curves = [np.asarray(line.get_ydata(), dtype=float) for line in axis.lines]
    values = np.concatenate(curves)
    # Far from the minimum, where the cost is linear, the sharpness is 0: a log axis cannot show it.
    positive_values = values[values > MIN_SHARPNESS]
    lowest, highest = positive_values.min(initial=np.inf), positive_values.max(initial=0.0)
    is_log = scale == "log" or (scale is None and max(highest, 1) > 20 * min(lowest, 1))
    if is_log:
        if len(positive_values):
            # Show the usual sharpness of each run, not the flat regions far from the minimum.
            usual = min(FLAT_SHARPNESS, *(float(np.median(curve)) for curve in curves))
            axis.set_ylim(max(lowest, usual) / 2, 2 * highest)
        axis.set_yscale("log", nonpositive="mask")
    # The line at 1 lies well inside the panel; a linear axis begins at 0.
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.8 if is_log else 0.0), max(high, 1.3))
    if is_log:
        ticks.set_log_ticks(axis.yaxis)
    style.limit_to_iterations(axis, axis.lines)
    axis.axhline(1.0, color="black", lw=1.2, label="_one", zorder=1)
    axis.annotate(
        "edge of stability of plain gradient descent",
        (0.01, 1.0),
        (0, 2),
        xycoords=axis.get_yaxis_transform(),
        textcoords="offset points",
        va="bottom",
        fontsize="small",
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
        zorder=3,  # above curves that stay close to 1
    )
    axis.set_ylabel(names.SHARPNESS.heading)
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))


@material.figure("sharpness")
def make_sharpness(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no sharpness is recorded."""
    rows = material.schemes(sweep, experiment)
    runs = material.of_first_repeat(sweep, rows)
    table = merging.unmerged(sweep).histories(runs, (SHARPNESS,))
    if table.empty:
        return None
    scale = None if options.scale == "excess" else options.scale  # a scale of cost histories only
    title = material.title_of_first_repeat(experiment, rows)
    return draw_sharpness(table, runs, title, first=options.first, scale=scale, shape=options.shape)


# Where steps land on the local parabola: at its start, at its minimum, or as high as before.

LIMITS = (-0.15, 2.3)  # positions beyond are drawn at the edge
STEP_HEIGHT = -0.14  # of the ticks below the parabola
MARKS = {0.0: "0: at the start", 1.0: "1: at the\nminimum", 2.0: "2: as high\nas before"}
STEPS_NOTE = "ticks: the steps, along themselves"
DIRECTIONS_NOTE = "circles: directions of the Hessian at the start"


def _explain_landings(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> list[str]:
    has_circles = any("direction" in scheme.arrays for scheme in schemes)
    return [f"{STEPS_NOTE}; {DIRECTIONS_NOTE}" if has_circles else STEPS_NOTE]


@panel_figure(
    "landing",
    "landing",
    0.62,
    is_drawable=lambda scheme_arrays: len(scheme_arrays["position"]) > 0,
    finish=_explain_landings,
)
def draw_landing(panel: Panel) -> str:
    """Draw a parabola, circles on it for the directions, and ticks below it for the steps.

    The parabola is `(position - 1)^2`, which is as high at position 2 as at the start, 0. The
    arrays are `position` (k,), where each step lands on the parabola along the step; for plain
    descent also `direction` (n,), where a step lands along each eigendirection of the Hessian at
    the start: step size times curvature.
    """
    axis, color = panel.axis, panel.look.color
    along = np.linspace(*LIMITS, 100)
    axis.plot(along, (along - 1) ** 2, color="#b0b0b0", zorder=1)
    directions = np.clip(panel.arrays.get("direction", np.empty(0)), *LIMITS)
    circle_style = {"alpha": 0.5, "s": 40, "linewidths": 0, "zorder": 2}
    axis.scatter(directions, (directions - 1) ** 2, color=color, **circle_style)
    steps = np.clip(panel.arrays["position"], *LIMITS)
    axis.plot(steps, np.full(len(steps), STEP_HEIGHT), "|", color=color, markersize=9, alpha=0.6)
    axis.set_xticks([*MARKS], [*MARKS.values()])
    axis.set(xlim=LIMITS, ylim=(-0.3, 1.8), yticks=[])
    return ""


# Gradients and values of a network by layer: at the start, and at the end of the best step.

LAYER_PANELS = (names.LAYER_GRADIENT, names.LAYER_NORM, names.LAYER_RANK, names.LAYER_COSINE)
LAYER_COLUMNS = 2
LAYERS_NOTE = (
    "solid: at the last iteration; dotted: at the start. Cosine, before and after the other "
    "layers moved: the median over iterations"
)


@arrays_figure("by_layer", "by_layer", lambda scheme_arrays: len(scheme_arrays["iteration"]) > 0)
def draw_by_layer(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each quantity, over the layers, a curve for each scheme.

    The cosine of a layer compares its gradients before and after the step of the other layers, so
    that there is none at the end: the median over the iterations is drawn instead, as one curve.

    Args:
        arrays: by label, the quantities of `LAYER_PANELS` by their keys, (k, L) each, for L layers
            at k iterations, the first at the start and the last at the end.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    columns = min(LAYER_COLUMNS, shape.columns)
    with style.figure_style(shape):
        figure, axes = style.panels(len(LAYER_PANELS), shape, title, 0.6, columns)
        for axis, metric in zip(axes, LAYER_PANELS):
            for number, (_, _, scheme_arrays, look) in enumerate(drawn_schemes):
                values = np.asarray(scheme_arrays[metric.key], dtype=float)
                layers = np.arange(1, values.shape[1] + 1)
                # The markers are shifted, so that curves that coincide remain visible.
                curve_style = _solid(look, len(layers), number / len(drawn_schemes))
                if metric is names.LAYER_COSINE:
                    curve = pd.DataFrame(values).replace([np.inf, -np.inf], np.nan).median()
                else:
                    curve = values[-1]
                    axis.plot(layers, values[0], color=look.color, ls=":", label="_start")
                axis.plot(layers, curve, label="_end", **curve_style)
            axis.set_title(metric.label, fontsize=shape.font)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            if metric is not names.LAYER_COSINE:
                axis.set_yscale("log")
                ticks.set_log_ticks(axis.yaxis)
        style.label_outer_axes(axes, "layer", "")
        handles = [
            Line2D([], [], label=scheme.label, **_solid(scheme.look, 1)) for scheme in drawn_schemes
        ]
        style.add_legend(figure, shape, handles)
        style.add_note(figure, shape, LAYERS_NOTE)
    return figure


def _solid(look: Look, count: int, phase: float = 0.0) -> dict[str, Any]:
    """Return a marked curve as a solid line: in these panels, dotted means the start."""
    return style.marked_curve(look, count, phase) | {"ls": "-"}


# The class that each scheme's model predicts over the plane of two features.

PANEL_HEIGHT, BOUNDARY_COLUMNS = 0.9, 3  # over its width, which holds the label of a network


def _finish_boundary(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> list[str]:
    first_arrays = schemes[0].arrays
    feature_names = [style.escape_dollars(str(name)) for name in first_arrays["names"]]
    style.label_outer_axes(figure.axes, *feature_names)
    style.add_legend(figure, shape, style.class_handles(first_arrays["class_names"]))
    return []


@panel_figure(
    "boundary",
    "boundary",
    lambda _, shape: {"aspect": PANEL_HEIGHT, "columns": min(BOUNDARY_COLUMNS, shape.columns)},
    finish=_finish_boundary,
)
def draw_boundary(panel: Panel) -> str:
    """Draw the regions of the predicted classes, black lines between them, and the points.

    All panels show the raw features, whatever the scheme makes of them. The arrays are the grid
    `a`, `b` (G,) of values of the two features, and the class index `predicted` (G, G), in row i
    and column j at b[i] and a[j]; `points` (p, 2), `target` (p,), `class_names` (C,), `names` (2,)
    of the features; optionally the number `misclassified` () of the training points.
    """
    axis, scheme_arrays = panel.axis, panel.arrays
    a, b, predicted = scheme_arrays["a"], scheme_arrays["b"], scheme_arrays["predicted"]
    count = len(scheme_arrays["class_names"])
    colors = ListedColormap([color for color, _ in style.class_looks(count)])
    limits = {"vmin": -0.5, "vmax": count - 0.5}  # each class index has a colour of its own
    axis.pcolormesh(a, b, predicted, cmap=colors, alpha=0.45, rasterized=True, **limits)
    # Any two classes are separated by the edge of the region of all classes from some index on.
    for class_index in np.unique(predicted)[1:]:
        is_above = (predicted >= class_index).astype(float)
        axis.contour(a, b, is_above, levels=[0.5], colors="black", linewidths=0.9)
    axis.set(xlim=(a[0], a[-1]), ylim=(b[0], b[-1]))
    dot_style: Any = {"s": (0.3 * panel.shape.font) ** 2, "lw": 0.4}
    style.scatter_classes(axis, scheme_arrays["points"], scheme_arrays, dot_style)
    # The number is left out if it was not recorded, or the run diverged.
    wrong = float(scheme_arrays.get("misclassified", np.nan))
    return step_text(panel.row) + ("" if np.isnan(wrong) else f", {wrong:.0f} misclassified")


# The prediction of each scheme's fitted model over one feature.


@arrays_figure("fit", "fit")
def draw_fit(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: the points, and one curve for each scheme with its name.

    Args:
        arrays: by label, `x` (G,), increasing values of the raw feature, and the `prediction` (G,)
            there; `points` (p, 2), feature and target, the same for all schemes.
        schemes: one row for each scheme in order (`label`, `normalizer`, `tags.step_size`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, 0.5)
        points = drawn_schemes[0].arrays["points"]  # the same for all schemes
        axis.scatter(*points.T, color="0.6", s=(0.5 * shape.font) ** 2, lw=0, label="_points")
        curve_ends = []
        for label, row, scheme_arrays, look in drawn_schemes:
            x, y = scheme_arrays["x"], scheme_arrays["prediction"]
            axis.plot(x, y, label=label, lw=0.8 * shape.line, **style.unmarked_curve(look))
            curve_ends.append(End(f"{label}{step_text(row)}", float(y[-1]), look))
        # `x` is that of the last scheme: the grid depends on the data alone.
        axis.set(xlim=(x[0], x[-1]), xlabel="the feature, as it is")
        axis.set_ylabel("target, and what each model predicts")
        end_labels(axis, curve_ends, shape, 0.5 * shape.width, has_markers=False)
    return figure
