"""A point as the mean plus components, each by its weight, as images."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import shown, style
from normbench.results.figures.base.material import of_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_image, side
from normbench.results.store.rows import as_rows

TERMS = 5  # components that are drawn


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a row a scheme, the mean, components with weights, their sum, the point.

    arrays: by label, `origin` (N,), `components` (m, N), `weights` (m,), `count` (K,), `built`
    (K, N), `original` (N,), N a square. schemes: one row a scheme (`label`, `normalizer`).
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    with style.drawn(shape):
        columns = TERMS + 3
        height = len(rows) * (shape.width / columns + 3 * shape.font / 72) + 2.5 * shape.font / 72
        figure = shown.Figure((shape.width, height), dpi=shape.dpi, layout="constrained")
        figure.suptitle(style.plain(title), fontsize=1.1 * shape.font)
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for axes, row in zip(grid, rows):
            for axis, (words, pixels, red) in zip(axes, _terms(arrays[row["label"]], row["label"])):
                edge = float(np.abs(pixels).max())
                limits = {"vmin": -edge, "vmax": edge} if red else {}
                colors = "RdBu_r" if red else "gray"
                width = side(len(pixels)) or 1
                image = np.asarray(pixels).reshape(width, -1)
                axis.imshow(image, cmap=colors, interpolation="nearest", **limits)
                axis.set_title(words, fontsize="small")
            for axis in axes:
                axis.set_axis_off()
    return figure


def _terms(parts: Mapping[str, Any], label: str) -> list[tuple[str, Any, bool]]:
    """Return the terms of the sum: words, pixels, and whether they are around 0."""
    drawn = min(TERMS, len(parts["weights"]))
    terms = [(f"{style.plain(label)}\nmean", parts["origin"], False)]
    for number in range(drawn):
        words = f"{parts['weights'][number]:+.4g} x\ncomponent {number + 1}"
        terms.append((words, parts["components"][number], True))
    last, share = parts["count"][-1], parts["share"][-1]
    terms.append((f"= from all {last},\n{share:.1%} of variance", parts["built"][-1], False))
    return [*terms, ("the point\nitself", parts["original"], False)]


def _fits(parts: Mapping[str, Any]) -> bool:
    return is_image(parts)


make = of_arrays("components", draw, _fits)
