"""The verdict of every scheme and step size in one chart, with the predictions drawn in."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from results.figures import style
from results.figures.step_sizes import LARGEST, STEP, THRESHOLD
from results.figures.style import SCREEN, VERDICTS, Shape


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a row a scheme, a cell a step size, in the verdict's colour and marker.

    steps, schemes: as `step_sizes.draw` takes them; `tags.step_size` of a scheme is its best.
    """
    rows = max(len(schemes), 1)
    height = (rows + 1) * 2.1 * shape.font / 72 + 0.9 * shape.font / 10
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        if steps.empty or schemes.empty:
            style.say_nothing(axis, "no step size has a verdict")
            return figure
        sizes = np.unique(steps[STEP])
        axis.set_xscale("log")
        axis.grid(False)
        for place, scheme in enumerate(schemes.to_dict("records")):
            _row(axis, place, steps[steps["label"] == scheme["label"]], scheme, sizes, shape)
        axis.set_ylim(len(schemes) - 0.5, -0.5)
        axis.set_yticks(range(len(schemes)), [style.plain(name) for name in schemes["label"]])
        edges = _edges(sizes)
        low, high = edges[0], edges[-1]
        thresholds = _known(schemes, THRESHOLD)
        if len(thresholds):  # a prediction far outside of the grid is left out, not squeezed in
            low = max(min(low, 0.7 * min(thresholds)), low / 30)
            high = min(max(high, 1.4 * max(thresholds)), high * 30)
        axis.set_xlim(low, high)
        axis.xaxis.set_major_locator(LogLocator(numticks=12))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("step size")
        _legend(figure, steps, schemes, shape)
    return figure


def _edges(sizes: Any) -> Any:
    """Return the edges of cells that have the sizes at their middles, on a log axis."""
    logs = np.log10(sizes)
    if len(logs) == 1:
        return np.array([sizes[0] / 3, sizes[0] * 3])
    middles = (logs[1:] + logs[:-1]) / 2
    ends = [logs[0] - (middles[0] - logs[0])], [logs[-1] + (logs[-1] - middles[-1])]
    return 10 ** np.concatenate([ends[0], middles, ends[1]])


def _row(axis: Any, place: int, steps: pd.DataFrame, scheme: Any, sizes: Any, shape: Shape) -> None:
    edges = _edges(sizes)
    best = scheme.get("tags.step_size")
    for step in steps.to_dict("records"):
        number = int(np.searchsorted(sizes, step[STEP]))
        color, marker = VERDICTS.get(step["verdict"], ("0.5", "o"))
        axis.fill_between(
            edges[number : number + 2],
            place - 0.46,
            place + 0.46,
            color=color,
            lw=0,
            label=f"_{step['verdict']}",
        )
        is_best = best is not None and pd.notna(best) and np.isclose(float(best), step[STEP])
        axis.plot(
            [step[STEP]],
            [place],
            marker="*" if is_best else marker,
            markersize=(0.9 if is_best else 0.5) * shape.font,
            color="white",
            markeredgecolor="black",
            markeredgewidth=0.6,
            ls="",
            label="_best" if is_best else "_cell",
        )
    for column, line, name in ((THRESHOLD, "-", "_threshold"), (LARGEST, "", "_largest")):
        value = scheme.get(column)
        if value is None or pd.isna(value):
            continue
        if line:
            for color, width in (("white", 4.0), ("black", 1.8)):
                axis.plot(
                    [value] * 2, [place - 0.46, place + 0.46], color=color, lw=width, label=name
                )
        else:
            right = edges[np.searchsorted(edges, value * (1 + 1e-9))]
            axis.plot([right] * 2, [place - 0.46, place + 0.46], color="black", ls=":", label=name)


def _known(schemes: pd.DataFrame, column: str) -> Any:
    return schemes[column].dropna().to_numpy() if column in schemes else np.array([])


def _legend(figure: Figure, steps: pd.DataFrame, schemes: pd.DataFrame, shape: Shape) -> None:
    handles: list[Any] = []
    words = [word for word in VERDICTS if word in set(steps["verdict"])]
    for word in words:
        color, marker = VERDICTS[word]
        cell = Line2D([], [], marker="s", ls="", ms=1.3 * shape.font, color=color)
        handles.append((cell, _mark(marker, 0.5 * shape.font)))
    names = [*words, "best step"]
    handles.append(_mark("*", 0.9 * shape.font))
    if len(_known(schemes, THRESHOLD)):
        names.append("2 / L, predicted")
        handles.append(Line2D([], [], color="black", lw=1.8))
    if len(_known(schemes, LARGEST)):
        names.append("largest convergent step")
        handles.append(Line2D([], [], color="black", ls=":"))
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(handles), 7))


def _mark(marker: str, size: float) -> Line2D:
    return Line2D([], [], marker=marker, ls="", color="white", mec="black", mew=0.6, ms=size)
