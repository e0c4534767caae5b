"""The final cost over the step size, a panel a scheme: what converges, and where theory says so.

Where rounding decides the end, the mark is one of its possible ends, and a band holds others.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from normbench import names
from normbench.results.compare.merging import repeated_over
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.material import Arrays, Options, Parts
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep

COST = names.FINAL_COST.column
STEP = names.STEP_SIZE.column
THRESHOLD = names.THRESHOLD.column
LARGEST = names.LARGEST_CONVERGENT.column


def draw(
    steps: pd.DataFrame,
    schemes: pd.DataFrame,
    title: str,
    arrays: Arrays = MappingProxyType({}),
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: each panel one scheme in colour, the others behind it in grey.

    steps: one row a scheme and step size (`label`, `verdict`, `metrics.step_size`,
    `metrics.final/train_cost`). schemes: one row a panel (`label`, `normalizer`; where known
    `metrics.theory/step_threshold` and `metrics.final/largest_convergent_step`). arrays: by label,
    where known, `step_sizes` and `shadows`, `refined_step_sizes` and `refined_cost`.
    """
    with style.drawn(shape):
        figure, axes = style.panels(len(schemes), shape, title, 0.72, sharex=True, sharey=True)
        curves = {label: rows.sort_values(STEP) for label, rows in steps.groupby("label")}
        axes[0].set_xscale("log")
        axes[0].set_yscale("log" if steps[COST].min() > 0 else "linear")
        looks = style.looks(list(schemes["normalizer"]))
        ends = {label: typical_ends(rows, arrays.get(label, {})) for label, rows in curves.items()}
        beside = [end for own in ends.values() for pair in own.values() for end in pair]
        beside += [cost for parts in arrays.values() for _, cost in finer_ends(parts)]
        roof = _limits(axes[0], steps, beside)
        drawn: set[str] = set()
        for axis, scheme, look in zip(axes, as_rows(schemes), looks):
            drawn |= _panel(axis, curves, scheme, look, roof)
            drawn |= _ends(axis, ends.get(scheme["label"], {}))
            drawn |= _finer(axis, arrays.get(scheme["label"], {}), look)
        style.outer_labels(axes, "step size", "final mean cost")
        _legend(figure, drawn, schemes, shape)
    return figure


TRIED = "largest of those tried"
NONE_HELPS = "none helps: each ends above the start"
ABOVE = 0.22  # room for what is off the scale, as a share of what is on it
STAR: Any = {"marker": "*", "ls": "", "color": "white", "mec": "black", "mew": 0.7, "ms": 11}
BAND: Any = {"color": style.VERDICTS[names.BY_ROUNDING][0], "lw": 5, "alpha": 0.45}
BAND |= {"solid_capstyle": "butt"}
DOT: Any = {"marker": ".", "ls": "", "ms": 3, "zorder": 3}
# The sign ↑: for the mark "$\\uparrow$" matplotlib would build its whole parser of formulas.
HALF = [(0.03, 0.5), (0.292, 0.237), (0.212, 0.157), (0.057, 0.313), (0.057, -0.5)]
UP = Path([*HALF, *((-x, y) for x, y in reversed(HALF)), HALF[0]], closed=True)
RIGHT = UP.transformed(Affine2D().rotate_deg(-90))
ARROW: Any = {"marker": UP, "ls": "", "color": "black", "ms": 8, "clip_on": False}


def typical_ends(rows: pd.DataFrame, parts: Parts) -> dict[float, tuple[float, float]]:
    """Return the least and the greatest end of a run and its shadows, where rounding decides."""
    if "shadows" not in parts:
        return {}
    sizes, shadows = np.asarray(parts["step_sizes"]), np.asarray(parts["shadows"])
    found = {}
    for size in rows.loc[rows["verdict"] == names.BY_ROUNDING, STEP]:
        ends = shadows[np.isclose(sizes, size, rtol=1e-5)]
        ends = np.append(ends[~np.isnan(ends)], rows.loc[rows[STEP] == size, COST])
        if len(ends) > 1:
            found[float(size)] = float(ends.min()), float(ends.max())
    return found


def _ends(axis: Any, ends: Mapping[float, tuple[float, float]]) -> set[str]:
    """Draw a band from the least to the greatest end; one that is infinite goes to the top."""
    top = axis.get_ylim()[1]
    for size, (least, greatest) in ends.items():
        low, high = (min(end, top) for end in (least, greatest))
        axis.plot([size, size], [low, high], label="_ends", zorder=3, **BAND)
    return {"ends"} if ends else set()


def finer_ends(parts: Parts) -> list[tuple[float, float]]:
    """Return the step sizes between those of the grid that stay finite, and the costs they end at.

    Of several starts the median.
    """
    if "refined_cost" not in parts:
        return []
    ends = np.median(np.asarray(parts["refined_cost"])[:, :, -1], axis=1)
    return [pair for pair in zip(parts["refined_step_sizes"], ends) if np.isfinite(pair[1])]


def _finer(axis: Any, parts: Parts, look: style.Look) -> set[str]:
    """Draw where the step sizes between those of the grid end."""
    top = axis.get_ylim()[1]
    ends = [pair for pair in finer_ends(parts) if pair[1] <= top]
    axis.plot(*np.reshape(ends, (-1, 2)).T, color=style.dark(look.color), label="_finer", **DOT)
    return {"finer"} if ends else set()


def _limits(axis: Any, steps: pd.DataFrame, beside: Sequence[float]) -> float:
    """Show what lies up to ten times the start's cost; return where what is above stands.

    beside: costs that are shown beside those of the step sizes.
    """
    finite = steps[(steps["verdict"] != names.DIVERGED) & steps[COST].notna()]
    costs = finite[COST]
    # The smallest step hardly moves: its cost is the start's.
    start = float(costs[finite[STEP] == finite[STEP].min()].median())
    costs = np.array([*costs, *filter(np.isfinite, beside)])
    low, high = (float(costs.min()), float(costs.max())) if len(costs) else (0.1, 1.0)
    roof = min(high, 10 * start) if start == start else high
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
        rows.loc[~rows["verdict"].isin(names.UNRANKED), [STEP, COST]].dropna().to_numpy(float)
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
    firm = rows[~rows["verdict"].isin(names.UNRANKED)]
    axis.plot(
        firm[STEP], firm[COST], color=look.color, ls=look.line, label=scheme["label"], zorder=2
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
        style.say(axis, "diverged at every step size tried")
    best = firm[np.isclose(firm[STEP], number_in(scheme, names.STEP_TAG.column), rtol=1e-5)]
    if len(best) and not material.helps(scheme, float(best[COST].iloc[0])):
        style.say_below(axis, NONE_HELPS)
    elif len(best):
        axis.plot(best[STEP], best["shown"], label="_best", clip_on=False, zorder=6, **STAR)
        drawn.add("best")
    return drawn | _limits_of_theory(axis, scheme, look)


def _limits_of_theory(axis: Any, scheme: Any, look: style.Look) -> set[str]:
    """Draw 2/L and the largest step that converges; name the panel."""
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
        "ends": ("typical ends", BAND),
        "finer": ("finer step sizes", {"color": "0.3", **DOT}),
        "above": ("off the scale", ARROW),
        THRESHOLD: ("2/L, predicted", {"color": "black", "ls": ":", "lw": 1.2}),
        LARGEST: ("largest step that converges", {"marker": "^", "color": "black", "ls": ""}),
        TRIED: ("converges, the largest tried", {"marker": RIGHT, "color": "black", "ls": ""}),
    }
    entries = [entry for word, entry in others.items() if word in drawn]
    shown = [Line2D([], [], label=label, **look) for label, look in entries]
    style.legend(figure, shape, [*style.verdict_marks(drawn), *shown])


def _finite(steps: pd.DataFrame) -> bool:
    return bool((steps[COST].notna() & (steps["verdict"] != names.DIVERGED)).any())


def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    """Return the figure of an experiment; None where no step size stayed finite.

    Over splits the costs are medians, and the ends of single runs do not stand beside them.
    """
    rows = material.schemes(sweep, experiment)
    over = repeated_over(rows)
    arrays = {} if over else material.fitting(sweep, rows, names.DESCENT_ARRAYS, lambda parts: True)
    return material.of_steps(partial(draw, arrays=arrays), _finite)(sweep, experiment, options)
