"""The fitted model of each scheme in the space of the inputs, over one feature."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures.base import style
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import of_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: the points, and one curve a scheme, named at its right end.

    arrays: by label, `x` (G,), `prediction` (G,), `points` (p, 2). schemes: one row a scheme
    (`label`, `normalizer`, `tags.step_size`), in order.
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    height = 0.5 * shape.width
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, 0.5)
        points = arrays[rows[0]["label"]]["points"]
        axis.scatter(*points.T, color="0.6", s=(0.5 * shape.font) ** 2, lw=0, label="_points")
        ends = []
        for number, (row, look) in enumerate(
            zip(rows, style.looks([row["normalizer"] for row in rows]))
        ):
            parts = arrays[row["label"]]
            every = max(1, len(parts["x"]) // 8)
            axis.plot(
                parts["x"],
                parts["prediction"],
                color=look.color,
                ls=look.line,
                marker=look.marker,
                # At different places, so that curves that coincide are both seen.
                markevery=(int(number / len(rows) * every), every),
                markersize=4,
                label=row["label"],
            )
            text = f"{row['label']}{style.step_text(row.get(names.STEP_TAG.column))}"
            ends.append(End(text, float(parts["prediction"][-1]), look))
        axis.set_xlim(float(parts["x"][0]), float(parts["x"][-1]))
        axis.set_xlabel("the feature, as it is")
        axis.set_ylabel("target, and what each model predicts")
        end_labels(axis, ends, shape, height - 5.5 * shape.font / 72)
    return figure


make = of_arrays("fit", draw)
