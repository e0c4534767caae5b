"""Direct labels: each curve's name beside its right end, moved apart where they would overlap."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from normbench.results.figures.base.style import Look, Shape, dark, plain

AROUND = 5.5  # lines of text: what stands above and below a panel


class End(NamedTuple):
    """The end of a curve: its name, its last value, its look."""

    text: str
    value: float
    look: Look


def end_labels(
    axis: Any, ends: Sequence[End], shape: Shape, height: float, *, marked: bool = True
) -> None:
    """Write each curve's name to the right of a panel, with its marker and a line to its end.

    height: of the panel with its title, labels and ticks, in inches. The panel's limits must stand.
    marked: whether curves have markers; without, a piece of the curve stands beside its name.
    """
    if not ends:
        return
    ends = sorted(ends, key=lambda end: end.value)
    fractions = _fractions(axis, [end.value for end in ends])
    line = shape.font / 72
    deep = max(end.text.count("\n") + 1 for end in ends)
    places = spread(fractions, 1.25 * deep * line / (height - AROUND * line))
    figure = axis.figure
    for end, fraction, place in zip(ends, fractions, places):
        # In points: as far from the panel at every size.
        handle, text = (
            axis.transAxes + ScaledTranslation(far * shape.font / 72, 0, figure.dpi_scale_trans)
            for far in (2.0, 2.8)
        )
        lead: Any = {"arrowstyle": "-", "color": end.look.color, "linewidth": 0.6}
        axis.annotate(
            plain(end.text),
            xy=(1, fraction),
            xycoords="axes fraction",
            xytext=(1, place),
            textcoords=text,
            va="center",
            color=dark(end.look.color),
            fontsize="small",
            arrowprops={**lead, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )
        color = end.look.color
        if marked:
            mark = {"marker": end.look.marker, "color": color, "ms": 0.55 * shape.font}
            axis.plot([1], [place], label="_label", transform=handle, clip_on=False, **mark)
            continue
        beside = figure.dpi_scale_trans + ScaledTranslation(1, place, axis.transAxes)
        across = [far * shape.font / 72 for far in (1.0, 2.6)]
        piece: Any = {"color": color, "ls": end.look.line, "transform": beside}
        axis.add_line(Line2D(across, [0, 0], label="_label", clip_on=False, **piece))


def spread(
    fractions: Sequence[float], gap: float, bottom: float = 0.0, top: float = 1.0
) -> list[float]:
    """Return places in increasing order, a gap apart, as near to the fractions as can be.

    fractions: increasing, of the panel's height. Where all do not fit from bottom to top, they
    overhang both evenly.
    """
    from scipy.optimize import isotonic_regression

    shifts = gap * np.arange(len(fractions))
    free = isotonic_regression(np.asarray(fractions) - shifts).x
    room = top - bottom - shifts[-1]
    low, high = (0.0, room) if room >= 0 else (room / 2, room / 2)
    return [float(place) for place in np.clip(free, bottom + low, bottom + high) + shifts]


def spread_beside(
    fractions: Sequence[float], gap: float, taken: Sequence[float], apart: float
) -> list[float]:
    """Return places as `spread` does, also so far apart from those that are taken."""
    edges = [-np.inf, *sorted(taken), np.inf]
    places: list[float] = []
    for low, high in pairwise(edges):
        inside = [fraction for fraction in fractions if low <= fraction < high]
        if inside:
            places += spread(inside, gap, max(0.0, low + apart), min(1.0, high - apart))
    return places


def _fractions(axis: Any, values: Sequence[float]) -> list[float]:
    """Return where values stand in a panel, as shares of its height from 0 to 1."""
    bottom = axis.get_ylim()[0]
    left = axis.get_xlim()[0]
    places = axis.transLimits.transform(
        axis.transScale.transform([(left, value if value == value else bottom) for value in values])
    )[:, 1]
    return [float(place) for place in np.clip(np.nan_to_num(places), 0, 1)]
