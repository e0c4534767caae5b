"""The fitted model of each scheme in the space of the inputs, over one feature."""

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures.base import style
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import Arrays, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: the points, and one curve a scheme, named at its right end.

    arrays: by label, `x` (G,), `prediction` (G,), `points` (p, 2). schemes: one row a scheme
    (`label`, `normalizer`, `tags.step_size`), in order.
    """
    shown = with_arrays(schemes, arrays)
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, 0.5)
        points = shown[0].parts["points"]
        axis.scatter(*points.T, color="0.6", s=(0.5 * shape.font) ** 2, lw=0, label="_points")
        ends = []
        for label, row, parts, look in shown:
            x, y = parts["x"], parts["prediction"]
            axis.plot(x, y, label=label, lw=0.8 * shape.line, **style.plain_curve(look))
            text = f"{label}{style.step_text(row.get(names.STEP_TAG.column))}"
            ends.append(End(text, float(y[-1]), look))
        axis.set(xlim=(x[0], x[-1]), xlabel="the feature, as it is")
        axis.set_ylabel("target, and what each model predicts")
        end_labels(axis, ends, shape, 0.5 * shape.width, marked=False)
    return figure


make = of_arrays("fit", draw)
