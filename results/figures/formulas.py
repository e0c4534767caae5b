"""What several formulas of normalization make of the same points, as a coloured table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays
from normbench.results.figures.base.style import SCREEN, Shape

LINE = 2.9  # a row's height, in heights of a letter
EXACT, USELESS = 1e-4, 10.0  # how far off: the ends of the colours
DARK = 0.1  # from here on letters are white
NEVER = 1000  # iterations
BELOW = (
    "off by: the largest error of the means and variances; iterations of gradient descent at 1/L "
    "until 1 percent of the excess cost is left; never there: not within 1000"
)


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a row for jobs on the same points, a column a formula, red where useless.

    arrays: by label, `formula`, `finite`, `mean`, `off`, `iterations` (F,). schemes: one row a
    scheme (`label`), in order.
    """
    labels: list[str] = []
    for label in schemes["label"]:
        if label in arrays and not any(_equal(arrays[label], arrays[one]) for one in labels):
            labels.append(label)
    with style.drawn(shape):
        height = (len(labels) + 2) * LINE * shape.font / 72 / shape.width
        figure, (axis,) = style.panels(1, shape, title, height)
        off = np.array([np.fmax(arrays[one]["off"], arrays[one]["mean"]) for one in labels])
        off[np.isnan(off)] = np.inf
        ends = np.log10([EXACT, USELESS])
        with np.errstate(divide="ignore"):
            colours = np.clip(np.log10(off), *ends)
        axis.imshow(colours, cmap="Reds", vmin=ends[0], vmax=ends[1], aspect="auto")
        for (row, column), value in np.ndenumerate(off):
            words = _words(value, arrays[labels[row]]["iterations"][column])
            color = "white" if value > DARK else "black"
            look = {"ha": "center", "va": "center", "fontsize": 0.7 * shape.font, "color": color}
            axis.text(column, row, words, **look)
        names = arrays[labels[0]]["formula"]
        axis.set_xticks(range(len(names)), [str(name).replace("_", "\n") for name in names])
        axis.set_yticks(range(len(labels)), [style.plain(word) for word in differing(labels)])
        axis.grid(False)
        style.note(figure, shape, BELOW)
    return figure


def _equal(one: Parts, other: Parts) -> bool:
    """Return whether two jobs found the same numbers: the scheme of a job plays no part."""
    numbers = ("mean", "off", "iterations")
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in numbers)


def _words(off: float, iterations: float) -> str:
    if not np.isfinite(off):
        return "not finite"
    count = "never there" if iterations >= NEVER else f"{iterations:g} iterations"
    return f"off by {off:.1g}\n{count}"


def differing(labels: Sequence[str]) -> list[str]:
    """Return labels without the parts that all of them have; of a single one nothing tells more."""
    if len(labels) == 1:
        return ["points"]
    parts = [label.split(", ") for label in labels]
    shared = set.intersection(*map(set, parts))
    return [", ".join(part for part in own if part not in shared) for own in parts]


make = of_arrays("formulas", draw)
