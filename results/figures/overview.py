"""All problems of a sweep: the excess that each scheme leaves, and its iterations to the target."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench import names
from normbench.results.compare import comparisons, passes, problems
from normbench.results.compare.merging import merged, unmerged
from normbench.results.compare.reached import compares_counts, excess_shown, time_to_target
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

OVERVIEW_TARGET = "1e-2"
AXIS_TEXT_LINES = 6.5  # lines of text below a panel: ticks and axis label, two lines each
UNREACHED_TEXT, UNKNOWN_TEXT = "not reached", "not known"
# Outcomes that are not numbers, in the order of their columns right of the numbers.
OUTCOME_TEXTS = (UNREACHED_TEXT, UNKNOWN_TEXT, names.DIVERGED, names.FAILED)
COUNTED_NOTE = "*: misclassified points are compared instead, because the costs are not comparable"
OWN_COST_NOTE = "each scheme minimizes another function: shares are of its own excess cost"
QUARTILE_NOTE = "lines: quartiles over the splits"


def table(sweep: Sweep) -> pd.DataFrame:
    """Return one row for each problem and scheme with a descent.

    Returns:
        The scheme rows with these columns. `excess`: the share of the excess left at the step size
        that represents the scheme, as in `tables.summary`; NaN where it is not known, and where the
        run diverged, failed, or ends as rounding decides. `median`, `q1`, `q3`: iterations to
        `OVERVIEW_TARGET`, as in `comparisons.spread`; infinite for never. `counted`: whether
        misclassified points are compared instead of costs.
    """
    problem_runs = problems.scheme_runs([unmerged(sweep)])[["run_id", *problems.SCHEME_COLUMNS]]
    scheme_rows = merged(sweep).of_role(names.SCHEME)
    # Those of `problem_runs` replace these columns.
    scheme_rows = scheme_rows[
        [column for column in scheme_rows if column not in ("setting", "scheme")]
    ]
    # A merged row has the id of the first of its runs: of each problem and scheme, one row remains.
    rows = problem_runs.merge(scheme_rows, on=["run_id", "experiment"])
    spread = comparisons.spread(time_to_target([unmerged(sweep)], OVERVIEW_TARGET))
    # `spread` leaves this column out if no settings vary.
    if "setting" not in spread:
        spread = spread.assign(setting="")
    quartiles = spread[[*problems.SCHEME_COLUMNS, "median", "q1", "q3"]]
    rows = rows.merge(quartiles, on=problems.SCHEME_COLUMNS, how="left").assign(
        counted=compares_counts
    )
    # The excess is known if points are counted, because their minimum is 0, or if the minimum of
    # the cost was found.
    has_excess = rows["counted"]
    if names.MINIMUM_REACHED.column in rows:
        has_excess = has_excess | (rows[names.MINIMUM_REACHED.column] == "true")
    excess_shares = [excess_shown(row, row) for row in as_rows(rows)]
    return rows.assign(excess=pd.Series(excess_shares, rows.index, dtype=float).where(has_excess))


def draw(
    rows: pd.DataFrame,
    title: str,
    step_name: str = "best",
    notes: Sequence[str] = (),
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: the excess left, and the iterations to the target, on log axes.

    Each problem has a band with one line for each scheme. Outcomes that are not numbers have
    columns of their own beside the numbers.

    Args:
        rows: from `table`, one row for each problem and scheme, with the label of the problem in
            the column `problem`.
        title: the title of the figure.
        step_name: the step size of each scheme, `best` or `shown`.
        notes: lines below the figure.
        shape: the format of the figure.
    """
    looks = style.looks_by_scheme(rows)
    problem_names = list(dict.fromkeys(rows["problem"]))
    # The rows of a problem stand together; an empty line follows each problem.
    rows = rows.sort_values(
        "problem", key=lambda names: names.map(problem_names.index), kind="stable"
    )
    lines = np.arange(len(rows)) + rows["problem"].map(problem_names.index).to_numpy()
    bands = pd.Series(lines).groupby(rows["problem"].to_numpy(), sort=False)
    panel_width = shape.width / min(2, shape.columns)
    labels = [style.wrap_text(str(name), 0.36 * panel_width, shape.font) for name in problem_names]
    line_count = len(rows) + len(labels)
    max_label_lines = max(label.count("\n") + 2 for label in labels)
    # A problem's band, a line for each scheme and an empty one, is as high as its label.
    line_height = max(0.85, 1.2 * max_label_lines / (len(looks) + 1)) * shape.font / 72  # inches
    height = line_height * line_count + AXIS_TEXT_LINES * shape.font / 72
    with style.figure_style(shape):
        figure, axes = style.panels(2, shape, title, height / panel_width, sharey=True)
        # Excess below `TIED` is not distinguished; of the iterations, only 0 has no place.
        _draw_panel(axes[0], rows, lines, looks, ("excess",), names.TIED, shape)
        _draw_panel(axes[1], rows, lines, looks, ("median", "q1", "q3"), 0.0, shape)
        for axis in axes:
            for last_line in bands.max()[:-1]:
                axis.axhline(last_line + 1, color="0.85", lw=0.8, label="_between")
        axes[0].set_ylim(line_count - 0.5, -1)
        axes[0].set_yticks(bands.mean(), map(style.escape_dollars, labels))
        axes[0].set_xlabel(
            f"share of the excess cost left (zero weights: 1)\nat the {step_name} step size"
        )
        axes[1].set_xlabel(
            f"{passes.unit(rows).many} until {float(OVERVIEW_TARGET):.0%} of the excess cost is "
            "left\nat the best step size for that"
        )
        handles = [
            _marker(look, shape, label=style.escape_dollars(name)) for name, look in looks.items()
        ]
        style.add_legend(figure, shape, handles)
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def _marker(look: Look, shape: Shape, **marker_options: Any) -> Line2D:
    """Return a scheme's marker, without a position."""
    size = 0.6 * shape.font
    return Line2D([], [], ls="", color=look.color, marker=look.marker, ms=size, **marker_options)


def _draw_panel(
    axis: Any,
    rows: pd.DataFrame,
    lines: Any,
    looks: Mapping[str, Look],
    columns: Sequence[str],
    floor: float,
    shape: Shape,
) -> None:
    """Draw one number of every problem and scheme, with its quartiles where they are known.

    Args:
        axis: the panel.
        rows: the rows of problems and schemes (n,).
        lines: the vertical position of each row (n,).
        looks: the look of each scheme, by name.
        columns: the column of the number, or three columns: of the number and of its quartiles.
        floor: numbers up to this one are not distinguished; they share a column at the left.
        shape: the format of the figure.
    """
    outcomes = [[outcome_text(row, column, floor) for column in columns] for row in as_rows(rows)]
    values = rows[list(columns)].to_numpy(dtype=float)
    all_positions = np.reshape(
        _set_log_scale(axis, values.ravel(), np.ravel(outcomes).tolist()), values.shape
    )
    for scheme, positions, (outcome, *_), line in zip(
        rows["scheme"], all_positions, outcomes, lines
    ):
        look = looks[scheme]
        # A hollow marker is an outcome right of the numbers; small numbers keep a filled one.
        face = "none" if outcome in OUTCOME_TEXTS else look.color
        mark = _marker(look, shape, label="_value", mfc=face)
        mark.set_data([positions[0]], [line])
        axis.add_line(mark)
        # Without quartiles, or with equal ones, there is no line.
        if positions.min() < positions.max():
            axis.plot(positions[1:], [line] * 2, color=look.color, lw=1, label="_quartiles")
    axis.grid(False, axis="y")
    axis.tick_params(axis="y", length=0)


def outcome_text(row: Mapping[Any, Any], column: str, floor: float) -> str:
    """Return the text for a number that a logarithmic axis cannot show; empty for others.

    Args:
        row: the row of a problem and scheme.
        column: the column of the number; NaN is not known, infinity not reached.
        floor: numbers up to this one, 0 or more, cannot be shown.

    Returns:
        One of `OUTCOME_TEXTS`, or a text on the number such as `under 10⁻⁶`.
    """
    value = float(row[column])
    # The verdict says more than that the number is not known or not reached.
    if not np.isfinite(value) and row["verdict"] in (names.DIVERGED, names.FAILED):
        return str(row["verdict"])
    if not np.isfinite(value):
        return UNKNOWN_TEXT if np.isnan(value) else UNREACHED_TEXT
    # A floor of 0 means that only 0 itself cannot be shown.
    return "" if value > floor else f"under {ticks.power_text(floor)}" if floor else "0"


def _set_log_scale(axis: Any, values: Any, outcomes: Sequence[str]) -> list[float]:
    """Set a logarithmic axis with a column for each outcome; return the position of each value.

    Small numbers have their column at the left, the outcomes of `OUTCOME_TEXTS` at the right.

    Args:
        axis: the panel.
        values: the numbers (n,).
        outcomes: for each number its `outcome_text`, empty if the axis can show the number.

    Returns:
        For each number the number itself, or the middle of the column of its outcome.
    """
    finite_values = [value for value, outcome in zip(values, outcomes) if not outcome]
    low, high = (min(finite_values), max(finite_values)) if finite_values else (1.0, 1.0)
    margin = 1.3 * (high / low) ** 0.04  # a factor, and 4 percent of the axis
    low, high = low / margin, high * margin
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    ticks.set_log_ticks(axis.xaxis, max_powers=5)
    # Without any number, the axis has no ticks but those of the outcomes.
    tick_values = list(axis.get_xticks()) if finite_values else []
    tick_labels = [label.get_text() for label in axis.get_xticklabels()]
    column_width = max(high / low, 10.0) ** 0.17  # a factor: 17 percent of the numbers' axis
    right_outcomes = [outcome for outcome in OUTCOME_TEXTS if outcome in outcomes]
    left_outcomes = sorted({*outcomes} - {*OUTCOME_TEXTS, ""})  # one at most
    # The middles of the columns: right of `high` one after another, and one left of `low`.
    outcome_positions = dict.fromkeys(left_outcomes, low / column_width**0.5)
    for number, outcome in enumerate(right_outcomes):
        outcome_positions[outcome] = high * column_width ** (number + 0.5)
    axis.set_xlim(
        low / column_width ** len(left_outcomes), high * column_width ** len(right_outcomes)
    )
    clearance = column_width**0.25  # a number this close to an edge would touch the outcome's text
    lowest_tick = low * (clearance if left_outcomes else 1)
    highest_tick = high / (clearance if right_outcomes else 1)
    texts = {
        tick: text
        for tick, text in zip(tick_values, tick_labels)
        if lowest_tick <= tick <= highest_tick
    }
    texts |= {x: outcome.replace(" ", "\n") for outcome, x in outcome_positions.items()}
    axis.set_xticks(list(texts), list(texts.values()))
    # A line at each edge between the numbers and the columns of outcomes.
    for edge in [high] * bool(right_outcomes) + [low] * bool(left_outcomes):
        axis.axvline(edge, color="0.6", lw=0.8, label="_edge")
    return [outcome_positions.get(outcome, value) for value, outcome in zip(values, outcomes)]


@material.figure("overview")
def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of a whole sweep; None for fewer than two problems.

    The experiment is ignored: all figures have the same arguments.
    """
    runs = problems.scheme_runs([unmerged(sweep)])
    count = len(runs[problems.PROBLEM_COLUMNS].drop_duplicates())
    if count < 2:  # as of most comparisons; the table takes longer
        return None
    rows = table(sweep)
    titles = {
        name: material.title(str(name), experiment_rows)
        for name, experiment_rows in rows.groupby("experiment")
    }
    # An asterisk marks problems whose misclassified points are compared, see `COUNTED_NOTE`.
    rows["problem"] = [
        ", ".join(filter(None, [titles[experiment], setting])) + "*" * counted
        for experiment, setting, counted in zip(
            rows["experiment"], rows["setting"], rows["counted"]
        )
    ]
    title = ", ".join(filter(None, [f"{count} problems", passes.budget(rows)]))
    step_name = sweep.which_step()
    return draw(rows, title, step_name, _notes(rows), shape=options.shape)


def _notes(rows: pd.DataFrame) -> list[str]:
    """Return the notes on counted points, penalties and quartiles that apply to the rows."""
    # Quartiles that are equal, as of a single split, are not drawn.
    has_quartiles = (rows["q1"] < rows["q3"]).any()
    candidates = (
        (COUNTED_NOTE, rows["counted"].any()),
        (OWN_COST_NOTE, problems.minimize_different_functions(rows)),
        (QUARTILE_NOTE, has_quartiles),
    )
    return [note for note, applies in candidates if applies]
