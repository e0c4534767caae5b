"""The cost over two weights under each scheme, with the path of the descent on it.

Contours stand for the same costs in every panel. Above them, where the points have two features
under a scheme, those points.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures.base import followed, style, ticks
from normbench.results.figures.base.material import Arrays, Drawn, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape

LEVELS = 8  # from the least cost to the start's
FAR = 2.0  # times the start's distance from the least cost: beyond, levels double
LETTERS = 20  # of a line beside a panel
CORNERS = 73  # of an ellipse: a thousandth off the curve
SHADES = 16  # of a panel of ellipses, at most
ROUNDING = 1e-9  # relative: of a grid of quadratic costs
FEW = 4  # contours of a panel: it has those between them, too
CASE = names.MINIMUM_CASE.column


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, contours of the cost, the path from dark to bright.

    arrays: by label, what `record=[contours]` keeps. schemes: one row a scheme (`label`,
    `normalizer`; where known `tags.minimum_case`), in order.
    """
    shown = with_arrays(schemes, arrays)
    every = [scheme.parts for scheme in shown]
    above = all("points" in parts for parts in every)
    with style.drawn(shape):
        figure, uppers, axes = _panels(len(shown), shape, title, above)
        last = max(int(parts["iteration"][-1]) for parts in every)
        shared = levels(every)
        for axis, (label, _, parts, look) in zip(axes, shown):
            dots = _panel(axis, parts, shared, max(last, 1), shape)
            step = f", step {float(parts['step_size']):g}"
            style.name_panel(axis, label + step + _slice(parts), look)
        numbers = followed.in_panels(shown, every[0]["points"]) if above else []
        for axis, (label, _, parts, look) in zip(uppers, shown):
            _points(axis, parts, shape)
            followed.mark(axis, parts["points"], numbers, shape)
            style.name_panel(axis, label, look)
        bar = figure.colorbar(dots, ax=[*uppers, *axes], location="bottom", shrink=0.5, aspect=40)
        bar.set_label("iteration")
        letters = f"\n{followed.note(numbers)}" if numbers else ""
        style.note(figure, shape, _notes(shown) + letters)
    return figure


def _panels(
    count: int, shape: Shape, title: str, above: bool
) -> tuple[Figure, list[Any], list[Any]]:
    """Return a figure, its panels of points (none, if not `above`), and those of contours."""
    deep, wide = style.rows_and_columns(count, shape.columns)
    lines = deep * (2 if above else 1)
    # Beside the square panels, in lines of text: names and titles, the colour bar and notes.
    text = (3 + 9 / lines) * 1.25 * shape.font / 72
    height = 0.85 + text / (shape.width / wide)
    if not above:
        figure, axes = style.panels(count, shape, title, height)
        return figure, [], axes
    figure, pairs = style.pairs(count, shape, title, height)
    return figure, [upper for upper, _ in pairs], [lower for _, lower in pairs]


def _slice(parts: Parts) -> str:
    """Return the condition number of a scheme's slice, and what is held."""
    known = float(parts["condition"])
    words = "" if np.isnan(known) else f", slice's condition {ticks.short(known)}"
    wide, tall = np.ptp(parts["a"]), np.ptp(parts["b"])
    if not _is_square(parts):  # what is drawn as a square: long contours look round in it
        long, way = max(wide / tall, tall / wide), "wide" if wide > tall else "tall"
        words += f", really {ticks.short(float(f'{long:.2g}'))} times as {way}"
    return words + (f", {parts['held']}" if str(parts["held"]) else "")


def levels(every: Sequence[Parts]) -> tuple[Any, int]:
    """Return the costs of the contours of all panels, increasing; and which have them all.

    The least cost plus squares of evenly spaced numbers, which give a quadratic bowl evenly spaced
    contours; some way above the start's cost they double. As many as the flattest panel needs: the
    others have every second, or every fourth .., which the second number says.
    """
    costs = [parts["cost"][np.isfinite(parts["cost"])] for parts in every]
    low = min(float(parts["least"]) for parts in every)
    top = max(float(cost.max()) for cost in costs)
    unit = max(float(parts["path_cost"][0]) for parts in every) - low
    if unit <= 0:
        unit = top - low or 1.0
    for finer in (1, 2, 4, 8, 16):
        count = LEVELS * finer
        near = unit * (np.arange(1, round(count * FAR**0.5) + 1) / count) ** 2
        if all(
            len(within(low + near, cost)) >= FEW or cost.min() > low + near[-1] for cost in costs
        ):
            break
    beyond = max(0.0, np.log2(max(top - low, unit) / near[-1]))
    far = near[-1] * 2.0 ** (np.arange(1, finer * int(np.ceil(beyond)) + 1) / finer)
    return low + np.concatenate([near, far]), finer


def within(found: Any, cost: Any) -> Any:
    """Return those of some levels that a panel's costs reach."""
    return found[(found > np.nanmin(cost)) & (found < np.nanmax(cost))]


def lines(shared: Any, finer: int, cost: Any) -> Any:
    """Return the levels of a panel's contours: every `finer`th, and more where those are few."""
    every = finer
    while every > 1 and len(within(shared[every - 1 :: every], cost)) < FEW:
        every //= 2
    return within(shared[every - 1 :: every], cost)


def _panel(axis: Any, parts: Parts, shared: tuple[Any, int], last: int, shape: Shape) -> Any:
    """Draw one scheme's contours and path; return the dots that the colour bar is of."""
    a, b, cost = parts["a"], parts["b"], parts["cost"]
    found = lines(*shared, cost)
    greys = matplotlib.colormaps["Greys"](np.linspace(0, 0.4, len(shared[0]) + 1))
    bowl = bowl_of(parts)
    if bowl is not None:
        top = int(np.searchsorted(shared[0], np.nanmax(cost)))
        axis.set_facecolor(greys[top])
        inside = np.flatnonzero((shared[0] > bowl.least) & (shared[0] < np.nanmax(cost)))[::-1]
        inside = inside[:: -(-len(inside) // SHADES) or 1]
        every = [bowl.ellipse(level) for level in shared[0][inside]]
        axis.add_collection(PolyCollection(every, facecolors=greys[inside], label="_bowl"))
        rims = [bowl.ellipse(level) for level in found if level > bowl.least]
        axis.add_collection(LineCollection(rims, colors="0.55", linewidths=0.6, label="_rims"))
    else:
        if len(found):  # matplotlib warns of contours that are not there
            axis.contour(a, b, cost, levels=found, colors="0.55", linewidths=0.6)
        axis.contourf(a, b, cost, levels=shared[0], colors=greys, extend="both")
    path = parts["path"]
    axis.plot(*path.T, color="black", lw=0.7, alpha=0.7, label="path", zorder=2)
    dots = axis.scatter(
        *path.T,
        c=parts["iteration"],
        cmap="plasma",
        norm=PowerNorm(0.5, 0, last),  # most happens early
        s=(0.35 * shape.font) ** 2,
        zorder=3,
    )
    marks = [("_end", path[0], "o"), ("_end", path[-1], "*")]
    marks += [("_minimum", parts["minimum"], "P")] if len(parts["minimum"]) else []
    mark = {"color": "white", "mec": "black", "ms": 0.8 * shape.font, "ls": "", "zorder": 4}
    for label, place, marker in marks:
        axis.plot(*place, marker=marker, label=label, **mark)
    if _is_square(parts):
        axis.set_aspect("equal")
    axis.set(box_aspect=1, xlim=(a[0], a[-1]), ylim=(b[0], b[-1]))
    style.name_plane(axis, parts["names"], LETTERS)
    return dots


class Bowl(NamedTuple):
    """A quadratic cost on a panel: its least there, where (2,), and its ellipses.

    axes (2, 2): a column times the root of a rise of the cost is a half axis.
    """

    least: float
    middle: Any
    axes: Any

    def ellipse(self, level: float) -> Any:
        """Return the points (n, 2) of the contour of a cost, first and last the same."""
        turn = np.linspace(0, 2 * np.pi, CORNERS)
        circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        return self.middle + np.sqrt(level - self.least) * circle @ self.axes.T


def bowl_of(parts: Parts) -> Bowl | None:
    """Return a panel's cost where it is quadratic, with one least cost; None elsewhere.

    From a grid of costs alone the contours of a long valley would fall into islands.
    """
    scale = np.array([np.ptp(parts["a"]), np.ptp(parts["b"])]) / 2
    corner = np.array([parts["a"][0], parts["b"][0]]) + scale
    u, v = np.meshgrid((parts["a"] - corner[0]) / scale[0], (parts["b"] - corner[1]) / scale[1])
    terms = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1).reshape(-1, 6)
    cost = np.asarray(parts["cost"], dtype=float).ravel()
    if not np.isfinite(cost).all():
        return None
    fit = np.linalg.lstsq(terms, cost)[0]
    if np.abs(terms @ fit - cost).max() > ROUNDING * np.ptp(cost):
        return None
    curved = np.array([[2 * fit[3], fit[4]], [fit[4], 2 * fit[5]]])
    values, vectors = np.linalg.eigh(curved)
    if values[0] <= ROUNDING * values[1]:
        return None
    middle = -np.linalg.solve(curved, fit[1:3])
    least = float(fit[0] + fit[1:3] @ middle / 2)
    return Bowl(least, corner + scale * middle, scale[:, None] * vectors * np.sqrt(2 / values))


def _is_square(parts: Parts) -> bool:
    """Return whether both axes of a scheme's panel have one scale."""
    return bool(np.isclose(np.ptp(parts["a"]), np.ptp(parts["b"])))


def _points(axis: Any, parts: Parts, shape: Shape) -> None:
    """Draw the points under a scheme, in one scale on both axes."""
    points = parts["points"]
    dots: Any = {"s": (0.32 * shape.font) ** 2, "lw": 0, "alpha": 0.6, "label": "_points"}
    for chosen, (color, marker) in style.by_class(parts, "0.4"):
        axis.scatter(*points[chosen].T, color=color, marker=marker, **dots)
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.54 * float((high - low).max()) or 1.0
    axis.set_box_aspect(1)
    for limits, middle in zip((axis.set_xlim, axis.set_ylim), (low + high) / 2):
        limits(middle - half, middle + half)
    features = [str(name).removeprefix("weight of ") for name in parts["names"]]
    style.name_plane(axis, features, LETTERS)


def _notes(shown: Sequence[Drawn]) -> str:
    """Return what the marks are, and what the slices hold."""
    every = [scheme.parts for scheme in shown]
    marks = ["circle: the start", "star: the end"]
    if any(len(parts["minimum"]) for parts in every):
        marks.append("cross: the least cost")
    notes = [f"{', '.join(marks)}; a grey is the same cost in every panel"]
    through = {str(parts["through"]) for parts in every if "through" in parts}
    notes += [f"each slice goes through {' or '.join(sorted(through))}"] if through else []
    if any(scheme.row.get(CASE) in (names.STRICTLY, names.PARTLY) for scheme in shown):
        notes[-1] += "; no weights have the least cost: it is at infinity"
    if not all(map(_is_square, every)):
        notes.append("where contours are long, the two axes have scales of their own")
    return style.plain("\n".join(notes))


make = of_arrays("contours", draw)
