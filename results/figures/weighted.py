"""A point as the origin of a scheme plus weighted components, as images."""

from typing import Any

import numpy as np
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
from normbench.results.figures.components import is_image, square

TERM_COUNT = 5  # components that are drawn


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: for each scheme, the origin, weighted components, their sum, the point.

    The origin is the point whose coordinates are 0: the mean under a scheme that centres. Each
    image has its own scale of greys or colours.

    Args:
        arrays: by label, all of one point with N features, N a square number: the `origin` (N,),
            the `components` (m, N) that the point is a sum of, and their `weights` (m,); the
            sums `built` (K, N) from the first `count` (K,) components, and the `share` (K,) of
            the variance that these have; the point itself, `original` (N,).
        schemes: one row for each scheme (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    columns = TERM_COUNT + 3  # the origin, the components, their sum, the point
    height = shape.width / columns + 3 * shape.font / 72  # a square image and its title
    with style.figure_style(shape):
        figure, grid = style.rows_of_images(len(drawn_schemes), columns, shape, title, height)
        for axes, scheme in zip(grid, drawn_schemes):
            for axis, (term_title, pixels, is_signed) in zip(
                axes, _terms(scheme.arrays, scheme.label)
            ):
                # Signed pixels of 0 are white; other pixels span the grey scale.
                limit = float(np.abs(pixels).max())
                color_limits = {"vmin": -limit, "vmax": limit} if is_signed else {}
                color_map = "RdBu_r" if is_signed else "gray"
                axis.imshow(square(pixels), cmap=color_map, interpolation="nearest", **color_limits)
                axis.set_title(term_title, fontsize="small")
    return figure


def _terms(scheme_arrays: SchemeArrays, label: str) -> list[tuple[str, Any, bool]]:
    """Return the images of a row: the origin, `TERM_COUNT` components, their sum, the point.

    The sum is that of all components, not only of those that are drawn.

    Returns:
        For each image its title, its pixels (N,), and whether these are signed and need two
        colours.
    """
    component_count = min(TERM_COUNT, len(scheme_arrays["weights"]))
    terms = [(f"{style.escape_dollars(label)}\norigin", scheme_arrays["origin"], False)]
    for component in range(component_count):
        term_title = f"{scheme_arrays['weights'][component]:+.4g} x\ncomponent {component + 1}"
        terms.append((term_title, scheme_arrays["components"][component], True))
    # The last sum is that of all components.
    coordinate_count, share = scheme_arrays["count"][-1], scheme_arrays["share"][-1]
    terms.append(
        (
            f"= from all {coordinate_count},\n{share:.1%} of variance",
            scheme_arrays["built"][-1],
            False,
        )
    )
    return [*terms, ("the point\nitself", scheme_arrays["original"], False)]


make = maker_from_arrays("components", draw, is_image)
