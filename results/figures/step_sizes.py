"""The final cost over the step size, a panel a scheme: what converges, and where theory says so."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench.results import names
from normbench.results.figures import material, style
from normbench.results.figures.style import SCREEN, VERDICTS, Shape
from normbench.results.runs import Sweep

COST = names.FINAL_COST.column
STEP = names.STEP_SIZE.column
THRESHOLD = names.THRESHOLD.column
LARGEST = names.LARGEST_CONVERGENT.column


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: each panel one scheme in colour, the others behind it in grey.

    steps: one row a scheme and step size (`label`, `verdict`, `metrics.step_size`,
    `metrics.final/train_cost`). schemes: one row a panel (`label`, `normalizer`; where known
    `metrics.theory/step_threshold` and `metrics.final/largest_convergent_step`).
    """
    count = len(schemes)
    with style.drawn(shape):
        figure, axes = style.panels(max(count, 1), shape, title, 0.72, sharex=True, sharey=True)
        if steps.empty or not count:
            style.say_nothing(axes[0], "no step size has a cost")
            return figure
        curves = {label: rows.sort_values(STEP) for label, rows in steps.groupby("label")}
        axes[0].set_xscale("log")
        axes[0].set_yscale("log" if _positive(steps) else "linear")
        looks = style.looks(list(schemes["normalizer"]))
        _limits(axes[0], steps)
        for axis, scheme, look in zip(axes, schemes.to_dict("records"), looks):
            _panel(axis, curves, scheme, look)
        style.outer_labels(axes, "step size", "final mean cost")
        _legend(figure, steps, schemes)
    return figure


def _positive(steps: pd.DataFrame) -> bool:
    costs = steps[COST].dropna()
    return bool(len(costs) and costs.min() > 0)


def _limits(axis: Any, steps: pd.DataFrame) -> None:
    """Show what lies up to ten times the start's cost; what is above stands on the upper edge."""
    costs = steps.loc[steps["verdict"] != names.DIVERGED, COST].dropna()
    if costs.empty:
        costs = steps[COST].dropna()
    # The smallest step hardly moves: its cost is the start's.
    start = float(steps.loc[steps[STEP] == steps[STEP].min(), COST].median())
    low, high = (float(costs.min()), float(costs.max())) if len(costs) else (0.1, 1.0)
    high = min(high, 10 * start) if start == start else high
    if axis.get_yscale() == "log":
        spread = max(np.log10(high / low), 0.1) if high > low else 0.1
        axis.set_ylim(low / 10 ** (0.08 * spread), high * 10 ** (0.12 * spread))
    else:
        spread = max(high - low, 1e-12)
        axis.set_ylim(low - 0.08 * spread, high + 0.12 * spread)
    sizes = steps[STEP]
    axis.set_xlim(sizes.min() / 2, sizes.max() * 2)
    style.log_ticks(axis.xaxis, most=4)  # the panels are narrow
    if axis.get_yscale() == "log":
        style.log_ticks(axis.yaxis)


def _panel(axis: Any, curves: dict[str, pd.DataFrame], scheme: Any, look: style.Look) -> None:
    low, high = axis.get_ylim()
    others = [
        rows[[STEP, COST]].dropna().to_numpy(dtype=float)
        for label, rows in curves.items()
        if label != scheme["label"]
    ]
    axis.add_collection(
        LineCollection(others, colors="0.85", linewidths=0.8, zorder=1), autolim=False
    )
    rows = curves.get(scheme["label"], pd.DataFrame(columns=[STEP, COST, "verdict"]))
    rows = rows.assign(
        shown=rows[COST].clip(low, high).where(rows["verdict"] != names.DIVERGED, high)
    )
    kept = rows[rows["verdict"] != names.DIVERGED]
    axis.plot(
        kept[STEP], kept[COST], color=look.color, ls=look.line, label=scheme["label"], zorder=2
    )
    for verdict, group in rows.groupby("verdict"):
        color, marker = VERDICTS.get(str(verdict), ("0.5", "o"))
        axis.plot(
            group[STEP],
            group["shown"],
            ls="",
            marker=marker,
            color=color,
            markeredgecolor="black",
            markeredgewidth=0.5,
            label=f"_{verdict}",
            clip_on=False,
            zorder=4,
        )
    threshold, largest = scheme.get(THRESHOLD), scheme.get(LARGEST)
    if threshold is not None and pd.notna(threshold):
        axis.axvline(threshold, color="black", ls=":", lw=1.2, label="_threshold", zorder=3)
    if largest is not None and pd.notna(largest):
        censored = str(scheme.get(names.CENSORED.column, "")).lower() == "true"
        axis.plot(
            [largest],
            [0.0],
            marker="^" if not censored else "$\\rightarrow$",
            markersize=9,
            color="black",
            ls="",
            transform=axis.get_xaxis_transform(),
            clip_on=False,
            label="_largest",
            zorder=5,
        )
    style.name_panel(axis, scheme["label"], look)


def _legend(figure: Figure, steps: pd.DataFrame, schemes: pd.DataFrame) -> None:
    def mark(marker: str, color: str, label: str, line: str = "") -> Line2D:
        edge = "black" if line == "" else color
        return Line2D(
            [], [], marker=marker, color=color, ls=line, label=label, mec=edge, markeredgewidth=0.5
        )

    present = set(steps["verdict"])
    handles = [
        mark(VERDICTS[word][1], VERDICTS[word][0], word) for word in VERDICTS if word in present
    ]
    if THRESHOLD in schemes and schemes[THRESHOLD].notna().any():
        handles.append(mark("", "black", "2 / L, predicted", ":"))
    if LARGEST in schemes and schemes[LARGEST].notna().any():
        handles.append(mark("^", "black", "largest that levels (an arrow: of those tried)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None without a descent."""
    table = material.steps(sweep, experiment)
    if table.empty:
        return None
    rows = material.schemes(sweep, experiment)
    return draw(table, rows, material.with_budget(experiment, rows), shape=options.shape)
