"""Write a film as a GIF."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from normbench.results.figures.base import output, style
from normbench.results.figures.base.style import Shape
from normbench.results.figures.film import frames
from normbench.results.figures.film.reel import Reel

GIF_SHAPE = Shape(7.2, 11.0, 1.5, 90, 1)  # small: a GIF stores every pixel of every frame
FRAME_HEIGHT, PANEL_SIDE = 7.9, 3.15  # inches
PANEL_CORNERS = ((0.75, 4.25), (0.75, 0.6))  # the lower left corners, in inches
FRAME_TIME, KEY_FRAME_TIME, LAST_FRAME_TIME = 90, 1400, 3000  # milliseconds
COUNTER_NAMES = ("L", "condition number", "iterations to 1%")


def write_gif(reel: Reel, title: str, file: Path, provenance: Mapping[str, str]) -> Path:
    """Write a film as a GIF that pauses on key frames; return the file.

    Args:
        reel: the film.
        title: the title of each frame.
        file: the file to write.
        provenance: the sweep and the command, for the file's comment.
    """
    from PIL import Image

    pictures = []
    with style.figure_style(GIF_SHAPE):
        figure = Figure(figsize=(GIF_SHAPE.width, FRAME_HEIGHT), dpi=GIF_SHAPE.dpi)
        stage = _GifStage(figure, reel, title)
        canvas: Any = FigureCanvasAgg(figure)
        for frame in range(len(reel)):
            stage.show(frame)
            canvas.draw()
            # Without dithering, areas of one colour stay even from frame to frame.
            picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            pictures.append(picture.quantize(palette=_palette(), dither=Image.Dither.NONE))
    durations = [KEY_FRAME_TIME if frame in reel.keys else FRAME_TIME for frame in range(len(reel))]
    pictures[0].save(
        file,
        save_all=True,
        append_images=pictures[1:],
        duration=[*durations[:-1], LAST_FRAME_TIME],
        loop=0,  # without end
        comment=output.describe_provenance(provenance).encode(),
    )
    return file


@cache
def _palette() -> Any:
    """Return an image that holds the palette of a GIF, as Pillow's `quantize` takes it.

    The palette has all drawn colours, and their blends with white, black and grey at smooth edges.
    All frames share the palette, so that a point keeps its colour.
    """
    from PIL import Image

    dot_colors = matplotlib.colormaps[frames.DOT_COLOR_MAP](np.linspace(0, 1, 12))[:, :3]
    class_colors = [matplotlib.colors.to_rgb(color) for color in (*style.CLASS_COLORS[:2], "0.6")]
    # `share` is the share of a colour in its blend with white or, for dark colours, black.
    pale_colors = [
        (color * share + 1 - share)
        for color in np.array(class_colors)
        for share in (1, 0.8, 0.5, 0.25)
    ]
    dark_colors = [color * share for color in np.array(class_colors) for share in (0.75, 0.5, 0.25)]
    path_colors = [color * share + 1 - share for color in dot_colors for share in (1, 0.7, 0.4)]
    greys = np.repeat(np.linspace(0, 1, 16)[:, None], 3, axis=1)
    colors = np.vstack([greys, pale_colors, dark_colors, path_colors])
    palette_image = Image.new("P", (1, 1))
    palette_image.putpalette(np.round(255 * colors).astype(np.uint8).tobytes())
    return palette_image


class _GifStage:
    """The panels and texts of a GIF's frames; only what differs between frames is replaced.

    Args:
        figure: an empty figure of the size `GIF_SHAPE.width` x `FRAME_HEIGHT`.
        reel: the film.
        title: the title of each frame.
    """

    def __init__(self, figure: Figure, reel: Reel, title: str) -> None:
        self.reel = reel
        frame_size, font = (GIF_SHAPE.width, FRAME_HEIGHT), GIF_SHAPE.font
        boxes = [
            (
                x / frame_size[0],
                y / frame_size[1],
                PANEL_SIDE / frame_size[0],
                PANEL_SIDE / frame_size[1],
            )
            for x, y in PANEL_CORNERS
        ]
        # The panel of the points, and below it that of the cost.
        self.upper, self.lower = (figure.add_axes(box) for box in boxes)
        wrapped_title = style.wrap_text(title, GIF_SHAPE.width, 1.1 * font)
        figure.suptitle(style.escape_dollars(wrapped_title), fontsize=1.1 * font, y=0.985)
        # Positions are fractions of the figure. Right of the panels stand, from the top down, the
        # labels of the key frames, the legend, and the counters with their names.
        text_left, line_height = 4.35 / frame_size[0], 1.5 * font / 72 / FRAME_HEIGHT
        self.frame_labels = [
            figure.text(
                text_left, 0.9 - number * line_height, style.escape_dollars(str(frame_label))
            )
            for number, frame_label in enumerate(reel.arrays["words"])
        ]
        legend_text = "\n".join(frames.legend_lines(reel))
        figure.text(
            text_left,
            0.53,
            style.escape_dollars(legend_text),
            va="bottom",
            color="0.35",
            fontsize="small",
        )
        self.counter_texts = []
        for number, counter_name in enumerate(COUNTER_NAMES):
            text_top = 0.42 - number * 2.9 * line_height
            figure.text(text_left, text_top, counter_name, color="0.35")
            position = (text_left, text_top - 1.25 * line_height)
            self.counter_texts.append(figure.text(*position, "", size=1.7 * font, weight="bold"))

    def show(self, frame: int) -> None:
        """Replace the contents of both panels, the highlighted label, and the counters."""
        # The dots, lines and letters of the previous frame.
        for axis in (self.upper, self.lower):
            for artist in [*axis.collections, *axis.lines, *axis.texts]:
                artist.remove()
        frames.draw_points(self.upper, self.reel, frame, GIF_SHAPE)
        frames.draw_cost(self.lower, self.reel, frame, GIF_SHAPE)
        for number, frame_label in enumerate(self.frame_labels):
            # The key frame that the film has reached, or is moving to.
            is_current = number == self.reel.key_index(frame)
            frame_label.set(
                weight="bold" if is_current else "normal", color="black" if is_current else "0.55"
            )
        for counter_text, counter in zip(self.counter_texts, self.reel.counters(frame)):
            counter_text.set_text(counter)
