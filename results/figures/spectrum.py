"""Eigenvalues of the covariance and their cumulative share, before and after each scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normbench.results.figures.base import style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import Arrays, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Look, Shape

BEFORE = Look("#000000", "", "-")
FAR = 1e3  # a ridge so many times under the lowest eigenvalue is told of, not drawn
EPS = float(np.finfo(np.float64).eps)


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: eigenvalues left, cumulative shares right, dead directions shaded.

    arrays: by label, `before` (N,), `after` (M,), `dead` (), `ridge` (). schemes: one row a
    scheme (`label`, `normalizer`), in order. The spectrum before is the same for all.
    """
    shown = with_arrays(schemes, arrays)
    first = shown[0].parts
    height = max(0.6 * shape.width / 2, (len(shown) + 4) * 1.25 * shape.font / 72)
    columns = 1 if shape.width < 8 else 2
    with style.drawn(shape):
        figure, axes = style.panels(2, shape, title, height / (shape.width / columns), columns)
        entries = [("before", first["before"], BEFORE)]
        entries += [(scheme.label, scheme.parts["after"], scheme.look) for scheme in shown]
        ridges = {float(scheme.parts["ridge"]) for scheme in shown}
        _eigenvalues(axes[0], entries, ridges, shape, height)
        _shares(axes[1], entries)
        _marks(axes, len(first["before"]), int(first["dead"]))
    return figure


def _eigenvalues(axis: Any, entries: Any, ridges: set[float], shape: Shape, height: float) -> None:
    """Draw the eigenvalues; those that are rounding stand on the lower edge."""
    largest = max(float(values.max()) for _, values, _ in entries) or 1.0
    live = [values[values > len(values) * EPS * values.max()] for _, values, _ in entries]
    floor = min([float(values.min()) for values in live if len(values)], default=largest) / 10
    ends = []
    for number, ((text, values, look), alive) in enumerate(zip(entries, live)):
        _line(axis, np.maximum(values, floor), text, look, number / len(entries))
        ends.append(End(text, float(alive[-1]) if len(alive) else floor, look))
    axis.set_yscale("log")
    for ridge in sorted(ridge for ridge in ridges if ridge > 0):
        if ridge > floor / FAR:
            floor = min(floor, ridge / 3)
            axis.axhline(ridge, color="0.3", ls=(0, (1, 2)), lw=1.2, label="_ridge")
        words = f"ridge {ridge:g}" + ("" if ridge > floor else ", far below")
        look = {"va": "bottom", "fontsize": "small", "color": "0.3"}
        transform = axis.get_yaxis_transform()
        axis.text(0.02, max(ridge, floor), words, transform=transform, **look)
    axis.set(ylim=(floor, 5 * largest), ylabel="eigenvalue")
    ticks.log_ticks(axis.yaxis)
    end_labels(axis, ends, shape, height)


def _shares(axis: Any, entries: Any) -> None:
    """Draw the cumulative shares, each of its own total: all end at 1, names stand in the other."""
    for number, (text, values, look) in enumerate(entries):
        total = float(values.sum())
        shares = np.cumsum(values) / total if total > 0 else np.zeros(len(values))
        _line(axis, shares, text, look, number / len(entries))
    axis.set(ylim=(0, 1.02), ylabel="cumulative share of its total")


def _line(axis: Any, values: Any, text: str, look: Look, phase: float) -> None:
    curve = style.curve(look, len(values), phase) | {"lw": None if look.marker else 2.5}
    axis.plot(np.arange(1, len(values) + 1), values, label=text, **curve)


def _marks(axes: Any, count: int, dead: int) -> None:
    """Name the directions and mark those that are dead before any scheme."""
    for axis in axes:
        axis.set(xlabel="direction, by decreasing variance", xlim=(1, max(count, 2)))
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if dead:
            axis.axvspan(count - dead + 0.5, count, color="0.6", alpha=0.3, lw=0, label="_dead")
    if dead:
        look = {"ha": "right", "va": "top", "color": "0.3"}
        transform = axes[0].get_xaxis_transform()
        axes[0].text(count - dead, 0.98, f"{dead} dead ", transform=transform, **look)


make = of_arrays("spectrum", draw)
