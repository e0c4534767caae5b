"""Largest stable step, passes and updates to a target over the size of the batch, log-log."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.compare.batch_gains import (
    FEWEST_BATCH_SIZES,
    FEWEST_RECORDS,
    TARGET,
    batch_table,
)
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.runs import Sweep

BATCH_PANELS = {
    "stable": "largest step size that converged",
    "passes": f"passes to {TARGET} of the excess",
    "updates": f"updates to {TARGET} of the excess",
}
KNEE_NOTE = "dotted: the knee of theory, mean |x|^2 over the largest eigenvalue"
BOUND_NOTE = (
    "hollow: passes and updates of a batch whose first records reach the target are upper bounds; "
    "a larger records_per_pass tells more"
)
GRID_END_NOTE = "hollow: no larger step size failed, so that this one is a lower bound"


def draw(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a curve for each scheme, and its knee as a dotted line.

    The knee is the batch beyond which theory predicts little gain. A quantity without any number
    above 0 has no panel.

    Args:
        table: from `batch_table`, one row for each scheme and size of the batch: `scheme`,
            `normalizer`, `batch`, the quantities of `BATCH_PANELS`, `knee`, `records`, `grid_end`;
            a quantity is NaN where it is not known.
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_panels = {name: text for name, text in BATCH_PANELS.items() if (table[name] > 0).any()}
    looks = style.looks_by_scheme(table)
    with style.figure_style(shape):
        # On narrow formats the panels stand below one another.
        columns = 1 if shape.width < 8 else len(drawn_panels)
        height = 0.62 * max(shape.width / 2, 3.3)
        ratio = min(0.8, height / (shape.width / columns))
        figure, axes = style.panels(len(drawn_panels), shape, title, ratio, columns)
        for axis, (name, text) in zip(axes, drawn_panels.items()):
            for scheme, look in looks.items():
                _draw_scheme(axis, table[table["scheme"] == scheme], name, look)
            axis.set(xscale="log", yscale="log", xlabel="batch, points", ylabel=text)
            ticks.set_log_ticks(axis.xaxis)
            ticks.set_log_ticks(axis.yaxis)
        # Knees and hollow markers, whose labels begin with `_`, have no legend entries.
        curves = [line for line in axes[0].get_lines() if line.get_label()[0] != "_"]
        style.add_legend(figure, shape, curves)
        notes = [KNEE_NOTE] if table["knee"].notna().any() else []
        notes += [BOUND_NOTE] if _are_upper_bounds(table).any() else []
        # Only bounds above 0 have a marker.
        is_drawn_bound = table["grid_end"].astype(bool) & (table["stable"] > 0)
        notes += [GRID_END_NOTE] if is_drawn_bound.any() else []
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def _draw_scheme(axis: Any, rows: pd.DataFrame, name: str, look: style.Look) -> None:
    """Draw the curve of a scheme, and the knee that theory predicts, if any.

    Args:
        axis: the panel.
        rows: the rows of the scheme, one for each size of the batch.
        name: the column that the panel shows, a key of `BATCH_PANELS`; bounds are hollow.
        look: the look of the scheme.
    """
    label = style.escape_dollars(str(rows["scheme"].iloc[0]))
    positive = rows[rows[name] > 0]  # a log axis shows no other number; NaN is left out too
    axis.plot(
        positive["batch"],
        positive[name].astype(float),
        label=label,
        color=look.color,
        ls=look.line,
        marker=look.marker,
    )
    is_bound = (
        positive["grid_end"].astype(bool) if name == "stable" else _are_upper_bounds(positive)
    )
    bounds = positive[is_bound]
    if len(bounds):
        axis.plot(
            bounds["batch"],
            bounds[name].astype(float),
            label="_bounds",
            color=look.color,
            ls="",
            marker=look.marker,
            markerfacecolor="white",
        )
    if rows["knee"].notna().any():
        axis.axvline(rows["knee"].median(), color=look.color, ls=":", lw=1, label="_knee")


def _are_upper_bounds(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by row, whether the passes and updates to the target are only upper bounds.

    A record is an evaluation of the cost after some updates. If one of the first
    `FEWEST_RECORDS - 1` records reaches the target, and stands for several updates, the target was
    perhaps reached much earlier.
    """
    return (table["records"] < FEWEST_RECORDS) & (table["updates"] > table["records"])


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if it cannot be drawn.

    It needs at least `FEWEST_BATCH_SIZES` sizes of the batch, a number to draw, and one row for
    each scheme and size: nothing else may vary.
    """
    rows = material.schemes(sweep, experiment)
    table = batch_table(sweep, experiment)
    has_curves = bool((table[[*BATCH_PANELS]] > 0).any(axis=None))
    if table["batch"].nunique() < FEWEST_BATCH_SIZES or not has_curves:
        return None
    if table.duplicated(["scheme", "batch"]).any():  # several problems beside the batch
        return None
    return draw(table, material.title(experiment, rows), shape=options.shape)
