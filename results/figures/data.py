"""The points under each scheme side by side, with principal axes and the unit circle."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse

from normbench import names
from normbench.results.figures.base import landmarks, style, ticks
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import number_in

COVARIANCE_CONDITION = names.COVARIANCE_CONDITION.column
RASTER_POINTS = 300  # more points are rasterized in SVG and PDF to keep the files small
SMALL_PANEL_CLASSES = 5  # more classes need larger panels
LINE_NOTE = (
    "cross: principal axes, one standard deviation long; ellipse: of the covariance, whose "
    "condition is told"
)
MIN_CIRCLE = 0.01  # of half a panel: a smaller circle looks like a dot


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, with principal axes and covariance ellipse.

    Args:
        arrays: by label, `points` (p, 2) in the scheme's two features or two leading principal
            components; `names` (2,) of these coordinates; `mean` (2,); `axes` (2, 2), a principal
            axis in each row, one standard deviation long, or (0, 2) for a single feature, which is
            drawn against the target; `target` (p,), class indices or real targets; `class_names`
            (C,), empty without classes.
        schemes: one row for each scheme in order (`label`, `normalizer`, optionally
            `metrics.theory/covariance_condition`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    first_arrays = drawn_schemes[0].arrays
    columns = (
        shape.columns
        if len(first_arrays["class_names"]) <= SMALL_PANEL_CLASSES
        else min(2, shape.columns)
    )
    with style.figure_style(shape):
        figure, axes = style.panels(
            len(drawn_schemes), shape, title, 1.0 if len(drawn_schemes) > 1 else 0.55, columns
        )
        landmark_indices = landmarks.choose_for_panels(drawn_schemes, first_arrays["points"])
        for axis, (label, row, scheme_arrays, look) in zip(axes, drawn_schemes):
            aligned_arrays = _align_signs(first_arrays, scheme_arrays)
            is_scaled = row.get(names.SCALES.column) == "true"
            target_dots = _draw_points(axis, aligned_arrays, shape, ", scaled" if is_scaled else "")
            landmarks.mark_points(axis, aligned_arrays["points"], landmark_indices, shape)
            style.name_panel(axis, label + _condition_text(row), look)
        # The dots of the last panel: the targets, and so their colours, are the same in all panels.
        if target_dots is not None:
            figure.colorbar(target_dots, ax=axes, shrink=0.8, pad=0.01).set_label("target")
        style.add_legend(figure, shape, style.class_handles(first_arrays["class_names"]))
        # Only panels that show a part of the unit circle have one.
        patches = [patch for axis in axes for patch in axis.patches]
        circle_note = (
            "; dashed: unit circle" if any(isinstance(patch, Circle) for patch in patches) else ""
        )
        # A single feature has no principal axes.
        notes = [LINE_NOTE + circle_note] if len(first_arrays["axes"]) else []
        notes += [landmarks.describe_letters(landmark_indices)] if landmark_indices else []
        if notes:
            style.add_note(figure, shape, "\n".join(notes))
    return figure


def _condition_text(row: Mapping[Any, Any]) -> str:
    """Return the text on the condition number of the covariance; empty if it was not recorded."""
    condition = number_in(row, COVARIANCE_CONDITION)
    return "" if np.isnan(condition) else f", condition {ticks.short_text(condition)}"


def _align_signs(first_arrays: SchemeArrays, scheme_arrays: SchemeArrays) -> dict[str, Any]:
    """Return a scheme's arrays with the signs of principal directions as in the first panel.

    The sign of an eigenvector is arbitrary; equal signs make the panels comparable. A coordinate is
    negated if it correlates negatively with that of the first panel. Arrays on other coordinates
    than principal components, or of another number of points, are returned unchanged.

    Args:
        first_arrays: the arrays of the first panel.
        scheme_arrays: the arrays of the scheme, of the same points.
    """
    aligned_arrays, reference_points = dict(scheme_arrays), first_arrays["points"]
    if (
        tuple(scheme_arrays["names"]) != names.PRINCIPAL
        or reference_points.shape != scheme_arrays["points"].shape
    ):
        return aligned_arrays
    centred = [
        points - points.mean(axis=0) for points in (reference_points, scheme_arrays["points"])
    ]
    signs = np.where((centred[0] * centred[1]).sum(axis=0) < 0, -1.0, 1.0)
    return aligned_arrays | {key: scheme_arrays[key] * signs for key in ("points", "mean", "axes")}


def _draw_points(axis: Any, scheme_arrays: SchemeArrays, shape: Shape, units: str) -> Any:
    """Draw one scheme's points with their principal axes, covariance ellipse and unit circle.

    Args:
        axis: the panel.
        scheme_arrays: as for `draw`, of one scheme.
        shape: the format of the figure.
        units: the suffix of the axis labels, `, scaled` if the scheme scales the features.

    Returns:
        The dots, coloured by target, for the colour bar of a regression; None for classes, and for
        points without a target.
    """
    points, target = scheme_arrays["points"], scheme_arrays["target"]
    dot_style: Any = {
        "s": (0.32 * shape.font) ** 2,
        "lw": 0,
        "rasterized": len(points) > RASTER_POINTS,
    }
    target_dots = None
    if len(scheme_arrays["class_names"]):
        dot_style |= {"edgecolors": style.CLASS_EDGE, "lw": 0.3}
        for class_index, (class_mask, (color, marker)) in enumerate(
            style.class_masks(scheme_arrays, "0.4")
        ):
            class_points = points[class_mask].T
            axis.scatter(
                *class_points, facecolors=color, marker=marker, label=f"_{class_index}", **dot_style
            )
    elif np.any(target):  # points without a target have zeros
        target_dots = axis.scatter(
            *points.T, c=target, cmap="viridis", label="_points", **dot_style
        )
    else:
        axis.scatter(*points.T, color="0.4", alpha=0.55, label="_points", **dot_style)
    # Both ways from the mean; the white line below keeps the cross visible on dark points.
    for half_axis in scheme_arrays["axes"]:
        ends = np.stack([scheme_arrays["mean"] - half_axis, scheme_arrays["mean"] + half_axis]).T
        axis.plot(*ends, color="white", lw=4, label="_halo", zorder=4)
        axis.plot(*ends, color="black", lw=2, label="_axis", zorder=5)
    if len(scheme_arrays["axes"]):
        low, high = points.min(axis=0), points.max(axis=0)
        # A square around all points with a margin; of points that coincide, it is not empty.
        half_side = 0.54 * float(max((high - low).max(), 1e-12))
        centre = (low + high) / 2
        limits = np.stack([centre - half_side, centre + half_side], axis=1)
        axis.set(xlim=limits[0], ylim=limits[1])
        patches: list[Any] = [_covariance_ellipse(scheme_arrays["mean"], scheme_arrays["axes"])]
        if _shows_circle(centre, half_side):
            patches.append(Circle((0, 0), 1, fill=False, ls="--", lw=1, zorder=3))
        for patch in patches:
            # Else the layout would make room for the part beyond the panel.
            axis.add_patch(patch).set_in_layout(False)
        axis.set_aspect("equal")
    ticks.set_even_ticks(axis.xaxis, 4)
    ticks.set_even_ticks(axis.yaxis)
    # A single feature, without axes, is drawn against the target, which no scheme scales.
    axis_units = (units, units if len(scheme_arrays["axes"]) else "")
    setters = (axis.set_xlabel, axis.set_ylabel)
    for set_label, name, suffix in zip(setters, scheme_arrays["names"], axis_units):
        set_label(style.escape_dollars(f"{name}{suffix}"), fontsize="small")
    axis.tick_params(labelsize="small")
    return target_dots


def _shows_circle(centre: Any, half_side: float) -> bool:
    """Return whether a square panel shows a part of the unit circle that is larger than a dot.

    Args:
        centre: the centre of the panel (2,).
        half_side: half the length of the panel's side.
    """
    # The panel shows some of the circle if its nearest point to 0 is inside, its farthest outside.
    distances = np.abs(centre)
    nearest, farthest = np.maximum(distances - half_side, 0), distances + half_side
    return bool(np.hypot(*nearest) <= 1 <= np.hypot(*farthest)) and MIN_CIRCLE * half_side <= 1


def _covariance_ellipse(mean: Any, axes: Any) -> Any:
    """Return the ellipse around a mean (2,) whose half axes are the rows of `axes` (2, 2)."""
    # matplotlib takes whole axes, and the angle of the first in degrees.
    width, height = 2 * np.linalg.norm(axes, axis=1)
    angle = float(np.degrees(np.arctan2(axes[0, 1], axes[0, 0])))
    return Ellipse(mean, width, height, angle=angle, fill=False, lw=1, ec="0.25", zorder=4)


make = maker_from_arrays("points", draw)
