"""Points and features in one plane: principal components with the features as arrows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import followed, style
from normbench.results.figures.base.labels import spread_beside
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape

NAMED = 12  # arrows: more cannot be read
SHORT = 0.05  # of the longest arrow: shorter ones are not seen, and not drawn
REACH = 2.6  # of the longest arrow, in standard deviations of the points
FARTHEST = 3 * REACH  # of a point that is seen: others would make the arrows small
LETTER = 0.07  # of a panel's height, from the middle of a letter to that of a name
HEIGHT = 0.62  # of a panel, over its width: there is room for names on both sides


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, points pale, the longest arrows named.

    arrays: by label, `points` (p, 2), `loadings` (m, 2), `names` (m,), `shares` (2,), `target`
    (p,), `class_names` (C,). schemes: one row a scheme (`label`, `normalizer`), in order.
    """
    shown = with_arrays(schemes, arrays)
    first = shown[0].parts
    with style.drawn(shape):
        figure, axes = style.panels(len(shown), shape, title, HEIGHT, columns=min(2, shape.columns))
        numbers = followed.in_panels(shown, first["points"] * first["shares"] ** 0.5)
        for axis, scheme in zip(axes, shown):
            _panel(axis, scheme.parts, numbers, shape)
            followed.mark(axis, scheme.parts["points"], numbers, shape)
            style.name_panel(axis, scheme.label, scheme.look)
        style.legend(figure, shape, style.class_marks(first["class_names"]))
        if numbers:
            style.note(figure, shape, followed.note(numbers))
    return figure


def _panel(axis: Any, parts: Parts, marked: Sequence[int], shape: Shape) -> None:
    """Draw one scheme's points, and its features as arrows.

    marked: the points that are to have a letter, which no name may cover.
    """
    points, size = parts["points"], (0.3 * shape.font) ** 2
    for chosen, (color, marker) in style.by_class(parts, "0.5"):
        axis.scatter(*points[chosen].T, s=size, color=color, marker=marker, alpha=0.6, lw=0)
    lengths = np.hypot(*parts["loadings"].T)
    arrows = parts["loadings"] * (REACH / (lengths.max() or 1.0))
    named = np.argsort(-lengths, kind="stable")[:NAMED]
    named = named[lengths[named] > SHORT * lengths.max()]
    for number in named:
        arrow = {"arrowstyle": "->", "color": "black", "lw": 1}
        axis.annotate("", arrows[number], (0, 0), arrowprops=arrow, zorder=4)
    wide, tall = np.abs(points).max(axis=0)  # the sides are wider than the panel is high
    half = min(max(1.15 * REACH, 1.1 * float(max(tall, HEIGHT * wide))), FARTHEST)
    axis.set(xlim=(-half / HEIGHT, half / HEIGHT), ylim=(-half, half))
    axis.set_aspect("equal")  # angles between arrows tell of correlations
    letters = points[list(marked)].reshape(-1, 2)
    _write(axis, arrows[named], parts["names"][named], letters, 0.7 * shape.font, half)
    shares = [f"{share:.0%}" if share >= 0.01 else f"{share:.1%}" for share in parts["shares"][:2]]
    words = [f"component {n + 1}, {share} of the variance" for n, share in enumerate(shares)]
    axis.set(xlabel=words[0], ylabel=words[1])


def _write(axis: Any, tips: Any, words: Any, letters: Any, font: float, half: float) -> None:
    """Write names beside the tips of arrows, moved apart on each side, with a line to the tip.

    letters (f, 2): where letters stand. half: of the panel's height, in the units of its axes.
    """
    for side in (-1, 1):
        own = [n for n in np.argsort(tips[:, 1]) if (tips[n, 0] >= 0) == (side > 0)]
        if not own:
            continue
        out = max(abs(tips[n, 0]) for n in own) + 0.12 * half
        taken = letters[side * letters[:, 0] > out - LETTER * half, 1]
        heights = spread_beside(
            [(tips[n, 1] / half + 1) / 2 for n in own], 0.06, (taken / half + 1) / 2, LETTER
        )
        for n, height in zip(own, heights):
            axis.annotate(
                style.plain(str(words[n])[:22]),
                tips[n],
                (side * out, (2 * height - 1) * half),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=font,
                zorder=5,
                arrowprops={"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 1},
            )


make = of_arrays("biplot", draw)
