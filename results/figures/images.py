"""Figures of points that are images: components, sums of them, exemplars, shifted colours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, output, style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    DrawnScheme,
    SchemeArrays,
    with_arrays,
)
from normbench.results.figures.base.panels import arrays_figure
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep

DEFAULT_COMPONENTS = 16  # components that are drawn of a scheme by default
MAX_COMPLETE = 49  # of a scheme with at most this many components, all are drawn
PIXEL_GAP = 1  # pixels between two images


def _is_square(features: int) -> bool:
    """Return whether a number of features can be the pixels of a square image."""
    side = round(features**0.5)
    return side > 2 and side * side == features


def is_image(scheme_arrays: SchemeArrays) -> bool:
    """Return whether the features of a scheme's points can be the pixels of square images."""
    return _is_square(len(scheme_arrays["original"]))


def square(pixels: Any) -> Any:
    """Return pixels (..., N) as square images."""
    side = round(pixels.shape[-1] ** 0.5)
    return pixels.reshape(*pixels.shape[:-1], side, side)


def _show_grey(axis: Any, pixels: Any, original: Any) -> Any:
    """Show pixels (N,) as an image on the grey scale of `original` (N,); return the artist."""
    limits = {"vmin": original.min(), "vmax": original.max()}
    return axis.imshow(square(pixels), cmap="gray", interpolation="nearest", **limits)


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
    row_count, side = -(-len(images) // column_count), squares.shape[-1]  # rows: rounded up
    cells = np.full((row_count, column_count, side + PIXEL_GAP, side + PIXEL_GAP), np.nan)
    for index, image in enumerate(squares):
        # An image of zeros is divided by 1.
        cells[divmod(index, column_count)][:side, :side] = image / (np.nanmax(np.abs(image)) or 1.0)
    canvas = cells.swapaxes(1, 2).reshape(row_count * (side + PIXEL_GAP), -1)
    return canvas[:-PIXEL_GAP, :-PIXEL_GAP]


# The components of each scheme, and points before and after the scheme.


def draw_components(
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
            # Below each point the same point under the scheme, if that is an image.
            points, is_pixels = scheme.arrays["points"], scheme.arrays.get("pixels", False)
            images = [points, scheme.arrays["under"]] if is_pixels else [points]
            _show_mosaic(
                lower, mosaic(np.concatenate([*map(_stretch, images)]), len(points)), "gray"
            )
        figure.supxlabel(
            f"the {component_count} components that add most variance, left to right and down; "
            "red adds, blue takes away\n"
            "below: points as they are, and under the scheme where its coordinates are pixels",
            fontsize="small",
        )
    return figure


def _stretch(images: Any) -> Any:
    """Return images (m, N), each scaled to the range -1 to 1; one of equal pixels becomes -1."""
    low, high = (edge(axis=1, keepdims=True) for edge in (images.min, images.max))
    return 2 * (images - low) / np.where(high > low, high - low, 1.0) - 1


def _show_mosaic(axis: Any, mosaic_image: Any, color_map: str) -> None:
    """Show a mosaic of images in a panel without axes; its values are from -1 to 1, NaN in gaps."""
    axis.imshow(mosaic_image, cmap=color_map, vmin=-1, vmax=1, interpolation="nearest")
    axis.set_axis_off()


@material.figure("components")
def make_components(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
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
    component_count = options.components or shown_components(recorded_count)
    if component_count > recorded_count:
        raise ResultsError(
            f"--components {component_count}: {recorded_count} are recorded of a scheme; "
            "ask for fewer"
        )
    title = material.title_of_first_repeat(experiment, rows)
    return draw_components(
        arrays, rows, title, component_count=component_count, shape=options.shape
    )


def shown_components(recorded_count: int) -> int:
    """Return how many components are drawn by default: all of few, else `DEFAULT_COMPONENTS`."""
    return recorded_count if recorded_count <= MAX_COMPLETE else DEFAULT_COMPONENTS


# A point as the origin of a scheme plus weighted components.

TERM_COUNT = 5  # components that are drawn


@arrays_figure("weighted", "components", is_image)
def draw_weighted(
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
        for axes, (label, _, scheme_arrays, _) in zip(grid, drawn_schemes):
            # The sum is that of all components, not only of those that are drawn.
            count, share = scheme_arrays["count"][-1], scheme_arrays["share"][-1]
            weights = scheme_arrays["weights"][:TERM_COUNT]
            titles = [f"{weight:+.4g} x\ncomponent {n}" for n, weight in enumerate(weights, 1)]
            terms = [(f"{style.escape_dollars(label)}\norigin", scheme_arrays["origin"])]
            terms += zip(titles, scheme_arrays["components"])
            terms += [
                (f"= from all {count},\n{share:.1%} of variance", scheme_arrays["built"][-1]),
                ("the point\nitself", scheme_arrays["original"]),
            ]
            for number, (axis, (term_title, pixels)) in enumerate(zip(axes, terms)):
                if 0 < number <= len(weights):  # signed pixels: those of 0 are white
                    limit = float(np.abs(pixels).max())
                    limits: Any = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
                    axis.imshow(square(pixels), interpolation="nearest", **limits)
                else:
                    _show_grey(axis, pixels, pixels)
                axis.set_title(term_title, fontsize="small")
    return figure


# An image reconstructed from its first k coordinates, also as an animation.

STAGE_COUNT = 7  # columns of reconstructed images
LAYOUT_PASSES = 3  # layout passes until the positions of images and titles are stable


def stages(count: Any) -> Any:
    """Return at most `STAGE_COUNT` evenly spaced indices into the array `count` (K,)."""
    return np.unique(np.linspace(0, len(count) - 1, STAGE_COUNT).round().astype(int))


def write_reconstruction(
    sweep: Sweep, experiment: str, file: Path, provenance: Mapping[str, str]
) -> None:
    """Write the reconstruction of up to 8 schemes as a GIF.

    Each frame adds coordinates; the last panel shows the original.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        file: the file to write.
        provenance: the sweep and the command, for the file's comment.
    """
    rows = material.schemes(sweep, experiment)
    arrays = material.drawable_arrays(sweep, rows, "components", is_image)
    drawn_schemes = with_arrays(rows, arrays)[:8]
    columns = min(len(drawn_schemes) + 1, 5)
    # Small: a GIF holds every pixel of every frame.
    gif_shape = SCREEN._replace(width=1.6 * columns, font=8.0, dpi=100)
    with style.figure_style(SCREEN):
        figure, axes = style.panels(len(drawn_schemes) + 1, gif_shape, experiment, 1.2, columns)
        original = drawn_schemes[0].arrays["original"]
        images = [
            _show_grey(axis, scheme.arrays["built"][0], scheme.arrays["original"])
            for axis, scheme in zip(axes, drawn_schemes)
        ]
        _show_grey(axes[-1], original, original)
        axes[-1].set_title("original", fontsize=8)

        def show(frame: int) -> None:
            for axis, image, scheme in zip(axes, images, drawn_schemes):
                # A scheme with fewer reconstructions than others keeps its last one.
                stage = min(frame, len(scheme.arrays["count"]) - 1)
                image.set_data(square(scheme.arrays["built"][stage]))
                axis.set_title(_stage_text(scheme, stage), fontsize=8)

        for axis in axes:
            axis.set_axis_off()
        show(0)
        for _ in range(LAYOUT_PASSES):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the images must not move between frames
        stage_count = max(len(scheme.arrays["count"]) for scheme in drawn_schemes)
        # The last frame lasts one second more.
        output.write_gif(figure, show, file, [250] * (stage_count - 1) + [1250], provenance)


def _stage_text(scheme: DrawnScheme, stage: int) -> str:
    """Return the title of a scheme's image: label, number of coordinates, share of the variance."""
    count, share = scheme.arrays["count"][stage], scheme.arrays["share"][stage]
    return f"{style.escape_dollars(scheme.label)}\nk = {count}, {share:.0%}"


@arrays_figure("reconstruction", "components", is_image, write_gif=write_reconstruction)
def draw_reconstruction(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a row for each scheme, from few coordinates to many, then the original.

    Args:
        arrays: by label, an image `original` (N,), N a square number, and its reconstructions
            `built` (K, N) from the first `count` (K,) coordinates.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    columns = STAGE_COUNT + 1
    # One column more, for the schemes' labels; 1.6 font sizes for the titles of images.
    height = shape.width / (columns + 1) + 1.6 * shape.font / 72
    with style.figure_style(shape):
        figure, grid = style.rows_of_images(len(drawn_schemes), columns, shape, title, height)
        for axes, (label, _, scheme_arrays, look) in zip(grid, drawn_schemes):
            original = scheme_arrays["original"]
            pictures = [
                (f"k = {scheme_arrays['count'][n]}", scheme_arrays["built"][n])
                for n in stages(scheme_arrays["count"])
            ]
            for axis, (name, pixels) in zip(axes, [*pictures, ("original", original)]):
                _show_grey(axis, pixels, original)
                axis.set_title(name, fontsize="small")
            row_label = style.escape_dollars(label).replace(", ", "\n")
            label_style: Any = {"ha": "right", "va": "center", "fontsize": "small"}
            label_style |= {"color": style.text_color(look.color), "transform": axes[0].transAxes}
            axes[0].text(-0.1, 0.5, row_label, **label_style)
    return figure


# Exemplars: points on a grid in the plane of two components.


@arrays_figure(
    "exemplars", "exemplars", lambda scheme_arrays: _is_square(scheme_arrays["images"].shape[1])
)
def draw_exemplars(
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
        axis_pairs = zip(axes[::2], axes[1::2])
        for (plane_axis, image_axis), scheme in zip(axis_pairs, drawn_schemes):
            _draw_exemplar_plane(plane_axis, scheme.arrays, (0.25 * shape.font) ** 2)
            style.name_panel(plane_axis, scheme.label, scheme.look)
            # Five images in a row, as the grid has five quantiles.
            exemplars = mosaic(scheme.arrays["images"], 5)
            image_axis.imshow(exemplars, cmap="gray", interpolation="nearest")
            image_axis.set_axis_off()
        figure.supxlabel(
            "lines: quantiles of 5, 25, 50, 75 and 95 percent; the points nearest to where they "
            "cross, as images",
            fontsize="small",
        )
    return figure


def _draw_exemplar_plane(axis: Any, scheme_arrays: SchemeArrays, dot_area: float) -> None:
    """Draw all points, the lines of the grid, and the exemplars as circles.

    Points far beyond the grid are not shown.
    """
    axis.scatter(*scheme_arrays["cloud"].T, s=dot_area, color="0.7", lw=0)
    # (row, column, coordinate): the first is the same down a column, the second along a row.
    grid = scheme_arrays["wanted"].reshape(5, 5, 2)
    for column_position in grid[0, :, 0]:
        axis.axvline(column_position, color="0.4", lw=0.8)
    for row_position in grid[:, 0, 1]:
        axis.axhline(row_position, color="0.4", lw=0.8)
    circle_style = {"facecolors": "none", "edgecolors": "black", "lw": 1.2}
    axis.scatter(*scheme_arrays["at"].T, s=6 * dot_area, **circle_style)
    axis.set_xlabel("coordinate of the largest variance")
    axis.set_ylabel("coordinate of the second largest")
    for set_limits, values in zip((axis.set_xlim, axis.set_ylim), scheme_arrays["wanted"].T):
        margin = 0.6 * np.ptp(values)  # outliers would squeeze the lines together
        set_limits(values.min() - margin, values.max() + margin)


# A picture, and copies with random shifts of their colours.

DRAWN_COPIES = 3  # copies for each noise
NOISE_TEXTS = {
    "aligned": "along the principal axes of the colours",
    "round": "of the same size, alike in all directions",
}


@arrays_figure("colours", "colours")
def draw_colours(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one row for each noise, with the picture left, copies beside it.

    Args:
        arrays: by label, `picture` (h, w, 3), from 0 to 255, and for each noise in `NOISE_TEXTS`
            its colour shifts `aligned` and `round` (c, 3), one for each copy.
        schemes: one row for each scheme (`label`); all have the same picture.
        title: the title of the figure.
        shape: the format of the figure.
    """
    scheme_arrays = next(arrays[label] for label in schemes["label"] if label in arrays)
    picture = scheme_arrays["picture"].astype(float)
    height, width = picture.shape[:2]
    columns = DRAWN_COPIES + 1
    with style.figure_style(shape):
        figure, axes = style.panels(2 * columns, shape, title, height / width + 0.1, columns)
        for row, noise in enumerate(NOISE_TEXTS):
            # Copy 0 is the picture itself, without a shift.
            for copy, shift in enumerate([np.zeros(3), *scheme_arrays[noise][:DRAWN_COPIES]]):
                axis = axes[row * columns + copy]
                axis.imshow(np.clip(picture + shift, 0, 255).astype(np.uint8))
                axis.set_axis_off()
                panel_title = f"{noise} noise, copy {copy}" if copy else "as it is"
                axis.set_title(panel_title, fontsize="small")
        noise_note = "; ".join(f"{noise}: {text}" for noise, text in NOISE_TEXTS.items())
        style.add_note(figure, shape, f"one shift of colour for all pixels of a copy; {noise_note}")
    return figure
