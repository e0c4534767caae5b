"""Step-size windows: the directions that each step size trains, and the excess that it leaves.

The upper panel has a bar for each eigendirection of the Hessian at the start, the stiffest on top.
A bar spans the step sizes that shrink the distance along the direction to 1/e within the
iterations. A dark bar holds much of the start's excess. If the curvature changes during the
descent, outlines show the windows at the best step's last weights. The lower panel shows the excess
left on the same axis.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare.directions import WINDOW_CURVATURE, WINDOW_SHARE, WINDOW_TIMES
from normbench.results.compare.merging import distinct_repeats
from normbench.results.compare.problems import has_networks
from normbench.results.compare.reached import excess_left
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.material import ArraysByLabel, SchemeArrays, with_arrays
from normbench.results.figures.base.style import SCREEN, VERDICT_LOOKS, Shape
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep, which_step

Array = NDArray[np.float64]
STEP_SIZE, THRESHOLD = names.STEP_SIZE.column, names.THRESHOLD.column
BEST_CURVATURES = names.CURVATURES_BEST.key  # at the best step's last weights
MAX_BARS = 40  # more bars cannot be distinguished
MAX_EXCESS = 30.0  # upper limit of the excess left in a panel
OF_LINEAR = "windows are of linear models, and these scores are not linear in the weights"
MERGED_NOTE = "the worst verdict, the medians of the costs and of 2/L; the bars are of the first"
LOWEST_COST_NOTE = "the least cost is not known; the excess cost is over the lowest cost seen"
LIGHTEST_GREY = 0.93  # grey of a direction without excess
MIN_EXCESS = 1e-6  # lower limit of the excess left in a panel


Row = Mapping[Any, Any]


class Bars(NamedTuple):
    """The windows of a scheme's directions, or of groups of neighbours, the stiffest first.

    The window of a direction is the range of step sizes that train it: they shrink the distance to
    the minimum along the direction to 1/e or less within the iterations.

    Attributes:
        low: `(n,)`, the smallest step size that trains each direction within the iterations.
        high: `(n,)`, the largest step size that does.
        share: `(n,)`, the share of the start's excess along each direction.
        direction_counts: `(n,)`, the number of directions that each bar represents.
    """

    low: Array
    high: Array
    share: Array
    direction_counts: NDArray[np.int64]

    def count_trained(self, step: float) -> tuple[int, float]:
        """Return the number of directions that a step size trains, and their excess share.

        A group counts with all its directions if the step size lies within the group's window.
        """
        inside = (self.low <= step) & (step <= self.high)
        return int(self.direction_counts[inside].sum()), float(self.share[inside].sum())


def training_windows(scheme_arrays: SchemeArrays, iterations: int) -> Bars:
    """Return the windows of a scheme's directions.

    K iterations with step size a multiply the distance along a direction of curvature h by
    `|1 - a h|^K`. This is 1/e or less for a from `(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`.

    Args:
        scheme_arrays: `window_curvature` (n,), decreasing; `window_share` (n,), the start's excess
            along each direction, on any scale; `window_times` (n,), the number of directions that
            each entry represents.
        iterations: K.
    """
    curvature, share = (
        scheme_arrays[WINDOW_CURVATURE],
        np.asarray(scheme_arrays[WINDOW_SHARE], dtype=float),
    )
    decay = np.exp(-1 / max(iterations, 1))  # 0 iterations have the windows of 1
    total_share = share.sum()
    return Bars(
        (1 - decay) / curvature,
        (1 + decay) / curvature,
        share / total_share if total_share > 0 else share,  # all 0 if the start has no excess
        np.asarray(scheme_arrays[WINDOW_TIMES]),
    )


def best_step_bars(scheme_arrays: SchemeArrays, iterations: int) -> Bars | None:
    """Return the windows at the best step's last weights; None if these were not recorded.

    The shares of the excess along these directions are not known; all directions count alike.

    Args:
        scheme_arrays: the recorded arrays, optionally with the curvatures `BEST_CURVATURES` (n,).
        iterations: the number of iterations.
    """
    curvature = scheme_arrays.get(BEST_CURVATURES)
    if curvature is None or not len(curvature):
        return None
    ones = np.ones(len(curvature), int)  # equal shares, and one direction for each entry
    return training_windows(
        {WINDOW_CURVATURE: curvature, WINDOW_SHARE: ones, WINDOW_TIMES: ones},
        iterations,
    )


def group_bars(all_bars: Bars) -> Bars:
    """Return at most `MAX_BARS` bars, each a direction or a group of neighbouring directions.

    A group's window spans those of its directions; its share and its count are their sums.
    Neighbours with small shares are grouped first.

    Args:
        all_bars: one bar for each direction, the stiffest first; returned as it is if it has at
            most `MAX_BARS`.
    """
    count = len(all_bars.low)
    if count <= MAX_BARS:
        return all_bars
    # A direction weighs its share plus 1 / count; all groups have about the same total weight.
    cumulative_weight = np.cumsum(all_bars.share + 1 / count)
    # Groups are numbered by cumulative weight. The minimum puts the last direction, whose number
    # would be `MAX_BARS`, into the last group.
    group_indices = np.minimum(
        (
            MAX_BARS
            * (cumulative_weight - cumulative_weight[0])
            / (cumulative_weight[-1] - cumulative_weight[0])
        ).astype(int),
        MAX_BARS - 1,
    )
    group_starts = np.flatnonzero(np.r_[True, np.diff(group_indices) > 0])
    return Bars(
        np.minimum.reduceat(all_bars.low, group_starts),
        np.maximum.reduceat(all_bars.high, group_starts),
        np.add.reduceat(all_bars.share, group_starts),
        np.add.reduceat(all_bars.direction_counts, group_starts),
    )


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if no scheme has recorded `window_curvature`."""
    rows = material.schemes(sweep, experiment)
    arrays = material.drawable_arrays(
        sweep, rows, names.DESCENT_ARRAYS, lambda scheme_arrays: WINDOW_CURVATURE in scheme_arrays
    )
    if not arrays:
        return None
    step_rows = material.steps(sweep, experiment)
    title = f"{material.title_with_budget(experiment, rows)}, which directions a step size trains"
    return draw(arrays, rows, step_rows, title, shape=options.shape)


def why_not(sweep: Sweep, experiment: str) -> list[str]:
    """Return the reason why an experiment of networks has no windows, as a list of one sentence.

    The list is empty for experiments of linear models.
    """
    return [OF_LINEAR] if has_networks(material.schemes(sweep, experiment)) else []


def draw(
    arrays: ArraysByLabel,
    schemes: pd.DataFrame,
    steps: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: two panels for each scheme on one axis of step sizes.

    Args:
        arrays: by label, the arrays that `training_windows` takes, optionally with
            `BEST_CURVATURES`.
        schemes: one row for each scheme in order (`label`, `normalizer`, `params.iterations`, the
            columns that `excess_left` reads, optionally `tags.step_size` and
            `metrics.theory/step_threshold`).
        steps: one row for each scheme and step size (`label`, `verdict`, `metrics.step_size`,
            `metrics.final/train_cost`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    rows = [scheme.row for scheme in drawn_schemes]
    budgets = [int(row[names.setting("iterations")]) for row in rows]
    start_bars = [
        training_windows(scheme.arrays, budget) for scheme, budget in zip(drawn_schemes, budgets)
    ]
    end_bars = [
        best_step_bars(scheme.arrays, budget) for scheme, budget in zip(drawn_schemes, budgets)
    ]
    with style.figure_style(shape):
        figure, axes = _panels(len(rows), shape, title)
        low, high = _step_limits(start_bars, steps, rows)
        for (upper, lower), (label, row, _, look), scheme_start, scheme_end in zip(
            axes, drawn_schemes, start_bars, end_bars
        ):
            _draw_bars(upper, scheme_start, scheme_end, style.text_color(look.color))
            _draw_excess(lower, steps[steps["label"] == label].sort_values(STEP_SIZE), row)
            _draw_step_lines((upper, lower), row, look)
            _name_panels(upper, row, scheme_start, scheme_end, look)
            upper.set(xscale="log", xlim=(low, high))
            ticks.set_log_ticks(upper.xaxis, max_powers=5)
        _label_panels(axes)
        # `any`: whether some scheme has `Bars` at the end instead of None.
        _add_legend(figure, shape, steps, rows, any(end_bars))
        # The least cost of these schemes was not solved for: see the note.
        unsolved_labels = [
            row["label"] for row in rows if row.get(names.MINIMUM_REACHED.column) == "false"
        ]
        notes = [f"{', '.join(unsolved_labels)}: {LOWEST_COST_NOTE}"] if unsolved_labels else []
        notes += [f"over {text}: {MERGED_NOTE}" for text in distinct_repeats(schemes)[-1:]]
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def _panels(count: int, shape: Shape, title: str) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure, and for each scheme its upper and its lower panel."""
    # A title needs a third of the width.
    row_count, column_count = style.rows_and_columns(count, min(shape.columns, 3))
    # The height of a scheme's two panels together, in inches: 1.25 times the width of a column, or
    # about 1.08 times with three columns.
    pair_height = min(1.25, 2.6 / column_count * 1.25) * shape.width / column_count
    figure_height = row_count * max(pair_height, 3.2) + 6 * shape.font / 72
    figure = style.blank_figure(shape, figure_height, style.wrap_and_escape_title(title, shape))
    style.set_padding(figure, 0.06, 0.05)
    grid = figure.subplots(
        2 * row_count, column_count, squeeze=False, sharex=True, height_ratios=[3, 2] * row_count
    )
    return figure, style.pair_panels(grid, count, column_count)


def _step_limits(
    start_bars: list[Bars], steps: pd.DataFrame, rows: list[Row]
) -> tuple[float, float]:
    """Return the limits of the axis of step sizes.

    They contain the tried step sizes, 2/L, and the windows of directions that hold more than a
    hundredth of the excess, but reach at most three decades beyond the tried step sizes.

    Args:
        start_bars: for each scheme, the windows at the start.
        steps: the rows of all step sizes.
        rows: the rows of the schemes.
    """
    low, high = steps[STEP_SIZE].min(), steps[STEP_SIZE].max()
    candidates = [low, high, *(number_in(row, THRESHOLD) for row in rows)]
    for scheme_bars in start_bars:
        is_relevant = scheme_bars.share > 0.01
        candidates += [*scheme_bars.low[is_relevant], *scheme_bars.high[is_relevant]]
    # NaN, a 2/L that is not known, is left out too.
    positive_limits = [candidate for candidate in candidates if candidate > 0]
    return max(min(positive_limits), low / 1e3) / 2, min(max(positive_limits), high * 1e3) * 2


def _draw_bars(axis: Any, start_bars: Bars, end_bars: Bars | None, color: str) -> None:
    """Draw the windows, the stiffest direction on top; dark ones hold much of the excess.

    Args:
        axis: the upper panel of a scheme.
        start_bars: the windows at the start.
        end_bars: the windows at the best step's last weights, drawn as outlines, or None.
        color: the colour of the outlines.
    """
    drawn_bars = group_bars(start_bars)
    # The share is kept above 0, because greys are relative to it.
    count, largest_share = len(drawn_bars.low), max(float(drawn_bars.share.max()), 1e-300)
    # matplotlib reads the text of a number from 0 to 1 as a grey.
    greys = [str(LIGHTEST_GREY * (1 - share / largest_share)) for share in drawn_bars.share]
    patch_style: Any = {"facecolors": greys, "edgecolors": "0.6", "linewidths": 0.4}
    axis.add_collection(PatchCollection(_rectangles(drawn_bars, 1.0), zorder=2, **patch_style))
    if end_bars is not None:
        # The outlines fill the same height as the bars, whatever their number.
        outlines = _rectangles(group_bars(end_bars), count / len(group_bars(end_bars).low))
        patch_style = {"facecolors": "none", "edgecolors": color, "linewidths": 0.6}
        axis.add_collection(PatchCollection(outlines, zorder=3, **patch_style))
    axis.set(ylim=(count - 0.5, -0.5), yticks=[])
    axis.grid(False)


def _rectangles(bar_limits: Bars, height: float) -> list[Rectangle]:
    """Return a rectangle for each bar, from top to bottom, as wide as the bar's window.

    Args:
        bar_limits: the bars, of which only the windows are used.
        height: the height of each rectangle, in units of the vertical axis, where 1 is one bar.
    """
    return [
        Rectangle((low, bar_index * height - 0.5), high - low, height)
        for bar_index, (low, high) in enumerate(zip(bar_limits.low, bar_limits.high))
    ]


def _draw_excess(axis: Any, scheme_steps: pd.DataFrame, row: Row) -> None:
    """Draw the share of the start's excess that each step size left, with its verdict.

    Shares are drawn from `MIN_EXCESS` to `MAX_EXCESS`, those that are not finite at `MAX_EXCESS`.
    The mark of a run whose end rounding decides stands on the axis, because its value means
    nothing.

    Args:
        axis: the lower panel of the scheme.
        scheme_steps: the step rows of the scheme, by increasing step size.
        row: the row of the scheme.
    """
    excess_shares = np.array([excess_left(step, row) for step in as_rows(scheme_steps)])
    step_sizes = scheme_steps[STEP_SIZE].to_numpy(dtype=float)
    drawn_shares = np.clip(
        np.where(np.isfinite(excess_shares), excess_shares, MAX_EXCESS), MIN_EXCESS, MAX_EXCESS
    )
    # On the axis, the lower limit of the panel.
    drawn_shares[(scheme_steps["verdict"] == names.BY_ROUNDING).to_numpy()] = MIN_EXCESS / 2
    axis.set_yscale("log")
    axis.set_ylim(MIN_EXCESS / 2, 2 * MAX_EXCESS)
    axis.axhline(1.0, color="0.7", lw=0.8, zorder=1)
    # Shares of runs that diverged, or whose end rounding decides, are infinite: no line joins them.
    is_finite = np.isfinite(excess_shares)
    axis.plot(step_sizes[is_finite], drawn_shares[is_finite], color="0.5", lw=0.8, zorder=2)
    for verdict in VERDICT_LOOKS:
        has_verdict = (scheme_steps["verdict"] == verdict).to_numpy()
        if has_verdict.any():  # matplotlib fails to clip an empty line
            style.draw_verdict(axis, verdict, step_sizes[has_verdict], drawn_shares[has_verdict])
    tick_values = [MIN_EXCESS, 1e-4, 1e-2, 1.0, MAX_EXCESS]
    axis.set_yticks(tick_values, ["under 10⁻⁶", "10⁻⁴", "10⁻²", "10⁰", f"over {MAX_EXCESS:g}"])
    axis.minorticks_off()


def _draw_step_lines(panels: tuple[Any, Any], row: Row, look: style.Look) -> None:
    """Draw 2/L and the best step size through both panels, each only where it is known.

    Args:
        panels: the upper and the lower panel of a scheme.
        row: the row of the scheme.
        look: the look of the scheme, whose colour the line of the best step size has.
    """
    best_step, threshold = number_in(row, names.STEP_TAG.column), number_in(row, THRESHOLD)
    for axis in panels:
        if not np.isnan(threshold):
            axis.axvline(threshold, color="black", ls=":", lw=1.4, zorder=3)
        if not np.isnan(best_step):
            axis.axvline(best_step, color=style.text_color(look.color), lw=1.8, zorder=3)


def _name_panels(
    axis: Any, row: Row, start_bars: Bars, end_bars: Bars | None, look: style.Look
) -> None:
    """Write above a scheme's panels its name and how many directions its best step size trains.

    Args:
        axis: the upper panel of the scheme.
        row: the row of the scheme.
        start_bars: the windows at the start.
        end_bars: the windows at the best step's last weights, or None.
        look: the look of the scheme.
    """
    style.name_panel(axis, row["label"], look)
    best_step = number_in(row, names.STEP_TAG.column)
    if np.isnan(best_step):  # as when all runs diverged: the name stands alone
        return
    count, share = start_bars.count_trained(best_step)
    # Exact: the curvature is the same everywhere, so that the windows hold for the whole descent.
    is_exact = str(row.get(names.BASIS.column, "")).startswith(names.EXACT)
    step_label, direction_count = (
        f"step {row[names.STEP_TAG.column]}",
        start_bars.direction_counts.sum(),
    )
    # Above all windows of the start, a step size can only train directions that become flatter.
    # With exact curvature no direction does: the text below then says that it trains 0.
    if not is_exact and best_step > start_bars.high.max():
        directions = "direction" if direction_count == 1 else f"{direction_count} directions"
        quantifier = "the only" if direction_count == 1 else "all"
        title_lines = [f"{step_label} is too large", f"for {quantifier} {directions} of the start"]
    else:
        reference_text = "" if is_exact else "at the start, "
        noun = "direction" if direction_count == 1 else "directions"
        title_lines = [f"{step_label} trains {count} of {direction_count} {noun}"]
        title_lines += [f"{reference_text}holding {share:.0%} of the excess cost"]
    if end_bars is not None:
        title_lines.append(
            f"and trains {end_bars.count_trained(best_step)[0]} of {len(end_bars.low)} at the end"
        )
    axis.set_title("\n".join([axis.get_title(), *title_lines]), fontsize="small")


def _label_panels(panel_pairs: list[tuple[Any, Any]]) -> None:
    """Label the axes: the vertical ones in the first column only, step sizes in each lower panel.

    Args:
        panel_pairs: for each scheme, its upper and its lower panel.
    """
    for upper, lower in panel_pairs:
        grid_position = lower.get_subplotspec()
        upper.tick_params(labelbottom=False)
        lower.tick_params(labelbottom=True)
        lower.set_xlabel("step size")
        if grid_position.is_first_col():
            upper.set_ylabel("most curved on top")
            lower.set_ylabel("excess cost left")
        else:
            lower.tick_params(labelleft=False)


def _add_legend(
    figure: Figure, shape: Shape, steps: pd.DataFrame, rows: list[Row], has_outlines: bool
) -> None:
    """Add a legend of the lines, bars and verdicts.

    Args:
        figure: the figure.
        shape: the format of the figure.
        steps: the step rows, of whose verdicts the legend explains the marks.
        rows: the rows of the drawn schemes.
        has_outlines: whether any panel has windows at the best step's last weights.
    """
    line_styles: dict[str, Any] = {}
    if any(pd.notna(row[names.STEP_TAG.column]) for row in rows):
        line_styles[f"{which_step(pd.DataFrame(rows))} step"] = {"color": "0.3", "lw": 1.8}
    if any(pd.notna(row.get(THRESHOLD)) for row in rows):
        threshold_label = material.threshold_label(pd.DataFrame(rows), "2 / L, promised")
        line_styles[threshold_label] = {"color": "black", "ls": ":", "lw": 1.4}
    # Always in the legend: every scheme has bars.
    square_style = {"marker": "s", "ls": ""}
    line_styles["dark: much of the excess cost lies there"] = {**square_style, "color": "0.2"}
    if has_outlines:
        line_styles["outlined: at the end"] = {**square_style, "mfc": "none", "mec": "0.3"}
    handles = style.verdict_handles(set(steps["verdict"]))
    handles += [
        Line2D([], [], label=label, **line_style) for label, line_style in line_styles.items()
    ]
    style.add_legend(figure, shape, handles)
