"""The cost over two weights under each scheme, with the path of the descent on it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normbench.results import names
from normbench.results.figures import style
from normbench.results.figures.material import of_arrays
from normbench.results.figures.style import SCREEN, Shape

LEVELS = 14
CONDITION = names.CONDITION.column


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a panel a scheme, contours of the cost, the path from dark to bright.

    arrays: by label, `a`, `b` (G,), `cost` (G, G), `path` (k, 2), `iteration` (k,), `names` (2,)
    and `step_size` (). schemes: one row a scheme (`label`, `normalizer`; where known
    `metrics.theory/condition_number`), in order.
    """
    rows = [row for row in schemes.to_dict("records") if row["label"] in arrays]
    with style.drawn(shape):
        figure, axes = style.panels(max(len(rows), 1), shape, title, 0.95)
        if not rows:
            style.say_nothing(axes[0], "no scheme has recorded contours")
            return figure
        last = max(int(arrays[row["label"]]["iteration"][-1]) for row in rows)
        looks = style.looks([row["normalizer"] for row in rows])
        for axis, row, look in zip(axes, rows, looks):
            dots = _panel(axis, arrays[row["label"]], max(last, 1), shape)
            step = f", step {float(arrays[row['label']]['step_size']):g}"
            style.name_panel(axis, row["label"] + step + _condition(row), look)
        bar = figure.colorbar(dots, ax=axes, location="bottom", shrink=0.5, aspect=40)
        bar.set_label("iteration (circle: the start, star: the end)")
    return figure


def _condition(row: Mapping[Any, Any]) -> str:
    known = row.get(CONDITION)
    return "" if known is None or pd.isna(known) else f", condition {float(known):.3g}"


def _panel(axis: Any, parts: Mapping[str, Any], last: int, shape: Shape) -> Any:
    cost = parts["cost"]
    axis.contour(parts["a"], parts["b"], cost, levels=levels(cost), colors="0.55", linewidths=0.6)
    axis.contourf(
        parts["a"], parts["b"], cost, levels=levels(cost), cmap="Greys", alpha=0.35, extend="both"
    )
    path = parts["path"]
    axis.plot(path[:, 0], path[:, 1], color="black", lw=0.7, label="path", zorder=2)
    dots = axis.scatter(
        path[:, 0],
        path[:, 1],
        c=parts["iteration"],
        cmap="plasma",
        norm=PowerNorm(0.5, 0, last),  # most happens early
        s=(0.35 * shape.font) ** 2,
        zorder=3,
    )
    for place, marker in ((path[0], "o"), (path[-1], "*")):
        axis.plot(
            *place,
            marker=marker,
            color="white",
            mec="black",
            ms=0.8 * shape.font,
            ls="",
            label="_end",
            zorder=4,
        )
    axis.set_aspect("equal")
    axis.set_xlim(parts["a"][0], parts["a"][-1])
    axis.set_ylim(parts["b"][0], parts["b"][-1])
    axis.set_xlabel(style.plain(str(parts["names"][0])), fontsize="small")
    axis.set_ylabel(style.plain(str(parts["names"][1])), fontsize="small")
    axis.grid(False)
    for direction in (axis.xaxis, axis.yaxis):
        direction.set_major_locator(MaxNLocator(3))
    axis.tick_params(labelsize="small")
    return dots


def levels(cost: Any) -> Any:
    """Return the contours' costs, increasing: dense near the lowest, as a valley's are.

    cost: (G, G). Squares of evenly spaced numbers above the lowest cost give a quadratic bowl
    evenly spaced contours.
    """
    finite = cost[np.isfinite(cost)]
    low, high = float(finite.min()), float(finite.max())
    if high <= low:
        return np.array([low, low + 1.0])
    return low + (high - low) * np.linspace(0, 1, LEVELS)[1:] ** 2


make = of_arrays("contours", draw)
