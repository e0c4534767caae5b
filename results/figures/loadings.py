"""The entries of each principal component, one for each feature, as a coloured table."""

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
from normbench.results.figures.base.style import SCREEN, Shape

MAX_LOADING_FEATURES, MAX_COMPONENTS = 20, 8  # of a readable table
SINGLE_FEATURE = 0.999  # a component of length 1 with a larger entry is one feature
LOADING_ROW_LINES = 1.9  # a row's height in font sizes


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, with features as rows, components as columns.

    Of many features, those with the longest arrows in the biplot are drawn.

    Args:
        arrays: by label, the `entries` (m, K) of m features in K components and the standard
            `deviations` (K,) along these; `names` (m,) of the features; `loadings` (m, 2), their
            arrows in the biplot; `shares` (2,) of the variance along the first two components.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    columns = min(len(drawn_schemes), shape.columns, 2)
    # The largest number of rows of a table; 4 more rows hold the title and the ticks.
    feature_count = max(
        min(len(scheme.arrays["names"]), MAX_LOADING_FEATURES) for scheme in drawn_schemes
    )
    height = (feature_count + 4) * LOADING_ROW_LINES * shape.font / 72 / (shape.width / columns)
    with style.figure_style(shape):
        figure, axes = style.panels(len(drawn_schemes), shape, title, height, columns)
        for axis, scheme in zip(axes, drawn_schemes):
            _draw_table(axis, scheme.arrays, shape)
            style.name_panel(axis, scheme.label, scheme.look)
        figure.supxlabel(
            "entries of each component, a vector of length 1; below its share of the variance",
            fontsize="small",
        )
    return figure


def _mixes_features(scheme_arrays: SchemeArrays) -> bool:
    """Return whether some drawn component mixes features; otherwise the table says nothing."""
    entries = np.abs(scheme_arrays["entries"][:, :MAX_COMPONENTS])
    return not bool((entries.max(axis=0) > SINGLE_FEATURE).all())


def _draw_table(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw the table of a scheme's components: red entries are positive, blue ones negative.

    At most `MAX_LOADING_FEATURES` rows and `MAX_COMPONENTS` columns are drawn.

    Args:
        axis: the panel.
        scheme_arrays: as for `draw`, of one scheme.
        shape: the format of the figure.
    """
    lengths = np.hypot(*scheme_arrays["loadings"].T)
    # The features with the longest arrows, in the order of the data set.
    feature_indices = np.sort(np.argsort(-lengths, kind="stable")[:MAX_LOADING_FEATURES])
    entries = scheme_arrays["entries"][feature_indices, :MAX_COMPONENTS]
    # `shares` has the first two components only: the total follows from the first. `or 1.0` is for
    # points without variance, and avoids a division by 0.
    total_variance = scheme_arrays["deviations"][0] ** 2 / (scheme_arrays["shares"][0] or 1.0)
    shares = scheme_arrays["deviations"][:MAX_COMPONENTS] ** 2 / (total_variance or 1.0)
    axis.imshow(entries, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for (row, column), entry in np.ndenumerate(entries):
        color = "white" if abs(entry) > 0.7 else "black"
        text_style = {"ha": "center", "va": "center", "fontsize": 0.7 * shape.font, "color": color}
        # A negative entry that is rounded to 0 has no minus sign.
        axis.text(column, row, f"{entry:.2f}".replace("-0.00", "0.00"), **text_style)
    axis.set_yticks(
        range(len(feature_indices)),
        [style.escape_dollars(str(scheme_arrays["names"][n])[:22]) for n in feature_indices],
    )
    axis.set_xticks(range(len(shares)), [f"{n + 1}\n{share:.1%}" for n, share in enumerate(shares)])
    axis.grid(False)


make = maker_from_arrays("biplot", draw, _mixes_features)
