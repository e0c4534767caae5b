"""The coordinates of each scheme as images, and points as they are and under the scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import Arrays, Parts, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep

SHOWN = 16  # components of a scheme, unless more or fewer are asked for
ALL = 49  # a scheme that keeps so many or fewer is drawn with all of them
GAP = 1  # pixels between two images


def is_square(features: int) -> bool:
    """Return whether so many features can be the pixels of a square image."""
    side = round(features**0.5)
    return side > 2 and side * side == features


def square(pixels: Any) -> Any:
    """Return pixels (..., N) as square images."""
    side = round(pixels.shape[-1] ** 0.5)
    return pixels.reshape(*pixels.shape[:-1], side, side)


def draw(
    arrays: Arrays,
    schemes: pd.DataFrame,
    title: str,
    *,
    shown: int = SHOWN,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a panel a scheme, its first components, row by row; points below.

    arrays: by label, `components` (m, N) with N a square; where known `points` (p, N) and `under`
    (p, M). schemes: one row a scheme (`label`, `normalizer`), in order. Red adds to a pixel, blue
    takes away; each image has its own scale.
    """
    drawn = with_arrays(schemes, arrays)
    with style.drawn(shape):
        figure, pairs = style.pairs(len(drawn), shape, title, 0.72, 0.3)
        style.pad(figure, 0.12, 0.05)  # more than between two images
        for (upper, lower), scheme in zip(pairs, drawn):
            _images(upper, mosaic(scheme.parts["components"][:shown]), "RdBu_r")
            style.name_panel(upper, scheme.label, scheme.look)
            _points(lower, scheme.parts)
        figure.supxlabel(
            f"the {shown} components that add most variance, left to right and down; "
            "red adds, blue takes away\n"
            "below: points as they are, and under the scheme where its coordinates are pixels",
            fontsize="small",
        )
    return figure


def _points(axis: Any, parts: Parts) -> None:
    """Draw points as they are, and below each the same point under the scheme."""
    images = [parts["points"]]
    if bool(parts.get("pixels", False)):  # other coordinates make no image
        images.append(parts["under"])
    flat = np.concatenate([_stretched(part) for part in images])
    _images(axis, mosaic(flat, len(parts["points"])), "gray")


def _stretched(images: Any) -> Any:
    """Return images (m, N), each from -1 to 1."""
    low, high = (edge(axis=1, keepdims=True) for edge in (images.min, images.max))
    return 2 * (images - low) / np.where(high > low, high - low, 1.0) - 1


def _images(axis: Any, whole: Any, colors: str) -> None:
    axis.imshow(whole, cmap=colors, vmin=-1, vmax=1, interpolation="nearest")
    axis.set_axis_off()


def mosaic(images: Any, columns: int = 0) -> Any:
    """Return images (m, N) as one, each scaled to its largest entry: a square, or in columns."""
    squares = square(images)
    across = columns or int(np.ceil(np.sqrt(len(images))))
    lines, width = -(-len(images) // across), squares.shape[-1]
    cell = width + GAP
    whole = np.full((lines * cell - GAP, across * cell - GAP), np.nan)
    for number, image in enumerate(squares):
        top, left = (number // across) * cell, (number % across) * cell
        whole[top : top + width, left : left + width] = image / (np.nanmax(np.abs(image)) or 1.0)
    return whole


def is_image(parts: Parts) -> bool:
    """Return whether a scheme's points are images: their pixels make a square."""
    return is_square(len(parts["original"]))


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None where no images are recorded.

    Raises ResultsError where more components are asked for than are recorded.
    """
    rows = material.schemes(sweep, experiment)
    arrays = material.fitting(sweep, rows, "components", is_image)
    if not arrays:
        return None
    most = max(len(parts["components"]) for parts in arrays.values())
    shown = options.components or (most if most <= ALL else SHOWN)
    if shown > most:
        raise ResultsError(f"--components {shown}: {most} are recorded of a scheme; ask for fewer")
    title = material.of_first(experiment, rows)
    return draw(arrays, rows, title, shown=shown, shape=options.shape)
