"""The distribution of each feature under each scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Look, Shape

SPREAD = 0.16  # of the points of one feature, to both sides
ROW = 1.0  # of a feature, in lines of text at the least
LONGEST = 18  # letters of a name


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, a row a feature, a box over its points.

    The box holds the middle half, the line is the median, the whiskers hold all. arrays: by
    label, `values` (p, m), `names` (m,), `all` (): how many features there are. schemes: one row
    a scheme (`label`, `normalizer`), in order.
    """
    shown = with_arrays(schemes, arrays)
    count = max(parts["values"].shape[1] for parts in arrays.values())
    side = shape.width / min(len(shown), shape.columns)
    height = max(0.9 * side, ROW * count * shape.font / 72 + 4 * shape.font / 72)
    with style.drawn(shape):
        figure, axes = style.panels(len(shown), shape, title, height / side)
        for axis, (label, _, parts, look) in zip(axes, shown):
            _panel(axis, parts, look, shape)
            left_out = int(parts["all"]) - len(parts["names"])
            more = f", and {left_out} more features" if left_out else ""
            style.name_panel(axis, label + more, look)
            axis.set_xlabel("value")
    return figure


def _panel(axis: Any, parts: Parts, look: Look, shape: Shape) -> None:
    values = parts["values"]
    count = values.shape[1]
    places = np.arange(1, count + 1)
    beside = np.random.default_rng(0).uniform(-SPREAD, SPREAD, values.shape)
    dots: Any = {"s": (0.2 * shape.font) ** 2, "color": look.color, "alpha": 0.3, "lw": 0}
    axis.scatter(values, places + beside, rasterized=True, label="_points", **dots)
    line = {"color": "black", "linewidth": 0.9}
    axis.boxplot(
        values,
        positions=places,
        widths=0.6,
        whis=(0, 100),
        orientation="horizontal",
        showfliers=False,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={**line, "linewidth": 2},
    )
    axis.axvline(0, color="0.4", lw=0.8, ls=":", label="_zero")
    names = [style.plain(str(name))[:LONGEST] for name in parts["names"]]
    axis.set_yticks(places, names)
    axis.set_ylim(count + 0.6, 0.4)
    axis.tick_params(labelsize="small")
    axis.grid(False, axis="y")


make = of_arrays("features", draw)
