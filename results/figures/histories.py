"""The textbook's figure: cost histories left, misclassification histories right."""

from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from results.figures.style import RC, look

PANELS = (("train/cost", "cost"), ("train/misclassifications", "misclassifications"))


def draw(histories: pd.DataFrame, schemes: pd.DataFrame, title: str) -> Figure:
    """Return the figure of each scheme's best step.

    histories: one row a scheme and iteration (`label`, `normalizer`, `iteration`, metrics).
    schemes: one row a scheme (`label`, `normalizer`, `tags.step_size`), in the legend's order.
    """
    panels = [(metric, name) for metric, name in PANELS if metric in histories]
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(4.8 * max(len(panels), 1) + 0.4, 4.0), layout="constrained")
        figure.suptitle(title, fontsize=11)
        axes = figure.subplots(1, max(len(panels), 1), squeeze=False)[0]
        for axis, (metric, name) in zip(axes, panels):
            _panel(axis, histories, schemes, metric)
            axis.set_xlabel("iteration")
            axis.set_ylabel(f"{name}, mean over points" if name == "cost" else name)
        if not panels:
            axes[0].text(
                0.5, 0.5, "no scheme has a history", ha="center", transform=axes[0].transAxes
            )
        elif axes[0].lines:
            handles, labels = axes[0].get_legend_handles_labels()
            columns = min(3, len(handles))
            figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure


def _panel(axis: Any, histories: pd.DataFrame, schemes: pd.DataFrame, metric: str) -> None:
    count = len(schemes)
    for number, scheme in enumerate(schemes.to_dict("records")):
        rows = histories[histories["label"] == scheme["label"]].dropna(subset=[metric])
        if rows.empty:
            continue
        style = look(scheme["normalizer"])
        every = max(1, len(rows) // 8)
        axis.plot(
            rows["iteration"],
            rows[metric],
            color=style.color,
            linestyle=style.line,
            marker=style.marker,
            # Markers stand at different iterations, so that curves that coincide are both seen.
            markevery=(number * every // max(count, 1), every),
            markersize=5,
            label=f"{scheme['label']}, step {scheme['tags.step_size']}",
        )
    if metric == "train/cost" and axis.lines:
        lows = [line.get_ydata().min() for line in axis.lines]
        highs = [line.get_ydata().max() for line in axis.lines]
        if min(lows) > 0 and max(highs) > 10 * min(lows):
            axis.set_yscale("log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if metric != "train/cost":
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
