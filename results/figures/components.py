"""The components of each scheme as images, and points before and after the scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import ArraysByLabel, SchemeArrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep

DEFAULT_COMPONENTS = 16  # components that are drawn of a scheme by default
MAX_COMPLETE = 49  # of a scheme with at most this many components, all are drawn
PIXEL_GAP = 1  # pixels between two images


def is_square(features: int) -> bool:
    """Return whether a number of features can be the pixels of a square image."""
    side = round(features**0.5)
    return side > 2 and side * side == features


def square(pixels: Any) -> Any:
    """Return pixels (..., N) as square images."""
    side = round(pixels.shape[-1] ** 0.5)
    return pixels.reshape(*pixels.shape[:-1], side, side)


def draw(
    arrays: ArraysByLabel,
    schemes: pd.DataFrame,
    title: str,
    *,
    component_count: int = DEFAULT_COMPONENTS,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: the first components of each scheme, row by row, and points below.

    Red adds to a pixel, blue subtracts. Each image has its own scale.

    Args:
        arrays: by label, `components` (m, N) with N a square number, what a unit along each
            coordinate adds to a point, by decreasing variance; `points` (p, N), optionally
            `pixels` (), whether a scheme's coordinates are pixels, and then `under` (p, N), the
            points under the scheme.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        component_count: the number of components of each scheme.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, pairs = style.panel_pairs(len(drawn_schemes), shape, title, 0.72, 0.3)
        style.set_padding(figure, 0.12, 0.05)  # wider than the gap between images
        for (upper, lower), scheme in zip(pairs, drawn_schemes):
            _show_mosaic(upper, mosaic(scheme.arrays["components"][:component_count]), "RdBu_r")
            style.name_panel(upper, scheme.label, scheme.look)
            _draw_point_images(lower, scheme.arrays)
        figure.supxlabel(
            f"the {component_count} components that add most variance, left to right and down; "
            "red adds, blue takes away\n"
            "below: points as they are, and under the scheme where its coordinates are pixels",
            fontsize="small",
        )
    return figure


def _draw_point_images(axis: Any, scheme_arrays: SchemeArrays) -> None:
    """Draw points, and below each the same point under the scheme if that is an image.

    Args:
        axis: the panel.
        scheme_arrays: with `points` (p, N), and optionally `pixels` () and `under` (p, N), see
            `draw`.
    """
    images = [scheme_arrays["points"]]
    if bool(scheme_arrays.get("pixels", False)):  # other coordinates are not images
        images.append(scheme_arrays["under"])
    stretched_images = np.concatenate([_stretch(image_set) for image_set in images])
    _show_mosaic(axis, mosaic(stretched_images, len(scheme_arrays["points"])), "gray")


def _stretch(images: Any) -> Any:
    """Return images (m, N), each scaled to the range -1 to 1; one of equal pixels becomes -1."""
    low, high = (edge(axis=1, keepdims=True) for edge in (images.min, images.max))
    return 2 * (images - low) / np.where(high > low, high - low, 1.0) - 1


def _show_mosaic(axis: Any, mosaic_image: Any, color_map: str) -> None:
    """Show a mosaic of images in a panel without axes; its values are from -1 to 1, NaN in gaps."""
    axis.imshow(mosaic_image, cmap=color_map, vmin=-1, vmax=1, interpolation="nearest")
    axis.set_axis_off()


def mosaic(images: Any, columns: int = 0) -> Any:
    """Return images (m, N) as one image, each divided by its largest absolute entry.

    Args:
        images: (m, N), N a square number.
        columns: the number of images side by side; 0 for a square arrangement.

    Returns:
        The image (height, width), with NaN in the gaps of `PIXEL_GAP` pixels and in empty places.
    """
    squares = square(images)
    column_count = columns or int(np.ceil(np.sqrt(len(images))))
    # The number of rows is rounded up.
    row_count, width = -(-len(images) // column_count), squares.shape[-1]
    cell_width = width + PIXEL_GAP
    canvas = np.full(
        (row_count * cell_width - PIXEL_GAP, column_count * cell_width - PIXEL_GAP), np.nan
    )
    for image_index, image in enumerate(squares):
        first_row, first_column = (
            (image_index // column_count) * cell_width,
            (image_index % column_count) * cell_width,
        )
        # An image of zeros is divided by 1.
        canvas[first_row : first_row + width, first_column : first_column + width] = image / (
            np.nanmax(np.abs(image)) or 1.0
        )
    return canvas


def is_image(scheme_arrays: SchemeArrays) -> bool:
    """Return whether the features of a scheme's points can be the pixels of square images."""
    return is_square(len(scheme_arrays["original"]))


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no images are recorded.

    Without the option `components`, all components are drawn if there are at most `MAX_COMPLETE`,
    otherwise `DEFAULT_COMPONENTS`.

    Raises:
        ResultsError: More components are requested than recorded.
    """
    rows = material.schemes(sweep, experiment)
    arrays = material.drawable_arrays(sweep, rows, "components", is_image)
    if not arrays:
        return None
    recorded_count = max(len(scheme_arrays["components"]) for scheme_arrays in arrays.values())
    component_count = options.components or (
        recorded_count if recorded_count <= MAX_COMPLETE else DEFAULT_COMPONENTS
    )
    if component_count > recorded_count:
        raise ResultsError(
            f"--components {component_count}: {recorded_count} are recorded of a scheme; "
            "ask for fewer"
        )
    title = material.title_of_first_repeat(experiment, rows)
    return draw(arrays, rows, title, component_count=component_count, shape=options.shape)
