"""The sharpness along the path: `step x L / 2` against 1, the edge of stability."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.compare import merging
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

LEAST = 1e-9  # below, there is no curvature to speak of
FLAT = 1e-2  # below, a run that is there for a moment leaves the panel
METRIC, STEP = names.SHARPNESS.key, names.STEP_TAG.column
BANDS = "bands: the lowest and the highest of three consecutive iterations"


def draw(
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    *,
    first: int = 0,
    scale: str | None = None,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a curve a scheme, of `step x L / 2` at each iteration, and a line at 1.

    A run may jump to and fro: each curve is the middle between the lowest and the highest of three
    consecutive iterations, with a band between them.

    histories: one row a run and iteration (`run_id`, `iteration`, `theory/sharpness`: the scheme's
    step size times L / 2, L the largest eigenvalue of the cost's Hessian at the weights). runs: one
    row a scheme (`run_id`, `label`, `normalizer`, `tags.step_size`). Below 1 a step of plain
    gradient descent lowers a quadratic cost; above 1 the stiffest direction overshoots.
    """
    height = max(0.5 * shape.width, (len(runs) + 2) * 1.25 * shape.font / 72)
    shown = histories[histories["iteration"] >= first]
    known = METRIC in shown and shown[METRIC].notna().any()
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        if not known:
            style.say_nothing(axis, "no scheme has a recorded sharpness")
            return figure
        by_run = dict(list(shown.dropna(subset=[METRIC]).groupby("run_id")))
        ends = []
        for run, look in zip(as_rows(runs), style.looks(list(runs["normalizer"]))):
            rows = by_run.get(run["run_id"])
            if rows is None:
                continue
            text = f"{run['label']}{style.step_text(run.get(STEP))}"
            low, high = bands(rows["iteration"], rows[METRIC])
            axis.fill_between(rows["iteration"], low, high, color=look.color, alpha=0.2, lw=0)
            curve = style.curve(look, len(rows))
            axis.plot(rows["iteration"], (low + high) / 2, label=text, **curve)
            ends.append(End(text, float(axis.lines[-1].get_ydata()[-1]), look))
        _axes(axis, scale)
        if any(np.diff(band.get_paths()[0].vertices[:, 1]).any() for band in axis.collections):
            style.note(figure, shape, BANDS)
        end_labels(axis, ends, shape, height)
    return figure


def bands(iteration: Any, values: Any) -> tuple[Any, Any]:
    """Return the lowest and the highest value of an iteration and its two neighbours, `(k,)` each.

    Of neighbours that are recorded.
    """
    known = pd.Series(np.asarray(values, dtype=float), index=np.asarray(iteration, dtype=int))
    beside = pd.concat([known, *(known.reindex(known.index + by) for by in (-1, 1))], axis=0)
    near = beside.to_numpy().reshape(3, len(known))
    return np.nanmin(near, axis=0), np.nanmax(near, axis=0)


def _axes(axis: Any, scale: str | None) -> None:
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axis.lines])
    some = values[values > LEAST]  # a run far out, where the cost is linear, has none
    wide = len(some) and max(some.max(), 1) > 20 * min(some.min(), 1)
    if scale == "log" or (scale is None and wide):
        if len(some):
            # What a run does most of the time is seen, and not how flat it is far out.
            usual = min(float(np.median(line.get_ydata())) for line in axis.lines)
            axis.set_ylim(max(some.min(), min(FLAT, usual)) / 2, 2 * some.max())
        axis.set_yscale("log", nonpositive="mask")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.8 if axis.get_yscale() == "log" else 0.0), max(high, 1.3))
    if axis.get_yscale() == "log":
        ticks.log_ticks(axis.yaxis)
    axis.axhline(1.0, color="black", lw=1.2, label="_one", zorder=1)
    style.span_iterations(axis, axis.lines[:-1])
    axis.annotate(
        "edge of stability of plain gradient descent",
        (0.01, 1.0),
        (0, 2),
        xycoords=axis.get_yaxis_transform(),
        textcoords="offset points",
        va="bottom",
        fontsize="small",
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
        zorder=3,  # a curve may hover at 1
    )
    axis.set(xlabel=names.SHARPNESS.axis, ylabel=names.SHARPNESS.heading)
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no sharpness is recorded."""
    runs = material.schemes(sweep, experiment)
    first = merging.whole(sweep)  # of several splits the first: its own path, its own step size
    own = first.runs.set_index("run_id").get(STEP, pd.Series(dtype=str))
    runs = runs.assign(**{STEP: runs["run_id"].map(own)})
    table = first.histories(runs, (METRIC,))
    if table.empty:
        return None
    scale = None if options.scale == "excess" else options.scale  # which is of histories
    title = material.of_first(experiment, runs)
    return draw(table, runs, title, first=options.first, scale=scale, shape=options.shape)
