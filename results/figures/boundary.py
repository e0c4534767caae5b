"""The class that each scheme's model predicts over the plane of two features, with the points."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    step_text,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape

PANEL_HEIGHT, BOUNDARY_COLUMNS = 0.9, 3  # over its width, which holds the label of a network


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, the regions of the classes and the points.

    All panels show the raw features, whatever the scheme makes of them.

    Args:
        arrays: by label, the grid `a`, `b` (G,) of values of the two features, and the class index
            `predicted` (G, G), in row i and column j at b[i] and a[j]; `points` (p, 2),
            `target` (p,), `class_names` (C,), `names` (2,) of the features; optionally the number
            `misclassified` () of the training points.
        schemes: one row for each scheme in order (`label`, `normalizer`, `tags.step_size`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        columns = min(BOUNDARY_COLUMNS, shape.columns)
        figure, axes = style.panels(len(drawn_schemes), shape, title, PANEL_HEIGHT, columns)
        for axis, (label, row, scheme_arrays, look) in zip(axes, drawn_schemes):
            _draw_regions(axis, scheme_arrays)
            _draw_points(axis, scheme_arrays, shape)
            wrong = float(scheme_arrays.get("misclassified", np.nan))
            # The number is left out if it was not recorded, or the run diverged.
            count = "" if np.isnan(wrong) else f", {wrong:.0f} misclassified"
            style.name_panel(axis, f"{label}{step_text(row)}{count}", look)
        first_arrays = drawn_schemes[0].arrays
        feature_names = [style.escape_dollars(str(name)) for name in first_arrays["names"]]
        style.label_outer_axes(axes, *feature_names)
        style.add_legend(figure, shape, style.class_handles(first_arrays["class_names"]))
    return figure


def _draw_regions(axis: Any, scheme_arrays: SchemeArrays) -> None:
    """Draw the regions of the predicted classes, and black lines between them."""
    a, b, predicted = scheme_arrays["a"], scheme_arrays["b"], scheme_arrays["predicted"]
    count = len(scheme_arrays["class_names"])
    colors = ListedColormap([color for color, _ in style.class_looks(count)])
    limits = {"vmin": -0.5, "vmax": count - 0.5}  # each class index has a colour of its own
    axis.pcolormesh(a, b, predicted, cmap=colors, alpha=0.45, rasterized=True, **limits)
    # Any two classes are separated by the edge of the region of all classes from some index on.
    for class_index in np.unique(predicted)[1:]:
        is_above = (predicted >= class_index).astype(float)
        axis.contour(a, b, is_above, levels=[0.5], colors="black", linewidths=0.9)
    axis.set(xlim=(a[0], a[-1]), ylim=(b[0], b[-1]))


def _draw_points(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw the points in the looks of their classes."""
    dot_style: Any = {"s": (0.3 * shape.font) ** 2, "edgecolors": style.CLASS_EDGE, "lw": 0.4}
    masks = enumerate(style.class_masks(scheme_arrays, "0.4"))
    for number, (is_of_class, (color, marker)) in masks:
        points = scheme_arrays["points"][is_of_class].T
        axis.scatter(*points, facecolors=color, marker=marker, label=f"_{number}", **dot_style)


make = maker_from_arrays("boundary", draw)
