"""Results over a varied setting or over the size of the batch, and profiles over problems."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare.batch_gains import (
    FEWEST_BATCH_SIZES,
    FEWEST_RECORDS,
    TARGET,
    batch_table,
)
from normbench.results.compare.merging import distinct_repeats
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.settings import Role, has_role

# The final cost and error over one varied setting, such as a ridge.

MIN_VALUES = 3  # for fewer values of a setting, a table suffices
LOG_RATIO = 10  # of the largest to the smallest value: from there on the axis is logarithmic
AXIS_MARGIN = 1.08  # upper limit of an axis over its highest value
SCHEME_COLUMN = "scheme"
# The points, the columns of a cost and of an error, and the column of the number of points that
# makes a count a percentage; the first whose cost is recorded is drawn.
TEST_ERROR = names.FINAL_TEST_MISCLASSIFICATIONS
DIAL_COLUMNS = (
    ("points that cross-validation held out", names.FOLDS_COST, names.FOLDS_ERROR, ""),
    ("test points", names.FINAL_TEST_COST, TEST_ERROR, "test_points"),
    ("training points", names.FINAL_COST, names.FINAL_MISCLASSIFICATIONS, "train_points"),
)


def find_varied_setting(rows: pd.DataFrame) -> str:
    """Return the column of the only setting that varies within a scheme; empty if it does not fit.

    The setting must be numeric, with `MIN_VALUES` values or more, and one row for each scheme and
    value. Seeds and output locations may vary as well: they do not count.

    Args:
        rows: one row for each scheme and value, with the scheme's name in `scheme`.
    """
    settings = [column for column in rows if column.startswith(names.PARAMS)]
    varied_columns = [
        column
        for column in settings
        if not has_role(column.removeprefix(names.PARAMS), Role.REPETITION, Role.LOCATION)
        # It varies if some scheme has several values of it.
        and (rows.groupby(SCHEME_COLUMN)[column].nunique(dropna=False) > 1).any()
    ]
    if len(varied_columns) != 1 or rows.duplicated([SCHEME_COLUMN, *varied_columns]).any():
        return ""
    values = pd.to_numeric(rows[varied_columns[0]], errors="coerce")  # NaN for a text
    return varied_columns[0] if values.notna().all() and values.nunique() >= MIN_VALUES else ""


def draw_dial(rows: pd.DataFrame, column: str, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: cost left, misclassified points right, one curve for each scheme.

    Both are of points that cross-validation held out, else of test points, else of training
    points. If no point is misclassified, only the cost is drawn.

    Args:
        rows: one row for each `scheme` and value of the setting.
        column: the column of the setting.
        title: the title of the figure.
        shape: the format of the figure.
    """
    points_text, cost, error, count_column = next(
        columns for columns in DIAL_COLUMNS if _is_recorded(rows, columns[1])
    )
    panels = [("cost, mean over points", rows[cost.column].astype(float))]
    if error.column in rows and rows[error.column].max() > 0:
        # Counts become percentages; the error of cross-validation is a rate already.
        point_count = rows[count_column].astype(float) if count_column else 1
        rates = rows[error.column].astype(float) * (100 / point_count)
        panels.append(("misclassified points, percent", rates))
    values = pd.to_numeric(rows[column])
    looks = style.looks_by_scheme(rows)
    with style.figure_style(shape):
        columns = 1 if shape.width < 8 else len(panels)
        figure, axes = style.panels(len(panels), shape, title, 0.62, columns)
        for axis, (text, heights) in zip(axes, panels):
            for name, look in looks.items():
                scheme_values = values[rows[SCHEME_COLUMN] == name].sort_values(kind="stable")
                curve_style = {"color": look.color, "ls": look.line, "marker": look.marker}
                curve_style["label"] = style.escape_dollars(name)
                axis.plot(scheme_values, heights[scheme_values.index], **curve_style)
            # A log axis needs values above 0, and is used if they span a factor of `LOG_RATIO`.
            if 0 < values.min() <= values.max() / LOG_RATIO:
                axis.set_xscale("log")
                ticks.set_log_ticks(axis.xaxis)
            # Without a positive value, the upper limit is matplotlib's.
            axis.set_ylim(0, AXIS_MARGIN * heights.max() if heights.max() > 0 else None)
            axis.set(xlabel=column.removeprefix(names.PARAMS), ylabel=text)
        style.add_legend(figure, shape, axes[0].get_lines())
        repeats = distinct_repeats(rows)
        medians = f"; medians over {', '.join(repeats)}" if repeats else ""
        style.add_note(figure, shape, f"of {points_text}, at the end{medians}")
    return figure


def _is_recorded(rows: pd.DataFrame, metric: names.Metric) -> bool:
    """Return whether a metric was recorded in any row."""
    return metric.column in rows and bool(rows[metric.column].notna().any())


@material.figure("dial")
def make_dial(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if `find_varied_setting` finds no setting."""
    rows = material.schemes(sweep, experiment)
    # Final costs of runs that diverged, or end as rounding decides, mean nothing.
    rows = rows[~rows["verdict"].isin(names.UNRANKED)]
    if rows.empty or not _is_recorded(rows, names.FINAL_COST):
        return None
    rows = rows.assign(**{SCHEME_COLUMN: [names.normalizer_label(row) for row in as_rows(rows)]})
    column = find_varied_setting(rows)
    if not column:
        return None
    return draw_dial(rows, column, material.title(experiment, rows), shape=options.shape)


# Largest stable step, passes and updates to a target over the size of the batch, log-log.

BATCH_PANELS = {
    "stable": "largest step size that converged",
    "passes": f"passes to {TARGET} of the excess",
    "updates": f"updates to {TARGET} of the excess",
}
KNEE_NOTE = "dotted: the knee of theory, mean |x|^2 over the largest eigenvalue"
BOUND_NOTE = (
    "hollow: passes and updates of a batch whose first records reach the target are upper bounds; "
    "a larger records_per_pass tells more"
)
GRID_END_NOTE = "hollow: no larger step size failed, so that this one is a lower bound"


def draw_batch_sizes(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a curve for each scheme, and its knee as a dotted line.

    The knee is the batch beyond which theory predicts little gain. A quantity without any number
    above 0 has no panel. Bounds have hollow markers.

    Args:
        table: from `batch_table`, one row for each scheme and size of the batch: `scheme`,
            `normalizer`, `batch`, the quantities of `BATCH_PANELS`, `knee`, `records`, `grid_end`;
            a quantity is NaN where it is not known.
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_panels = {name: text for name, text in BATCH_PANELS.items() if (table[name] > 0).any()}
    # A record is an evaluation of the cost after some updates. If one of the first records reaches
    # the target, and stands for several updates, the target was perhaps reached much earlier.
    is_upper_bound = (table["records"] < FEWEST_RECORDS) & (table["updates"] > table["records"])
    is_lower_bound = table["grid_end"].astype(bool) & (table["stable"] > 0)
    with style.figure_style(shape):
        # On narrow formats the panels stand below one another.
        columns = 1 if shape.width < 8 else len(drawn_panels)
        height = 0.62 * max(shape.width / 2, 3.3)
        ratio = min(0.8, height / (shape.width / columns))
        figure, axes = style.panels(len(drawn_panels), shape, title, ratio, columns)
        for axis, (name, text) in zip(axes, drawn_panels.items()):
            is_bound = is_lower_bound if name == "stable" else is_upper_bound
            for scheme, look in style.looks_by_scheme(table).items():
                rows = table[table["scheme"] == scheme]
                shown = rows[rows[name] > 0].astype({name: float})  # a log axis shows no others
                mark: Any = {"color": look.color, "marker": look.marker}
                label = style.escape_dollars(scheme)
                axis.plot(shown["batch"], shown[name], label=label, ls=look.line, **mark)
                bounds = shown[is_bound[shown.index]]
                if len(bounds):
                    mark |= {"ls": "", "markerfacecolor": "white", "label": "_bounds"}
                    axis.plot(bounds["batch"], bounds[name], **mark)
                if rows["knee"].notna().any():
                    knee = rows["knee"].median()
                    axis.axvline(knee, color=look.color, ls=":", lw=1, label="_knee")
            axis.set(xscale="log", yscale="log", xlabel="batch, points", ylabel=text)
            ticks.set_log_ticks(axis.xaxis)
            ticks.set_log_ticks(axis.yaxis)
        # Knees and hollow markers, whose labels begin with `_`, have no legend entries.
        curves = [line for line in axes[0].get_lines() if line.get_label()[0] != "_"]
        style.add_legend(figure, shape, curves)
        notes = [KNEE_NOTE] if table["knee"].notna().any() else []
        notes += [BOUND_NOTE] if is_upper_bound.any() else []
        notes += [GRID_END_NOTE] if is_lower_bound.any() else []
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


@material.figure("batch_sizes")
def make_batch_sizes(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if it cannot be drawn.

    It needs at least `FEWEST_BATCH_SIZES` sizes of the batch, a number to draw, and one row for
    each scheme and size: nothing else may vary.
    """
    rows = material.schemes(sweep, experiment)
    table = batch_table(sweep, experiment)
    has_curves = bool((table[[*BATCH_PANELS]] > 0).any(axis=None))
    has_batches = table["batch"].nunique() >= FEWEST_BATCH_SIZES
    if not (has_batches and has_curves) or table.duplicated(["scheme", "batch"]).any():
        return None
    return draw_batch_sizes(table, material.title(experiment, rows), shape=options.shape)


# Performance profiles: the share of problems that a scheme solves within a factor of the best.


def draw_profiles(table: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: one staircase for each scheme; higher and further left is better.

    Markers show the steps at which a staircase rises.

    Args:
        table: from `comparisons.profile`, one row for each step of a staircase: `scheme`, the
            `factor` over the best scheme's value on each problem, 1 or more, and the `share` of
            the problems within this factor.
        title: the title of the figure.
        shape: the format of the figure.

    References:
        Dolan and More, Mathematical Programming 91 (2002).
    """
    scheme_groups = [(str(name), rows) for name, rows in table.groupby("scheme", sort=False)]
    # The panel is high enough for the names beside it, one below the other.
    height = max(0.5 * shape.width, (len(scheme_groups) + 2) * 1.25 * shape.font / 72)
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        # The scheme's name stands before its options; its look is a shade of the name's colour.
        looks = style.looks([name.split(", ")[0] for name, _ in scheme_groups])
        right_edge = 1.1 * max(float(table["factor"].max()), 1.5)
        curve_ends = []
        for (name, rows), look in zip(scheme_groups, looks):
            rows = rows.sort_values("factor")
            # A staircase starts at share 0 and goes on to the right edge at its last share.
            factors = [1.0, *rows["factor"], right_edge]
            shares = [0.0, *rows["share"], rows["share"].iloc[-1]]
            axis.step(factors, shares, where="post", color=look.color, ls=look.line, label=name)
            rising_rows = rows[rows["share"].diff().fillna(rows["share"]) > 0]
            marker_style: Any = {"ls": "", "marker": look.marker, "color": look.color, "ms": 4}
            axis.plot(rising_rows["factor"], rising_rows["share"], label="_marks", **marker_style)
            curve_ends.append(End(name, float(shares[-1]), look))
        axis.set(xscale="log", xlim=(1, right_edge), ylim=(0, 1.03))
        axis.set(xlabel="within this factor of the best scheme", ylabel="share of the problems")
        ticks.set_log_ticks(axis.xaxis)
        end_labels(axis, curve_ends, shape, height)
    return figure
