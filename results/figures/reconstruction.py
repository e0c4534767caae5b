"""An image built up from its first k coordinates under each scheme, and as an animation."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, output, style
from normbench.results.figures.base.material import Arrays, Drawn, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_image, square
from normbench.results.store.runs import Sweep

STAGES = 7  # columns of built-up images
SETTLED = 3  # layouts until images and what is written over them leave their places no more


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a row a scheme, the image from more and more coordinates, the original.

    arrays: by label, `count` (K,), `built` (K, N), `original` (N,), N a square. schemes: one row
    a scheme (`label`, `normalizer`), in order.
    """
    shown = with_arrays(schemes, arrays)
    columns = STAGES + 1
    height = shape.width / (columns + 1) + 1.6 * shape.font / 72
    with style.drawn(shape):
        figure, grid = style.rows_of_images(len(shown), columns, shape, title, height)
        for axes, (label, _, parts, look) in zip(grid, shown):
            drawn = stages(parts["count"])
            pictures = [(f"k = {parts['count'][n]}", parts["built"][n]) for n in drawn]
            pictures += [("original", parts["original"])]
            for axis, (name, pixels) in zip(axes, pictures):
                _image(axis, pixels, parts["original"])
                axis.set_title(name, fontsize="small")
            words = style.plain(label).replace(", ", "\n")
            left = {"ha": "right", "va": "center", "transform": axes[0].transAxes}
            axes[0].text(-0.1, 0.5, words, color=style.dark(look.color), fontsize="small", **left)
    return figure


def stages(count: Any) -> Any:
    """Return which of the numbers of coordinates (K,) are drawn: their places, evenly."""
    return np.unique(np.linspace(0, len(count) - 1, STAGES).round().astype(int))


def moving(
    sweep: Sweep, experiment: str, stem: Path, facts: Mapping[str, str], kinds: Sequence[str]
) -> list[Path]:
    """Write the build-up as a GIF beside a PNG, a frame a number of coordinates; return the files.

    facts stand in the file's comment. Up to 8 schemes side by side.
    """
    if "png" not in kinds:
        return []
    from matplotlib.animation import PillowWriter
    from PIL import Image

    rows, file = material.schemes(sweep, experiment), stem.with_name(f"{stem.name}.gif")
    shown = with_arrays(rows, material.fitting(sweep, rows, "components", is_image))[:8]
    columns = min(len(shown) + 1, 5)
    most = max(len(scheme.parts["count"]) for scheme in shown)
    with style.drawn(SCREEN):
        # Small: a GIF holds every pixel of every frame.
        small = SCREEN._replace(width=1.6 * columns, font=8.0, dpi=100)
        figure, axes = style.panels(len(shown) + 1, small, experiment, 1.2, columns)
        writer = PillowWriter(fps=4)
        images = []
        for axis, scheme in zip(axes, shown):
            images.append(_image(axis, scheme.parts["built"][0], scheme.parts["original"]))
            axis.set_title(_caption(scheme, 0), fontsize=8)
        original = shown[0].parts["original"]
        _image(axes[-1], original, original)
        axes[-1].set_title("original", fontsize=8)
        for axis in axes:
            axis.set_axis_off()
        for _ in range(SETTLED):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the images stand still
        with writer.saving(figure, str(file), small.dpi):
            for number in range(most + 4):  # the last frame stands for a second
                for axis, image, scheme in zip(axes, images, shown):
                    place = min(number, len(scheme.parts["count"]) - 1)
                    image.set_data(square(scheme.parts["built"][place]))
                    axis.title.set_text(_caption(scheme, place))
                writer.grab_frame()
    with Image.open(io.BytesIO(file.read_bytes())) as picture:  # the writer takes no metadata
        picture.save(file, save_all=True, comment=output.about(facts).encode())
    return [file]


def _caption(scheme: Drawn, place: int) -> str:
    """Return a scheme, the number of coordinates, and the share of variance that they explain."""
    count, share = scheme.parts["count"][place], scheme.parts["share"][place]
    return f"{style.plain(scheme.label)}\nk = {count}, {share:.0%}"


def _image(axis: Any, pixels: Any, original: Any) -> Any:
    limits = {"vmin": original.min(), "vmax": original.max()}
    return axis.imshow(square(pixels), cmap="gray", interpolation="nearest", **limits)


make = material.of_arrays("components", draw, is_image)
