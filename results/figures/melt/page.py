"""The page of the melt figure: two panels for each scheme, positioned in inches."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from normbench.results.figures.base import inline, style, ticks
from normbench.results.figures.base.style import Shape
from normbench.results.figures.melt.schemes import Melt, summary_sentence

MAX_PAGE_HEIGHT = 9.0  # inches, unless the panels have their smallest height
MIN_PANEL_HEIGHT = 0.35  # inches
HEADING_COLOR = "#08519c"
TITLE = "One step size must melt every layer of the cost"
STEP_HEADING = "WHY: one step size (thick line) must serve every layer"
HISTORY_HEADING = "WHAT: the excess cost melts, layer by layer"
LegendEntry = tuple[str, dict[str, Any]]  # label, rectangle style


class Page:
    """The page of the figure; texts and panels are positioned in inches from the top down.

    Args:
        shape: the format of the figure.
        title: the title below the heading.
        rows: the schemes, one row of panels for each; `__init__` writes their texts, and `panels`
            adds their panels.
        step_name: the step size of the right panels, `best` or `shown`.
        notes: the notes at the foot of the page.
    """

    def __init__(
        self, shape: Shape, title: str, rows: Sequence[Melt], step_name: str, notes: Sequence[str]
    ) -> None:
        self.shape, self.font = shape, shape.font
        self.line_height = 1.3 * shape.font / 72
        width = shape.width
        # Room for the ticks and the label at the left, and for the share left at the right.
        self.left_margin, self.right_margin = 4.6 * self.line_height, 5.4 * self.line_height
        panels_width = width - self.left_margin - self.right_margin
        self.panel_gap = 0.04 * panels_width
        self.panel_widths = 0.58 * panels_width, 0.38 * panels_width
        # The heading is bold, and so wider than other text.
        heading = self._wrap(TITLE, 0.9 * (width - self.line_height), 1.4)
        subtitle = self._wrap(title, width - self.line_height, 0.9)
        panel_headings = [
            self._wrap(panel_heading, heading_width, 1.0)
            for panel_heading, heading_width in zip(
                (STEP_HEADING, HISTORY_HEADING), self._heading_widths()
            )
        ]
        sentences = [
            self._wrap(
                summary_sentence(melt, step_name),
                width - self.left_margin - 0.5 * self.line_height,
                0.9,
            )
            for melt in rows
        ]
        note_text = "\n".join(self._wrap(note, width - self.line_height, 0.8) for note in notes)
        self.note_text = note_text
        text_heights = {
            "heading": self._text_height(heading, 1.4) + 0.25 * self.line_height,
            "subtitle": self._text_height(subtitle, 0.9) + 0.8 * self.line_height,
            "panel_headings": self._text_height(
                max(panel_headings, key=lambda text: text.count("\n")), 1.0
            )
            + self.line_height / 2,
        }
        # Of each scheme's label and sentence.
        title_heights = [
            1.5 * self.line_height + self._text_height(text, 0.9) + 0.25 * self.line_height
            for text in sentences
        ]
        row_gap = 0.7 * self.line_height
        # Ticks, axis labels, legend and notes, whose positions `finish` sets.
        foot_height = 5.2 * self.line_height + self._text_height(note_text, 0.8)
        fixed_height = (
            sum(text_heights.values())
            + sum(title_heights)
            + row_gap * (len(rows) - 1)
            + foot_height
        )
        # The panels share the height that is left, up to a height that depends on the width.
        min_height = MIN_PANEL_HEIGHT * max(1.0, shape.font / 10)  # the ticks' labels stand apart
        self.panel_height = min(
            0.17 * width + 0.4, max(min_height, (MAX_PAGE_HEIGHT - fixed_height) / len(rows))
        )
        self.page_height = fixed_height + len(rows) * self.panel_height
        self.figure = inline.Figure(figsize=(width, self.page_height), dpi=shape.dpi)
        # y is the upper edge of the next text, in inches from the foot of the page.
        y = self.page_height - 0.4 * self.line_height
        self._write(self.line_height / 2, y, heading, 1.4, weight="bold")
        y -= text_heights["heading"]
        self._write(self.line_height / 2, y, subtitle, 0.9, color="0.35")
        y -= text_heights["subtitle"]
        for x, text in zip(
            (self.left_margin, self.left_margin + self.panel_widths[0] + self.panel_gap),
            panel_headings,
        ):
            self._write(x, y, text, 1.0, color=HEADING_COLOR)
        y -= text_heights["panel_headings"]
        self.panel_bottoms = []
        for melt, text, title_height in zip(rows, sentences, title_heights):
            self._write(self.left_margin, y, style.escape_dollars(melt.label), 1.2, weight="bold")
            self._write(self.left_margin, y - 1.5 * self.line_height, text, 0.9, color="0.2")
            y -= title_height + self.panel_height
            self.panel_bottoms.append(y)
            y -= row_gap
        self.axes: list[tuple[Any, Any]] = []

    def _heading_widths(self) -> tuple[float, float]:
        """Return the largest widths of the headings above the two columns of panels, in inches."""
        return self.panel_widths[0], self.panel_widths[1] + self.right_margin

    def _wrap(self, text: str, width: float, size: float) -> str:
        """Return a text with escaped dollars, wrapped to a width, but to 12 letters or more.

        Args:
            text: the text.
            width: inches.
            size: the font size as a multiple of the page's.
        """
        return style.escape_dollars(
            fill(text, max(12, int(width * 72 / (0.52 * size * self.font))))
        )

    def _text_height(self, text: str, size: float) -> float:
        """Return the height of a text in inches; `size` is a multiple of the page's font size."""
        return (text.count("\n") + 1) * size * self.line_height

    def _write(self, x: float, y: float, text: str, size: float, **text_style: Any) -> None:
        """Write a text on the page.

        Args:
            x: inches from the left edge of the page to that of the text.
            y: inches from the lower edge of the page to the upper edge of the text.
            text: the text.
            size: the font size as a multiple of the page's.
            **text_style: more properties of the text, or others than these.
        """
        width = self.shape.width
        text_style = {"ha": "left", "va": "top", "fontsize": size * self.font, **text_style}
        self.figure.text(x / width, y / self.page_height, text, linespacing=1.12, **text_style)

    def panels(self, number: int) -> tuple[Any, Any]:
        """Add and return the left and the right panel of a scheme, given by its number."""
        y, width = self.panel_bottoms[number], self.shape.width
        left_edges = (self.left_margin, self.left_margin + self.panel_widths[0] + self.panel_gap)
        axes = [
            self.figure.add_axes(
                (
                    x / width,
                    y / self.page_height,
                    panel_width / width,
                    self.panel_height / self.page_height,
                )
            )
            for x, panel_width in zip(left_edges, self.panel_widths)
        ]
        for axis in axes:
            axis.grid(False)
            axis.set_zorder(1)
            # Only the lowest panels have labels of ticks.
            axis.tick_params(labelsize="small", labelbottom=number == len(self.panel_bottoms) - 1)
        self.axes.append((axes[0], axes[1]))
        return axes[0], axes[1]

    def write_remaining(self, axis: Any, share: float, text: str) -> None:
        """Write the share of the excess left, and the word `left`, beside a panel.

        The number stands at the height of the share, in letters as large as the margin allows. The
        word is below the number in the upper half of the panel, above it in the lower half.

        Args:
            axis: a right panel, whose vertical axis goes from 0 to 1.
            share: the share of the start's excess; above 1 or not finite if the run grew.
            text: the number.
        """
        panel_points = self.panel_height * 72
        half_text = min(0.5, (1.0 * self.font) / panel_points)  # half the text's height
        text_height = float(np.clip(np.nan_to_num(share, posinf=1.0), half_text, 1 - half_text))
        # A bold letter is about 0.68 font sizes wide; the text may fill 0.92 of the margin.
        font_scale = min(
            1.7, 0.92 * (self.right_margin * 72 / self.font - 0.5) / (0.68 * len(text))
        )
        text_position: Any = {
            "xycoords": "axes fraction",
            "textcoords": "offset points",
            "va": "center",
        }
        axis.annotate(
            text,
            (1, text_height),
            (0.5 * self.font, 0),
            weight="bold",
            fontsize=font_scale * self.font,
            **text_position,
        )
        direction = -1 if text_height > 0.5 else 1
        axis.annotate(
            "left",
            (1, text_height),
            (0.5 * self.font, direction * 1.5 * self.font),
            fontsize=0.9 * self.font,
            **text_position,
        )

    def finish(self, entries: Sequence[LegendEntry], iteration_label: str) -> None:
        """Write the axis labels, the legend and the notes, after all panels are drawn.

        Args:
            entries: the label and the rectangle style of each colour, for the legend.
            iteration_label: the label of the horizontal axis of the right panels.
        """
        for step_axis, history_axis in self.axes:
            # The axis has decimal logarithms of step sizes, because it shows an image.
            low, high = step_axis.get_xlim()
            max_ticks = int(self.panel_widths[0] / (4.2 * self.line_height))  # labels side by side
            tick_values = ticks.log_tick_values(10**low, 10**high, max_ticks)
            step_axis.set_xticks(
                np.log10(tick_values), [ticks.power_text(tick_value) for tick_value in tick_values]
            )
            step_axis.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
            history_axis.set_yticks([])
            ticks.set_even_ticks(
                history_axis.xaxis, 4 if self.panel_widths[1] > 12 * self.line_height else 2
            )
        step_axis, history_axis = self.axes[-1]
        step_axis.set_xlabel("step size", labelpad=1)
        history_axis.set_xlabel(iteration_label, labelpad=1)
        lowest_bottom = self.panel_bottoms[-1]
        middle_height = (self.panel_bottoms[0] + self.panel_height + lowest_bottom) / 2
        self._write(
            0.35 * self.line_height,
            middle_height,
            "share of the excess cost",
            0.9,
            rotation=90,
            va="center",
        )
        self._draw_legend(lowest_bottom - 3.1 * self.line_height, entries)
        self._write(
            0.5 * self.line_height,
            lowest_bottom - 4.6 * self.line_height,
            self.note_text,
            0.8,
            color="0.3",
        )

    def _draw_legend(self, y: float, entries: Sequence[LegendEntry]) -> None:
        """Draw a square and a label for each colour in one row, y inches above the page's foot."""
        x, square_side = self.left_margin, 0.85 * self.line_height
        for label, look in entries:
            corner = (x / self.shape.width, (y - square_side) / self.page_height)
            size = (square_side / self.shape.width, square_side / self.page_height)
            self.figure.add_artist(Rectangle(corner, *size, **look))
            self._write(x + 1.3 * square_side, y, label, 0.9)
            # A letter is about 0.56 font sizes wide; two letters separate the entries.
            x += 1.3 * square_side + (0.56 * len(label) + 2.0) * 0.9 * self.font / 72
