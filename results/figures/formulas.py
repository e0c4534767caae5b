"""The errors of several normalization formulas on the same points, as a coloured table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import ArraysByLabel, SchemeArrays, maker_from_arrays
from normbench.results.figures.base.style import SCREEN, Shape

FORMULA_ROW_LINES = 2.9  # a row's height in font sizes
EXACT_ERROR, USELESS_ERROR = 1e-4, 10.0  # the errors at the ends of the colour scale
DARK_ERROR = 0.1  # cells with larger errors have white letters
ITERATION_LIMIT = 1000  # iterations
CAPTION = (
    "off by: the largest error of the means and variances; iterations of gradient descent at 1/L "
    "until 1 percent of the excess cost is left; never there: not within 1000"
)


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a table with one column for each formula; red cells have large errors.

    Formulas are applied to the points before the scheme: schemes with equal numbers share a row.

    Args:
        arrays: by label, with one entry for each of F formulas: its name `formula`; the errors
            `mean`, the largest mean of a feature, and `off`, the largest error of a variance, NaN
            if the results are not finite; `iterations` of gradient descent to one percent of the
            excess, `ITERATION_LIMIT` if it does not get there.
        schemes: one row for each scheme in order (`label`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    # The first label of each set of schemes with equal numbers: the rows of the table.
    labels: list[str] = []
    for label in schemes["label"]:
        if label in arrays and not any(
            _have_equal_numbers(arrays[label], arrays[listed_label]) for listed_label in labels
        ):
            labels.append(label)
    with style.figure_style(shape):
        height = (len(labels) + 2) * FORMULA_ROW_LINES * shape.font / 72 / shape.width
        figure, (axis,) = style.panels(1, shape, title, height)
        # (rows, F): the larger of both errors.
        errors = np.array(
            [
                np.fmax(arrays[listed_label]["off"], arrays[listed_label]["mean"])
                for listed_label in labels
            ]
        )
        errors[np.isnan(errors)] = np.inf  # results that are not finite are worst
        color_limits = np.log10([EXACT_ERROR, USELESS_ERROR])
        with np.errstate(divide="ignore"):  # an error of 0 is drawn as `EXACT_ERROR`
            log_errors = np.clip(np.log10(errors), *color_limits)
        axis.imshow(
            log_errors, cmap="Reds", vmin=color_limits[0], vmax=color_limits[1], aspect="auto"
        )
        for (row, column), error in np.ndenumerate(errors):
            cell_text = _cell_text(error, arrays[labels[row]]["iterations"][column])
            color = "white" if error > DARK_ERROR else "black"
            text_style = {
                "ha": "center",
                "va": "center",
                "fontsize": 0.7 * shape.font,
                "color": color,
            }
            axis.text(column, row, cell_text, **text_style)
        formula_names = arrays[labels[0]]["formula"]
        axis.set_xticks(
            range(len(formula_names)), [str(name).replace("_", "\n") for name in formula_names]
        )
        axis.set_yticks(
            range(len(labels)),
            [style.escape_dollars(row_label) for row_label in shorten_labels(labels)],
        )
        axis.grid(False)
        style.add_note(figure, shape, CAPTION)
    return figure


def _have_equal_numbers(first_arrays: SchemeArrays, second_arrays: SchemeArrays) -> bool:
    """Return whether two schemes have equal errors and iterations of all formulas."""
    number_keys = ("mean", "off", "iterations")
    return all(
        np.array_equal(first_arrays[key], second_arrays[key], equal_nan=True) for key in number_keys
    )


def _cell_text(error: float, iterations: float) -> str:
    """Return the text of a cell: the error, and the iterations of gradient descent.

    Args:
        error: the largest error of the means and variances, infinite if one is not finite.
        iterations: the iterations to one percent of the excess, at most `ITERATION_LIMIT`.
    """
    if not np.isfinite(error):
        return "not finite"
    iterations_text = (
        "never there" if iterations >= ITERATION_LIMIT else f"{iterations:g} iterations"
    )
    return f"off by {error:.1g}\n{iterations_text}"


def shorten_labels(labels: Sequence[str]) -> list[str]:
    """Return labels without the options that all labels share; a single label becomes `points`.

    A label of shared options alone stays as it is.

    Options are the parts of a label between commas, the scheme's name among them.
    """
    if len(labels) == 1:
        return ["points"]
    options_by_label = [label.split(", ") for label in labels]
    shared_options = set.intersection(*map(set, options_by_label))
    return [
        ", ".join(option for option in label_options if option not in shared_options) or label
        for label, label_options in zip(labels, options_by_label)
    ]


make = maker_from_arrays("formulas", draw)
