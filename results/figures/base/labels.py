"""Direct labels: a curve's name stands beside its right end; labels that overlap move apart."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.transforms import ScaledTranslation

from normbench.results.figures.base.style import Look, Shape, escape_dollars, text_color

LABEL_LINE = 1.25  # the height of a line of a label, in font sizes
LINES_AROUND_PANEL = 5.5  # lines of text above and below a panel: title, ticks and axis labels


class End(NamedTuple):
    """The right end of a curve: its name, its last value, its look."""

    text: str
    value: float
    look: Look


def end_labels(
    axis: Any, ends: Sequence[End], shape: Shape, height: float, *, has_markers: bool = True
) -> None:
    """Write each curve's name to the right of a panel, with its marker and a line to its end.

    The panel's limits must be set before.

    Args:
        axis: the panel.
        ends: the right ends of the curves.
        shape: the format of the figure.
        height: inches of the panel with its title, labels and ticks.
        has_markers: whether the curves have markers; otherwise a name has only its line to the
            curve's end.
    """
    if not ends:
        return
    # From the lowest to the highest, as `spread_apart` takes them.
    ends = sorted(ends, key=lambda end: end.value)
    end_heights = _height_fractions(axis, [end.value for end in ends])
    line_height = shape.font / 72
    line_counts = np.array([end.text.count("\n") + 1 for end in ends])
    # The height of a label's line as a fraction of the panel's height.
    line_share = LABEL_LINE * line_height / (height - LINES_AROUND_PANEL * line_height)
    # Heights of the middles of labels; the lowest and the highest line end near the panel's edges.
    label_heights = spread_apart(
        end_heights,
        line_share * (line_counts[:-1] + line_counts[1:]) / 2,  # from middle to middle
        line_share * (line_counts[0] - 1) / 2,
        1.0 - line_share * (line_counts[-1] - 1) / 2,
    )
    figure = axis.figure
    for end, end_height, label_height in zip(ends, end_heights, label_heights):
        # From the right edge of the panel to the marker and to the text: in font sizes, which keep
        # the distances at every size of the figure.
        handle_transform, text_transform = (
            axis.transAxes
            + ScaledTranslation(font_offset * shape.font / 72, 0, figure.dpi_scale_trans)
            for font_offset in (2.0, 2.8)
        )
        leader_style: Any = {"arrowstyle": "-", "color": end.look.color, "linewidth": 0.6}
        axis.annotate(
            escape_dollars(end.text),
            xy=(1, end_height),
            xycoords="axes fraction",
            xytext=(1, label_height),
            textcoords=text_transform,
            va="center",
            color=text_color(end.look.color),
            fontsize="small",
            arrowprops={**leader_style, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )
        color = end.look.color
        if has_markers:
            marker_style = {"marker": end.look.marker, "color": color, "ms": 0.55 * shape.font}
            axis.plot(
                [1],
                [label_height],
                label="_label",
                transform=handle_transform,
                clip_on=False,
                **marker_style,
            )


def spread_apart(
    fractions: Sequence[float], gap: Any, bottom: float = 0.0, top: float = 1.0
) -> list[float]:
    """Return increasing positions, at least a gap apart, as close to the fractions as possible.

    Closeness is the sum of squared distances; an isotonic regression minimizes it. SciPy has one,
    but importing `scipy.optimize` takes longer than drawing most figures.

    Args:
        fractions: the wanted positions in increasing order, as fractions of the panel's height.
        gap: the smallest distance between two positions; or (n - 1,), that of each pair.
        bottom: the lowest position.
        top: the highest position. Positions that do not fit exceed both limits by the same amount.
    """
    # Minus the gaps below it, each position need only be at least as high as the one before.
    shifts = np.append(0.0, np.cumsum(np.broadcast_to(gap, len(fractions) - 1)))
    positions = _isotonic(np.asarray(fractions) - shifts)
    slack = top - bottom - shifts[-1]  # negative if the positions do not fit
    # Too many positions stand exactly a gap apart, centred between the limits.
    low, high = (0.0, slack) if slack >= 0 else (slack / 2, slack / 2)
    return [
        float(position) for position in np.clip(positions, bottom + low, bottom + high) + shifts
    ]


def _isotonic(values: Any) -> Any:
    """Return the nondecreasing values (n,) that are closest to the given ones in least squares.

    Neighbours in the wrong order are pooled, and each gets the mean of its pool.
    """
    means: list[float] = []
    counts: list[int] = []
    for value in values:
        means.append(float(value))
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            mean, count = means.pop(), counts.pop()
            means[-1] += (mean - means[-1]) * count / (counts[-1] + count)
            counts[-1] += count
    return np.repeat(means, counts)


def spread_beside(
    fractions: Sequence[float], gap: float, occupied: Sequence[float], clearance: float
) -> list[float]:
    """Return positions as `spread_apart` does, but at some distance from occupied positions.

    Args:
        fractions: The wanted positions in increasing order, as fractions of the panel's height.
        gap: The smallest distance between two positions.
        occupied: The positions of other labels.
        clearance: The smallest distance from an occupied position, and to the panel's edges
            where there is none.

    Returns:
        The positions, in the order of the fractions. Each stays between the same two occupied
        positions as its fraction.
    """
    # Each interval between two neighbouring occupied positions is filled on its own.
    boundaries = [-np.inf, *sorted(occupied), np.inf]
    positions: list[float] = []
    for low, high in pairwise(boundaries):
        fractions_between = [fraction for fraction in fractions if low <= fraction < high]
        if fractions_between:
            positions += spread_apart(
                fractions_between, gap, max(0.0, low + clearance), min(1.0, high - clearance)
            )
    return positions


def _height_fractions(axis: Any, values: Sequence[float]) -> list[float]:
    """Return the heights of values in a panel, as fractions of the panel's height, 0 to 1.

    A value beyond the panel has the height of the nearest edge, NaN that of the lower edge.
    """
    bottom = axis.get_ylim()[0]
    left_edge = axis.get_xlim()[0]
    # NaN, which differs from itself, is replaced by the lower limit. `nan_to_num` is for values
    # that a log axis cannot show.
    panel_positions = axis.transLimits.transform(
        axis.transScale.transform(
            [(left_edge, value if value == value else bottom) for value in values]
        )
    )[:, 1]
    return [float(height) for height in np.clip(np.nan_to_num(panel_positions), 0, 1)]
