"""The final cost over the step size, a panel a scheme: what converges, and where theory says so."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from normbench import names
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows, number_in

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
    with style.drawn(shape):
        figure, axes = style.panels(len(schemes), shape, title, 0.72, sharex=True, sharey=True)
        curves = {label: rows.sort_values(STEP) for label, rows in steps.groupby("label")}
        axes[0].set_xscale("log")
        axes[0].set_yscale("log" if steps[COST].min() > 0 else "linear")
        looks = style.looks(list(schemes["normalizer"]))
        roof = _limits(axes[0], steps)
        drawn: set[str] = set()
        for axis, scheme, look in zip(axes, as_rows(schemes), looks):
            drawn |= _panel(axis, curves, scheme, look, roof)
        style.outer_labels(axes, "step size", "final mean cost")
        _legend(figure, drawn, schemes, shape)
    return figure


TRIED = "largest of those tried"
ABOVE = 0.22  # room for what is off the scale, as a share of what is on it
STAR: Any = {"marker": "*", "ls": "", "color": "white", "mec": "black", "mew": 0.7, "ms": 11}
# The sign ↑: for the mark "$\\uparrow$" matplotlib would build its whole parser of formulas.
HALF = [(0.03, 0.5), (0.292, 0.237), (0.212, 0.157), (0.057, 0.313), (0.057, -0.5)]
UP = Path([*HALF, *((-x, y) for x, y in reversed(HALF)), HALF[0]], closed=True)
RIGHT = UP.transformed(Affine2D().rotate_deg(-90))
ARROW: Any = {"marker": UP, "ls": "", "color": "black", "ms": 8, "clip_on": False}


def _limits(axis: Any, steps: pd.DataFrame) -> float:
    """Show what lies up to ten times the start's cost; return where what is above stands."""
    finite = steps[(steps["verdict"] != names.DIVERGED) & steps[COST].notna()]
    costs = finite[COST]
    # The smallest step hardly moves: its cost is the start's.
    start = float(costs[finite[STEP] == finite[STEP].min()].median())
    low, high = float(costs.min()), float(costs.max())
    roof = min(high, 10 * start)
    if axis.get_yscale() == "log":
        spread = max(np.log10(roof / low), 0.1) if roof > low else 0.1
        axis.set_ylim(low / 10 ** (0.08 * spread), roof * 10 ** (ABOVE * spread))
    else:
        spread = max(roof - low, 1e-12)
        axis.set_ylim(low - 0.08 * spread, roof + ABOVE * spread)
    sizes = steps[STEP]
    axis.set_xlim(sizes.min() / 2, sizes.max() * 2)
    ticks.log_ticks(axis.xaxis, most=4)  # the panels are narrow
    if axis.get_yscale() == "log":
        ticks.log_ticks(axis.yaxis, most=5)
    else:
        ticks.even_ticks(axis.yaxis)
    return roof


def _panel(
    axis: Any, curves: dict[str, pd.DataFrame], scheme: Any, look: style.Look, roof: float
) -> set[str]:
    """Draw one scheme; return what of the legend is drawn."""
    others = [
        rows.loc[rows["verdict"] != names.DIVERGED, [STEP, COST]].dropna().to_numpy(dtype=float)
        for label, rows in curves.items()
        if label != scheme["label"]
    ]
    axis.add_collection(
        LineCollection(others, colors="0.85", linewidths=0.8, zorder=1), autolim=False
    )
    rows = curves.get(scheme["label"], pd.DataFrame(columns=[STEP, COST, "verdict"]))
    lost = rows["verdict"] == names.DIVERGED
    rows = rows.assign(shown=rows[COST].clip(upper=roof).where(~lost, roof))
    kept = rows[~lost]
    axis.plot(
        kept[STEP], kept[COST], color=look.color, ls=look.line, label=scheme["label"], zorder=2
    )
    drawn = set(rows["verdict"])
    for verdict, group in rows.groupby("verdict"):
        style.draw_verdict(axis, str(verdict), group[STEP], group["shown"])
    above = kept.loc[kept[COST] > roof, STEP]
    if len(above):
        across = axis.get_xaxis_transform()
        axis.plot(above, [0.95] * len(above), transform=across, label="_above", **ARROW)
        drawn.add("above")
    if len(kept) == 0 and len(rows):
        style.say(axis, f"diverged at all {len(rows)} step sizes")
    best = rows[np.isclose(rows[STEP], number_in(scheme, names.STEP_TAG.column), rtol=1e-5)]
    if len(best):
        axis.plot(best[STEP], best["shown"], label="_best", clip_on=False, zorder=6, **STAR)
        drawn.add("best")
    return drawn | _limits_of_theory(axis, scheme, look)


def _limits_of_theory(axis: Any, scheme: Any, look: style.Look) -> set[str]:
    """Draw 2/L and the largest step that levels; name the panel."""
    drawn = set()
    threshold, largest = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST)
    left, right = axis.get_xlim()
    if left <= threshold <= right:
        axis.axvline(threshold, color="black", ls=":", lw=1.2, label="_threshold", zorder=3)
        drawn.add(THRESHOLD)
    if not np.isnan(largest):
        censored = scheme.get(names.CENSORED.column) == "true"
        mark = {"marker": RIGHT if censored else "^", "ms": 9, "color": "black", "ls": ""}
        across = axis.get_xaxis_transform()
        options = {"transform": across, "clip_on": False, "label": "_largest", "zorder": 5}
        axis.plot([largest], [0.0], **mark, **options)
        drawn.add(TRIED if censored else LARGEST)
    style.name_panel(axis, scheme["label"], look)
    return drawn


def _legend(figure: Figure, drawn: set[str], schemes: pd.DataFrame, shape: Shape) -> None:
    """Name what is drawn, and nothing else."""
    others: dict[str, tuple[str, Any]] = {
        "best": (material.best_words(schemes), STAR),
        "above": ("off the scale", ARROW),
        THRESHOLD: ("2/L, predicted", {"color": "black", "ls": ":", "lw": 1.2}),
        LARGEST: ("largest step that levels", {"marker": "^", "color": "black", "ls": ""}),
        TRIED: ("levels, the largest tried", {"marker": RIGHT, "color": "black", "ls": ""}),
    }
    entries = [entry for word, entry in others.items() if word in drawn]
    shown = [Line2D([], [], label=label, **look) for label, look in entries]
    style.legend(figure, shape, [*style.verdict_marks(drawn), *shown])


def _finite(steps: pd.DataFrame) -> bool:
    return bool((steps[COST].notna() & (steps["verdict"] != names.DIVERGED)).any())


make = material.of_steps(draw, _finite)
