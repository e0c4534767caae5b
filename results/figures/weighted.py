"""A point as the mean plus components, each by its weight, as images."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_image, square

TERMS = 5  # components that are drawn


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a row a scheme, the mean, components with weights, their sum, the point.

    arrays: by label, `origin` (N,), `components` (m, N), `weights` (m,), `count` (K,), `built`
    (K, N), `original` (N,), N a square. schemes: one row a scheme (`label`, `normalizer`).
    """
    shown = with_arrays(schemes, arrays)
    columns = TERMS + 3
    height = shape.width / columns + 3 * shape.font / 72
    with style.drawn(shape):
        figure, grid = style.rows_of_images(len(shown), columns, shape, title, height)
        for axes, scheme in zip(grid, shown):
            for axis, (words, pixels, red) in zip(axes, _terms(scheme.parts, scheme.label)):
                edge = float(np.abs(pixels).max())
                limits = {"vmin": -edge, "vmax": edge} if red else {}
                colors = "RdBu_r" if red else "gray"
                axis.imshow(square(pixels), cmap=colors, interpolation="nearest", **limits)
                axis.set_title(words, fontsize="small")
    return figure


def _terms(parts: Parts, label: str) -> list[tuple[str, Any, bool]]:
    """Return the terms of the sum: words, pixels, and whether they are around 0."""
    drawn = min(TERMS, len(parts["weights"]))
    terms = [(f"{style.plain(label)}\nmean", parts["origin"], False)]
    for number in range(drawn):
        words = f"{parts['weights'][number]:+.4g} x\ncomponent {number + 1}"
        terms.append((words, parts["components"][number], True))
    last, share = parts["count"][-1], parts["share"][-1]
    terms.append((f"= from all {last},\n{share:.1%} of variance", parts["built"][-1], False))
    return [*terms, ("the point\nitself", parts["original"], False)]


make = of_arrays("components", draw, is_image)
