"""An image reconstructed from its first k coordinates under each scheme, also as an animation."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, output, style
from normbench.results.figures.base.material import ArraysByLabel, DrawnScheme, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_image, square
from normbench.results.store.runs import Sweep

STAGE_COUNT = 7  # columns of reconstructed images
LAYOUT_PASSES = 3  # layout passes until the positions of images and titles are stable


def draw(
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
            stage_indices = stages(scheme_arrays["count"])
            pictures = [
                (f"k = {scheme_arrays['count'][n]}", scheme_arrays["built"][n])
                for n in stage_indices
            ]
            pictures += [("original", scheme_arrays["original"])]
            for axis, (name, pixels) in zip(axes, pictures):
                _show_image(axis, pixels, scheme_arrays["original"])
                axis.set_title(name, fontsize="small")
            row_label = style.escape_dollars(label).replace(", ", "\n")
            label_style = {"ha": "right", "va": "center", "transform": axes[0].transAxes}
            axes[0].text(
                -0.1,
                0.5,
                row_label,
                color=style.text_color(look.color),
                fontsize="small",
                **label_style,
            )
    return figure


def stages(count: Any) -> Any:
    """Return at most `STAGE_COUNT` evenly spaced indices into the array `count` (K,)."""
    return np.unique(np.linspace(0, len(count) - 1, STAGE_COUNT).round().astype(int))


def write_animation(
    sweep: Sweep,
    experiment: str,
    stem: Path,
    provenance: Mapping[str, str],
    file_formats: Sequence[str],
) -> list[Path]:
    """Write the reconstruction of up to 8 schemes as a GIF; return its file in a list.

    Each frame adds coordinates; the last panel shows the original. The list is empty if no GIF is
    requested.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        stem: the path of the figure without a suffix.
        provenance: the sweep and the command, for the file's comment.
        file_formats: the GIF is written if they contain `png`.
    """
    if "png" not in file_formats:
        return []
    from matplotlib.animation import PillowWriter
    from PIL import Image

    rows, file = material.schemes(sweep, experiment), stem.with_name(f"{stem.name}.gif")
    drawn_schemes = with_arrays(
        rows, material.drawable_arrays(sweep, rows, "components", is_image)
    )[:8]
    columns = min(len(drawn_schemes) + 1, 5)
    max_stages = max(len(scheme.arrays["count"]) for scheme in drawn_schemes)
    with style.figure_style(SCREEN):
        # Small: a GIF holds every pixel of every frame.
        gif_shape = SCREEN._replace(width=1.6 * columns, font=8.0, dpi=100)
        figure, axes = style.panels(len(drawn_schemes) + 1, gif_shape, experiment, 1.2, columns)
        writer = PillowWriter(fps=4)
        images = []
        for axis, scheme in zip(axes, drawn_schemes):
            images.append(_show_image(axis, scheme.arrays["built"][0], scheme.arrays["original"]))
            axis.set_title(_caption(scheme, 0), fontsize=8)
        original = drawn_schemes[0].arrays["original"]
        _show_image(axes[-1], original, original)
        axes[-1].set_title("original", fontsize=8)
        for axis in axes:
            axis.set_axis_off()
        for _ in range(LAYOUT_PASSES):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the images must not move between frames
        with writer.saving(figure, str(file), gif_shape.dpi):
            for frame in range(max_stages + 4):  # the last frame lasts one second more
                for axis, image, scheme in zip(axes, images, drawn_schemes):
                    # A scheme with fewer reconstructions than others keeps its last one.
                    stage = min(frame, len(scheme.arrays["count"]) - 1)
                    image.set_data(square(scheme.arrays["built"][stage]))
                    axis.title.set_text(_caption(scheme, stage))
                writer.grab_frame()
    with Image.open(io.BytesIO(file.read_bytes())) as picture:  # the writer ignores metadata
        picture.save(file, save_all=True, comment=output.describe_provenance(provenance).encode())
    return [file]


def _caption(scheme: DrawnScheme, stage: int) -> str:
    """Return the title of a scheme's image: label, number of coordinates, share of the variance.

    Args:
        scheme: the scheme.
        stage: the index into the recorded numbers of coordinates.
    """
    count, share = scheme.arrays["count"][stage], scheme.arrays["share"][stage]
    return f"{style.escape_dollars(scheme.label)}\nk = {count}, {share:.0%}"


def _show_image(axis: Any, pixels: Any, original: Any) -> Any:
    """Show pixels (N,) as an image on the grey scale of the original; return the artist.

    The grey scale goes from the lowest to the highest pixel of `original` (N,).
    """
    color_limits = {"vmin": original.min(), "vmax": original.max()}
    return axis.imshow(square(pixels), cmap="gray", interpolation="nearest", **color_limits)


make = material.maker_from_arrays("components", draw, is_image)
