"""The prediction of each scheme's fitted model over one feature."""

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import (
    ArraysByLabel,
    maker_from_arrays,
    step_text,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: the points, and one curve for each scheme with its name.

    Args:
        arrays: by label, `x` (G,), increasing values of the raw feature, and the `prediction` (G,)
            there; `points` (p, 2), feature and target, the same for all schemes.
        schemes: one row for each scheme in order (`label`, `normalizer`, `tags.step_size`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, 0.5)
        points = drawn_schemes[0].arrays["points"]  # the same for all schemes
        axis.scatter(*points.T, color="0.6", s=(0.5 * shape.font) ** 2, lw=0, label="_points")
        curve_ends = []
        for label, row, scheme_arrays, look in drawn_schemes:
            x, y = scheme_arrays["x"], scheme_arrays["prediction"]
            axis.plot(x, y, label=label, lw=0.8 * shape.line, **style.unmarked_curve(look))
            curve_label = f"{label}{step_text(row)}"
            curve_ends.append(End(curve_label, float(y[-1]), look))
        # `x` is that of the last scheme: the grid depends on the data alone.
        axis.set(xlim=(x[0], x[-1]), xlabel="the feature, as it is")
        axis.set_ylabel("target, and what each model predicts")
        end_labels(axis, curve_ends, shape, 0.5 * shape.width, has_markers=False)
    return figure


make = maker_from_arrays("fit", draw)
