"""Performance profiles over many data sets: the share that a scheme solves within a factor."""

import pandas as pd
from matplotlib.figure import Figure

from results.figures import style
from results.figures.labels import End, end_labels
from results.figures.style import SCREEN, Shape


def draw(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a staircase a scheme, higher and further left is better.

    table: one row a step of a staircase: `normalizer`, `label` where it differs from it, `ratio`
    (to the best scheme of each data set, 1 or more), `share` of the data sets within it.
    Dolan and More, Mathematical Programming 91 (2002).
    """
    names = table["label"] if "label" in table else table.get("normalizer", pd.Series(dtype=str))
    table = table.assign(label=names) if len(table) else table
    count = table["label"].nunique() if len(table) else 0
    height = max(0.5 * shape.width, (count + 2) * 1.25 * shape.font / 72)
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        finite = table[table["ratio"] < float("inf")] if len(table) else table
        if finite.empty:
            style.say_nothing(axis, "no scheme reached the target on any data set")
            return figure
        groups = [(str(label), rows) for label, rows in finite.groupby("label", sort=False)]
        looks = style.looks([str(rows["normalizer"].iloc[0]) for _, rows in groups])
        top = 1.1 * max(float(finite["ratio"].max()), 1.5)
        ends = []
        for (label, rows), look in zip(groups, looks):
            rows = rows.sort_values("ratio")
            ratios = [1.0, *rows["ratio"], top]
            shares = [0.0, *rows["share"], rows["share"].iloc[-1]]
            axis.step(ratios, shares, where="post", color=look.color, ls=look.line, label=label)
            axis.plot(
                rows["ratio"],
                rows["share"],
                ls="",
                marker=look.marker,
                color=look.color,
                markersize=4,
                label="_marks",
            )
            ends.append(End(label, float(shares[-1]), look))
        axis.set_xscale("log")
        axis.set_xlim(1, top)
        style.log_ticks(axis.xaxis)
        axis.set_ylim(0, 1.03)
        axis.set_xlabel("within this factor of the best scheme")
        axis.set_ylabel("share of the data sets")
        end_labels(axis, ends, shape, height - 5.5 * shape.font / 72)
    return figure
