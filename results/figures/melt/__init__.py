"""Why and what, in one drawing: the start's excess in layers, and how a step size melts them.

One row a scheme. Left: each layer is an eigendirection of the Hessian at the start, the stiffest on
top, as thick as what is to be gained along it; its colour over the step size is what the iterations
leave of it. Right: the same layers over the iterations at the step size shown, the thick line;
their upper edge is the excess history. The left colours along that line are the right panel's end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import problems
from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import Arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.melt.layers import Layers, of_parts
from normbench.results.figures.melt.page import Page, room
from normbench.results.figures.melt.schemes import (
    TIED,
    Melt,
    chosen,
    melts,
    merged,
    notes,
    percent,
    reasons,
)
from normbench.results.store.runs import Sweep, which_step

__all__ = ["Layers", "Melt", "draw", "make", "melts", "percent", "why_not"]

Array = NDArray[np.float64]
Picture = NDArray[np.uint8]  # floats are drawn in three times the time
STEPS, ROWS = 600, 480  # of a panel's image
SEPARATED = 0.015  # of the excess: layers of so much have a line between them
FROZEN, MELTED, GROWS, UNKNOWN = "#e4dfd5", "#08519c", "#e2604f", "#8c8c8c"
MELT = LinearSegmentedColormap.from_list(
    "melt", [(0, MELTED), (0.1, "#2171b5"), (0.5, "#85bbe0"), (0.9, "#cfdfe9"), (1, FROZEN)]
)
GROWS_BYTES, UNKNOWN_BYTES = (np.multiply(to_rgb(color), 255) for color in (GROWS, UNKNOWN))
WHITE = np.full((1, 3), 255, np.uint8)
SEPARATOR: Any = {"color": "white", "zorder": 2.5}
HATCH: Any = {"edgecolor": "#b23a2b", "linewidth": 0, "hatch": "////"}


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no scheme has layers."""
    rows = material.schemes(sweep, experiment)
    arrays = material.fitting(
        sweep, rows, names.DESCENT_ARRAYS, lambda parts: of_parts(parts) is not None
    )
    steps = material.steps(sweep, experiment)
    if not melts(arrays, rows, steps):
        return None
    title = f"{material.of_first(experiment, rows)}, {problems.budget(rows)}"
    starts = max(parts[names.TRAIN_COST.key].shape[1] for parts in arrays.values())
    title += f", the first of {starts} starts" if starts > 1 else ""
    return draw(arrays, rows, steps, title, shape=options.shape)


def why_not(sweep: Sweep, experiment: str) -> list[str]:
    """Return why schemes of an experiment have no picture, each reason once."""
    return list(dict.fromkeys(reasons(material.schemes(sweep, experiment), ()).values()))


def draw(
    arrays: Arrays,
    schemes: pd.DataFrame,
    steps: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: two panels a scheme.

    arrays: by label, what is kept of the descent. schemes, steps: as `step_sizes.draw` takes them.
    """
    every = melts(arrays, schemes, steps)
    rows, rest = chosen(merged(every), room(shape))
    best = which_step(schemes)
    below = notes(rows, rest, reasons(schemes, [melt.label for melt in every]))
    with style.drawn(shape):
        page = Page(shape, f"{title}, each at its {best} step", rows, best, below)
        limits = _limits(rows)
        for number, melt in enumerate(rows):
            why, what = page.panels(number)
            _why(why, melt, limits, page.shape)
            _what(what, melt, page)
        page.finish(_legend(rows))
    return page.figure


def _limits(rows: Sequence[Melt]) -> tuple[float, float]:
    """Return the decimal logarithms of the step sizes that are shown.

    From where the stiffest layer begins to melt to where the layers that hold 97 percent of the
    excess diverge, and all that were tried of measured ones.
    """
    low, high = [], []
    for melt in rows:
        layers = melt.layers
        if not layers.exact:
            low.append(layers.sizes.min() / 10**layers.apart)
            high.append(layers.sizes.max() * 10**layers.apart)
            continue
        heavy = np.cumsum(layers.share) <= 0.97
        low += [0.1 / (max(layers.iterations, 1) * layers.curvature[0]), melt.step / 2]
        high += [2.5 / layers.curvature[heavy].min(initial=layers.curvature[0]), melt.step * 2]
    return float(np.log10(min(low))), float(np.log10(max(high)))


def _why(axis: Any, melt: Melt, limits: tuple[float, float], shape: Shape) -> None:
    """Draw a scheme's layers over the step size."""
    layers, (low, high) = melt.layers, limits
    at = np.linspace(low, high, STEPS)
    if layers.exact:
        ratios = layers.ratios(10**at)
    else:
        tried = np.log10(layers.sizes)
        nearest = np.abs(at[:, None] - tried).argmin(axis=1)
        known = layers.ratios(layers.sizes)
        known[melt.decided] = -1
        ratios = known[nearest]
        ratios[np.abs(at - tried[nearest]) > 1.01 * layers.apart] = np.nan
    tops = np.r_[0, np.cumsum(layers.thickness)]
    place = np.searchsorted(tops[1:-1], (np.arange(ROWS) + 0.5) / ROWS * tops[-1])
    picture = _colours(ratios.T)[place]
    axis.imshow(picture, extent=(low, high, 0, 1), aspect="auto", interpolation="none", zorder=1)
    _hatch(axis, at, 1 - tops / tops[-1], ratios.T > 1 + TIED)
    for layer in _separated(layers):
        axis.axhline(1 - tops[layer + 1], lw=0.35 * shape.line, **SEPARATOR)
    if not layers.exact:
        for top, bottom, curvature in zip(tops, tops[1:], layers.curvatures):
            if bottom - top >= 0.01 and low < np.log10(2 / curvature) < high:
                x, mark = (
                    np.log10(2 / curvature),
                    {"color": "black", "ls": ":", "lw": 0.7 * shape.line},
                )
                axis.plot([x, x], [1 - top, 1 - bottom], zorder=3, **mark)
    axis.axvline(np.log10(melt.step), color="black", lw=1.5 * shape.line, zorder=4)
    axis.set(xlim=(low, high), ylim=(0, 1))


def _colours(ratios: Array) -> Picture:
    """Return a colour for each share left, `(.., 3)`; white where none was tried."""
    colours = MELT(np.clip(np.nan_to_num(ratios), 0, 1), bytes=True)[..., :3]
    colours[ratios > 1 + TIED] = GROWS_BYTES
    colours[ratios < 0] = UNKNOWN_BYTES
    colours[np.isnan(ratios)] = 255
    return np.asarray(colours)


def _separated(layers: Layers) -> NDArray[np.int64]:
    """Return the layers that are parted from the next by a line: both are thick enough."""
    thick = layers.thickness >= SEPARATED
    return np.flatnonzero(thick[:-1] & thick[1:])


def _hatch(axis: Any, at: Array, edges: Array, grown: NDArray[np.bool_]) -> None:
    """Hatch where layers grow, for those who see no red; edges `(g + 1,)`, from the top down."""
    corners: list[Path] = []
    start = None
    edge = np.r_[np.zeros((1, grown.shape[1]), bool), grown, np.zeros((1, grown.shape[1]), bool)]
    half = (at[1] - at[0]) / 2
    change = np.flatnonzero(np.any(np.diff(edge, axis=1), axis=0))
    for start, stop in zip(np.r_[0, change + 1], np.r_[change, len(at) - 1]):
        ends = np.flatnonzero(np.diff(edge[:, start].astype(int)))
        for top, bottom in zip(edges[ends[::2]], edges[ends[1::2]]):
            left, right = at[start] - half, at[stop] + half
            corners.append(
                Path(
                    np.array(
                        [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
                    ),
                    closed=True,
                )
            )
    if corners:
        outline = Path.make_compound_path(*corners)
        axis.add_patch(PathPatch(outline, facecolor="none", zorder=2, **HATCH))


def _what(axis: Any, melt: Melt, page: Page) -> None:
    """Draw the layers over the iterations at the step size shown, and the excess history."""
    layers, edge = melt.layers, melt.edge
    last = layers.iterations
    history = layers.history(melt.step)
    if history is not None:
        at, parts = history
        columns = np.linspace(0, last, STEPS) if last else np.zeros(STEPS)
        spread = np.stack([np.interp(columns, at, part) for part in parts.T])
        flat = np.cumsum(spread[::-1], axis=0)  # upper edges, from the flattest layer up
        heights = (ROWS - np.arange(ROWS) - 0.5) / ROWS
        shown_ratio = layers.ratios(np.array([melt.step]))[0]
        colours = np.concatenate([_colours(shown_ratio)[::-1], WHITE])
        place = np.stack([np.searchsorted(flat[:, n], heights) for n in range(STEPS)], axis=1)
        picture = colours[place]
        axis.imshow(picture, extent=(0, max(last, 1), 0, 1), aspect="auto", interpolation="none")
        edges = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]  # of each layer, over those below it
        for layer in _separated(layers):
            thin = np.minimum(parts[:, layer], parts[:, layer + 1]) < SEPARATED
            axis.plot(
                at,
                np.where(thin, np.nan, edges[:, layer + 1]),
                lw=0.35 * page.shape.line,
                **SEPARATOR,
            )
    axis.plot(np.arange(last + 1), edge, color="black", lw=page.shape.line, zorder=4)
    if last <= 200:
        dots = np.unique(np.geomspace(1, max(last, 1), 24).round().astype(int))
        axis.plot(dots, edge[dots], "k.", ms=2.7 * page.shape.line, zorder=5)
    axis.set(xlim=(0, max(last, 1)), ylim=(0, 1))
    page.say_end(axis, float(edge[-1]))


def _legend(rows: Sequence[Melt]) -> list[tuple[str, dict[str, Any]]]:
    """Return what each colour says, with its look."""
    entries: list[tuple[str, dict[str, Any]]] = [
        ("too small: frozen", {"facecolor": FROZEN}),
        ("melted", {"facecolor": MELTED}),
        ("too large: grows", {"facecolor": GROWS, **HATCH}),
    ]
    if any(melt.decided.any() for melt in rows):
        entries.append((names.BY_ROUNDING, {"facecolor": UNKNOWN}))
    return entries
