"""The distribution of each feature under each scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Look, Shape

JITTER = 0.16  # vertical jitter of the points of a feature, to both sides
FEATURE_LINES = 1.0  # the smallest height of a feature in lines of text
MAX_NAME_LETTERS = 18


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, one row for each feature, with a box plot.

    The box spans the quartiles, its line is the median, the whiskers span all points.

    Args:
        arrays: by label, `values` (p, m) and `names` (m,) of the first m features under the scheme,
            which are drawn, and the number `all` () of features in total.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    count = max(scheme_arrays["values"].shape[1] for scheme_arrays in arrays.values())
    panel_width = shape.width / min(len(drawn_schemes), shape.columns)
    # A feature's row is at least one line of text high; 4 more lines hold the title and the ticks.
    height = max(0.9 * panel_width, FEATURE_LINES * count * shape.font / 72 + 4 * shape.font / 72)
    with style.figure_style(shape):
        figure, axes = style.panels(len(drawn_schemes), shape, title, height / panel_width)
        for axis, (label, _, scheme_arrays, look) in zip(axes, drawn_schemes):
            _draw_panel(axis, scheme_arrays, look, shape)
            omitted_count = int(scheme_arrays["all"]) - len(scheme_arrays["names"])
            omitted_note = f", and {omitted_count} more features" if omitted_count else ""
            style.name_panel(axis, label + omitted_note, look)
            axis.set_xlabel("value")
    return figure


def _draw_panel(axis: Any, scheme_arrays: SchemeArrays, look: Look, shape: Shape) -> None:
    """Draw the points and the box plot of each feature, the first feature on top.

    The seed of the vertical jitter is fixed, so that equal arrays give equal figures.

    Args:
        axis: the panel.
        scheme_arrays: with `values` (p, m) and `names` (m,), see `draw`.
        look: the look of the scheme.
        shape: the format of the figure.
    """
    values = scheme_arrays["values"]
    count = values.shape[1]
    row_positions = np.arange(1, count + 1)
    jitter = np.random.default_rng(0).uniform(-JITTER, JITTER, values.shape)
    dot_style: Any = {"s": (0.2 * shape.font) ** 2, "color": look.color, "alpha": 0.3, "lw": 0}
    # All features at once: values (p, m), and for each its row with jitter.
    axis.scatter(values, row_positions + jitter, rasterized=True, label="_points", **dot_style)
    line_style = {"color": "black", "linewidth": 0.9}
    axis.boxplot(
        values,
        positions=row_positions,
        widths=0.6,
        whis=(0, 100),
        orientation="horizontal",
        showfliers=False,
        boxprops=line_style,
        whiskerprops=line_style,
        capprops=line_style,
        medianprops={**line_style, "linewidth": 2},
    )
    axis.axvline(0, color="0.4", lw=0.8, ls=":", label="_zero")
    names = [style.escape_dollars(str(name)[:MAX_NAME_LETTERS]) for name in scheme_arrays["names"]]
    axis.set_yticks(row_positions, names)
    axis.set_ylim(count + 0.6, 0.4)  # downwards
    axis.tick_params(labelsize="small")
    axis.grid(False, axis="y")


make = maker_from_arrays("features", draw)
