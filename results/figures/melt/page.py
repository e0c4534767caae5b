"""The page of a picture of layers: two panels a scheme, everything placed in inches."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from normbench.results.figures.base import shown, style, ticks
from normbench.results.figures.base.style import Shape
from normbench.results.figures.melt.schemes import MOST, Melt, percent, sentence

HIGHEST = 9.0  # inches, of the page
LOWEST = 0.35  # inches, of a panel
HEADING = "#08519c"
TITLE = "One step size must melt every layer of the cost"
WHY = "WHY: one step size (thick line) must serve every layer"
WHAT = "WHAT: the excess cost melts, layer by layer"
Entry = tuple[str, dict[str, Any]]  # of the legend: what is said, and a rectangle's look


def room(shape: Shape) -> int:
    """Return how many schemes a page of a shape has room for: of large letters fewer than six."""
    line = 1.3 * shape.font / 72
    return max(1, min(MOST, int((HIGHEST - 15.5 * line) / (3.7 * line + LOWEST))))


class Page:
    """The page of the figure: everything is placed in inches, from the top down."""

    def __init__(
        self, shape: Shape, title: str, rows: Sequence[Melt], best: str, notes: Sequence[str]
    ) -> None:
        self.shape, self.font = shape, shape.font
        self.line = 1.3 * shape.font / 72
        width = shape.width
        self.left, self.right = 4.6 * self.line, 5.4 * self.line
        across = width - self.left - self.right
        self.gap = 0.04 * across
        self.wide = 0.58 * across, 0.38 * across
        head = self._wrapped(TITLE, 0.9 * (width - self.line), 1.4)  # bold
        about = self._wrapped(title, width - self.line, 0.9)
        tops = [self._wrapped(words, room, 1.0) for words, room in zip((WHY, WHAT), self._rooms())]
        lines = [
            self._wrapped(sentence(melt, best), width - self.left - 0.5 * self.line, 0.9)
            for melt in rows
        ]
        below = "\n".join(self._wrapped(note, width - self.line, 0.8) for note in notes)
        self.below = below
        deep = {
            "head": self._height(head, 1.4) + 0.25 * self.line,
            "about": self._height(about, 0.9) + 0.8 * self.line,
            "tops": self._height(max(tops, key=lambda text: text.count("\n")), 1.0) + self.line / 2,
        }
        titles = [1.5 * self.line + self._height(text, 0.9) + 0.25 * self.line for text in lines]
        between = 0.7 * self.line
        foot = 5.2 * self.line + self._height(below, 0.8)
        fixed = sum(deep.values()) + sum(titles) + between * (len(rows) - 1) + foot
        self.high = min(0.17 * width + 0.4, max(LOWEST, (HIGHEST - fixed) / len(rows)))
        self.total = fixed + len(rows) * self.high
        self.figure = shown.Figure(figsize=(width, self.total), dpi=shape.dpi)
        y = self.total - 0.4 * self.line
        self._write(self.line / 2, y, head, 1.4, weight="bold")
        y -= deep["head"]
        self._write(self.line / 2, y, about, 0.9, color="0.35")
        y -= deep["about"]
        for x, text in zip((self.left, self.left + self.wide[0] + self.gap), tops):
            self._write(x, y, text, 1.0, color=HEADING)
        y -= deep["tops"]
        self.places = []
        for melt, text, title_height in zip(rows, lines, titles):
            self._write(self.left, y, style.escape_dollars(melt.label), 1.2, weight="bold")
            self._write(self.left, y - 1.5 * self.line, text, 0.9, color="0.2")
            y -= title_height + self.high
            self.places.append(y)
            y -= between
        self.axes: list[tuple[Any, Any]] = []

    def _rooms(self) -> tuple[float, float]:
        return self.wide[0], self.wide[1] + self.right

    def _wrapped(self, text: str, width: float, size: float) -> str:
        """Return a text on lines that fit a width in inches; size: of the font, over the page's."""
        return style.escape_dollars(
            fill(text, max(12, int(width * 72 / (0.52 * size * self.font))))
        )

    def _height(self, text: str, size: float) -> float:
        return (text.count("\n") + 1) * size * self.line

    def _write(self, x: float, y: float, text: str, size: float, **looks: Any) -> None:
        """Write a text whose upper left corner is so many inches from the page's lower left."""
        width = self.shape.width
        looks = {"ha": "left", "va": "top", "fontsize": size * self.font, **looks}
        self.figure.text(x / width, y / self.total, text, linespacing=1.12, **looks)

    def panels(self, number: int) -> tuple[Any, Any]:
        """Return the two panels of a row."""
        y, width, total = self.places[number], self.shape.width, self.total
        xs = (self.left, self.left + self.wide[0] + self.gap)
        pair = [
            self.figure.add_axes((x / width, y / total, wide / width, self.high / total))
            for x, wide in zip(xs, self.wide)
        ]
        for axis in pair:
            axis.grid(False)
            axis.set_zorder(1)
            axis.tick_params(labelsize="small", labelbottom=number == len(self.places) - 1)
        self.axes.append((pair[0], pair[1]))
        return pair[0], pair[1]

    def say_end(self, axis: Any, share: float) -> None:
        """Write how much is left, large, beside a panel's end."""
        points = self.high * 72
        half = min(0.5, (1.0 * self.font) / points)
        up = float(np.clip(np.nan_to_num(share, posinf=1.0), half, 1 - half))
        words = percent(share)
        size = min(1.7, 0.92 * (self.right * 72 / self.font - 0.5) / (0.68 * len(words)))
        place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
        axis.annotate(
            words,
            (1, up),
            (0.5 * self.font, 0),
            weight="bold",
            fontsize=size * self.font,
            **place,
        )
        side = -1 if up > 0.5 else 1
        axis.annotate(
            "left",
            (1, up),
            (0.5 * self.font, side * 1.5 * self.font),
            fontsize=0.9 * self.font,
            **place,
        )

    def finish(self, entries: Sequence[Entry]) -> None:
        """Write the axes' names, what the colours are, and the notes."""
        for why, what in self.axes:
            low, high = why.get_xlim()
            most = int(self.wide[0] / (4.2 * self.line))  # numbers side by side
            places = ticks.log_tick_values(10**low, 10**high, most)
            why.set_xticks(np.log10(places), [ticks.power_text(size) for size in places])
            why.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
            what.set_yticks([])
            ticks.set_even_ticks(what.xaxis, 4 if self.wide[1] > 12 * self.line else 2)
        why, what = self.axes[-1]
        why.set_xlabel("step size", labelpad=1)
        what.set_xlabel("iteration", labelpad=1)
        last = self.places[-1]
        middle = (self.places[0] + self.high + last) / 2
        self._write(
            0.35 * self.line, middle, "share of the excess cost", 0.9, rotation=90, va="center"
        )
        self._legend(last - 3.1 * self.line, entries)
        self._write(0.5 * self.line, last - 4.6 * self.line, self.below, 0.8, color="0.3")

    def _legend(self, y: float, entries: Sequence[Entry]) -> None:
        """Draw a square for each colour, and what it is."""
        x, side = self.left, 0.85 * self.line
        for words, look in entries:
            place = (x / self.shape.width, (y - side) / self.total)
            size = (side / self.shape.width, side / self.total)
            self.figure.add_artist(Rectangle(place, *size, **look))
            self._write(x + 1.3 * side, y, words, 0.9)
            x += 1.3 * side + (0.56 * len(words) + 2.0) * 0.9 * self.font / 72
