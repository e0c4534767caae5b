"""A film that plays: as a GIF, and as an SVG with a slider."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from normbench.results.figures.base import followed, output, style
from normbench.results.figures.base.style import Shape
from normbench.results.figures.contours import LEVELS
from normbench.results.figures.film import frames
from normbench.results.figures.film.reel import Reel, View
from normbench.results.safe import clean

TEMPLATE = resources.files("normbench.results.figures.film") / "film.svg.jinja"
SHAPE = Shape(7.2, 11.0, 1.5, 90, 1)  # of a GIF, which holds every pixel of every frame
HEIGHT, SIDE = 7.9, 3.15  # inches: of a frame, and of its panels
PLACES = ((0.75, 4.25), (0.75, 0.6))  # of the panels' lower left corners, in inches
MOVING, STILL, LAST = 90, 1400, 3000  # milliseconds of a frame, a key frame and the last
COUNTERS = ("L", "condition number", "iterations to 1%")
DIGITS = 5
NOTE = (7.2, 9.0)  # inches and points of an SVG's lines


def gif(reel: Reel, title: str, file: Path, facts: Mapping[str, str]) -> Path:
    """Write a film as a GIF, a picture a frame, which rests on key frames; return the file."""
    from PIL import Image

    pictures = []
    with style.drawn(SHAPE):
        figure = Figure(figsize=(SHAPE.width, HEIGHT), dpi=SHAPE.dpi)
        stage = _Stage(figure, reel, title)
        canvas: Any = FigureCanvasAgg(figure)
        for frame in range(len(reel)):
            stage.show(frame)
            canvas.draw()
            picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            pictures.append(picture.quantize(palette=_palette(), dither=Image.Dither.NONE))
    rests = [STILL if frame in reel.keys else MOVING for frame in range(len(reel))]
    pictures[0].save(
        file,
        save_all=True,
        append_images=pictures[1:],
        duration=[*rests[:-1], LAST],
        loop=0,
        comment=output.about(facts).encode(),
    )
    return file


@cache
def _palette() -> Any:
    """Return the colours of a GIF: all that is drawn, and what smooth edges make of it.

    One for all frames, so that a point's colour stays what it is.
    """
    from PIL import Image

    dots = matplotlib.colormaps[frames.DOTS](np.linspace(0, 1, 12))[:, :3]
    full = [matplotlib.colors.to_rgb(one) for one in (*style.CLASSES[:2], "0.6")]
    shades = [(one * share + 1 - share) for one in np.array(full) for share in (1, 0.8, 0.5, 0.25)]
    darker = [one * share for one in np.array(full) for share in (0.75, 0.5, 0.25)]
    paths = [one * share + 1 - share for one in dots for share in (1, 0.7, 0.4)]
    greys = np.repeat(np.linspace(0, 1, 16)[:, None], 3, axis=1)
    colors = np.vstack([greys, shades, darker, paths])
    made = Image.new("P", (1, 1))
    made.putpalette(np.round(255 * colors).astype(np.uint8).tobytes())
    return made


class _Stage:
    """The panels and texts of a GIF's frames, made once: only what moves is drawn anew."""

    def __init__(self, figure: Figure, reel: Reel, title: str) -> None:
        self.reel = reel
        size, font = (SHAPE.width, HEIGHT), SHAPE.font
        boxes = [(x / size[0], y / size[1], SIDE / size[0], SIDE / size[1]) for x, y in PLACES]
        self.upper, self.lower = (figure.add_axes(box) for box in boxes)
        words = style.broken(title, SHAPE.width, 1.1 * font)
        figure.suptitle(style.plain(words), fontsize=1.1 * font, y=0.985)
        left, line = 4.35 / size[0], 1.5 * font / 72 / HEIGHT
        self.words = [
            figure.text(left, 0.9 - number * line, style.plain(str(word)))
            for number, word in enumerate(reel.parts["words"])
        ]
        told = "\n".join(frames.legend(reel))
        figure.text(left, 0.53, style.plain(told), va="bottom", color="0.35", fontsize="small")
        self.counts = []
        for number, what in enumerate(COUNTERS):
            top = 0.42 - number * 2.9 * line
            figure.text(left, top, what, color="0.35")
            place = (left, top - 1.25 * line)
            self.counts.append(figure.text(*place, "", size=1.7 * font, weight="bold"))

    def show(self, frame: int) -> None:
        """Draw one frame."""
        for axis in (self.upper, self.lower):
            for artist in [*axis.collections, *axis.lines, *axis.texts]:
                artist.remove()
        frames.draw_points(self.upper, self.reel, frame, SHAPE)
        frames.draw_cost(self.lower, self.reel, frame, SHAPE)
        for number, word in enumerate(self.words):
            here = number == self.reel.key_of(frame)
            word.set(weight="bold" if here else "normal", color="black" if here else "0.55")
        for text, much in zip(self.counts, self.reel.counters(frame)):
            text.set_text(much)


def svg(reel: Reel, title: str, file: Path, facts: Mapping[str, str]) -> Path:
    """Write a film as an SVG with a slider, for a browser; return the file.

    It holds its script and its data, and asks nothing of any other place.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    told = template.render(
        title=clean.sanitize(title),
        about=clean.sanitize(output.about(facts)),
        words=[str(word) for word in reel.parts["words"]],
        keys=reel.keys,
        last=len(reel) - 1,
        counters=COUNTERS,
        legend=frames.legend(reel),
        note=[
            part
            for line in frames.note(reel).split("\n")
            for part in style.broken(line, *NOTE).split("\n")
        ],
        data=_data(reel),
    )
    file.write_text(told, encoding="utf-8")
    return file


def _data(reel: Reel) -> str:
    """Return what the script draws, as JSON that may stand in XML."""
    parts = reel.parts
    looks = style.class_looks(len(parts["class_names"])) or [("#999999", "o")]
    target = parts["target"] if len(parts["class_names"]) else np.zeros(len(parts["points"]))
    colors = matplotlib.colormaps[frames.DOTS](frames.progress(reel))
    return output.script_data(
        {
            "points": _short(parts["points"] - parts["centre"]),
            "target": np.asarray(target).astype(int).tolist(),
            "colors": [color for color, _ in looks],
            "marked": list(zip(reel.marked, followed.LETTERS)),
            "dots": [matplotlib.colors.to_hex(color) for color in colors],
            "contours": [[_short(line) for line in level] for level in reel.contours],
            "start": LEVELS - 1,
            "frames": [_moving(reel, frame) for frame in range(len(reel))],
        }
    )


def _moving(reel: Reel, frame: int) -> dict[str, Any]:
    """Return what differs from frame to frame."""
    parts = reel.parts
    return {
        "key": reel.key_of(frame),
        "names": reel.names(frame),
        "counters": list(reel.counters(frame)),
        "signs": parts["signs"][frame].astype(int).tolist(),
        "matrix": _short(parts["matrix"][frame]),
        "image": _short(parts["image"][frame]),
        "about": _view(reel.about(frame)),
        "origin": _short(parts["origin"][frame]),
        "basis": _short(parts["basis"][frame]),
        "path": _short(reel.path(frame)),
        "around": _view(reel.around(frame)),
    }


def _view(view: View) -> Any:
    return _short(np.array([*view.middle, view.half]))


def _short(values: Any) -> Any:
    """Return numbers of a few digits, as lists."""
    rounded = [float(f"{value:.{DIGITS}g}") for value in np.ravel(values)]
    return np.reshape(rounded, np.shape(values)).tolist()
