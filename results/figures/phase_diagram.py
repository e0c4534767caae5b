"""The verdict of every scheme and step size in one chart, with the predictions drawn in."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench.results import names
from normbench.results.figures import material, style
from normbench.results.figures.step_sizes import LARGEST, STEP, THRESHOLD
from normbench.results.figures.style import SCREEN, VERDICTS, Shape
from normbench.results.runs import Sweep, which_step


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a row a scheme, a cell a step size, in the verdict's colour and marker.

    steps, schemes: as `step_sizes.draw` takes them; `tags.step_size` of a scheme is its best step
    size, or the one that its study shows.
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
        edges = _edges(sizes)
        low, high = edges[0], edges[-1]
        thresholds = _known(schemes, THRESHOLD)
        if len(thresholds):  # a prediction far outside of the grid is left out, not squeezed in
            low = max(min(low, 0.7 * min(thresholds)), low / 30)
            high = min(max(high, 1.4 * max(thresholds)), high * 30)
        axis.set_xlim(low, high)
        _cells(axis, steps, schemes, sizes, shape)
        for place, scheme in enumerate(schemes.to_dict("records")):
            _predictions(axis, place, scheme, sizes)
        axis.set_ylim(len(schemes) - 0.5, -0.5)
        axis.set_yticks(range(len(schemes)), [style.plain(name) for name in schemes["label"]])
        style.log_ticks(axis.xaxis)
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


def _cells(axis: Any, steps: pd.DataFrame, schemes: pd.DataFrame, sizes: Any, shape: Shape) -> None:
    """Colour the cells by verdict, mark each by its verdict's marker, the shown steps by stars."""
    words = list(VERDICTS)
    codes = np.full((len(schemes), len(sizes)), np.nan)
    places = {label: place for place, label in enumerate(schemes["label"])}
    best = dict(zip(schemes["label"], pd.to_numeric(schemes[names.STEP_TAG.column])))
    marks: dict[str, list[tuple[float, int]]] = {}
    for label, size, verdict in zip(steps["label"], steps[STEP], steps["verdict"]):
        if label not in places or verdict not in VERDICTS:
            continue
        codes[places[label], np.searchsorted(sizes, size)] = words.index(verdict)
        is_best = np.isclose(best[label], size, rtol=1e-5)
        marks.setdefault("*" if is_best else verdict, []).append((size, places[label]))
    axis.pcolormesh(
        _edges(sizes),
        np.arange(len(schemes) + 1) - 0.5,
        codes,
        cmap=ListedColormap([color for color, _ in VERDICTS.values()]),
        vmin=-0.5,
        vmax=len(words) - 0.5,
    )
    # White between the rows: two neighbours of one verdict stay two schemes.
    for place in range(len(schemes) - 1):
        axis.axhline(place + 0.5, color="white", lw=3, label="_between")
    for word, cells in marks.items():
        axis.plot(
            *zip(*cells),
            marker="*" if word == "*" else VERDICTS[word][1],
            markersize=(0.9 if word == "*" else 0.5) * shape.font,
            color="white",
            markeredgecolor="black",
            markeredgewidth=0.6,
            ls="",
            label="_best" if word == "*" else f"_{word}",
        )


def _predictions(axis: Any, place: int, scheme: Any, sizes: Any) -> None:
    """Draw where theory puts the limit in a scheme's row, and the largest step that levels."""
    rows = [place - 0.46, place + 0.46]
    threshold, largest = scheme.get(THRESHOLD), scheme.get(LARGEST)
    if threshold is not None and pd.notna(threshold):
        for color, width in (("white", 4.0), ("black", 1.8)):
            axis.plot([threshold] * 2, rows, color=color, lw=width, label="_threshold")
    if largest is not None and pd.notna(largest):
        edges = _edges(sizes)
        right = edges[min(np.searchsorted(edges, largest), len(edges) - 1)]
        axis.plot([right] * 2, rows, color="black", ls=":", label="_largest")


def _known(schemes: pd.DataFrame, column: str) -> Any:
    return schemes[column].dropna().to_numpy() if column in schemes else np.array([])


def _legend(figure: Figure, steps: pd.DataFrame, schemes: pd.DataFrame, shape: Shape) -> None:
    handles: list[Any] = []
    words = [word for word in VERDICTS if word in set(steps["verdict"])]
    for word in words:
        color, marker = VERDICTS[word]
        cell = Line2D([], [], marker="s", ls="", ms=1.3 * shape.font, color=color)
        handles.append((cell, _mark(marker, 0.5 * shape.font)))
    labels = [*words, f"{which_step(schemes)} step"]
    handles.append(_mark("*", 0.9 * shape.font))
    if len(_known(schemes, THRESHOLD)):
        labels.append("2 / L, predicted")
        handles.append(Line2D([], [], color="black", lw=1.8))
    if len(_known(schemes, LARGEST)):
        labels.append("largest step that levels")
        handles.append(Line2D([], [], color="black", ls=":"))
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(handles), 7))


def _mark(marker: str, size: float) -> Line2D:
    return Line2D([], [], marker=marker, ls="", color="white", mec="black", mew=0.6, ms=size)


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None without a descent."""
    table = material.steps(sweep, experiment)
    if table.empty:
        return None
    rows = material.schemes(sweep, experiment)
    return draw(table, rows, material.with_budget(experiment, rows), shape=options.shape)
