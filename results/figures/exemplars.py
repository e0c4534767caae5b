"""Exemplars: points on a grid in the plane of two components, and these points as images."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_square, mosaic


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one row for each scheme, with the plane left, the images right.

    Args:
        arrays: by label, in the plane of two components: the points `cloud` (p, 2), the grid of
            quantiles `wanted` (25, 2), row by row, the exemplars `at` (25, 2) next to these; and
            the exemplars as `images` (25, N), N a square number.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, axes = style.panels(2 * len(drawn_schemes), shape, title, 0.9, 2)
        for plane_axis, image_axis, (label, _, scheme_arrays, look) in zip(
            axes[::2], axes[1::2], drawn_schemes
        ):
            _draw_plane(plane_axis, scheme_arrays, shape)
            style.name_panel(plane_axis, label, look)
            # Five images in a row, as the grid has five quantiles.
            image_axis.imshow(
                mosaic(scheme_arrays["images"], 5), cmap="gray", interpolation="nearest"
            )
            image_axis.set_axis_off()
        figure.supxlabel(
            "lines: quantiles of 5, 25, 50, 75 and 95 percent; the points nearest to where they "
            "cross, as images",
            fontsize="small",
        )
    return figure


def _draw_plane(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw all points, the lines of the grid, and the exemplars as circles.

    Points far beyond the grid are not shown.

    Args:
        axis: the panel.
        scheme_arrays: with `cloud` (p, 2), `wanted` (25, 2) and `at` (25, 2), see `draw`.
        shape: the format of the figure.
    """
    dot_area = (0.25 * shape.font) ** 2
    axis.scatter(*scheme_arrays["cloud"].T, s=dot_area, color="0.7", lw=0)
    # (row, column, coordinate): the first is the same down a column, the second along a row.
    grid = scheme_arrays["wanted"].reshape(5, 5, 2)
    for column_position in grid[0, :, 0]:
        axis.axvline(column_position, color="0.4", lw=0.8)
    for row_position in grid[:, 0, 1]:
        axis.axhline(row_position, color="0.4", lw=0.8)
    circle_style = {"facecolors": "none", "edgecolors": "black", "lw": 1.2}
    axis.scatter(*scheme_arrays["at"].T, s=6 * dot_area, **circle_style)
    axis_names = ("coordinate of the largest variance", "coordinate of the second largest")
    axis.set(xlabel=axis_names[0], ylabel=axis_names[1])
    for set_limits, values in zip((axis.set_xlim, axis.set_ylim), scheme_arrays["wanted"].T):
        low, high = values.min(), values.max()  # outliers would squeeze the lines together
        set_limits(low - 0.6 * (high - low), high + 0.6 * (high - low))


def _are_images(scheme_arrays: SchemeArrays) -> bool:
    """Return whether the features of the exemplars can be the pixels of square images."""
    return is_square(scheme_arrays["images"].shape[1])


make = maker_from_arrays("exemplars", draw, _are_images)
