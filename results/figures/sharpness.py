"""The sharpness along the path: `step x L / 2` against 1, the edge of stability."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.compare import merging, passes
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

MIN_SHARPNESS = 1e-9  # lower values count as no curvature
FLAT_SHARPNESS = 1e-2  # a run that falls below for a few iterations leaves the panel
SHARPNESS = names.SHARPNESS.key
BAND_NOTE = "bands: the lowest and the highest of three consecutive iterations"


def draw(
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
    drawn_histories = histories[is_drawn]
    is_recorded = SHARPNESS in drawn_histories and drawn_histories[SHARPNESS].notna().any()
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        if not is_recorded:
            style.write_on_empty_panel(axis, "no scheme has a recorded sharpness")
            return figure
        by_run = dict(list(drawn_histories.dropna(subset=[SHARPNESS]).groupby("run_id")))
        curve_ends = []
        for run, look in zip(as_rows(runs), style.looks(list(runs["normalizer"]))):
            rows = by_run.get(run["run_id"])
            if rows is None:  # a run without recorded sharpness
                continue
            curve_label = f"{run['label']}{material.step_text(run)}"
            low, high = bands(rows["iteration"], rows[SHARPNESS])
            axis.fill_between(rows["iteration"], low, high, color=look.color, alpha=0.2, lw=0)
            curve_style = style.marked_curve(look, len(rows))
            axis.plot(rows["iteration"], (low + high) / 2, label=curve_label, **curve_style)
            curve_ends.append(End(curve_label, float(axis.lines[-1].get_ydata()[-1]), look))
        _set_axes(axis, scale)
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
    shifted = pd.concat(
        [recorded, *(recorded.reindex(recorded.index + offset) for offset in (-1, 1))], axis=0
    )
    # Rows: the values at each iteration, the one before and the one after; NaN if not recorded.
    neighbours = shifted.to_numpy().reshape(3, len(recorded))
    return np.nanmin(neighbours, axis=0), np.nanmax(neighbours, axis=0)


def _set_axes(axis: Any, scale: str | None) -> None:
    """Set the scale, limits and labels of the axes; draw the edge of stability, the line at 1.

    Args:
        axis: the panel, with all curves drawn and nothing else.
        scale: the vertical scale, `linear` or `log`; None chooses `log` if the positive values and
            1 span more than a factor of 20.
    """
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axis.lines])
    # Far from the minimum, where the cost is linear, the sharpness is 0: a log axis cannot show it.
    positive_values = values[values > MIN_SHARPNESS]
    spans_decades = len(positive_values) and max(positive_values.max(), 1) > 20 * min(
        positive_values.min(), 1
    )
    if scale == "log" or (scale is None and spans_decades):
        if len(positive_values):
            # Show the usual sharpness of each run, not the flat regions far from the minimum.
            lowest_median = min(float(np.median(line.get_ydata())) for line in axis.lines)
            axis.set_ylim(
                max(positive_values.min(), min(FLAT_SHARPNESS, lowest_median)) / 2,
                2 * positive_values.max(),
            )
        axis.set_yscale("log", nonpositive="mask")
    # The line at 1 lies well inside the panel; a linear axis begins at 0.
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.8 if axis.get_yscale() == "log" else 0.0), max(high, 1.3))
    if axis.get_yscale() == "log":
        ticks.set_log_ticks(axis.yaxis)
    axis.axhline(1.0, color="black", lw=1.2, label="_one", zorder=1)
    style.limit_to_iterations(axis, axis.lines[:-1])  # without the line at 1
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


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no sharpness is recorded.

    Sharpness is recorded only if the setting `record` contains `sharpness`.
    """
    rows = material.schemes(sweep, experiment)
    runs = material.of_first_repeat(sweep, rows)
    table = merging.unmerged(sweep).histories(runs, (SHARPNESS,))
    if table.empty:
        return None
    scale = None if options.scale == "excess" else options.scale  # a scale of cost histories only
    title = material.title_of_first_repeat(experiment, rows)
    return draw(table, runs, title, first=options.first, scale=scale, shape=options.shape)
