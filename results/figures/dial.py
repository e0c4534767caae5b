"""What each scheme comes to over one setting that was varied: a number of points, a ridge."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare.merging import repeated_over
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.settings import Role, has_role

LEAST = 3  # values of a setting: of fewer a table tells as much
WIDE = 10  # times the least value: from there on the axis is logarithmic
ROOM = 1.08  # times the highest value: its marker is whole
SCHEME = "scheme"
# Columns of a cost and of an error, and what they are of: the first that is known is drawn.
FOLDS = (names.FOLDS_COST.column, names.FOLDS_ERROR.column)
TEST = (names.FINAL_TEST_COST.column, names.FINAL_TEST_MISCLASSIFICATIONS.column)
TRAIN = (names.FINAL_COST.column, names.FINAL_MISCLASSIFICATIONS.column)
OF = {FOLDS: "points that cross-validation held out", TEST: "test points", TRAIN: "training points"}


def varied(rows: pd.DataFrame) -> str:
    """Return the column of the one setting that was varied, a number; empty where there is none.

    rows: one row a scheme and value, its name in `scheme`. A draw's seed is no such setting.
    """
    found = []
    for column in rows:
        name = column.removeprefix(names.PARAMS)
        if name == column or has_role(name, Role.REPETITION, Role.LOCATION):
            continue
        if (rows.groupby(SCHEME)[column].nunique(dropna=False) > 1).any():
            found.append(column)
    if len(found) != 1 or rows.duplicated([SCHEME, *found]).any():
        return ""
    values = pd.to_numeric(rows[found[0]], errors="coerce")
    return found[0] if values.notna().all() and values.nunique() >= LEAST else ""


def draw(rows: pd.DataFrame, column: str, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: cost left, misclassified points right, a curve a scheme.

    rows: one row a `scheme` and value of the setting `column`. Of points that cross-validation held
    out, or else of test points, or else of training points.
    """
    kind = next(each for each in OF if _known(rows, each))
    cost, error = kind
    panels = [(cost, "cost, mean over points")]
    if error in rows and rows[error].max() > 0:
        panels.append((error, "misclassified points, percent"))
    values = pd.to_numeric(rows[column])
    points = {TEST[1]: "test_points", TRAIN[1]: "train_points"}
    looks = style.looks_of(rows)
    with style.drawn(shape):
        columns = 1 if shape.width < 8 else len(panels)
        figure, axes = style.panels(len(panels), shape, title, 0.62, columns)
        for axis, (name, text) in zip(axes, panels):
            heights = rows[name].astype(float)
            if name == error:
                heights *= 100 / (rows[points[name]].astype(float) if name in points else 1)
            _curves(axis, rows[SCHEME], values, heights, looks)
            axis.set(xlabel=column.removeprefix(names.PARAMS), ylabel=text)
        style.legend(figure, shape, axes[0].get_lines())
        over = repeated_over(rows)
        medians = f"; medians over {', '.join(over)}" if over else ""
        style.note(figure, shape, f"of {OF[kind]}, at the end{medians}")
    return figure


def _known(rows: pd.DataFrame, columns: tuple[str, str]) -> bool:
    return columns[0] in rows and bool(rows[columns[0]].notna().any())


def _curves(axis: Any, schemes: Any, values: Any, heights: Any, looks: Any) -> None:
    for name, look in looks.items():
        own = values[schemes == name].sort_values(kind="stable")
        line = {"color": look.color, "ls": look.line, "marker": look.marker}
        axis.plot(own, heights[own.index], label=style.plain(name), **line)
    if 0 < values.min() <= values.max() / WIDE:
        axis.set_xscale("log")
        ticks.log_ticks(axis.xaxis)
    highest = heights.max()
    axis.set_ylim(0, ROOM * highest if highest > 0 else None)


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None unless one setting of three values was varied."""
    rows = material.schemes(sweep, experiment)
    rows = rows[~rows["verdict"].isin(names.UNRANKED)]
    if rows.empty or not _known(rows, TRAIN):
        return None
    rows = rows.assign(**{SCHEME: [names.fitted(row) for row in as_rows(rows)]})
    column = varied(rows)
    if not column:
        return None
    return draw(rows, column, material.title(experiment, rows), shape=options.shape)
