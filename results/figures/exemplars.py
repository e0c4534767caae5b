"""Points that stand for the plane of two components: where they lie, and what they look like."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_square, mosaic


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a row a scheme, the plane left, its points as images right.

    arrays: by label, `cloud` (p, 2), `wanted` (25, 2), `at` (25, 2), `images` (25, N), N a square.
    schemes: one row a scheme (`label`, `normalizer`), in order.
    """
    shown = with_arrays(schemes, arrays)
    with style.drawn(shape):
        figure, axes = style.panels(2 * len(shown), shape, title, 0.9, 2)
        for plane, images, (label, _, parts, look) in zip(axes[::2], axes[1::2], shown):
            _plane(plane, parts, shape)
            style.name_panel(plane, label, look)
            images.imshow(mosaic(parts["images"], 5), cmap="gray", interpolation="nearest")
            images.set_axis_off()
        figure.supxlabel(
            "lines: quantiles of 5, 25, 50, 75 and 95 percent; the points nearest to where they "
            "cross, as images",
            fontsize="small",
        )
    return figure


def _plane(axis: Any, parts: Parts, shape: Shape) -> None:
    size = (0.25 * shape.font) ** 2
    axis.scatter(*parts["cloud"].T, s=size, color="0.7", lw=0)
    for value in parts["wanted"][:5, 0]:
        axis.axvline(value, color="0.4", lw=0.8)
    for value in parts["wanted"][::5, 1]:
        axis.axhline(value, color="0.4", lw=0.8)
    axis.scatter(*parts["at"].T, s=6 * size, facecolors="none", edgecolors="black", lw=1.2)
    words = ("coordinate of the largest variance", "coordinate of the second largest")
    axis.set(xlabel=words[0], ylabel=words[1])
    for limits, values in zip((axis.set_xlim, axis.set_ylim), parts["wanted"].T):
        low, high = values.min(), values.max()  # a few points far away would make all lines one
        limits(low - 0.6 * (high - low), high + 0.6 * (high - low))


def _are_images(parts: Parts) -> bool:
    return is_square(parts["images"].shape[1])


make = of_arrays("exemplars", draw, _are_images)
