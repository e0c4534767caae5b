"""Step-size windows: which directions a step size trains, and what came of each step size.

Above, a bar for each eigendirection of the Hessian at the start, the stiffest on top: the step
sizes under which the distance along it shrinks to 1/e within the iterations; the darker, the more
of the start's excess lies along it. Outlined, where the curvature changes on the way: the windows
at the best step's last weights. Below, on the same axis, what was left of the excess.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare.directions import CURVATURE, SHARE, TIMES
from normbench.results.compare.reached import excess_left
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.material import Arrays, Parts, with_arrays
from normbench.results.figures.base.style import SCREEN, VERDICTS, Shape
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep, which_step

Array = NDArray[np.float64]
STEP, THRESHOLD = names.STEP_SIZE.column, names.THRESHOLD.column
AT_BEST = names.CURVATURES_BEST.key  # of costs whose curvature changes
MOST = 40  # bars that can be told apart
MOST_LEFT = 30.0  # of the excess, in a panel
GUESSED = "the least cost is not known; the excess cost is over the lowest cost seen"
LIGHT = 0.93  # grey of a direction along which there is nothing
LEAST = 1e-6  # of the excess: below, costs are not told apart


Row = Mapping[Any, Any]


class Bars(NamedTuple):
    """The directions of a scheme, or groups of neighbours, the stiffest first.

    low, high `(n,)`: the step sizes that train one within the iterations. share `(n,)`: of the
    start's excess. times `(n,)`: how many directions it stands for.
    """

    low: Array
    high: Array
    share: Array
    times: NDArray[np.int64]

    def served(self, step: float) -> tuple[int, float]:
        """Return how many directions a step size trains, and how much of the excess they hold."""
        inside = (self.low <= step) & (step <= self.high)
        return int(self.times[inside].sum()), float(self.share[inside].sum())


def bars(parts: Parts, iterations: int) -> Bars:
    """Return the windows of a scheme's directions: `(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`."""
    curvature, share = parts[CURVATURE], np.asarray(parts[SHARE], dtype=float)
    shrinks = np.exp(-1 / max(iterations, 1))
    total = share.sum()
    return Bars(
        (1 - shrinks) / curvature,
        (1 + shrinks) / curvature,
        share / total if total > 0 else share,
        np.asarray(parts[TIMES]),
    )


def at_best(parts: Parts, iterations: int) -> Bars | None:
    """Return the windows at the best step's last weights; None where they are not known."""
    curvature = parts.get(AT_BEST)
    if curvature is None or not len(curvature):
        return None
    ones = np.ones(len(curvature), int)
    return bars({CURVATURE: curvature, SHARE: ones, TIMES: ones}, iterations)


def grouped(found: Bars) -> Bars:
    """Return at most `MOST` bars: neighbours are put together, those with the larger shares last.

    A group reaches over all windows in it.
    """
    count = len(found.low)
    if count <= MOST:
        return found
    weight = np.cumsum(found.share + 1 / count)
    group = np.minimum(
        (MOST * (weight - weight[0]) / (weight[-1] - weight[0])).astype(int), MOST - 1
    )
    first = np.flatnonzero(np.r_[True, np.diff(group) > 0])
    return Bars(
        np.minimum.reduceat(found.low, first),
        np.maximum.reduceat(found.high, first),
        np.add.reduceat(found.share, first),
        np.add.reduceat(found.times, first),
    )


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no scheme has directions to draw."""
    rows = material.schemes(sweep, experiment)
    arrays = material.fitting(sweep, rows, names.DESCENT_ARRAYS, lambda parts: CURVATURE in parts)
    if not arrays:
        return None
    table = material.steps(sweep, experiment)
    title = f"{material.with_budget(experiment, rows)}, which directions a step size trains"
    return draw(arrays, rows, table, title, shape=options.shape)


def draw(
    arrays: Arrays,
    schemes: pd.DataFrame,
    steps: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: two panels a scheme on one axis of step sizes.

    arrays: by label, with `window_curvature`, `window_share` and `window_times`. schemes, steps:
    as `step_sizes.draw` takes them.
    """
    drawn = with_arrays(schemes, arrays)
    rows = [scheme.row for scheme in drawn]
    budgets = [int(row[names.setting("iterations")]) for row in rows]
    starts = [bars(scheme.parts, budget) for scheme, budget in zip(drawn, budgets)]
    ends = [at_best(scheme.parts, budget) for scheme, budget in zip(drawn, budgets)]
    with style.drawn(shape):
        figure, axes = _panels(len(rows), shape, title)
        low, high = _limits(starts, steps, rows)
        for (upper, lower), (label, row, _, look), start, end in zip(axes, drawn, starts, ends):
            _bars(upper, start, end, style.dark(look.color))
            _excess(lower, steps[steps["label"] == label].sort_values(STEP), row)
            _lines((upper, lower), row, look)
            _name(upper, row, start, end, look)
            upper.set(xscale="log", xlim=(low, high))
            ticks.log_ticks(upper.xaxis, most=5)
        _label(axes)
        _legend(figure, shape, steps, rows, any(ends))
        guessed = [row["label"] for row in rows if row.get(names.MINIMUM_REACHED.column) == "false"]
        if guessed:
            style.note(figure, shape, f"{', '.join(guessed)}: {GUESSED}")
    return figure


def _panels(count: int, shape: Shape, title: str) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure with an upper and a lower panel for each scheme."""
    deep, wide = style.rows_and_columns(count, min(shape.columns, 3))  # a title takes a third
    height = min(1.25, 2.6 / wide * 1.25) * shape.width / wide
    inches = deep * max(height, 3.2) + 6 * shape.font / 72
    figure = style.blank(shape, inches, style.heading(title, shape))
    style.pad(figure, 0.06, 0.05)
    grid = figure.subplots(2 * deep, wide, squeeze=False, sharex=True, height_ratios=[3, 2] * deep)
    return figure, style.in_pairs(grid, count, wide)


def _limits(starts: list[Bars], steps: pd.DataFrame, rows: list[Row]) -> tuple[float, float]:
    """Return the step sizes that are shown: the grid, 2/L, and the windows that hold anything."""
    low, high = steps[STEP].min(), steps[STEP].max()
    ends = [low, high, *(number_in(row, THRESHOLD) for row in rows)]
    for each in starts:
        heavy = each.share > 0.01
        ends += [*each.low[heavy], *each.high[heavy]]
    known = [end for end in ends if end > 0]
    return max(min(known), low / 1e3) / 2, min(max(known), high * 1e3) * 2


def _bars(axis: Any, start: Bars, end: Bars | None, color: str) -> None:
    """Draw the windows, the stiffest direction on top, dark by the share of the excess.

    end: those at the best weights, outlined in a colour, from top to bottom as well.
    """
    shown = grouped(start)
    count, darkest = len(shown.low), max(float(shown.share.max()), 1e-300)
    greys = [str(LIGHT * (1 - share / darkest)) for share in shown.share]
    look: Any = {"facecolors": greys, "edgecolors": "0.6", "linewidths": 0.4}
    axis.add_collection(PatchCollection(_rectangles(shown, 1.0), zorder=2, **look))
    if end is not None:
        outlines = _rectangles(grouped(end), count / len(grouped(end).low))
        look = {"facecolors": "none", "edgecolors": color, "linewidths": 0.6}
        axis.add_collection(PatchCollection(outlines, zorder=3, **look))
    axis.set(ylim=(count - 0.5, -0.5), yticks=[])
    axis.grid(False)


def _rectangles(windows: Bars, tall: float) -> list[Rectangle]:
    """Return bars from top to bottom, each so tall."""
    return [
        Rectangle((low, place * tall - 0.5), high - low, tall)
        for place, (low, high) in enumerate(zip(windows.low, windows.high))
    ]


def _excess(axis: Any, own: pd.DataFrame, row: Row) -> None:
    """Draw what each step size left of the start's excess, with its verdict.

    Where rounding decides that, the mark stands on the axis, and no number is drawn.
    """
    left = np.array([excess_left(step, row) for step in as_rows(own)])
    sizes = own[STEP].to_numpy(dtype=float)
    shown = np.clip(np.where(np.isfinite(left), left, MOST_LEFT), LEAST, MOST_LEFT)
    shown[(own["verdict"] == names.BY_ROUNDING).to_numpy()] = LEAST / 2
    axis.set_yscale("log")
    axis.set_ylim(LEAST / 2, 2 * MOST_LEFT)
    axis.axhline(1.0, color="0.7", lw=0.8, zorder=1)
    kept = np.isfinite(left)
    axis.plot(sizes[kept], shown[kept], color="0.5", lw=0.8, zorder=2)
    for verdict in VERDICTS:
        having = (own["verdict"] == verdict).to_numpy()
        if having.any():  # where nothing is clipped, an empty line has no end
            style.draw_verdict(axis, verdict, sizes[having], shown[having])
    places = [LEAST, 1e-4, 1e-2, 1.0, MOST_LEFT]
    axis.set_yticks(places, ["under 10⁻⁶", "10⁻⁴", "10⁻²", "10⁰", f"over {MOST_LEFT:g}"])
    axis.minorticks_off()


def _lines(pair: tuple[Any, Any], row: Row, look: style.Look) -> None:
    """Draw 2/L and the best step size through both panels."""
    best, threshold = number_in(row, names.STEP_TAG.column), number_in(row, THRESHOLD)
    for axis in pair:
        if not np.isnan(threshold):
            axis.axvline(threshold, color="black", ls=":", lw=1.4, zorder=3)
        if not np.isnan(best):
            axis.axvline(best, color=style.dark(look.color), lw=1.8, zorder=3)


def _name(axis: Any, row: Row, start: Bars, end: Bars | None, look: style.Look) -> None:
    """Write over a scheme's panels what its best step size serves, in numbers."""
    style.name_panel(axis, row["label"], look)
    best = number_in(row, names.STEP_TAG.column)
    if np.isnan(best):
        return
    count, share = start.served(best)
    exact = str(row.get(names.BASIS.column, "")).startswith(names.EXACT)
    step, total = f"step {row[names.STEP_TAG.column]}", start.times.sum()
    if not exact and best > start.high.max():  # what it serves is flatter than the start is
        lines = [f"{step} is too large", f"for all {total} directions of the start"]
    else:
        where = "" if exact else "at the start, "
        lines = [f"{step} trains {count} of {total} directions"]
        lines += [f"{where}holding {share:.0%} of the excess cost"]
    if end is not None:
        lines.append(f"and trains {end.served(best)[0]} of {len(end.low)} at the end")
    axis.set_title("\n".join([axis.get_title(), *lines]), fontsize="small")


def _label(pairs: list[tuple[Any, Any]]) -> None:
    for upper, lower in pairs:
        place = lower.get_subplotspec()
        upper.tick_params(labelbottom=False)
        lower.tick_params(labelbottom=True)
        lower.set_xlabel("step size")
        if place.is_first_col():
            upper.set_ylabel("most curved on top")
            lower.set_ylabel("excess cost left")
        else:
            lower.tick_params(labelleft=False)


def _legend(
    figure: Figure, shape: Shape, steps: pd.DataFrame, rows: list[Row], outlined: bool
) -> None:
    looks: dict[str, Any] = {}
    if any(pd.notna(row[names.STEP_TAG.column]) for row in rows):
        looks[f"{which_step(pd.DataFrame(rows))} step"] = {"color": "0.3", "lw": 1.8}
    if any(pd.notna(row.get(THRESHOLD)) for row in rows):
        looks["2 / L, promised"] = {"color": "black", "ls": ":", "lw": 1.4}
    square = {"marker": "s", "ls": ""}
    looks["dark: much of the excess cost lies there"] = {**square, "color": "0.2"}
    if outlined:
        looks["outlined: at the end"] = {**square, "mfc": "none", "mec": "0.3"}
    handles = style.verdict_marks(set(steps["verdict"]))
    handles += [Line2D([], [], label=label, **look) for label, look in looks.items()]
    style.legend(figure, shape, handles)
