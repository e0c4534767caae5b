"""The final cost over the step size, one panel for each scheme, with verdicts and predictions.

If rounding decides the end of a run, its mark is one possible end, and a band shows others.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from normbench import names
from normbench.results.compare.merging import distinct_repeats
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.material import ArraysByLabel, Options, SchemeArrays
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep

FINAL_COST = names.FINAL_COST.column
STEP_SIZE = names.STEP_SIZE.column
THRESHOLD = names.THRESHOLD.column
LARGEST_CONVERGENT = names.LARGEST_CONVERGENT.column
LARGEST_TEXT = "largest step that converges"
NO_IMPROVEMENT_TEXT = "none helps: each ends above the start"
MAX_LARGE_MARKS = 40  # of more step sizes, the marks are smaller
HEADROOM = 0.22  # room for marks above the scale, as a fraction of the scale
# The sign ↑ as a path: for the marker "$\\uparrow$" matplotlib would build its formula parser.
HALF_ARROW = [(0.03, 0.5), (0.292, 0.237), (0.212, 0.157), (0.057, 0.313), (0.057, -0.5)]
UP_ARROW = Path(
    [*HALF_ARROW, *((-x, y) for x, y in reversed(HALF_ARROW)), HALF_ARROW[0]], closed=True
)
RIGHT_ARROW = UP_ARROW.transformed(Affine2D().rotate_deg(-90))
BLACK_MARK: Any = {"color": "black", "ls": ""}
# The marks beside those of verdicts, by the label of their lines without `_`.
MARK_STYLES: dict[str, dict[str, Any]] = {
    "best": {"marker": "*", "ls": "", "color": "white", "mec": "black", "mew": 0.7, "ms": 11},
    "ends": {"color": style.VERDICT_LOOKS[names.BY_ROUNDING][0], "lw": 5, "alpha": 0.45}
    | {"solid_capstyle": "butt"},
    "finer": {"marker": ".", "ls": "", "ms": 2, "zorder": 3},
    "above": BLACK_MARK | {"marker": UP_ARROW, "ms": 8, "clip_on": False},
    "threshold": {"color": "black", "ls": ":", "lw": 1.2},
    "largest": BLACK_MARK | {"marker": "^"},
    "tried": BLACK_MARK | {"marker": RIGHT_ARROW},
}


def draw(
    steps: pd.DataFrame,
    schemes: pd.DataFrame,
    title: str,
    arrays: ArraysByLabel = MappingProxyType({}),
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: each panel has one scheme in colour, and the others behind it in grey.

    Args:
        steps: one row for each scheme and step size (`label`, `verdict`, `metrics.step_size`,
            `metrics.final/train_cost`).
        schemes: one row for each panel (`label`, `normalizer`, optionally `tags.step_size`,
            `start_cost`, `metrics.theory/step_threshold` and
            `metrics.final/largest_convergent_step`).
        title: the title of the figure.
        arrays: by label, optionally `step_sizes` with `shadows`, see `final_cost_ranges`, and
            `refined_step_sizes` with `refined_cost`, see `refined_final_costs`.
        shape: the format of the figure.
    """
    no_rows = pd.DataFrame(columns=[STEP_SIZE, FINAL_COST, "verdict"])
    rows_by_label = dict.fromkeys(schemes["label"], no_rows) | {
        label: rows.sort_values(STEP_SIZE) for label, rows in steps.groupby("label")
    }
    scheme_arrays = {label: arrays.get(label, {}) for label in rows_by_label}
    ranges = {
        label: final_cost_ranges(rows_by_label[label], scheme_arrays[label])
        for label in rows_by_label
    }
    finer_costs = {label: refined_final_costs(scheme_arrays[label]) for label in rows_by_label}
    # The limits of the panels contain these costs beside those of the step rows.
    other_costs = [cost for pairs in finer_costs.values() for _, cost in pairs]
    other_costs += [end for ends in ranges.values() for pair in ends.values() for end in pair]
    with style.figure_style(shape):
        figure, axes = style.panels(len(schemes), shape, title, 0.72, sharex=True, sharey=True)
        # The panels share their axes: what is set in the first holds for all.
        axes[0].set_xscale("log")
        axes[0].set_yscale("log" if steps[FINAL_COST].min() > 0 else "linear")
        ceiling = _set_limits(axes[0], steps, other_costs, schemes)
        top = axes[0].get_ylim()[1]
        looks = style.looks(list(schemes["normalizer"]))
        for axis, scheme, look in zip(axes, as_rows(schemes), looks):
            label = scheme["label"]
            others = [rows for other, rows in rows_by_label.items() if other != label]
            _draw_others(axis, others)
            _draw_scheme(axis, rows_by_label[label], scheme, look, ceiling, finer_costs[label])
            _draw_limits(axis, scheme)
            style.name_panel(axis, label, look)
            for step_size, ends in ranges.get(label, {}).items():
                heights = np.minimum(ends, top)
                _mark(axis, "ends", [step_size, step_size], heights, zorder=3)
            shown_finer = [pair for pair in finer_costs[label] if pair[1] <= top]
            if shown_finer:
                _mark(axis, "finer", *zip(*shown_finer), color=style.text_color(look.color))
        style.label_outer_axes(axes, "step size", "final mean cost")
        _add_legend(figure, axes, schemes, shape)
    return figure


def _mark(axis: Any, name: str, sizes: Any, heights: Any, **more_style: Any) -> None:
    """Draw marks of one kind, a key of `MARK_STYLES`; the legend finds them by their label."""
    axis.plot(sizes, heights, label=f"_{name}", **MARK_STYLES[name] | more_style)


def final_cost_ranges(
    rows: pd.DataFrame, scheme_arrays: SchemeArrays
) -> dict[float, tuple[float, float]]:
    """Return the range of the final costs of each run whose end rounding decides.

    The range contains the final costs of the run and of its shadows, repetitions from starts
    perturbed by rounding.

    Args:
        rows: the step rows of one scheme.
        scheme_arrays: the recorded arrays, optionally with `step_sizes` (S,) and the final costs
            `shadows` (S, n), NaN where a step size has fewer shadows.

    Returns:
        The lowest and the highest final cost, by step size; without step sizes that have no
        shadow.
    """
    if "shadows" not in scheme_arrays:
        return {}
    end_ranges = {}
    undecided_rows = rows[rows["verdict"] == names.BY_ROUNDING]
    for step_size, final_cost in zip(undecided_rows[STEP_SIZE], undecided_rows[FINAL_COST]):
        # Step sizes of rows and arrays may differ in the last digits.
        is_same = np.isclose(scheme_arrays["step_sizes"], step_size, rtol=1e-5)
        shadows = np.asarray(scheme_arrays["shadows"])[is_same]
        shadows = shadows[~np.isnan(shadows)]
        if len(shadows):
            ends = [final_cost, *shadows]
            end_ranges[float(step_size)] = float(min(ends)), float(max(ends))
    return end_ranges


def refined_final_costs(scheme_arrays: SchemeArrays) -> list[tuple[float, float]]:
    """Return pairs of a refined step size and its final cost, the median over the starts.

    Step sizes whose final cost is not finite are left out.

    Args:
        scheme_arrays: the recorded arrays, optionally with `refined_step_sizes` (s,), step sizes
            between those of the grid, and the cost histories `refined_cost` (s, starts, K + 1).
    """
    if "refined_cost" not in scheme_arrays:
        return []
    end_costs = np.median(np.asarray(scheme_arrays["refined_cost"])[:, :, -1], axis=1)
    return [
        pair for pair in zip(scheme_arrays["refined_step_sizes"], end_costs) if np.isfinite(pair[1])
    ]


def _set_limits(
    axis: Any, steps: pd.DataFrame, other_costs: Sequence[float], schemes: pd.DataFrame
) -> float:
    """Set the limits and ticks of the axes; return the ceiling, at which higher costs are drawn.

    The ceiling is the highest cost, or ten times the cost at the start if that is lower. A cost at
    the start that is not known is estimated by the median, over schemes, of the final cost of the
    smallest step size. The panel has room for marks above the ceiling.

    Args:
        axis: a panel, with its scales set; all panels share its limits.
        steps: as for `draw`.
        other_costs: more costs that should be visible; those not finite are ignored.
        schemes: as for `draw`.
    """
    finite_steps = steps[(steps["verdict"] != names.DIVERGED) & steps[FINAL_COST].notna()]
    costs, sizes = finite_steps[FINAL_COST], finite_steps[STEP_SIZE]
    start_costs = schemes.get(material.START_COST_COLUMN, pd.Series(dtype=float))
    start_cost = float(pd.to_numeric(start_costs, errors="coerce").median())
    if np.isnan(start_cost):  # a small step size leaves about the cost at the start
        start_cost = float(costs[sizes == sizes.min()].median())
    all_costs = [*costs, *filter(np.isfinite, other_costs)] or [0.1, 1.0]
    low, high = min(all_costs), max(all_costs)
    ceiling = float(np.fmin(high, 10 * start_cost))  # NaN means that no step size stayed finite
    if axis.get_yscale() == "log":
        # In decades, and not 0 if all costs are equal.
        extent = max(np.log10(ceiling / low), 0.1)
        axis.set_ylim(low / 10 ** (0.08 * extent), ceiling * 10 ** (HEADROOM * extent))
        ticks.set_log_ticks(axis.yaxis, max_powers=5)
    else:
        extent = max(ceiling - low, 1e-12)
        axis.set_ylim(low - 0.08 * extent, ceiling + HEADROOM * extent)
        ticks.set_even_ticks(axis.yaxis)
    axis.set_xlim(steps[STEP_SIZE].min() / 2, steps[STEP_SIZE].max() * 2)
    ticks.set_log_ticks(axis.xaxis, max_powers=4)  # the panels are narrow
    return ceiling


def _draw_others(axis: Any, others: Sequence[pd.DataFrame]) -> None:
    """Draw the curves of the other schemes in grey."""
    curves = [
        rows.loc[~rows["verdict"].isin(names.UNRANKED), [STEP_SIZE, FINAL_COST]].dropna()
        for rows in others
    ]
    lines = [curve.to_numpy(float) for curve in curves]
    collection = LineCollection(lines, colors="0.85", linewidths=0.8, zorder=1)
    axis.add_collection(collection, autolim=False)


def _draw_scheme(
    axis: Any,
    rows: pd.DataFrame,
    scheme: Mapping[Any, Any],
    look: Look,
    ceiling: float,
    finer_costs: Sequence[tuple[float, float]],
) -> None:
    """Draw the curve of a scheme, and the marks of its step sizes.

    A mark for each step size shows the verdict. Marks of costs above the ceiling stand at the
    ceiling with an arrow, those of runs that diverged above it. A star marks the best step size.

    Args:
        axis: the panel of the scheme.
        rows: the rows of the step sizes.
        scheme: the row of the scheme.
        look: the look of the scheme.
        ceiling: the height of marks of higher costs, from `_set_limits`.
        finer_costs: the step sizes between those of the rows, and the final costs, through which
            the curve goes as well.
    """
    has_diverged = rows["verdict"] == names.DIVERGED
    top = axis.get_ylim()[1]
    # A run that diverged has no final cost: its mark is midway between the ceiling and the top.
    above_scale = (ceiling * top) ** 0.5 if axis.get_yscale() == "log" else (ceiling + top) / 2
    shown_costs = rows[FINAL_COST].clip(upper=ceiling).where(~has_diverged, above_scale)
    rows = rows.assign(shown=shown_costs)
    ranked_rows = rows[~rows["verdict"].isin(names.UNRANKED)]
    curve = sorted([*zip(ranked_rows[STEP_SIZE], ranked_rows[FINAL_COST]), *finer_costs])
    curve_style: Any = {"color": look.color, "ls": look.line, "zorder": 2}
    axis.plot(*np.reshape(curve, (-1, 2)).T, label=scheme["label"], **curve_style)
    # Marks of many step sizes are small, so that they do not hide each other and the curve.
    mark_scale = min(1.0, MAX_LARGE_MARKS / max(1, len(rows)))
    for verdict, verdict_rows in rows.groupby("verdict"):
        positions = verdict_rows[STEP_SIZE], verdict_rows["shown"]
        style.draw_verdict(axis, str(verdict), *positions, scale=mark_scale)
    # Finite costs whose marks stand at the ceiling, below the cost.
    clipped_steps = rows.loc[~has_diverged & (rows[FINAL_COST] > ceiling), STEP_SIZE]
    if len(clipped_steps):
        heights = [0.95] * len(clipped_steps)
        _mark(axis, "above", clipped_steps, heights, transform=axis.get_xaxis_transform())
    if len(rows) and has_diverged.all():
        style.write_centered(axis, "diverged at every step size tried")
    # The row of the best step size, of which the tag has six digits; empty if none is known.
    best_step = number_in(scheme, names.STEP_TAG.column)
    best_rows = ranked_rows[np.isclose(ranked_rows[STEP_SIZE].astype(float), best_step, rtol=1e-5)]
    for best_row in as_rows(best_rows[:1]):
        if material.ends_at_or_below_start(scheme, float(best_row[FINAL_COST])):
            position = [best_row[STEP_SIZE]], [best_row["shown"]]
            _mark(axis, "best", *position, clip_on=False, zorder=6)
        else:
            style.write_at_foot(axis, NO_IMPROVEMENT_TEXT)


def _draw_limits(axis: Any, scheme: Mapping[Any, Any]) -> None:
    """Draw 2/L unless it is beyond the axis, and the largest step that converges."""
    threshold, largest_step = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST_CONVERGENT)
    lower_limit, upper_limit = axis.get_xlim()
    # False for NaN, a 2/L that is not known.
    if lower_limit <= threshold <= upper_limit:
        axis.axvline(threshold, label="_threshold", zorder=3, **MARK_STYLES["threshold"])
    if not np.isnan(largest_step):
        # Censored: no larger step size that was tried failed, so that larger ones may converge.
        name = "tried" if scheme.get(names.CENSORED.column) == "true" else "largest"
        place: Any = {"transform": axis.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        _mark(axis, name, [largest_step], [0.0], ms=9, **place)


def _add_legend(figure: Figure, axes: Sequence[Any], schemes: pd.DataFrame, shape: Shape) -> None:
    """Add a legend of the marks that are drawn in any panel."""
    drawn_names = {line.get_label().removeprefix("_") for axis in axes for line in axis.lines}
    texts = {
        "best": material.best_step_label(schemes),
        "ends": "typical ends",
        "finer": "finer step sizes",
        "above": "off the scale",
        "threshold": material.threshold_label(schemes),
        "largest": LARGEST_TEXT,
        "tried": "converges, and no larger one failed",
    }
    handles = [
        Line2D([], [], label=text, **{"color": "0.3"} | MARK_STYLES[name])
        for name, text in texts.items()
        if name in drawn_names
    ]
    style.add_legend(figure, shape, [*style.verdict_handles(drawn_names), *handles])


@material.figure("step_sizes")
def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    """Return the figure of an experiment; None where no step size stayed finite.

    With several splits the costs are medians, and the ends of single runs are not drawn.
    """
    steps, schemes = material.grid_rows(sweep, experiment)
    if (
        schemes.empty
        or not (steps[FINAL_COST].notna() & (steps["verdict"] != names.DIVERGED)).any()
    ):
        return None
    arrays: ArraysByLabel = {}
    if not distinct_repeats(schemes):
        arrays = material.drawable_arrays(sweep, schemes, names.DESCENT_ARRAYS)
    title = material.title_with_budget(experiment, schemes)
    return draw(steps, schemes, title, arrays, shape=options.shape)
