"""The final cost over the step size, one panel for each scheme, with verdicts and predictions.

If rounding decides the end of a run, its mark is one possible end, and a band shows others.
"""

from collections.abc import Mapping, Sequence
from functools import partial
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
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep

FINAL_COST = names.FINAL_COST.column
STEP_SIZE = names.STEP_SIZE.column
THRESHOLD = names.THRESHOLD.column
LARGEST_CONVERGENT = names.LARGEST_CONVERGENT.column


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
    with style.figure_style(shape):
        figure, axes = style.panels(len(schemes), shape, title, 0.72, sharex=True, sharey=True)
        steps_by_label = {
            label: rows.sort_values(STEP_SIZE) for label, rows in steps.groupby("label")
        }
        axes[0].set_xscale("log")
        # The panels share their axes: what is set in the first holds for all.
        axes[0].set_yscale("log" if steps[FINAL_COST].min() > 0 else "linear")
        looks = style.looks(list(schemes["normalizer"]))
        ends_by_label = {
            label: final_cost_ranges(rows, arrays.get(label, {}))
            for label, rows in steps_by_label.items()
        }
        # The limits of the panels contain these costs beside those of the step rows.
        other_costs = [
            end
            for scheme_ends in ends_by_label.values()
            for pair in scheme_ends.values()
            for end in pair
        ]
        other_costs += [
            cost
            for scheme_arrays in arrays.values()
            for _, cost in refined_final_costs(scheme_arrays)
        ]
        ceiling = _set_limits(axes[0], steps, other_costs, _known_start_cost(schemes))
        drawn_names: set[str] = set()
        for axis, scheme, look in zip(axes, as_rows(schemes), looks):
            finer_costs = refined_final_costs(arrays.get(scheme["label"], {}))
            drawn_names |= _draw_panel(axis, steps_by_label, scheme, look, ceiling, finer_costs)
            drawn_names |= _draw_ends(axis, ends_by_label.get(scheme["label"], {}))
            drawn_names |= _draw_refined_final_costs(axis, arrays.get(scheme["label"], {}), look)
        style.label_outer_axes(axes, "step size", "final mean cost")
        _add_legend(figure, drawn_names, schemes, shape)
    return figure


LARGEST_TRIED = "largest of those tried"
NO_IMPROVEMENT_TEXT = "none helps: each ends above the start"
MAX_LARGE_MARKS = 40  # of more step sizes, the marks are smaller
HEADROOM = 0.22  # room for marks above the scale, as a fraction of the scale
STAR_STYLE: Any = {"marker": "*", "ls": "", "color": "white", "mec": "black", "mew": 0.7, "ms": 11}
BAND_STYLE: Any = {"color": style.VERDICT_LOOKS[names.BY_ROUNDING][0], "lw": 5, "alpha": 0.45}
BAND_STYLE |= {"solid_capstyle": "butt"}
DOT_STYLE: Any = {"marker": ".", "ls": "", "ms": 2, "zorder": 3}
# The sign ↑ as a path: for the marker "$\\uparrow$" matplotlib would build its formula parser.
HALF_ARROW = [(0.03, 0.5), (0.292, 0.237), (0.212, 0.157), (0.057, 0.313), (0.057, -0.5)]
UP_ARROW = Path(
    [*HALF_ARROW, *((-x, y) for x, y in reversed(HALF_ARROW)), HALF_ARROW[0]], closed=True
)
RIGHT_ARROW = UP_ARROW.transformed(Affine2D().rotate_deg(-90))
ARROW_STYLE: Any = {"marker": UP_ARROW, "ls": "", "color": "black", "ms": 8, "clip_on": False}


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
    step_sizes, shadows = (
        np.asarray(scheme_arrays["step_sizes"]),
        np.asarray(scheme_arrays["shadows"]),
    )
    end_ranges = {}
    for step_size in rows.loc[rows["verdict"] == names.BY_ROUNDING, STEP_SIZE]:
        # Step sizes of rows and arrays may differ in the last digits.
        end_costs = shadows[np.isclose(step_sizes, step_size, rtol=1e-5)]
        end_costs = np.append(
            end_costs[~np.isnan(end_costs)], rows.loc[rows[STEP_SIZE] == step_size, FINAL_COST]
        )
        if len(end_costs) > 1:
            end_ranges[float(step_size)] = float(end_costs.min()), float(end_costs.max())
    return end_ranges


def _draw_ends(axis: Any, ends: Mapping[float, tuple[float, float]]) -> set[str]:
    """Draw a band over each range of final costs, up to the top of the panel at most.

    Args:
        axis: the panel, with its limits set.
        ends: the lowest and the highest final cost, by step size.

    Returns:
        The name of the legend entry, if any band is drawn.
    """
    top = axis.get_ylim()[1]
    for step_size, (least, greatest) in ends.items():
        low, high = (min(end, top) for end in (least, greatest))
        axis.plot([step_size, step_size], [low, high], label="_ends", zorder=3, **BAND_STYLE)
    return {"ends"} if ends else set()


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


def _draw_refined_final_costs(axis: Any, scheme_arrays: SchemeArrays, look: style.Look) -> set[str]:
    """Draw the final costs of refined step sizes, which lie between those of the grid.

    Costs above the panel are left out.

    Args:
        axis: the panel, with its limits set.
        scheme_arrays: as for `refined_final_costs`.
        look: the look of the scheme.

    Returns:
        The name of the legend entry, if any cost is drawn.
    """
    top = axis.get_ylim()[1]
    ends = [pair for pair in refined_final_costs(scheme_arrays) if pair[1] <= top]
    axis.plot(
        *np.reshape(ends, (-1, 2)).T,
        color=style.text_color(look.color),
        label="_finer",
        **DOT_STYLE,
    )
    return {"finer"} if ends else set()


def _known_start_cost(schemes: pd.DataFrame) -> float:
    """Return the median of the schemes' recorded costs at the start; NaN where none is known."""
    start_costs = schemes.get(material.START_COST_COLUMN, pd.Series(dtype=float))
    return float(pd.to_numeric(start_costs, errors="coerce").median())


def _set_limits(
    axis: Any, steps: pd.DataFrame, other_costs: Sequence[float], start_cost: float
) -> float:
    """Set the limits and ticks of the axes; return the ceiling, at which higher costs are drawn.

    The ceiling is the highest cost, or ten times the cost at the start if that is lower. A cost at
    the start that is not known is estimated by the median, over schemes, of the final cost of the
    smallest step size. The panel has room for marks above the ceiling.

    Args:
        axis: a panel, with its scales set; all panels share its limits.
        steps: as for `draw`.
        other_costs: more costs that should be visible; those not finite are ignored.
        start_cost: the cost at the start, NaN where it is not known.
    """
    finite_steps = steps[(steps["verdict"] != names.DIVERGED) & steps[FINAL_COST].notna()]
    costs = finite_steps[FINAL_COST]
    if np.isnan(start_cost):  # a small step size leaves about the cost at the start
        start_cost = float(costs[finite_steps[STEP_SIZE] == finite_steps[STEP_SIZE].min()].median())
    costs = np.array([*costs, *filter(np.isfinite, other_costs)])
    low, high = (float(costs.min()), float(costs.max())) if len(costs) else (0.1, 1.0)
    # NaN, which differs from itself, means that no step size stayed finite.
    ceiling = min(high, 10 * start_cost) if start_cost == start_cost else high
    if axis.get_yscale() == "log":
        # In decades, and not 0 if all costs are equal.
        extent = max(np.log10(ceiling / low), 0.1) if ceiling > low else 0.1
        axis.set_ylim(low / 10 ** (0.08 * extent), ceiling * 10 ** (HEADROOM * extent))
    else:
        extent = max(ceiling - low, 1e-12)
        axis.set_ylim(low - 0.08 * extent, ceiling + HEADROOM * extent)
    step_sizes = steps[STEP_SIZE]
    axis.set_xlim(step_sizes.min() / 2, step_sizes.max() * 2)
    ticks.set_log_ticks(axis.xaxis, max_powers=4)  # the panels are narrow
    if axis.get_yscale() == "log":
        ticks.set_log_ticks(axis.yaxis, max_powers=5)
    else:
        ticks.set_even_ticks(axis.yaxis)
    return ceiling


def _draw_panel(
    axis: Any,
    steps_by_label: dict[str, pd.DataFrame],
    scheme: Any,
    look: style.Look,
    ceiling: float,
    finer_costs: Sequence[tuple[float, float]],
) -> set[str]:
    """Draw one scheme in colour over the others in grey; return the names of its legend entries.

    A mark for each step size shows the verdict. Marks of costs above the ceiling stand at the
    ceiling with an arrow, those of runs that diverged above it. A star marks the best step size.

    Args:
        axis: the panel of the scheme.
        steps_by_label: the rows of step sizes of all schemes, by label.
        scheme: the row of the scheme.
        look: the look of the scheme.
        ceiling: the height of marks of higher costs, from `_set_limits`.
        finer_costs: the step sizes between those of the rows, and the final costs, through which
            the curve goes as well.
    """
    other_curves = [
        scheme_rows.loc[~scheme_rows["verdict"].isin(names.UNRANKED), [STEP_SIZE, FINAL_COST]]
        .dropna()
        .to_numpy(float)
        for label, scheme_rows in steps_by_label.items()
        if label != scheme["label"]
    ]
    axis.add_collection(
        LineCollection(other_curves, colors="0.85", linewidths=0.8, zorder=1), autolim=False
    )
    scheme_rows = steps_by_label.get(
        scheme["label"], pd.DataFrame(columns=[STEP_SIZE, FINAL_COST, "verdict"])
    )
    has_diverged = scheme_rows["verdict"] == names.DIVERGED
    top = axis.get_ylim()[1]
    # The height of marks of runs that diverged: midway between the ceiling and the top.
    above_scale = (ceiling * top) ** 0.5 if axis.get_yscale() == "log" else (ceiling + top) / 2
    scheme_rows = scheme_rows.assign(
        # A run that diverged has no final cost: its mark is above all costs.
        shown=scheme_rows[FINAL_COST].clip(upper=ceiling).where(~has_diverged, above_scale)
    )
    finite_rows = scheme_rows[~has_diverged]
    ranked_rows = scheme_rows[~scheme_rows["verdict"].isin(names.UNRANKED)]
    curve = sorted([*zip(ranked_rows[STEP_SIZE], ranked_rows[FINAL_COST]), *finer_costs])
    axis.plot(
        *np.reshape(curve, (-1, 2)).T,
        color=look.color,
        ls=look.line,
        label=scheme["label"],
        zorder=2,
    )
    # Marks of many step sizes are small, so that they do not hide each other and the curve.
    mark_scale = min(1.0, MAX_LARGE_MARKS / max(1, len(scheme_rows)))
    drawn_names = set(scheme_rows["verdict"])
    for verdict, verdict_rows in scheme_rows.groupby("verdict"):
        positions = verdict_rows[STEP_SIZE], verdict_rows["shown"]
        style.draw_verdict(axis, str(verdict), *positions, scale=mark_scale)
    # Finite costs whose marks stand at the ceiling, below the cost.
    clipped_steps = finite_rows.loc[finite_rows[FINAL_COST] > ceiling, STEP_SIZE]
    if len(clipped_steps):
        axis_transform = axis.get_xaxis_transform()
        axis.plot(
            clipped_steps,
            [0.95] * len(clipped_steps),
            transform=axis_transform,
            label="_above",
            **ARROW_STYLE,
        )
        drawn_names.add("above")
    # A scheme without step rows did not diverge.
    if len(finite_rows) == 0 and len(scheme_rows):
        style.write_centered(axis, "diverged at every step size tried")
    # The row of the best step size, of which the tag has six digits; empty if none is known.
    best_rows = ranked_rows[
        np.isclose(ranked_rows[STEP_SIZE], number_in(scheme, names.STEP_TAG.column), rtol=1e-5)
    ]
    if len(best_rows) and not material.ends_at_or_below_start(
        scheme, float(best_rows[FINAL_COST].iloc[0])
    ):
        style.write_at_foot(axis, NO_IMPROVEMENT_TEXT)
    elif len(best_rows):
        axis.plot(
            best_rows[STEP_SIZE],
            best_rows["shown"],
            label="_best",
            clip_on=False,
            zorder=6,
            **STAR_STYLE,
        )
        drawn_names.add("best")
    return drawn_names | _draw_limits(axis, scheme, look)


def _draw_limits(axis: Any, scheme: Any, look: style.Look) -> set[str]:
    """Draw 2/L and the largest step that converges, and write the scheme's name.

    2/L beyond the limits of the axis is not drawn.

    Args:
        axis: the panel, with its limits set.
        scheme: the row of the scheme.
        look: the look of the scheme.

    Returns:
        The names of the drawn legend entries.
    """
    drawn_names = set()
    threshold, largest_step = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST_CONVERGENT)
    lower_limit, upper_limit = axis.get_xlim()
    # False for NaN, a 2/L that is not known.
    if lower_limit <= threshold <= upper_limit:
        axis.axvline(threshold, color="black", ls=":", lw=1.2, label="_threshold", zorder=3)
        drawn_names.add(THRESHOLD)
    if not np.isnan(largest_step):
        # Censored: no larger step size that was tried failed, so that larger ones may converge.
        is_censored = scheme.get(names.CENSORED.column) == "true"
        marker_style = {
            "marker": RIGHT_ARROW if is_censored else "^",
            "ms": 9,
            "color": "black",
            "ls": "",
        }
        axis_transform = axis.get_xaxis_transform()
        marker_options = {
            "transform": axis_transform,
            "clip_on": False,
            "label": "_largest",
            "zorder": 5,
        }
        axis.plot([largest_step], [0.0], **marker_style, **marker_options)
        drawn_names.add(LARGEST_TRIED if is_censored else LARGEST_CONVERGENT)
    style.name_panel(axis, scheme["label"], look)
    return drawn_names


def _add_legend(figure: Figure, drawn_names: set[str], schemes: pd.DataFrame, shape: Shape) -> None:
    """Add a legend of the drawn marks.

    Args:
        figure: the figure.
        drawn_names: the verdicts that occur, and keys of the legend's other entries.
        schemes: the scheme rows, which decide how the best step size and 2/L are called.
        shape: the format of the figure.
    """
    entries_by_name: dict[str, tuple[str, Any]] = {
        "best": (material.best_step_label(schemes), STAR_STYLE),
        "ends": ("typical ends", BAND_STYLE),
        "finer": ("finer step sizes", {"color": "0.3", **DOT_STYLE}),
        "above": ("off the scale", ARROW_STYLE),
        THRESHOLD: (material.threshold_label(schemes), {"color": "black", "ls": ":", "lw": 1.2}),
        LARGEST_CONVERGENT: (
            "largest step that converges",
            {"marker": "^", "color": "black", "ls": ""},
        ),
        LARGEST_TRIED: (
            "converges, and no larger one failed",
            {"marker": RIGHT_ARROW, "color": "black", "ls": ""},
        ),
    }
    entries = [entry for name, entry in entries_by_name.items() if name in drawn_names]
    handles = [Line2D([], [], label=label, **look) for label, look in entries]
    style.add_legend(figure, shape, [*style.verdict_handles(drawn_names), *handles])


def _has_finite_costs(steps: pd.DataFrame) -> bool:
    """Return whether any step size stayed finite."""
    return bool((steps[FINAL_COST].notna() & (steps["verdict"] != names.DIVERGED)).any())


def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    """Return the figure of an experiment; None where no step size stayed finite.

    With several splits the costs are medians, and the ends of single runs are not drawn.
    """
    rows = material.schemes(sweep, experiment)
    repeats = distinct_repeats(rows)
    arrays = (
        {}
        if repeats
        else material.drawable_arrays(sweep, rows, names.DESCENT_ARRAYS, lambda scheme_arrays: True)
    )
    return material.maker_from_steps(partial(draw, arrays=arrays), _has_finite_costs)(
        sweep, experiment, options
    )
