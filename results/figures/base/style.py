"""The style of all figures: formats, colours, markers, panels, titles and legends.

Each colour has one meaning: schemes have hues of medium lightness, classes have light hues,
verdicts have greys and the only red. Colour-blind readers can distinguish them; markers and line
styles help.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from textwrap import fill
from typing import Any, NamedTuple, TypeVar

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.figures.base import inline
from normbench.results.store.looks import Look as Look
from normbench.results.store.looks import look as look
from normbench.results.store.looks import looks as looks

Item = TypeVar("Item")


class Shape(NamedTuple):
    """The format of a figure.

    Attributes:
        width: inches.
        font: the font size in points.
        line: the line width in points.
        dpi: dots per inch.
        columns: the largest number of panels side by side.
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

FILE_FORMATS = ("png", "svg", "pdf")

ALARM_RED = "#c1121f"  # the only red
# The colour and the marker of each verdict.
VERDICT_LOOKS = {
    names.CONVERGED: ("#3d3d3d", "o"),
    names.NOT_CONVERGED: ("#cfcfcf", "D"),
    names.CYCLING: ("#8c8c8c", "s"),
    names.BY_ROUNDING: ("#6b6b6b", "v"),  # not a star: that marks the best step
    names.DIVERGED: (ALARM_RED, "X"),
    names.FAILED: ("#f4f4f4", "P"),
}
# The light colours of classes, drawn with a dark edge.
CLASS_COLORS = (
    *("#a7d3fe", "#d4ce69", "#dfa8c8", "#bad895", "#a2ffce"),
    *("#68d6de", "#f0a1aa", "#fae795", "#a9b5f7", "#b1bd8e"),
)
CLASS_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "<", "p")
CLASS_EDGE = "#333333"  # the edge colour of a class's marker


def looks_by_scheme(rows: pd.DataFrame) -> dict[str, Look]:
    """Return the look of each scheme, by the scheme's name in the column `scheme`."""
    # Each scheme once, in the order of the rows.
    normalizers = dict(zip(rows["scheme"], rows["normalizer"]))
    return dict(zip(normalizers, looks(list(normalizers.values()))))


def class_looks(count: int) -> list[tuple[str, str]]:
    """Return a colour and a marker for each class; up to 100 classes differ."""
    # After each ten colours the markers are shifted by one, so that no pair occurs twice.
    return [(CLASS_COLORS[n % 10], CLASS_MARKERS[(n + n // 10) % 10]) for n in range(count)]


def class_masks(
    scheme_arrays: Mapping[str, Any], unclassed: str
) -> list[tuple[Any, tuple[str, str]]]:
    """Return an index of the points of each class, with the class's colour and marker.

    Args:
        scheme_arrays: the recorded arrays, with `target` (p,) and `class_names` (C,).
        unclassed: the colour of all points where there are no classes.

    Returns:
        For each class, a mask (p,), and a colour and a marker; without classes, a single slice of
        all points.
    """
    masks = [
        (scheme_arrays["target"] == class_index, class_look)
        for class_index, class_look in enumerate(class_looks(len(scheme_arrays["class_names"])))
    ]
    return masks or [(slice(None), (unclassed, "o"))]


def scatter_classes(
    axis: Any, points: Any, scheme_arrays: Mapping[str, Any], dot_style: Mapping[str, Any]
) -> None:
    """Draw points (p, 2) in the looks of their classes, with dark edges, see `class_masks`."""
    edge_style: Any = {"edgecolors": CLASS_EDGE, **dot_style}
    for number, (mask, (color, marker)) in enumerate(class_masks(scheme_arrays, "0.4")):
        dots = points[mask].T
        axis.scatter(*dots, facecolors=color, marker=marker, label=f"_{number}", **edge_style)


def class_handles(class_names: Sequence[Any]) -> list[Line2D]:
    """Return the legend handles of classes."""
    labels = [escape_dollars(str(name)) for name in class_names]
    return _legend_handles(zip(labels, class_looks(len(labels))), CLASS_EDGE)


def verdict_handles(verdicts: Container[str]) -> list[Line2D]:
    """Return the legend handles of verdicts."""
    return _legend_handles(
        ((verdict, VERDICT_LOOKS[verdict]) for verdict in VERDICT_LOOKS if verdict in verdicts),
        "black",
    )


def _legend_handles(looks: Iterable[tuple[str, tuple[str, str]]], edge: str) -> list[Line2D]:
    """Return legend handles, markers without a line.

    Args:
        looks: for each handle its label, and its colour and marker.
        edge: the colour of the edge of each marker.
    """
    edge_style: Any = {"ls": "", "mec": edge, "mew": 0.5}
    return [
        Line2D([], [], color=color, marker=marker, label=label, **edge_style)
        for label, (color, marker) in looks
    ]


def draw_verdict(axis: Any, verdict: str, sizes: Any, heights: Any, *, scale: float = 1.0) -> None:
    """Draw a marker for each step size that has one verdict.

    Args:
        axis: The panel.
        verdict: One of `names.VERDICTS`; an unknown one is a grey circle.
        sizes: The step sizes (S,).
        heights: The vertical positions of the markers (S,).
        scale: The size of a marker as a multiple of the usual size.
    """
    color, marker = VERDICT_LOOKS.get(verdict, ("0.5", "o"))
    marker_style: Any = {"ls": "", "marker": marker, "color": color, "mec": "black"}
    marker_style |= {"mew": 0.5 * scale, "ms": scale * matplotlib.rcParams["lines.markersize"]}
    axis.plot(sizes, heights, label=f"_{verdict}", clip_on=False, zorder=4, **marker_style)


def unmarked_curve(look: Look) -> dict[str, Any]:
    """Return the line properties of a curve without markers; markers would hide a zigzag."""
    return {"color": look.color, "ls": look.line}


def marked_curve(look: Look, count: int, phase: float = 0.0) -> dict[str, Any]:
    """Return the line properties of a curve with about eight markers.

    Args:
        look: the scheme's look.
        count: the number of values of the curve.
        phase: the position of the first marker, from 0 to 1 marker interval. With different
            phases, curves that coincide remain visible.
    """
    marker_interval = max(1, count // 8)
    marker_style = {
        "marker": look.marker,
        "markersize": 4,
        "markevery": (int(phase * marker_interval), marker_interval),  # the first, the distance
    }
    return {"color": look.color, "ls": look.line, **marker_style}


def text_color(color: str) -> str:
    """Return a colour that is readable as text on white, darkened if necessary."""
    channels = to_rgb(color)
    lightness = 0.30 * channels[0] + 0.59 * channels[1] + 0.11 * channels[2]  # luma, of ITU BT.601
    if lightness < 0.45:  # dark enough; lighter colours are scaled down to this lightness
        return color
    red, green, blue = (0.45 / lightness * channel for channel in channels)
    return str(to_hex((red, green, blue)))


def figure_style(shape: Shape) -> AbstractContextManager[None]:
    """Return a context that sets matplotlib's parameters for one figure and restores them."""
    return matplotlib.rc_context({**RC, "font.size": shape.font, "lines.linewidth": shape.line})


def panels(
    count: int, shape: Shape, title: str, aspect: float, columns: int | None = None, **kwargs: Any
) -> tuple[Figure, list[Any]]:
    """Return a figure and its panels.

    Args:
        count: the number of panels, 1 or more.
        shape: the format of the figure.
        title: the title of the figure.
        aspect: the height of a panel over its width.
        columns: the largest number of panels side by side; None for the format's.
        **kwargs: more arguments of `Figure.subplots`.

    Returns:
        The figure, as wide as its format, and its panels, row by row.
    """
    row_count, column_count = rows_and_columns(count, columns or shape.columns)
    wrapped_title = wrap_and_escape_title(title, shape)
    # In inches: 1.3 font sizes for each line of the title, and 2.2 for other text.
    title_height = (2.2 + 1.3 * (wrapped_title.count("\n") + 1)) * shape.font / 72
    figure = blank_figure(
        shape, row_count * aspect * shape.width / column_count + title_height, wrapped_title
    )
    set_padding(figure, 0.06, 0.08)
    axes = list(figure.subplots(row_count, column_count, squeeze=False, **kwargs).flat)
    for spare_axis in axes[count:]:
        spare_axis.remove()
    return figure, axes[:count]


def blank_figure(shape: Shape, height: float, title: str) -> Figure:
    """Return a figure without panels.

    Args:
        shape: The format of the figure.
        height: The height of the figure in inches.
        title: The title of the figure, with dollar signs escaped.

    Returns:
        The figure, as wide as its format.
    """
    size = (shape.width, height)
    figure = inline.Figure(figsize=size, dpi=shape.dpi, layout="constrained")
    figure.suptitle(title, fontsize=1.1 * shape.font)
    return figure


def rows_and_columns(count: int, max_columns: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of a grid of panels, as even as possible.

    Args:
        count: The number of panels, at least 1.
        max_columns: The largest number of panels side by side.

    Returns:
        Rows and columns; the last row may have empty places.
    """
    row_count = -(-count // max_columns)  # rounded up, as is the number of columns
    return row_count, -(-count // row_count)


def panel_pairs(
    count: int, shape: Shape, title: str, aspect: float, lower_ratio: float = 1.0
) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure of pairs of panels, one above the other.

    Args:
        count: The number of pairs.
        shape: The format of the figure.
        title: The title of the figure.
        aspect: The height of a panel over its width, as the mean of an upper and a lower panel.
        lower_ratio: The height of a lower panel over that of an upper one.

    Returns:
        The figure, and the pairs of an upper and a lower panel.
    """
    row_count, columns = rows_and_columns(count, shape.columns)
    ratios = [1.0, lower_ratio] * row_count
    # Panels for all places of the grid, because the last row of pairs may be incomplete.
    figure, axes = panels(
        2 * row_count * columns, shape, title, aspect, columns, height_ratios=ratios
    )
    return figure, pair_panels(axes, count, columns)


def pair_panels(axes: Any, count: int, columns: int) -> list[tuple[Any, Any]]:
    """Return the pairs of upper and lower panels of a grid, and remove the spare panels.

    Args:
        axes: All panels of the grid, row by row; rows of upper and of lower panels alternate.
        count: The number of pairs that are kept.
        columns: The number of columns of the grid.

    Returns:
        The pairs, row by row.
    """
    # From (row of pairs, upper or lower, column) to (pair, upper or lower).
    axis_pairs = np.reshape(axes, (-1, 2, columns)).swapaxes(1, 2).reshape(-1, 2)
    for spare_axis in axis_pairs[count:].flat:
        spare_axis.remove()
    return [(upper, lower) for upper, lower in axis_pairs[:count]]


def rows_of_images(
    rows: int, columns: int, shape: Shape, title: str, height: float
) -> tuple[Figure, Any]:
    """Return a figure with a grid of panels for images.

    Args:
        rows: The number of rows of the grid.
        columns: The number of columns of the grid.
        shape: The format of the figure.
        title: The title of the figure.
        height: The height of a row in inches.

    Returns:
        The figure, and its panels `(rows, columns)` without axes.
    """
    figure = blank_figure(shape, rows * height + 2.5 * shape.font / 72, escape_dollars(title))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axis in grid.flat:
        axis.set_axis_off()
    return figure, grid


def set_padding(figure: Figure, width: float, height: float) -> None:
    """Set the padding around each panel.

    Args:
        figure: A figure with a constrained layout.
        width: The padding at the left and at the right, in inches.
        height: The padding above and below, in inches.
    """
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=width, h_pad=height)


def name_panel(axis: Any, text: str, look: Look) -> None:
    """Write a scheme's name above its panel in the scheme's colour; long names are wrapped.

    Args:
        axis: The panel, one of a grid.
        text: The name.
        look: The look of the scheme.
    """
    width = axis.figure.get_figwidth() / axis.get_subplotspec().get_gridspec().ncols
    # A plot is narrower than its column, by its tick labels.
    wrapped_name = wrap_text(text, 0.85 * width, matplotlib.rcParams["font.size"])
    axis.set_title(escape_dollars(wrapped_name), color=text_color(look.color))


def join_names(labels: Sequence[str]) -> str:
    """Return the names of equal schemes as one label, on several lines where it is long."""
    return (" = " if len(" = ".join(labels)) < 24 else "\n= ").join(labels)


def group_equal(items: Iterable[Item], is_equal: Callable[[Item, Item], bool]) -> list[list[Item]]:
    """Return groups of items that equal the first of their group, in the order of the items."""
    groups: list[list[Item]] = []
    for item in items:
        group = next((group for group in groups if is_equal(item, group[0])), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def wrap_and_escape_title(title: str, shape: Shape) -> str:
    """Return a figure's title, wrapped to the figure's width.

    Args:
        title: The title.
        shape: The format of the figure.

    Returns:
        Its lines in one text, with dollar signs escaped.
    """
    return escape_dollars(wrap_text(title, shape.width, 1.1 * shape.font))


def wrap_text(text: str, width: float, font: float) -> str:
    """Return a text that is wrapped after `,`, `;` or `:` to fit a width.

    A clause that is longer than the width is not wrapped. A comma at the end of a line is removed.

    Args:
        text: the text, one line.
        width: inches.
        font: the font size in points.
    """
    max_letters = int(width * 72 / (0.58 * font))  # a letter is about 0.58 font sizes wide
    first_clause, *later_clauses = re.split(r"(?<=[,;:]) ", text)
    lines = [first_clause]
    for clause in later_clauses:
        if len(f"{lines[-1]} {clause}") <= max_letters:
            lines[-1] += f" {clause}"
        else:
            lines.append(clause)
    return "\n".join(line.rstrip(",") for line in lines)  # a line break replaces a comma


def add_note(figure: Figure, shape: Shape, text: str, *, is_prose: bool = False) -> None:
    """Write a note in small letters below a figure; an existing legend stays below the note.

    Args:
        figure: The figure, with one legend or none. With a legend, it becomes higher by the lines
            of the note.
        shape: The format of the figure.
        text: The note; each of its lines is wrapped.
        is_prose: Whether lines are wrapped between any words, and not only after clauses.
    """
    small_font = 0.833 * shape.font  # "small"
    wrapped_lines = [
        fill(escape_dollars(line), int(shape.width * 72 / (0.54 * small_font)))
        if is_prose
        else wrap_text(line, shape.width, small_font)
        for line in text.split("\n")
    ]
    wrapped_text = "\n".join(wrapped_lines)
    # Without a legend the note is the figure's lower label, else the title of the legend.
    if not figure.legends:
        figure.supxlabel(wrapped_text, fontsize="small", x=0.01, ha="left")
        return
    (figure_legend,) = figure.legends
    figure_legend.set_title(wrapped_text, FontProperties(size="small"))
    figure_legend.set_alignment("left")
    line_count = wrapped_text.count("\n") + 1
    figure.set_figheight(figure.get_figheight() + line_count * 1.3 * small_font / 72)


def add_legend(
    figure: Figure, shape: Shape, handles: Sequence[Any], labels: Sequence[str] = ()
) -> None:
    """Put a legend below a figure, and make the figure higher for all rows but the first.

    Without handles and labels nothing is done.

    Args:
        figure: the figure.
        shape: the format of the figure.
        handles: the artists that the legend explains.
        labels: the texts of the handles; if empty, the handles have labels of their own.
    """
    labels = list(labels) or [handle.get_label() for handle in handles]
    if not labels:
        return
    small_font = shape.font * 0.833  # "small"
    # In inches: 0.56 font sizes for each letter, and 5 for the marker and the gaps.
    column_width = (0.56 * max(map(len, labels)) + 5.0) * small_font / 72
    column_count = min(len(labels), max(1, int(shape.width / column_width)))
    row_count = -(-len(labels) // column_count)
    figure.set_figheight(figure.get_figheight() + (row_count - 1) * 1.6 * small_font / 72)
    figure.legend(handles, labels, loc="outside lower center", ncols=column_count)


def limit_to_iterations(axis: Any, lines: Sequence[Line2D]) -> float:
    """Limit a panel to the iterations of curves.

    Args:
        axis: The panel.
        lines: Its curves, over iterations.

    Returns:
        The last iteration.
    """
    iterations = np.concatenate([np.asarray(line.get_xdata(), dtype=float) for line in lines])
    # A single iteration gets an axis of length 1.
    axis.set_xlim(iterations.min(), max(iterations.max(), iterations.min() + 1))
    return float(iterations.max())


def label_outer_axes(axes: Sequence[Any], x_label: str, y_label: str) -> None:
    """Label the axes of a grid of panels once for each row and once for each column.

    Args:
        axes: The panels, row by row; the last row may have empty places.
        x_label: The label of the horizontal axis, for the lowest panel of each column.
        y_label: The label of the vertical axis, for the first panel of each row.
    """
    for axis in axes:
        grid_position = axis.get_subplotspec()
        if grid_position.is_first_col():
            axis.set_ylabel(y_label)
        # The panels of the same column, of which the last is the lowest.
        column_axes = [
            column_axis
            for column_axis in axes
            if column_axis.get_subplotspec().colspan == grid_position.colspan
        ]
        if axis is column_axes[-1]:
            axis.set_xlabel(x_label)
            axis.tick_params(labelbottom=True)  # also above an empty place of the last row


def label_plane(axis: Any, axis_names: Sequence[Any], line_letters: int) -> None:
    """Label the axes of a plane and set few ticks; the vertical label is wrapped.

    Args:
        axis: The panel.
        axis_names: The names of the horizontal and the vertical axis.
        line_letters: The largest number of letters in a line of the vertical label.
    """
    axis.set_xlabel(escape_dollars(str(axis_names[0])), fontsize="small")
    axis.set_ylabel(escape_dollars(fill(str(axis_names[1]), line_letters)), fontsize="small")
    axis.grid(False)
    for matplotlib_axis in (axis.xaxis, axis.yaxis):
        matplotlib_axis.set_major_locator(MaxNLocator(3))
    axis.tick_params(labelsize="small")


def enclosing_square(points: Any) -> tuple[Any, float]:
    """Return the centre (2,) and half the side of a square around points (p, 2), with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    # Of points that coincide, the square is not empty.
    return (low + high) / 2, 0.54 * float(max((high - low).max(), 1e-12))


def mark_position(axis: Any, position: Any, marker: str, size: float) -> None:
    """Draw a white marker with a black edge at a position (2,), above all else."""
    mark_style: Any = {"color": "white", "mec": "black", "ms": size, "ls": "", "zorder": 4}
    axis.plot(*position, marker=marker, label="_mark", **mark_style)


def escape_dollars(text: str) -> str:
    """Return a text with escaped dollars, which matplotlib would read as formulas."""
    return text.replace("$", r"\$")


def write_centered(axis: Any, text: str) -> None:
    """Write a text in the middle of a panel.

    Args:
        axis: The panel.
        text: The text, which is wrapped.
    """
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, wrap=True)


def write_in_cell(
    axis: Any, row: int, column: int, text: str, shape: Shape, *, is_dark: bool
) -> None:
    """Write a text in a cell of a coloured table, in white on dark colours."""
    text_style: Any = {"ha": "center", "va": "center", "fontsize": 0.7 * shape.font}
    axis.text(column, row, text, color="white" if is_dark else "black", **text_style)


def write_at_foot(axis: Any, text: str) -> None:
    """Write a text at the lower edge of a panel.

    Args:
        axis: The panel.
        text: One line.
    """
    axis.text(0.5, 0.03, text, ha="center", transform=axis.transAxes, fontsize="small")


def write_on_empty_panel(axis: Any, text: str) -> None:
    """Write the reason on an empty panel and remove its ticks.

    Args:
        axis: The panel.
        text: The reason why it is empty.
    """
    write_centered(axis, text)
    axis.set(xticks=[], yticks=[])


def step_text(step_size: Any) -> str:
    """Return a step size as the end of a label: `, step 0.12`; empty where there is none."""
    if step_size is None or pd.isna(step_size):
        return ""
    return f", step {float(f'{float(step_size):.2g}'):g}"  # 100, not 1e+02


RC: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": "medium",
    # Without a fixed position, matplotlib searches for overlaps of titles at each rendering.
    "axes.titley": 1.0,
    "figure.labelsize": "medium",
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "svg.hashsalt": "normbench",  # reproducible SVG files
    "svg.fonttype": "none",
    "savefig.dpi": "figure",
}
