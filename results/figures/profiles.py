"""Performance profiles: the share of problems that a scheme solves within a factor of the best."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Shape


def draw(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: one staircase for each scheme; higher and further left is better.

    Markers show the steps at which a staircase rises.

    Args:
        table: from `comparisons.profile`, one row for each step of a staircase: `scheme`, the
            `factor` over the best scheme's value on each problem, 1 or more, and the `share` of
            the problems within this factor.
        title: the title of the figure.
        shape: the format of the figure.

    References:
        Dolan and More, Mathematical Programming 91 (2002).
    """
    scheme_groups = [(str(name), rows) for name, rows in table.groupby("scheme", sort=False)]
    # The panel is high enough for the names beside it, one below the other.
    height = max(0.5 * shape.width, (len(scheme_groups) + 2) * 1.25 * shape.font / 72)
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        # The scheme's name stands before its options; its look is a shade of the name's colour.
        looks = style.looks([name.split(", ")[0] for name, _ in scheme_groups])
        right_edge = 1.1 * max(float(table["factor"].max()), 1.5)
        curve_ends = []
        for (name, rows), look in zip(scheme_groups, looks):
            rows = rows.sort_values("factor")
            # A staircase starts at share 0 and goes on to the right edge at its last share.
            factors = [1.0, *rows["factor"], right_edge]
            shares = [0.0, *rows["share"], rows["share"].iloc[-1]]
            axis.step(factors, shares, where="post", color=look.color, ls=look.line, label=name)
            rising_rows = rows[rows["share"].diff().fillna(rows["share"]) > 0]
            marker_style: Any = {"ls": "", "marker": look.marker, "color": look.color, "ms": 4}
            axis.plot(rising_rows["factor"], rising_rows["share"], label="_marks", **marker_style)
            curve_ends.append(End(name, float(shares[-1]), look))
        axis.set(xscale="log", xlim=(1, right_edge), ylim=(0, 1.03))
        axis.set(xlabel="within this factor of the best scheme", ylabel="share of the problems")
        ticks.set_log_ticks(axis.xaxis)
        end_labels(axis, curve_ends, shape, height)
    return figure
