"""An image built up from its first k coordinates under each scheme, and as an animation."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.compare.merging import merged
from normbench.results.figures.base import shown, style
from normbench.results.figures.base.material import fitting, of_arrays
from normbench.results.figures.base.material import schemes as rows_of
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.components import is_image, side
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

STAGES = 7  # columns of built-up images
SETTLED = 3  # layouts until images and what is written over them leave their places no more


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a row a scheme, the image from more and more coordinates, the original.

    arrays: by label, `count` (K,), `built` (K, N), `original` (N,), N a square. schemes: one row
    a scheme (`label`, `normalizer`), in order.
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    with style.drawn(shape):
        columns = STAGES + 1
        head = 2.5 * shape.font / 72
        height = len(rows) * (shape.width / (columns + 1) + 1.6 * shape.font / 72) + head
        figure = shown.Figure((shape.width, height), dpi=shape.dpi, layout="constrained")
        figure.suptitle(style.plain(title), fontsize=1.1 * shape.font)
        grid = figure.subplots(len(rows), columns, squeeze=False)
        looks = style.looks([row["normalizer"] for row in rows])
        for axes, row, look in zip(grid, rows, looks):
            parts = arrays[row["label"]]
            drawn = stages(parts["count"])
            pictures = [(f"k = {parts['count'][n]}", parts["built"][n]) for n in drawn]
            pictures += [("original", parts["original"])]
            for axis in axes:
                axis.set_axis_off()
            for axis, (name, pixels) in zip(axes, pictures):
                _image(axis, pixels, parts["original"])
                axis.set_title(name, fontsize="small")
            _row_label(axes[0], row["label"], look)
    return figure


def stages(count: Any) -> Any:
    """Return which of the numbers of coordinates (K,) are drawn: their places, evenly."""
    return np.unique(np.linspace(0, len(count) - 1, STAGES).round().astype(int))


def animate(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    file: Path,
    facts: Mapping[str, str],
    *,
    shape: Shape = SCREEN,
) -> Path:
    """Write the figure's build-up as a GIF, a frame a number of coordinates; return the file.

    Takes what `draw` takes; facts stand in the file's comment. Up to 8 schemes side by side.
    """
    from matplotlib.animation import PillowWriter
    from PIL import Image

    rows = [row for row in as_rows(schemes) if row["label"] in arrays][:8]
    columns = min(len(rows) + 1, 5)
    with style.drawn(shape):
        # Small: a GIF holds every pixel of every frame.
        small = shape._replace(width=1.6 * columns, font=8.0, dpi=100)
        figure, axes = style.panels(len(rows) + 1, small, title, 1.2, columns)
        writer = PillowWriter(fps=4)
        frames = max(len(arrays[row["label"]]["count"]) for row in rows)
        images, captions = [], []
        for axis, row in zip(axes, rows):
            parts = arrays[row["label"]]
            images.append(_image(axis, parts["built"][0], parts["original"]))
            captions.append(axis.set_title(_caption(row, parts, 0), fontsize=8))
        original = arrays[rows[0]["label"]]["original"]
        _image(axes[-1], original, original)
        axes[-1].set_title("original", fontsize=8)
        for axis in axes:
            axis.set_axis_off()
        for _ in range(SETTLED):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the images stand still
        with writer.saving(figure, str(file), small.dpi):
            for number in range(frames + 4):  # the last frame stands for a second
                for row, image, caption in zip(rows, images, captions):
                    parts = arrays[row["label"]]
                    place = min(number, len(parts["count"]) - 1)
                    image.set_data(_square(parts["built"][place]))
                    caption.set_text(_caption(row, parts, place))
                writer.grab_frame()
    about = "; ".join(f"{key}: {value}" for key, value in facts.items())
    with Image.open(io.BytesIO(file.read_bytes())) as picture:  # the writer takes no metadata
        picture.save(file, save_all=True, comment=about.encode())
    return file


def _caption(row: Mapping[Any, Any], parts: Mapping[str, Any], place: int) -> str:
    """Return a scheme, the number of coordinates, and the share of variance that they explain."""
    known = f"k = {parts['count'][place]}, {parts['share'][place]:.0%}"
    return f"{style.plain(row['label'])}\n{known}"


def _row_label(axis: Any, label: str, look: style.Look) -> None:
    axis.text(
        -0.1,
        0.5,
        style.plain(label).replace(", ", "\n"),
        color=style.dark(look.color),
        ha="right",
        va="center",
        transform=axis.transAxes,
        fontsize="small",
    )


def _image(axis: Any, pixels: Any, original: Any) -> Any:
    return axis.imshow(
        _square(pixels),
        cmap="gray",
        vmin=original.min(),
        vmax=original.max(),
        interpolation="nearest",
    )


def _square(pixels: Any) -> Any:
    width = side(len(pixels))
    if width is None:
        raise ValueError(f"{len(pixels)} features are not the pixels of a square image")
    return pixels.reshape(width, width)


def moving(
    sweep: Sweep, experiment: str, stem: Path, facts: Mapping[str, str], kinds: Sequence[str]
) -> list[Path]:
    """Write the animation of an experiment beside its PNG; return the files."""
    if "png" not in kinds:
        return []
    sweep = merged(sweep)
    rows = rows_of(sweep, experiment)
    arrays = fitting(sweep, rows, "components", is_image)
    return [animate(arrays, rows, experiment, stem.with_name(f"{stem.name}.gif"), facts)]


make = of_arrays("components", draw, is_image)
