"""Performance profiles over many problems: the share that a scheme solves within a factor."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Shape


def draw(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a staircase a scheme, higher and further left is better.

    table: from `comparisons.profile`, one row a step of a staircase: `scheme`, `factor` (of the
    best scheme's value on each problem, 1 or more), `share` of the problems within it.
    Dolan and More, Mathematical Programming 91 (2002).
    """
    groups = [(str(name), rows) for name, rows in table.groupby("scheme", sort=False)]
    height = max(0.5 * shape.width, (len(groups) + 2) * 1.25 * shape.font / 72)
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        # A scheme's own options follow its name, and its looks are shades of the name's.
        looks = style.looks([name.split(", ")[0] for name, _ in groups])
        top = 1.1 * max(float(table["factor"].max()), 1.5)
        ends = []
        for (name, rows), look in zip(groups, looks):
            rows = rows.sort_values("factor")
            factors = [1.0, *rows["factor"], top]
            shares = [0.0, *rows["share"], rows["share"].iloc[-1]]
            axis.step(factors, shares, where="post", color=look.color, ls=look.line, label=name)
            rises = rows[rows["share"].diff().fillna(rows["share"]) > 0]
            mark: Any = {"ls": "", "marker": look.marker, "color": look.color, "ms": 4}
            axis.plot(rises["factor"], rises["share"], label="_marks", **mark)
            ends.append(End(name, float(shares[-1]), look))
        axis.set(xscale="log", xlim=(1, top), ylim=(0, 1.03))
        axis.set(xlabel="within this factor of the best scheme", ylabel="share of the problems")
        ticks.log_ticks(axis.xaxis)
        end_labels(axis, ends, shape, height)
    return figure
