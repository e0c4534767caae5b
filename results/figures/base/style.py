"""What all figures share: a fixed look for each scheme and verdict, the formats.

A colour has one meaning: schemes have hues of middle lightness, classes light hues, verdicts greys
and the one red. They are told apart by the colour-blind; markers and lines add to it.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.figures.base import shown
from normbench.results.store.looks import Look as Look
from normbench.results.store.looks import look as look
from normbench.results.store.looks import looks as looks


class Shape(NamedTuple):
    """How large a figure is: width in inches, font in points, lines in points, dots an inch.

    columns: how many panels stand side by side at most.
    """

    width: float
    font: float
    line: float
    dpi: int
    columns: int


FORMATS = {
    "column": Shape(3.3, 7.0, 0.9, 600, 1),
    "page": Shape(6.5, 8.0, 1.2, 300, 3),
    "slide": Shape(13.0, 14.0, 2.2, 150, 4),
    "screen": Shape(10.0, 10.0, 1.5, 120, 4),
}
SCREEN = FORMATS["screen"]

KINDS = ("png", "svg", "pdf")

# Of a verdict: its colour and its marker.
BAD = "#c1121f"  # the one red
VERDICTS = {
    names.CONVERGED: ("#3d3d3d", "o"),
    names.NOT_CONVERGED: ("#cfcfcf", "D"),
    names.CYCLING: ("#8c8c8c", "s"),
    names.BY_ROUNDING: ("#6b6b6b", "v"),  # a star is the best step
    names.DIVERGED: (BAD, "X"),
    names.FAILED: ("#f4f4f4", "P"),
}
# Of classes, in their order: light colours, drawn with a dark edge.
CLASSES = (
    *("#a7d3fe", "#d4ce69", "#dfa8c8", "#bad895", "#a2ffce"),
    *("#68d6de", "#f0a1aa", "#fae795", "#a9b5f7", "#b1bd8e"),
)
CLASS_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "<", "p")
EDGE = "#333333"  # of a class's mark


def looks_of(rows: pd.DataFrame) -> dict[str, Look]:
    """Return the look of each scheme of rows that have its name in `scheme`."""
    kinds = dict(zip(rows["scheme"], rows["normalizer"]))
    return dict(zip(kinds, looks(list(kinds.values()))))


def class_looks(count: int) -> list[tuple[str, str]]:
    """Return a colour and a marker for each class, told apart in grey up to 100 of them."""
    return [(CLASSES[n % 10], CLASS_MARKERS[(n + n // 10) % 10]) for n in range(count)]


def by_class(parts: Mapping[str, Any], unclassed: str) -> list[tuple[Any, tuple[str, str]]]:
    """Return the points of each class, as a mask, with the class's colour and marker.

    parts: `target` (p,) and `class_names` (C,). Without classes, all points in one colour.
    """
    looks = class_looks(len(parts["class_names"]))
    groups = [(parts["target"] == number, look) for number, look in enumerate(looks)]
    return groups or [(slice(None), (unclassed, "o"))]


def class_marks(class_names: Sequence[Any]) -> list[Line2D]:
    """Return a legend's entries for classes."""
    words = [plain(str(name)) for name in class_names]
    return _marks(zip(words, class_looks(len(words))), EDGE)


def verdict_marks(verdicts: Container[str]) -> list[Line2D]:
    """Return a legend's entries for verdicts."""
    return _marks(((word, VERDICTS[word]) for word in VERDICTS if word in verdicts), "black")


def _marks(looks: Iterable[tuple[str, tuple[str, str]]], edge: str) -> list[Line2D]:
    rim: Any = {"ls": "", "mec": edge, "mew": 0.5}
    return [
        Line2D([], [], color=color, marker=marker, label=label, **rim)
        for label, (color, marker) in looks
    ]


def draw_verdict(axis: Any, verdict: str, sizes: Any, heights: Any) -> None:
    """Draw the points of step sizes that have one verdict."""
    color, marker = VERDICTS.get(verdict, ("0.5", "o"))
    mark: Any = {"ls": "", "marker": marker, "color": color, "mec": "black", "mew": 0.5}
    axis.plot(sizes, heights, label=f"_{verdict}", clip_on=False, zorder=4, **mark)


def plain_curve(look: Look) -> dict[str, Any]:
    """Return how a curve is drawn whose every value matters: markers would hide a zigzag."""
    return {"color": look.color, "ls": look.line}


def curve(look: Look, count: int, phase: float = 0.0) -> dict[str, Any]:
    """Return how a curve of so many values is drawn: with a marker at every eighth of it.

    phase: of the first marker, from 0 to 1. With different ones, curves that coincide are both
    seen.
    """
    every = max(1, count // 8)
    marks = {"marker": look.marker, "markersize": 4, "markevery": (int(phase * every), every)}
    return {"color": look.color, "ls": look.line, **marks}


def dark(color: str) -> str:
    """Return a colour that can be read as text on white: as it is, or darker."""
    parts = to_rgb(color)
    lightness = 0.30 * parts[0] + 0.59 * parts[1] + 0.11 * parts[2]
    if lightness < 0.45:
        return color
    red, green, blue = (0.45 / lightness * part for part in parts)
    return str(to_hex((red, green, blue)))


def drawn(shape: Shape) -> AbstractContextManager[None]:
    """Set matplotlib's parameters for one figure, and put them back."""
    return matplotlib.rc_context({**RC, "font.size": shape.font, "lines.linewidth": shape.line})


def panels(
    count: int, shape: Shape, title: str, height: float, columns: int | None = None, **kwargs: Any
) -> tuple[Figure, list[Any]]:
    """Return a figure of `count` panels, 1 or more, each `height` times as high as it is wide."""
    rows, columns = rows_and_columns(count, columns or shape.columns)
    words = heading(title, shape)
    head = (2.2 + 1.3 * (words.count("\n") + 1)) * shape.font / 72
    figure = blank(shape, rows * height * shape.width / columns + head, words)
    pad(figure, 0.06, 0.08)
    axes = list(figure.subplots(rows, columns, squeeze=False, **kwargs).flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def blank(shape: Shape, height: float, title: str) -> Figure:
    """Return a figure without panels, so many inches high."""
    size = (shape.width, height)
    figure = shown.Figure(figsize=size, dpi=shape.dpi, layout="constrained")
    figure.suptitle(title, fontsize=1.1 * shape.font)
    return figure


def rows_and_columns(count: int, most: int) -> tuple[int, int]:
    """Return how panels stand: `most` side by side, in rows of one length, where that can be."""
    rows = -(-count // most)
    return rows, -(-count // rows)


def pairs(
    count: int, shape: Shape, title: str, height: float, ratio: float = 1.0
) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure of `count` pairs of panels, the second `ratio` times as high and below."""
    rows, columns = rows_and_columns(count, shape.columns)
    ratios = [1.0, ratio] * rows
    figure, axes = panels(2 * rows * columns, shape, title, height, columns, height_ratios=ratios)
    return figure, in_pairs(axes, count, columns)


def in_pairs(axes: Any, count: int, columns: int) -> list[tuple[Any, Any]]:
    """Return `count` pairs of panels, one above the other, and remove the spare ones."""
    every = np.reshape(axes, (-1, 2, columns)).swapaxes(1, 2).reshape(-1, 2)
    for spare in every[count:].flat:
        spare.remove()
    return [(upper, lower) for upper, lower in every[:count]]


def rows_of_images(
    rows: int, columns: int, shape: Shape, title: str, height: float
) -> tuple[Figure, Any]:
    """Return a figure of rows of images, each `height` inches high, and their panels."""
    figure = blank(shape, rows * height + 2.5 * shape.font / 72, plain(title))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axis in grid.flat:
        axis.set_axis_off()
    return figure, grid


def pad(figure: Figure, width: float, height: float) -> None:
    """Set how much room is left around each panel, in inches."""
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=width, h_pad=height)


def name_panel(axis: Any, text: str, look: Look) -> None:
    """Write a scheme's name over its panel, in its colour, on several lines where it is long."""
    width = axis.figure.get_figwidth() / axis.get_subplotspec().get_gridspec().ncols
    words = broken(text, 0.85 * width, matplotlib.rcParams["font.size"])
    axis.set_title(plain(words), color=dark(look.color))


def equal_names(labels: Sequence[str]) -> str:
    """Return the names of equal schemes, one a line where they would take too much room."""
    return (" = " if len(" = ".join(labels)) < 24 else "\n= ").join(labels)


def heading(title: str, shape: Shape) -> str:
    """Return a figure's title, on several lines where it is long."""
    return plain(broken(title, shape.width, 1.1 * shape.font))


def broken(text: str, width: float, font: float) -> str:
    """Return a text that is broken behind commas and the like to fit a width in inches.

    font: its size in points.
    """
    letters = int(width * 72 / (0.58 * font))
    first, *others = re.split(r"(?<=[,;:]) ", text)
    lines = [first]
    for part in others:
        if len(f"{lines[-1]} {part}") <= letters:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return "\n".join(line.rstrip(",") for line in lines)


def note(figure: Figure, shape: Shape, text: str) -> None:
    """Write small lines below a figure, and above its legend, which is there by then."""
    small = 0.833 * shape.font
    words = "\n".join(broken(line, shape.width, small) for line in text.split("\n"))
    if not figure.legends:
        figure.supxlabel(words, fontsize="small", x=0.01, ha="left")
        return
    (below,) = figure.legends
    below.set_title(words, FontProperties(size="small"))
    below.set_alignment("left")
    lines = words.count("\n") + 1
    figure.set_figheight(figure.get_figheight() + lines * 1.3 * small / 72)


def legend(figure: Figure, shape: Shape, handles: Sequence[Any], words: Sequence[str] = ()) -> None:
    """Put a legend below a figure, in as many columns as there is room for.

    words: of handles without labels. The figure grows by each row of it but the first.
    """
    words = list(words) or [handle.get_label() for handle in handles]
    if not words:
        return
    font = shape.font * 0.833  # "small"
    wide = (0.56 * max(map(len, words)) + 5.0) * font / 72  # with the mark and the gaps
    columns = min(len(words), max(1, int(shape.width / wide)))
    rows = -(-len(words) // columns)
    figure.set_figheight(figure.get_figheight() + (rows - 1) * 1.6 * font / 72)
    figure.legend(handles, words, loc="outside lower center", ncols=columns)


def span_iterations(axis: Any, lines: Sequence[Line2D]) -> float:
    """Limit a panel to the iterations of some curves; return the last of them."""
    every = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in lines])
    axis.set_xlim(every.min(), max(every.max(), every.min() + 1))
    return float(every.max())


def outer_labels(axes: Sequence[Any], x: str, y: str) -> None:
    """Name the axes of a grid of panels once a row and once a column."""
    for axis in axes:
        place = axis.get_subplotspec()
        if place.is_first_col():
            axis.set_ylabel(y)
        below = [other for other in axes if other.get_subplotspec().colspan == place.colspan]
        if axis is below[-1]:
            axis.set_xlabel(x)
            axis.tick_params(labelbottom=True)  # also where the last row is not full


def name_plane(axis: Any, words: Sequence[Any], letters: int) -> None:
    """Name the axes of a plane, the upright one on lines of so many letters; few ticks."""
    axis.set_xlabel(plain(str(words[0])), fontsize="small")
    axis.set_ylabel(plain(fill(str(words[1]), letters)), fontsize="small")
    axis.grid(False)
    for direction in (axis.xaxis, axis.yaxis):
        direction.set_major_locator(MaxNLocator(3))
    axis.tick_params(labelsize="small")


def plain(text: str) -> str:
    """Return a user's text so that a dollar in it is a dollar, not the start of a formula."""
    return text.replace("$", r"\$")


def say(axis: Any, words: str) -> None:
    """Write in the middle of a panel."""
    axis.text(0.5, 0.5, words, ha="center", va="center", transform=axis.transAxes, wrap=True)


def say_below(axis: Any, words: str) -> None:
    """Write at the foot of a panel."""
    axis.text(0.5, 0.03, words, ha="center", transform=axis.transAxes, fontsize="small")


def say_nothing(axis: Any, words: str) -> None:
    """Write on an empty panel why it is empty."""
    say(axis, words)
    axis.set(xticks=[], yticks=[])


def step_text(step_size: Any) -> str:
    """Return a step size as a label has it, of two digits; nothing for none."""
    return "" if step_size is None or pd.isna(step_size) else f", step {float(step_size):.2g}"


RC: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": "medium",
    # Otherwise matplotlib looks at each drawing, and each layout, for what is in a title's way.
    "axes.titley": 1.0,
    "figure.labelsize": "medium",
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "svg.hashsalt": "normbench",  # the same figure gives the same file
    "svg.fonttype": "none",
    "savefig.dpi": "figure",
}
