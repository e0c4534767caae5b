"""The points under each scheme side by side, with principal axes and the unit circle."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse

from normbench import names
from normbench.results.figures.base import followed, style
from normbench.results.figures.base.material import of_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.store.rows import as_rows

MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "<", "p")
CONDITION = names.COVARIANCE_CONDITION.column
MANY = 300  # points that are drawn as pixels in SVG and PDF: those files stay small
FEW = 5  # classes that a small panel tells apart
LINES = (
    "cross: principal axes, one standard deviation long; ellipse: of the covariance, whose "
    "condition is told"
)
SEEN = 0.01  # of half a panel: a smaller circle is a dot


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a panel a scheme, classes in colour, axes and ellipse of the covariance.

    arrays: by label, `points` (p, 2), `names` (2,), `mean` (2,), `axes` (2, 2), or (0, 2)
    of a single feature, `target` (p,),
    `class_names` (C,). schemes: one row a scheme (`label`, `normalizer`; where known
    `metrics.theory/covariance_condition`), in order.
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    with style.drawn(shape):
        first = arrays[rows[0]["label"]]
        wide = shape.columns if len(first["class_names"]) <= FEW else min(2, shape.columns)
        figure, axes = style.panels(len(rows), shape, title, 1.0 if len(rows) > 1 else 0.55, wide)
        looks = style.looks([row["normalizer"] for row in rows])
        numbers = followed.in_panels(rows, first["points"])
        for axis, row, look in zip(axes, rows, looks):
            own = _turned(first, arrays[row["label"]])
            scaled = row.get(names.SCALES.column) == "true"
            dots = _panel(axis, own, shape, ", scaled" if scaled else "")
            followed.mark(axis, own["points"], numbers, shape)
            style.name_panel(axis, row["label"] + _condition(row), look)
        classes = first["class_names"]
        handles = [
            style.class_mark(color, marker, str(name))
            for name, (color, marker) in zip(classes, class_looks(len(classes)))
        ]
        if dots is not None:
            figure.colorbar(dots, ax=axes, shrink=0.8, pad=0.01).set_label("target")
        style.legend(figure, shape, handles)
        round_ones = [part for axis in axes for part in axis.patches if isinstance(part, Circle)]
        circle = "; dashed: unit circle" if round_ones else ""
        told = [LINES + circle] if len(first["axes"]) else []
        told += [followed.note(numbers)] if numbers else []
        if told:
            style.note(figure, shape, "\n".join(told))
    return figure


def _condition(row: Mapping[Any, Any]) -> str:
    """Return how far the points are from round, where it was recorded: 1 is sphered."""
    known = row.get(CONDITION)
    if known is None or pd.isna(known):
        return ""
    return f", condition {style.short(float(known))}"


def _turned(first: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scheme's arrays with the signs of principal directions as in the first panel.

    An eigenvector's sign means nothing: the points lie on the side on which they lie there.
    """
    found, model = dict(parts), first["points"]
    if tuple(parts["names"]) != names.PRINCIPAL or model.shape != parts["points"].shape:
        return found
    centred = [each - each.mean(axis=0) for each in (model, parts["points"])]
    signs = np.where((centred[0] * centred[1]).sum(axis=0) < 0, -1.0, 1.0)
    return found | {key: parts[key] * signs for key in ("points", "mean", "axes")}


def class_looks(count: int) -> list[tuple[str, str]]:
    """Return a colour and a marker for each class, told apart in grey up to 100 of them."""
    return [(style.CLASSES[n % 10], MARKERS[(n + n // 10) % 10]) for n in range(count)]


def _panel(axis: Any, parts: Mapping[str, Any], shape: Shape, units: str) -> Any:
    """Draw one scheme's points; return the coloured dots of a regression's targets, else None.

    units: what the scheme made of those of the data, behind the coordinates' names.
    """
    points, target = parts["points"], parts["target"]
    kwargs: Any = {"s": (0.32 * shape.font) ** 2, "lw": 0, "rasterized": len(points) > MANY}
    dots = None
    if len(parts["class_names"]):
        for number, (color, marker) in enumerate(class_looks(len(parts["class_names"]))):
            some = points[target == number]
            edge = {"edgecolors": style.EDGE, "lw": 0.3}
            axis.scatter(
                *some.T, facecolors=color, marker=marker, label=f"_{number}", **{**kwargs, **edge}
            )
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
        axis.set_xlim(middle[0] - half, middle[0] + half)
        axis.set_ylim(middle[1] - half, middle[1] + half)
        ellipse = _ellipse(parts["mean"], parts["axes"])
        ellipse.set_in_layout(False)
        axis.add_patch(ellipse)
        if _sees_circle(middle, half):
            circle = Circle((0, 0), 1, fill=False, ls="--", lw=1, zorder=3)
            circle.set_in_layout(False)
            axis.add_patch(circle)
        axis.set_aspect("equal")
    style.even_ticks(axis.xaxis, 4)
    style.even_ticks(axis.yaxis)
    for set_label, name in (
        (axis.set_xlabel, parts["names"][0]),
        (axis.set_ylabel, parts["names"][1]),
    ):
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
