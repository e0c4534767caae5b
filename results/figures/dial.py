"""The final cost and error of each scheme over one varied setting, such as a ridge."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare.merging import distinct_repeats
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.settings import Role, has_role

MIN_VALUES = 3  # for fewer values of a setting, a table suffices
LOG_RATIO = 10  # of the largest to the smallest value: from there on the axis is logarithmic
AXIS_MARGIN = 1.08  # upper limit of an axis over its highest value
SCHEME_COLUMN = "scheme"
# The columns of a cost and of an error, by their points; the first recorded pair is drawn.
FOLD_COLUMNS = (names.FOLDS_COST.column, names.FOLDS_ERROR.column)
TEST_COLUMNS = (names.FINAL_TEST_COST.column, names.FINAL_TEST_MISCLASSIFICATIONS.column)
TRAIN_COLUMNS = (names.FINAL_COST.column, names.FINAL_MISCLASSIFICATIONS.column)
POINT_TEXTS = {
    FOLD_COLUMNS: "points that cross-validation held out",
    TEST_COLUMNS: "test points",
    TRAIN_COLUMNS: "training points",
}


def find_varied_setting(rows: pd.DataFrame) -> str:
    """Return the column of the only setting that varies within a scheme; empty if it does not fit.

    The setting must be numeric, with `MIN_VALUES` values or more, and one row for each scheme and
    value. Seeds and output locations may vary as well: they do not count.

    Args:
        rows: one row for each scheme and value, with the scheme's name in `scheme`.
    """
    if not rows.duplicated(SCHEME_COLUMN).any():  # nothing varies within a scheme
        return ""
    varied_columns = []
    for column in rows:
        name = column.removeprefix(names.PARAMS)
        # A column without the prefix is not a setting.
        if name == column or has_role(name, Role.REPETITION, Role.LOCATION):
            continue
        # It varies if some scheme has several values of it.
        if (rows.groupby(SCHEME_COLUMN)[column].nunique(dropna=False) > 1).any():
            varied_columns.append(column)
    if len(varied_columns) != 1 or rows.duplicated([SCHEME_COLUMN, *varied_columns]).any():
        return ""
    values = pd.to_numeric(rows[varied_columns[0]], errors="coerce")  # NaN for a text
    return varied_columns[0] if values.notna().all() and values.nunique() >= MIN_VALUES else ""


def draw(rows: pd.DataFrame, column: str, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: cost left, misclassified points right, one curve for each scheme.

    Both are of points that cross-validation held out, else of test points, else of training
    points. If no point is misclassified, only the cost is drawn.

    Args:
        rows: one row for each `scheme` and value of the setting.
        column: the column of the setting.
        title: the title of the figure.
        shape: the format of the figure.
    """
    # `POINT_TEXTS` has the pairs in order of preference.
    metric_columns = next(
        column_pair for column_pair in POINT_TEXTS if _is_recorded(rows, column_pair)
    )
    cost, error = metric_columns
    panels = [(cost, "cost, mean over points")]
    if error in rows and rows[error].max() > 0:
        panels.append((error, "misclassified points, percent"))
    values = pd.to_numeric(rows[column])
    # Counts become percentages of these points; the error of cross-validation is a rate already.
    count_columns = {TEST_COLUMNS[1]: "test_points", TRAIN_COLUMNS[1]: "train_points"}
    looks = style.looks_by_scheme(rows)
    with style.figure_style(shape):
        columns = 1 if shape.width < 8 else len(panels)
        figure, axes = style.panels(len(panels), shape, title, 0.62, columns)
        for axis, (name, text) in zip(axes, panels):
            heights = rows[name].astype(float)
            if name == error:
                heights *= 100 / (
                    rows[count_columns[name]].astype(float) if name in count_columns else 1
                )
            _draw_curves(axis, rows[SCHEME_COLUMN], values, heights, looks)
            axis.set(xlabel=column.removeprefix(names.PARAMS), ylabel=text)
        style.add_legend(figure, shape, axes[0].get_lines())
        repeats = distinct_repeats(rows)
        medians = f"; medians over {', '.join(repeats)}" if repeats else ""
        style.add_note(figure, shape, f"of {POINT_TEXTS[metric_columns]}, at the end{medians}")
    return figure


def _is_recorded(rows: pd.DataFrame, columns: tuple[str, str]) -> bool:
    """Return whether the cost, the first of a pair of columns, was recorded in any row."""
    return columns[0] in rows and bool(rows[columns[0]].notna().any())


def _draw_curves(axis: Any, schemes: Any, values: Any, heights: Any, looks: Any) -> None:
    """Draw a curve for each scheme over the values of the setting.

    Args:
        axis: the panel.
        schemes: the name of the scheme of each row.
        values: the value of the setting of each row.
        heights: the cost or error of each row.
        looks: the look of each scheme, by name.
    """
    for name, look in looks.items():
        scheme_values = values[schemes == name].sort_values(kind="stable")
        line_style = {"color": look.color, "ls": look.line, "marker": look.marker}
        axis.plot(
            scheme_values,
            heights[scheme_values.index],
            label=style.escape_dollars(name),
            **line_style,
        )
    # A log axis needs values above 0, and is used if they span a factor of `LOG_RATIO`.
    if 0 < values.min() <= values.max() / LOG_RATIO:
        axis.set_xscale("log")
        ticks.set_log_ticks(axis.xaxis)
    highest = heights.max()
    axis.set_ylim(0, AXIS_MARGIN * highest if highest > 0 else None)  # None: matplotlib's limit


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if `find_varied_setting` finds no setting."""
    rows = material.schemes(sweep, experiment)
    # Final costs of runs that diverged, or end as rounding decides, mean nothing.
    rows = rows[~rows["verdict"].isin(names.UNRANKED)]
    if rows.empty or not _is_recorded(rows, TRAIN_COLUMNS):
        return None
    rows = rows.assign(**{SCHEME_COLUMN: [names.normalizer_label(row) for row in as_rows(rows)]})
    column = find_varied_setting(rows)
    if not column:
        return None
    return draw(rows, column, material.title(experiment, rows), shape=options.shape)
