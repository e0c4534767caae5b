"""Contours of the cost over two weights under each scheme, with the path of the descent.

The contours have the same costs in all panels. If the points have two features under each scheme,
panels above show the points.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures.base import landmarks, style, ticks
from normbench.results.figures.base.material import (
    ArraysByLabel,
    DrawnScheme,
    SchemeArrays,
    iteration_label,
    with_arrays,
)
from normbench.results.figures.base.panels import arrays_figure
from normbench.results.figures.base.style import SCREEN, Shape

LEVEL_COUNT = 8  # levels from the least cost to the start's cost
DOUBLING_START = 2.0  # times the start's excess: above it, the excess of the levels doubles
AXIS_NAME_LETTERS = 20  # letters of a line of the vertical label
ELLIPSE_POINTS = 73  # vertices of an ellipse: the error is a thousandth of the radius
MAX_SHADES = 16  # shades of a panel
FIT_TOLERANCE = 1e-9  # relative error of a quadratic fit to a grid of costs
MIN_CONTOURS = 4  # a panel with fewer contours gets those between them, too
WEIGHT_PREFIX = "weight of "
MINIMUM_CASE = names.MINIMUM_CASE.column


@arrays_figure("contours", "contours")
def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: contours of the cost for each scheme, and the path from dark to bright.

    Args:
        arrays: by label, the arrays of `record=[contours]`. The grid `a`, `b` (G,) of two weights
            and the `cost` (G, G), in row i and column j at b[i] and a[j]; the `path` (k, 2) of the
            descent with `step_size` () at `iteration` (k,), and `path_cost` (k,); `minimum` (2,),
            or (0,) if no weights are known to attain it, and the least cost `least` (); the
            `condition` () of the Hessian on the plane, NaN without curvature; texts: `names` (2,)
            of the weights, `held` () on a constant weight, `through` () on a point of the plane.
            If the scheme has two features, also `points` (p, 2), `target` (p,), `class_names` (C,),
            and optionally `point_names` (2,) of their coordinates.
        schemes: one row for each scheme in order (`label`, `normalizer`, optionally
            `tags.minimum_case`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    all_arrays = [scheme.arrays for scheme in drawn_schemes]
    has_points = all("points" in scheme_arrays for scheme_arrays in all_arrays)
    with style.figure_style(shape):
        figure, point_axes, axes = _panels(len(drawn_schemes), shape, title, has_points)
        last_iteration = max(int(scheme_arrays["iteration"][-1]) for scheme_arrays in all_arrays)
        shared_levels = levels(all_arrays)
        # The colours of the dots mean the same iterations in all panels: the colour bar is that of
        # the last panel.
        for axis, (label, row, scheme_arrays, look) in zip(axes, drawn_schemes):
            iteration_dots = _draw_cost(
                axis, scheme_arrays, shared_levels, max(last_iteration, 1), shape
            )
            # An optimizer that finds its own step sizes has none to name.
            is_gridless = row.get(names.GRIDLESS.column) == "true"
            step_label = "" if is_gridless else f", step {float(scheme_arrays['step_size']):g}"
            style.name_panel(axis, label + step_label + _slice_text(scheme_arrays), look)
        landmark_indices = (
            landmarks.choose_for_panels(drawn_schemes, all_arrays[0]["points"])
            if has_points
            else []
        )
        # Without points, there are no such panels.
        for axis, (label, _, scheme_arrays, look) in zip(point_axes, drawn_schemes):
            _draw_points(axis, scheme_arrays, shape)
            landmarks.mark_points(axis, scheme_arrays["points"], landmark_indices, shape)
            style.name_panel(axis, label, look)
        color_bar = figure.colorbar(
            iteration_dots, ax=[*point_axes, *axes], location="bottom", shrink=0.5, aspect=40
        )
        color_bar.set_label(iteration_label(schemes))
        landmark_note = (
            f"\n{landmarks.describe_letters(landmark_indices)}" if landmark_indices else ""
        )
        style.add_note(figure, shape, _notes(drawn_schemes) + landmark_note)
    return figure


def _panels(
    count: int, shape: Shape, title: str, has_points: bool
) -> tuple[Figure, list[Any], list[Any]]:
    """Return a figure, its panels of points (none without points), its panels of contours.

    Args:
        count: the number of schemes, each with a panel of contours.
        shape: the format of the figure.
        title: the title of the figure.
        has_points: whether each scheme has a panel of points above that of its contours.
    """
    row_count, column_count = style.rows_and_columns(count, shape.columns)
    # Rows of panels: with points, each row of schemes has two.
    panel_rows = row_count * (2 if has_points else 1)
    # The height of text outside of the square panels: names, titles, the colour bar, notes.
    text_height = (3 + 9 / panel_rows) * 1.25 * shape.font / 72
    height = 0.85 + text_height / (shape.width / column_count)
    if not has_points:
        figure, axes = style.panels(count, shape, title, height)
        return figure, [], axes
    figure, pairs = style.panel_pairs(count, shape, title, height)
    return figure, [upper for upper, _ in pairs], [lower for _, lower in pairs]


def _slice_text(scheme_arrays: SchemeArrays) -> str:
    """Return the text on a scheme's slice: condition number, aspect ratio, fixed weights.

    A slice is the plane of two weights in which the cost is drawn, with the other weights fixed.
    """
    condition = float(scheme_arrays["condition"])
    text = "" if np.isnan(condition) else f", slice's condition {ticks.short_text(condition)}"
    width, height = np.ptp(scheme_arrays["a"]), np.ptp(scheme_arrays["b"])
    if not _is_square(scheme_arrays):  # drawn as a square, in which elongated contours look round
        aspect_ratio, direction = (
            max(width / height, height / width),
            "wide" if width > height else "tall",
        )
        text += f", really {ticks.short_text(float(f'{aspect_ratio:.2g}'))} times as {direction}"
    return text + (f", {scheme_arrays['held']}" if str(scheme_arrays["held"]) else "")


def levels(all_arrays: Sequence[SchemeArrays]) -> tuple[Any, int]:
    """Return the costs of the contours of all panels, and the refinement of these levels.

    Up to `DOUBLING_START` times the start's excess, the levels are the least cost plus squares of
    evenly spaced numbers, so that a quadratic cost has evenly spaced contours. Above, the excess of
    every nth level doubles.

    Args:
        all_arrays: the recorded arrays of each scheme.

    Returns:
        The levels in increasing order, as many as the panel with the smallest range of costs
        needs, and the refinement n, a power of two: panels show every nth level, see
        `select_panel_levels`.
    """
    costs = [
        scheme_arrays["cost"][np.isfinite(scheme_arrays["cost"])] for scheme_arrays in all_arrays
    ]
    least_cost = min(float(scheme_arrays["least"]) for scheme_arrays in all_arrays)
    highest_cost = max(float(cost.max()) for cost in costs)
    start_excess = (
        max(float(scheme_arrays["path_cost"][0]) for scheme_arrays in all_arrays) - least_cost
    )
    if start_excess <= 0:  # the start is the minimum: the range of the grids instead, or 1
        start_excess = highest_cost - least_cost or 1.0
    # The least refinement that gives each panel enough contours; a panel whose costs are all above
    # these levels does not count.
    for refinement in (1, 2, 4, 8, 16):
        count = LEVEL_COUNT * refinement
        near_levels = (
            start_excess * (np.arange(1, round(count * DOUBLING_START**0.5) + 1) / count) ** 2
        )
        if all(
            len(levels_within(least_cost + near_levels, cost)) >= MIN_CONTOURS
            or cost.min() > least_cost + near_levels[-1]
            for cost in costs
        ):
            break
    # How often the excess doubles from the highest of these levels to the highest cost.
    doublings = max(0.0, np.log2(max(highest_cost - least_cost, start_excess) / near_levels[-1]))
    far_levels = near_levels[-1] * 2.0 ** (
        np.arange(1, refinement * int(np.ceil(doublings)) + 1) / refinement
    )
    return least_cost + np.concatenate([near_levels, far_levels]), refinement


def levels_within(cost_levels: Any, cost: Any) -> Any:
    """Return the levels strictly within a panel's range of costs, which have contours in it."""
    return cost_levels[(cost_levels > np.nanmin(cost)) & (cost_levels < np.nanmax(cost))]


def select_panel_levels(shared_levels: Any, refinement: int, cost: Any) -> Any:
    """Return the levels of a panel's contours: every nth level within its range of costs.

    Args:
        shared_levels: the levels of all panels.
        refinement: n; it is halved until the panel has `MIN_CONTOURS` contours, or is 1.
        cost: the costs on the panel's grid.
    """
    stride = refinement
    while (
        stride > 1 and len(levels_within(shared_levels[stride - 1 :: stride], cost)) < MIN_CONTOURS
    ):
        stride //= 2
    return levels_within(shared_levels[stride - 1 :: stride], cost)


def _draw_cost(
    axis: Any,
    scheme_arrays: SchemeArrays,
    shared_levels: tuple[Any, int],
    last_iteration: int,
    shape: Shape,
) -> Any:
    """Draw one scheme's contours and path; return the dots of the iterations.

    Args:
        axis: the panel.
        scheme_arrays: the arrays of `record=[contours]`.
        shared_levels: the levels of all panels and their refinement, from `levels`.
        last_iteration: the iteration of the brightest dot, the same in all panels.
        shape: the format of the figure.
    """
    a, b, cost = scheme_arrays["a"], scheme_arrays["b"], scheme_arrays["cost"]
    panel_levels = select_panel_levels(*shared_levels, cost)
    # The nth colour is that of costs below the nth level; the last one, of those above all levels.
    greys = matplotlib.colormaps["Greys"](np.linspace(0, 0.4, len(shared_levels[0]) + 1))
    grid = elliptic_grid(scheme_arrays, shared_levels[0]) or (a, b, cost)
    if len(panel_levels):  # matplotlib warns about missing contours
        axis.contour(*grid, levels=panel_levels, colors="0.55", linewidths=0.6)
    # The shades of the panel's range of costs: of every level, or of every second one, and so on.
    is_within = (shared_levels[0] > np.nanmin(cost)) & (shared_levels[0] < np.nanmax(cost))
    shaded = np.flatnonzero(is_within)[::-1]
    shaded = np.sort(shaded[:: -(-len(shaded) // MAX_SHADES) or 1])
    if not len(shaded):  # matplotlib needs a level
        shaded = np.array([int(np.searchsorted(shared_levels[0][:-1], np.nanmax(cost)))])
    colors = greys[[*shaded, shaded[-1] + 1]]
    axis.contourf(*grid, levels=shared_levels[0][shaded], colors=colors, extend="both")
    path = scheme_arrays["path"]
    axis.plot(*path.T, color="black", lw=0.7, alpha=0.7, label="path", zorder=2)
    iteration_dots = axis.scatter(
        *path.T,
        c=scheme_arrays["iteration"],
        cmap="plasma",
        norm=PowerNorm(0.5, 0, last_iteration),  # the early iterations change most
        s=(0.35 * shape.font) ** 2,
        zorder=3,
    )
    # A circle at the start, a star at the end, and a cross at the minimum if it is known.
    marked_points = [(path[0], "o"), (path[-1], "*")]
    marked_points += [(scheme_arrays["minimum"], "P")] if len(scheme_arrays["minimum"]) else []
    for position, marker in marked_points:
        style.mark_position(axis, position, marker, 0.8 * shape.font)
    if _is_square(scheme_arrays):
        axis.set_aspect("equal")
    axis.set(box_aspect=1, xlim=(a[0], a[-1]), ylim=(b[0], b[-1]))
    style.label_plane(axis, scheme_arrays["names"], AXIS_NAME_LETTERS)
    return iteration_dots


def elliptic_grid(scheme_arrays: SchemeArrays, cost_levels: Any) -> tuple[Any, Any, Any] | None:
    """Return a grid on which contours of a quadratic cost are exact ellipses.

    On the recorded grid, interpolated contours would break a long valley into islands.

    Args:
        scheme_arrays: with the grid `a`, `b` (G,) and the `cost` (G, G), in row i and column j at
            b[i] and a[j].
        cost_levels: the costs of the contours (n,).

    Returns:
        The weights along both axes, and the cost, each (m, ELLIPSE_POINTS), at the same costs along
        each row; None if the cost is not strictly convex quadratic.
    """
    # Fit in coordinates u, v from -1 to 1 on the panel, so that the fit is well conditioned.
    corner = np.array([scheme_arrays["a"][0], scheme_arrays["b"][0]])
    scale = np.array([np.ptp(scheme_arrays["a"]), np.ptp(scheme_arrays["b"])]) / 2
    u, v = np.meshgrid(
        (scheme_arrays["a"] - corner[0]) / scale[0] - 1,
        (scheme_arrays["b"] - corner[1]) / scale[1] - 1,
    )
    terms = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1).reshape(-1, 6)
    cost = np.asarray(scheme_arrays["cost"], dtype=float).ravel()
    if not np.isfinite(cost).all():
        return None
    constant, slope_u, slope_v, square_u, product, square_v = np.linalg.lstsq(terms, cost)[0]
    hessian = np.array([[2 * square_u, product], [product, 2 * square_v]])
    curvatures, directions = np.linalg.eigh(hessian)
    slopes = np.array([slope_u, slope_v])
    fitted = terms @ [constant, slope_u, slope_v, square_u, product, square_v]
    if np.abs(fitted - cost).max() > FIT_TOLERANCE * np.ptp(cost):
        return None  # not quadratic
    if curvatures[0] <= FIT_TOLERANCE * curvatures[1]:  # the smaller and the larger one
        return None  # flat or curved down along some direction
    minimizer = -np.linalg.solve(hessian, slopes)
    least = float(constant + slopes @ minimizer / 2)
    # Costs of ellipses: from the least cost up to one beyond the panel and all levels.
    corner_excess = curvatures[1] * (np.abs(minimizer) + 1).max() ** 2
    highest = least + max(corner_excess, cost_levels[-1] - least)
    costs = np.array([least, *cost_levels[cost_levels > least], 2 * highest - least])
    angles = np.linspace(0, 2 * np.pi, ELLIPSE_POINTS)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # A half axis of the contour of excess e along a direction of curvature h is sqrt(2 e / h).
    ellipse = circle @ (directions * np.sqrt(2 / curvatures)).T
    positions = minimizer + np.sqrt(costs - least)[:, None, None] * ellipse
    weights = corner + scale * (positions + 1)
    return weights[..., 0], weights[..., 1], np.broadcast_to(costs[:, None], weights.shape[:2])


def _is_square(scheme_arrays: SchemeArrays) -> bool:
    """Return whether both axes of a scheme's panel have the same scale."""
    return bool(np.isclose(np.ptp(scheme_arrays["a"]), np.ptp(scheme_arrays["b"])))


def _draw_points(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw the points under a scheme, with the same scale on both axes."""
    points = scheme_arrays["points"]
    dot_style: Any = {"s": (0.32 * shape.font) ** 2, "lw": 0, "alpha": 0.6, "label": "_points"}
    for class_mask, (color, marker) in style.class_masks(scheme_arrays, "0.4"):
        axis.scatter(*points[class_mask].T, color=color, marker=marker, **dot_style)
    centre, half_side = style.enclosing_square(points)
    axis.set_box_aspect(1)
    for set_limits, middle in zip((axis.set_xlim, axis.set_ylim), centre):
        set_limits(middle - half_side, middle + half_side)
    # Of one score, the names of the weights have those of the features, also in older records.
    weight_names = [
        name.removeprefix(WEIGHT_PREFIX) if name.startswith(WEIGHT_PREFIX) else ""
        for name in map(str, scheme_arrays["names"])
    ]
    point_names = scheme_arrays.get("point_names", weight_names)
    style.label_plane(axis, point_names, AXIS_NAME_LETTERS)


def _notes(drawn_schemes: Sequence[DrawnScheme]) -> str:
    """Return the notes that explain the marks and the slices, as lines in one text.

    A slice is the plane of two weights that a panel shows.
    """
    all_arrays = [scheme.arrays for scheme in drawn_schemes]
    mark_texts = ["circle: the start", "star: the end"]
    if any(len(scheme_arrays["minimum"]) for scheme_arrays in all_arrays):
        mark_texts.append("cross: the least cost")
    notes = [f"{', '.join(mark_texts)}; a grey is the same cost in every panel"]
    slice_texts = {
        str(scheme_arrays["through"]) for scheme_arrays in all_arrays if "through" in scheme_arrays
    }
    notes += [f"each slice goes through {' or '.join(sorted(slice_texts))}"] if slice_texts else []
    if any(
        scheme.row.get(MINIMUM_CASE) in (names.STRICTLY, names.PARTLY) for scheme in drawn_schemes
    ):
        # The reason why such a slice does not go through the least cost.
        notes[-1] += "; no weights have the least cost: it is at infinity"
    if not all(map(_is_square, all_arrays)):
        notes.append("where contours are long, the two axes have scales of their own")
    return style.escape_dollars("\n".join(notes))
