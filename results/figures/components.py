"""The coordinates of each scheme as images: what one unit of each adds to a point."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures import style
from normbench.results.figures.material import of_arrays
from normbench.results.figures.style import SCREEN, Shape

SHOWN = 16  # components of a scheme, four by four
GAP = 1  # pixels between two images


def side(features: int) -> int | None:
    """Return the side of the square image that has so many pixels; None where none has."""
    root = round(features**0.5)
    return root if root > 2 and root * root == features else None


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a panel a scheme, its first 16 components, row by row.

    arrays: by label, `components` (m, N) with N a square. schemes: one row a scheme (`label`,
    `normalizer`), in order. Red adds to a pixel, blue takes away; each image has its own scale.
    """
    rows = [row for row in schemes.to_dict("records") if row["label"] in arrays]
    with style.drawn(shape):
        figure, axes = style.panels(max(len(rows), 1), shape, title, 1.05)
        if not rows:
            style.say_nothing(axes[0], "no scheme has recorded components")
            return figure
        style.pad(figure, 0.12, 0.08)  # more than between two images
        looks = style.looks([row["normalizer"] for row in rows])
        for axis, row, look in zip(axes, rows, looks):
            axis.imshow(
                mosaic(arrays[row["label"]]["components"][:SHOWN]),
                cmap="RdBu_r",
                vmin=-1,
                vmax=1,
                interpolation="nearest",
            )
            style.name_panel(axis, row["label"], look)
            axis.set_axis_off()
        figure.supxlabel(
            f"the first {SHOWN} components, left to right and down; red adds, blue takes away",
            fontsize="small",
        )
    return figure


def mosaic(components: Any) -> Any:
    """Return images (m, N) as one image, four in a row, each scaled to its largest entry."""
    width = side(components.shape[1])
    if width is None:
        raise ValueError(f"{components.shape[1]} features are not the pixels of a square image")
    lines = -(-len(components) // 4)
    cell = width + GAP
    whole = np.full((lines * cell - GAP, 4 * cell - GAP), np.nan)
    for number, component in enumerate(components):
        top, left = (number // 4) * cell, (number % 4) * cell
        largest = np.abs(component).max() or 1.0
        whole[top : top + width, left : left + width] = component.reshape(width, width) / largest
    return whole


def is_image(parts: Mapping[str, Any]) -> bool:
    """Return whether a scheme's points are images: their pixels make a square."""
    return side(len(parts["original"])) is not None


make = of_arrays("components", draw, is_image)
