"""The phase diagram: excess left, verdict and predictions over the step size, by scheme.

A dark cell has little excess left. A red cell is a run that diverged: its excess is not finite.
The mark in a cell is the verdict. With more than `MAX_MARKED_CELLS` step sizes, one mark on a line
represents all neighbours that have the same verdict.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.merging import distinct_repeats, unmerged
from normbench.results.compare.reached import (
    compared_metric,
    excess_left,
    with_finer_minima,
    with_lowest_seen,
)
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, VERDICT_LOOKS, Shape
from normbench.results.figures.step_sizes import (
    FINAL_COST,
    LARGEST_CONVERGENT,
    LARGEST_TEXT,
    STEP_SIZE,
    THRESHOLD,
)
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.words.reasons import EQUAL_TOLERANCE

# Marks of cells that replace the verdict; they point to the step sizes that do better.
TOO_SMALL = "too small: not converged below any that converges"
TOO_LARGE = "too large: ends above the start"
CELL_MARKS = {
    **{verdict: (marker, "white") for verdict, (_, marker) in VERDICT_LOOKS.items()},
    TOO_SMALL: (">", "white"),
    TOO_LARGE: ("<", style.ALARM_RED),
    "best": ("*", "white"),
}
MAX_MARKED_CELLS = 40  # with more step sizes, one mark represents equal neighbours
# The bands of the excess left: upper bound, label, colour of a cell.
EXCESS_BANDS = (
    (0.01, "under 1 % left", "#3d3d3d"),
    (0.1, "1 to 10 % left", "#747474"),
    (0.5, "10 to 50 % left", "#a8a8a8"),
    (1.0, "50 to 100 % left", "#d9d9d9"),
    (np.inf, "more than at zero weights", "#ffffff"),
)
UNKNOWN_BAND = ("excess not known", "#c2c2c2")
CELL_COLORS = {label: color for _, label, color in EXCESS_BANDS} | dict([UNKNOWN_BAND])
CELL_COLORS |= {names.BY_ROUNDING: "#ffffff", names.DIVERGED: style.ALARM_RED}
CELL_COLORS |= {names.FAILED: VERDICT_LOOKS[names.FAILED][0]}
LIMIT_STYLES: dict[str, dict[str, Any]] = {
    "threshold": {"color": "black", "lw": 1.8},
    "largest": {"color": "black", "ls": ":", "lw": 1.5},
}
MODEL_PREFIX = "model."  # of a setting of the model in a label
NETWORK_ROWS = "inputs /\ninside"  # of the network; in two lines, for few rows
MERGE_RULE = "the worst verdict, the smallest step up to which all converge, the median of 2/L"
Row = dict[Any, Any]


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one row for each scheme, one cell for each step size.

    Rows are sorted by 2/L, those of a scheme with several batches by the batch; equal schemes share
    one row. Of networks, rows with one scheme of the inputs stand together.

    Args:
        steps: one row for each scheme and step size (`label`, `verdict`, `metrics.step_size`,
            `metrics.final/train_cost`).
        schemes: one row for each scheme (`label`, `normalizer`, `start_cost`, optionally
            `metrics.theory/step_threshold` and `metrics.final/largest_convergent_step`);
            `tags.step_size` is the best step size, or the one that the scheme's study shows.
        title: the title of the figure.
        shape: the format of the figure.
    """
    scheme_groups = group_equal_schemes(steps, schemes)
    labels = [[split_label(str(row["label"])) for row in group] for group in scheme_groups]
    row_labels = [
        style.escape_dollars(style.join_names([" / ".join(filter(None, parts)) for parts in group]))
        for group in labels
    ]
    # All rows are as high as the label with most lines needs.
    max_lines = max([2, *(name.count("\n") + 1 for name in row_labels)])
    height = (len(scheme_groups) + 1) * max_lines * 1.05 * shape.font / 72 + 0.9 * shape.font / 10
    step_sizes = np.unique(steps[STEP_SIZE])
    with style.figure_style(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        axis.set_xscale("log")
        axis.grid(False)
        axis.set_xlim(_cell_edges(step_sizes)[0], _cell_edges(step_sizes)[-1])
        drawn_colors = _draw_cells(axis, steps, scheme_groups, step_sizes, shape)
        # Equal schemes have equal limits: those of the first are drawn.
        for row_index, (scheme, *_) in enumerate(scheme_groups):
            _draw_limits(axis, row_index, scheme, steps)
        axis.set_ylim(len(scheme_groups) - 0.5, -0.5)
        axis.set_yticks(range(len(scheme_groups)), row_labels)
        ticks.set_log_ticks(axis.xaxis)
        axis.set_xlabel("step size")
        if any(inside for (_, inside), *_ in labels):
            axis.set_ylabel(NETWORK_ROWS)
            # A line separates the rows of one scheme of the inputs from those of the next one.
            for row_index, (above, below) in enumerate(pairwise(group[0][0] for group in labels)):
                if above != below:
                    axis.axhline(row_index + 0.5, color="black", lw=1.2, label="_inputs", zorder=3)
        _add_legend(figure, axis, drawn_colors, schemes, shape)
        notes = []
        if (schemes.get(names.MINIMUM_REACHED.column, pd.Series(dtype=str)) == "false").any():
            notes.append(material.LOWEST_COST_NOTE)
        if repeats := distinct_repeats(schemes):
            notes.append(f"over {repeats[-1]}: {MERGE_RULE}")
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def split_label(label: str) -> tuple[str, str]:
    """Return the parts of a label: the scheme of the inputs, the normalization inside a network.

    The label `standard, model.normalize=batch, model.place=after` has the parts `standard` and
    `batch, place=after`. The second part is empty for a label without settings of the model.
    """
    parts = label.split(", ")
    inside = [part.removeprefix(MODEL_PREFIX) for part in parts if part.startswith(MODEL_PREFIX)]
    inputs = [part for part in parts if not part.startswith(MODEL_PREFIX)]
    return ", ".join(inputs), ", ".join(part.removeprefix("normalize=") for part in inside)


def classify_steps(scheme_steps: pd.DataFrame, scheme: Row) -> list[str]:
    """Return the mark of each step size of a scheme: its verdict, `TOO_SMALL`, or `TOO_LARGE`.

    A step size is too large if its run stays finite and ends above the start. It is too small if
    its run has not converged and it lies below all step sizes that converge; if none converges,
    below the step size with the lowest final cost. Runs whose end rounding decides keep their
    verdict. Where misclassified points are compared, the fewest of them replace the lowest cost,
    and no step size is too large.

    Args:
        scheme_steps: the step rows of one scheme.
        scheme: the row of the scheme, with the cost at the start.
    """
    verdicts, sizes = scheme_steps["verdict"], scheme_steps[STEP_SIZE]
    metric = compared_metric(scheme)
    missing = pd.Series(float("nan"), index=scheme_steps.index)
    ends = scheme_steps.get(names.final_metric(metric).column, missing)
    ends = ends.where(~verdicts.isin(names.UNRANKED)).astype(float)
    start = number_in(scheme, material.START_COST_COLUMN)
    # False where a cost is NaN: the run diverged, ends by rounding, or the start's cost is unknown.
    ends_above_start = (ends - start > names.TIED * abs(start)) & (metric is names.TRAIN_COST)
    good_sizes = sizes[verdicts == names.CONVERGED]
    if good_sizes.empty:  # the lowest final cost; none without any finite cost
        good_sizes = sizes[ends == ends.min()][:1]
    is_too_small = (verdicts == names.NOT_CONVERGED) & (sizes < good_sizes.min())
    marks = verdicts.astype(str).mask(is_too_small, TOO_SMALL).mask(ends_above_start, TOO_LARGE)
    return list(marks)


def group_equal_schemes(steps: pd.DataFrame, schemes: pd.DataFrame) -> list[list[Row]]:
    """Return groups of equal schemes, in the order of the rows of the figure, see `draw`.

    Equal schemes agree in all drawn values, and in the final costs of all step sizes up to 2/L,
    except where rounding decides the end. Above 2/L a descent amplifies its rounding errors.

    Args:
        steps: the step rows of all schemes.
        schemes: the scheme rows. Without 2/L, the costs of all step sizes are compared.

    Returns:
        For each row of the figure, the rows of the schemes that share it.
    """
    rows = _ordered(schemes)
    # By label: what the cells and marks show except the excess, and the compared numbers.
    drawn_values: dict[str, list[Any]] = {}
    numbers: dict[str, Any] = {}
    for row in rows:
        scheme_steps = steps[steps["label"] == row["label"]].sort_values(STEP_SIZE)
        marks = classify_steps(scheme_steps, row)
        threshold = number_in(row, THRESHOLD)
        is_compared = ~(scheme_steps[STEP_SIZE] > threshold)
        costs = scheme_steps[FINAL_COST].where(scheme_steps["verdict"] != names.BY_ROUNDING)
        drawn_values[row["label"]] = [
            row.get(names.STEP_TAG.column),
            *scheme_steps[STEP_SIZE],
            *marks,
        ]
        # Missing numbers are equal.
        numbers[row["label"]] = np.array([threshold, *costs[is_compared]], dtype=float)

    def is_equal(row: Row, other: Row) -> bool:
        own, others = numbers[row["label"]], numbers[other["label"]]
        return (
            drawn_values[row["label"]] == drawn_values[other["label"]]
            and len(own) == len(others)
            and np.allclose(own, others, rtol=EQUAL_TOLERANCE, atol=0, equal_nan=True)
        )

    return style.group_equal(rows, is_equal)


def _ordered(schemes: pd.DataFrame) -> list[Row]:
    """Return the rows of schemes in the order in which they are drawn.

    Rows are sorted by 2/L. For networks, rows that have the same scheme of the inputs then follow
    the first of them. With batches, rows of the same normalizer follow the first of them, sorted by
    the size of the batch.
    """
    by_threshold = THRESHOLD in schemes
    rows = as_rows(schemes.sort_values(THRESHOLD, kind="stable") if by_threshold else schemes)
    parts = {row["label"]: split_label(str(row["label"])) for row in rows}
    if any(inside for _, inside in parts.values()):
        inputs = list(dict.fromkeys(inputs for inputs, _ in parts.values()))
        # Stable: within a scheme of the inputs, rows keep their order.
        return sorted(rows, key=lambda row: inputs.index(parts[row["label"]][0]))
    if not any(map(passes.is_batched, rows)):
        return rows
    normalizers = list(dict.fromkeys(row["normalizer"] for row in rows))
    return sorted(
        rows, key=lambda row: (normalizers.index(row["normalizer"]), passes.batch_size(row))
    )


def _cell_edges(step_sizes: Any) -> Any:
    """Return the edges (S + 1,) of cells on a logarithmic axis, each around one of S step sizes.

    An inner edge is the geometric mean of two neighbours; the outer edges are as far from the first
    and the last step size. A single cell spans a factor of 9.
    """
    if len(step_sizes) == 1:
        return np.array([step_sizes[0] / 3, step_sizes[0] * 3])
    logs = np.log10(step_sizes)
    middles = (logs[1:] + logs[:-1]) / 2
    return 10 ** np.r_[2 * logs[0] - middles[0], middles, 2 * logs[-1] - middles[-1]]


def band_label(step: Row, scheme: Row) -> str:
    """Return the legend's label for the colour of a step size's cell, a key of `CELL_COLORS`.

    Args:
        step: the row of the step size.
        scheme: the row of its scheme.
    """
    if step["verdict"] in (*names.UNRANKED, names.FAILED):  # its excess means nothing
        return str(step["verdict"])
    excess_share = excess_left(step, scheme)
    if np.isnan(excess_share):
        return UNKNOWN_BAND[0]
    # The tolerance puts a share that exceeds a bound by rounding only, such as 1, below it.
    return next(
        label for upper_bound, label, _ in EXCESS_BANDS if excess_share <= upper_bound + names.TIED
    )


def _draw_cells(
    axis: Any,
    steps: pd.DataFrame,
    scheme_groups: Sequence[list[Row]],
    step_sizes: Any,
    shape: Shape,
) -> set[str]:
    """Draw the cells and their marks; return the drawn colours, keys of `CELL_COLORS`.

    Args:
        axis: the panel, with the limits of the step sizes set.
        steps: the step rows of all schemes.
        scheme_groups: for each row of the figure, the schemes that share it.
        step_sizes: all step sizes (S,), increasing.
        shape: the format of the figure.
    """
    cell_labels = list(CELL_COLORS)
    # The index in `cell_labels` of each cell's colour; NaN for a step size that was not tried.
    color_codes = np.full((len(scheme_groups), len(step_sizes)), np.nan)
    # The step size and the row of each cell, by its mark.
    marked_cells: dict[str, list[tuple[float, int]]] = {}
    for row_index, (scheme, *_) in enumerate(scheme_groups):
        is_of_scheme = (steps["label"] == scheme["label"]) & steps["verdict"].isin([*VERDICT_LOOKS])
        scheme_steps = steps[is_of_scheme].sort_values(STEP_SIZE)
        best_step = number_in(scheme, names.STEP_TAG.column)
        step_marks = []
        for row, step_mark in zip(as_rows(scheme_steps), classify_steps(scheme_steps, scheme)):
            step_size, verdict = row[STEP_SIZE], row["verdict"]
            column = np.searchsorted(step_sizes, step_size)
            color_codes[row_index, column] = cell_labels.index(band_label(row, scheme))
            # The tag has six digits. A best step size whose run ends above the start gets no star.
            is_best = np.isclose(best_step, step_size, rtol=1e-5) and verdict not in names.UNRANKED
            is_best = is_best and material.ends_at_or_below_start(scheme, row[FINAL_COST])
            step_marks.append((step_size, "best" if is_best else step_mark))
        if len(step_sizes) > MAX_MARKED_CELLS:
            step_marks = _draw_spans(axis, step_marks, row_index)
        for step_size, step_mark in step_marks:
            marked_cells.setdefault(step_mark, []).append((step_size, row_index))
    axis.pcolormesh(
        _cell_edges(step_sizes),
        np.arange(len(scheme_groups) + 1) - 0.5,
        color_codes,
        cmap=ListedColormap(list(CELL_COLORS.values())),
        vmin=-0.5,  # each integer code has a colour of its own
        vmax=len(cell_labels) - 0.5,
    )
    # White lines separate the rows of neighbours that have the same colour.
    for row_index in range(len(scheme_groups) - 1):
        axis.axhline(row_index + 0.5, color="white", lw=3, label="_between")
    for mark_name, cells in marked_cells.items():
        mark_style = _mark_style(mark_name, shape) | {"zorder": 5, "clip_on": False}
        axis.plot(*zip(*cells), label=f"_{mark_name}", **mark_style)
    return {cell_labels[int(code)] for code in color_codes[~np.isnan(color_codes)]}


def _draw_spans(
    axis: Any, step_marks: Sequence[tuple[float, str]], row_index: int
) -> list[tuple[float, str]]:
    """Draw a line over each sequence of step sizes with equal marks; return one mark for each.

    Args:
        axis: the panel.
        step_marks: each step size of a row with its mark, by increasing step size.
        row_index: the number of the row.

    Returns:
        The middle step size and the mark of each sequence; a single step size gets no line.
    """
    middle_marks = []
    for step_mark, group in groupby(step_marks, key=lambda pair: pair[1]):
        step_sizes = [step_size for step_size, _ in group]
        if len(step_sizes) > 1:
            ends = [step_sizes[0], step_sizes[-1]]
            for color, width in (("black", 2.6), ("white", 1.4)):  # white with a black edge
                axis.plot(ends, [row_index] * 2, color=color, lw=width, zorder=4, label="_span")
        middle_marks.append((step_sizes[len(step_sizes) // 2], step_mark))
    return middle_marks


def _draw_limits(axis: Any, row_index: int, scheme: Row, steps: pd.DataFrame) -> None:
    """Draw 2/L in the upper half of a scheme's row, the largest converged step in the lower half.

    Separate halves keep close limits distinct. If 2/L is beyond the axis, an arrow points to it.
    With several splits, the largest converged step may fail on some of them; then it is not drawn.

    Args:
        axis: the panel, with the limits of the step sizes set.
        row_index: the number of the row.
        scheme: the row of the scheme.
        steps: the step rows of all schemes.
    """

    def draw_limit(name: str, step_size: float, ends: list[float], halo: float) -> None:
        axis.plot([step_size] * 2, ends, color="white", lw=halo, label=f"_{name}")
        axis.plot([step_size] * 2, ends, label=f"_{name}", **LIMIT_STYLES[name])

    def write(text: str, x: float, alignment: str, **coordinates: Any) -> None:
        text_style: Any = {"ha": alignment, "va": "bottom", "fontsize": "small"}
        text_style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        offset = (3 if alignment == "left" else -3, 1)
        place: Any = {"xytext": offset, "textcoords": "offset points", **coordinates}
        axis.annotate(text, (x, row_index + 0.46), **place, **text_style)

    threshold, largest_step = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST_CONVERGENT)
    # A 2/L that is not known is NaN: all conditions on it are false.
    low, high = axis.get_xlim()
    row_transform = axis.get_yaxis_transform()
    if low <= threshold <= high:
        draw_limit("threshold", threshold, [row_index - 0.46, row_index], 4.0)
    elif threshold > high:
        write(f"2/L = {ticks.short_text(threshold)} →", 1, "right", xycoords=row_transform)
    elif threshold < low:
        write(f"← 2/L = {ticks.short_text(threshold)}", 0, "left", xycoords=row_transform)
    is_converged = (steps["label"] == scheme["label"]) & (steps["verdict"] == names.CONVERGED)
    # Not drawn if the merged verdict of that step size, the worst of all splits, is another one.
    if np.isclose(steps.loc[is_converged, STEP_SIZE].astype(float), largest_step, rtol=1e-5).any():
        draw_limit("largest", largest_step, [row_index, row_index + 0.46], 3.0)
        # Censored: no larger step size failed, so that this one is a lower bound.
        if scheme.get(names.CENSORED.column) == "true":
            write(">=", largest_step, "left")


def _add_legend(
    figure: Figure, axis: Any, drawn_colors: set[str], schemes: pd.DataFrame, shape: Shape
) -> None:
    """Add a legend of the drawn colours and marks: colours alone, then verdicts, then others.

    Args:
        figure: the figure.
        axis: the panel, with all marks.
        drawn_colors: from `_draw_cells`.
        schemes: the scheme rows, which decide how the best step size and 2/L are called.
        shape: the format of the figure.
    """
    drawn_marks = {line.get_label().removeprefix("_") for line in axis.lines}
    swatch: Any = {"marker": "s", "ls": "", "ms": 1.3 * shape.font, "mec": "0.6"}
    swatches = {name: Line2D([], [], color=color, **swatch) for name, color in CELL_COLORS.items()}
    marks = {name: Line2D([], [], **_mark_style(name, shape)) for name in CELL_MARKS}
    marks |= {name: Line2D([], [], **look) for name, look in LIMIT_STYLES.items()}
    entries: dict[str, Any] = {  # the handle by the text
        label: swatches[label]
        for label in CELL_COLORS
        if label in drawn_colors and label not in VERDICT_LOOKS
    }
    for verdict in VERDICT_LOOKS:
        if verdict in drawn_marks | drawn_colors:
            # Some verdicts have a colour, too.
            handles = [swatches[verdict]] if verdict in swatches else []
            entries[verdict] = (*handles, marks[verdict]) if handles else marks[verdict]
    texts = {
        TOO_SMALL: TOO_SMALL,
        TOO_LARGE: TOO_LARGE,
        "best": material.best_step_label(schemes),
        "threshold": material.threshold_label(schemes),
        "largest": LARGEST_TEXT,
    }
    entries |= {text: marks[name] for name, text in texts.items() if name in drawn_marks}
    style.add_legend(figure, shape, list(entries.values()), list(entries))


def _mark_style(mark_name: str, shape: Shape) -> dict[str, Any]:
    """Return the line properties of a cell's mark."""
    marker, color = CELL_MARKS[mark_name]
    size = (0.9 if mark_name == "best" else 0.5) * shape.font
    return {"marker": marker, "color": color, "ms": size, "ls": "", "mec": "black", "mew": 0.6}


@material.figure("phase_diagram")
def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment, None without step sizes.

    A least cost that was not solved for becomes the lowest cost that any run of the experiment saw.
    """
    steps, schemes = material.grid_rows(sweep, experiment)
    if steps.empty or schemes.empty:
        return None
    source = unmerged(sweep)
    jobs = with_finer_minima([source], source.of_role(names.SCHEME, experiment))
    title = material.title_with_budget(experiment, schemes)
    return draw(steps, with_lowest_seen(schemes, jobs), title, shape=options.shape)
