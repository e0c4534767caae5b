"""The points under each scheme side by side, with principal axes and the unit circle."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse

from normbench import names
from normbench.results.figures.base import followed, style, ticks
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import number_in

CONDITION = names.COVARIANCE_CONDITION.column
MANY = 300  # points that are drawn as pixels in SVG and PDF: those files stay small
FEW = 5  # classes that a small panel tells apart
LINES = (
    "cross: principal axes, one standard deviation long; ellipse: of the covariance, whose "
    "condition is told"
)
SEEN = 0.01  # of half a panel: a smaller circle is a dot


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, classes in colour, axes and ellipse of the covariance.

    arrays: by label, `points` (p, 2), `names` (2,), `mean` (2,), `axes` (2, 2), or (0, 2)
    of a single feature, `target` (p,),
    `class_names` (C,). schemes: one row a scheme (`label`, `normalizer`; where known
    `metrics.theory/covariance_condition`), in order.
    """
    shown = with_arrays(schemes, arrays)
    first = shown[0].parts
    wide = shape.columns if len(first["class_names"]) <= FEW else min(2, shape.columns)
    with style.drawn(shape):
        figure, axes = style.panels(len(shown), shape, title, 1.0 if len(shown) > 1 else 0.55, wide)
        numbers = followed.in_panels(shown, first["points"])
        for axis, (label, row, parts, look) in zip(axes, shown):
            own = _turned(first, parts)
            scaled = row.get(names.SCALES.column) == "true"
            dots = _panel(axis, own, shape, ", scaled" if scaled else "")
            followed.mark(axis, own["points"], numbers, shape)
            style.name_panel(axis, label + _condition(row), look)
        if dots is not None:
            figure.colorbar(dots, ax=axes, shrink=0.8, pad=0.01).set_label("target")
        style.legend(figure, shape, style.class_marks(first["class_names"]))
        patches = [patch for axis in axes for patch in axis.patches]
        circle = "; dashed: unit circle" if any(isinstance(one, Circle) for one in patches) else ""
        told = [LINES + circle] if len(first["axes"]) else []
        told += [followed.note(numbers)] if numbers else []
        if told:
            style.note(figure, shape, "\n".join(told))
    return figure


def _condition(row: Mapping[Any, Any]) -> str:
    """Return how far the points are from round, where it was recorded: 1 is sphered."""
    condition = number_in(row, CONDITION)
    return "" if np.isnan(condition) else f", condition {ticks.short(condition)}"


def _turned(first: Parts, parts: Parts) -> dict[str, Any]:
    """Return a scheme's arrays with the signs of principal directions as in the first panel.

    An eigenvector's sign means nothing: the points lie on the side on which they lie there.
    """
    found, model = dict(parts), first["points"]
    if tuple(parts["names"]) != names.PRINCIPAL or model.shape != parts["points"].shape:
        return found
    centred = [each - each.mean(axis=0) for each in (model, parts["points"])]
    signs = np.where((centred[0] * centred[1]).sum(axis=0) < 0, -1.0, 1.0)
    return found | {key: parts[key] * signs for key in ("points", "mean", "axes")}


def _panel(axis: Any, parts: Parts, shape: Shape, units: str) -> Any:
    """Draw one scheme's points; return the coloured dots of a regression's targets, else None.

    units: what the scheme made of those of the data, behind the coordinates' names.
    """
    points, target = parts["points"], parts["target"]
    kwargs: Any = {"s": (0.32 * shape.font) ** 2, "lw": 0, "rasterized": len(points) > MANY}
    dots = None
    if len(parts["class_names"]):
        kwargs |= {"edgecolors": style.EDGE, "lw": 0.3}
        for number, (chosen, (color, marker)) in enumerate(style.by_class(parts, "0.4")):
            some = points[chosen].T
            axis.scatter(*some, facecolors=color, marker=marker, label=f"_{number}", **kwargs)
    elif np.any(target):
        dots = axis.scatter(*points.T, c=target, cmap="viridis", label="_points", **kwargs)
    else:
        axis.scatter(*points.T, color="0.4", alpha=0.55, label="_points", **kwargs)
    for arm in parts["axes"]:
        ends = np.stack([parts["mean"] - arm, parts["mean"] + arm]).T
        axis.plot(*ends, color="white", lw=4, label="_halo", zorder=4)
        axis.plot(*ends, color="black", lw=2, label="_axis", zorder=5)
    if len(parts["axes"]):
        low, high = points.min(axis=0), points.max(axis=0)
        half = 0.54 * float(max((high - low).max(), 1e-12))
        middle = (low + high) / 2
        limits = np.stack([middle - half, middle + half], axis=1)
        axis.set(xlim=limits[0], ylim=limits[1])
        patches: list[Any] = [_ellipse(parts["mean"], parts["axes"])]
        if _sees_circle(middle, half):
            patches.append(Circle((0, 0), 1, fill=False, ls="--", lw=1, zorder=3))
        for patch in patches:
            axis.add_patch(patch).set_in_layout(False)
        axis.set_aspect("equal")
    ticks.even_ticks(axis.xaxis, 4)
    ticks.even_ticks(axis.yaxis)
    for set_label, name in zip((axis.set_xlabel, axis.set_ylabel), parts["names"]):
        set_label(style.plain(f"{name}{units}"), fontsize="small")
    axis.tick_params(labelsize="small")
    return dots


def _sees_circle(middle: Any, half: float) -> bool:
    """Return whether a panel, so far to all sides of its middle, shows some of the unit circle."""
    away = np.abs(middle)
    nearest, farthest = np.maximum(away - half, 0), away + half
    return bool(np.hypot(*nearest) <= 1 <= np.hypot(*farthest)) and SEEN * half <= 1


def _ellipse(mean: Any, axes: Any) -> Any:
    """Return the ellipse that principal axes (2, 2), a row each, are the half axes of."""
    width, height = 2 * np.linalg.norm(axes, axis=1)
    angle = float(np.degrees(np.arctan2(axes[0, 1], axes[0, 0])))
    return Ellipse(mean, width, height, angle=angle, fill=False, lw=1, ec="0.25", zorder=4)


make = of_arrays("points", draw)
