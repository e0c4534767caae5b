"""A few points with letters, so that the eye follows them from panel to panel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from normbench.results.figures.base.material import Drawn
from normbench.results.figures.base.style import Shape

LETTERS = "ABCD"


def in_panels(schemes: Sequence[Drawn], points: Any) -> list[int]:
    """Return which points are followed in a panel a scheme, by those of the first panel.

    None in a single panel, and none where panels are of several data sets.
    """
    data = {scheme.row.get("data") for scheme in schemes}
    return chosen(points) if len(schemes) > 1 and len(data) == 1 else []


def chosen(points: Any) -> list[int]:
    """Return which of points (p, N) are followed: the outermost along two principal axes."""
    away = points - points.mean(axis=0)
    axes = np.linalg.svd(away, full_matrices=False)[2][:2]
    # An eigenvector's sign means nothing: the largest entry is positive.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    along = away @ (axes * signs[:, None]).T
    ends = np.stack([along.argmin(axis=0), along.argmax(axis=0)]).T.ravel()
    return list(dict.fromkeys(int(number) for number in ends))


def mark(axis: Any, points: Any, numbers: Sequence[int], shape: Shape) -> None:
    """Write their letters on the followed of points (p, N) in a panel of N directions."""
    circle = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "black", "lw": 0.8}
    middle = {"ha": "center", "va": "center", "fontsize": 0.65 * shape.font}
    for number, letter in zip(numbers, LETTERS):
        text = axis.text(*points[number], letter, bbox=circle, zorder=6, clip_on=True, **middle)
        text.set_in_layout(False)


def note(numbers: Sequence[int]) -> str:
    """Return what the letters are."""
    return f"{letters(numbers)}: the same points everywhere, the outermost of the first panel"


def letters(numbers: Sequence[int]) -> str:
    """Return the letters that points are followed by: `A to D`."""
    return f"{LETTERS[0]} to {LETTERS[len(numbers) - 1]}"
