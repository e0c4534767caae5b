"""Points of two or three features, and what is left of them after each scheme."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench.results.figures.base import followed, style
from normbench.results.figures.base.material import of_arrays
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.data import class_looks
from normbench.results.store.rows import as_rows

MOST_THREADS = 300  # lines from a point to its image; more hide what they show
ABOVE = 30.0  # degrees over the plane of the images, from which it is seen
PLAIN = ("#0072b2", "o")


def draw(
    arrays: Mapping[str, Mapping[str, Any]],
    schemes: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a panel a scheme, each point pale, its image dark, a line between them.

    arrays: by label, `points` and `back` (p, N) with N 2 or 3, `kept` () components, `lost` ()
    share of the variance, `target` (p,), `class_names` (C,), `names` (N,). schemes: one row a
    scheme (`label`, `normalizer`), in order.
    """
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    with style.drawn(shape):
        size = arrays[rows[0]["label"]]["points"].shape[1]
        kwargs: Any = {}
        if size == 3:
            kwargs = {"subplot_kw": {"projection": "3d"}}
            matplotlib.rcParams["axes.titley"] = None  # a fixed title would stand in the box
        height = _height([arrays[row["label"]] for row in rows], size)
        figure, axes = style.panels(len(rows), shape, title, height, **kwargs)
        looks = style.looks([row["normalizer"] for row in rows])
        numbers = followed.in_panels(rows, arrays[rows[0]["label"]]["points"])
        for axis, row, look in zip(axes, rows, looks):
            parts = arrays[row["label"]]
            _panel(axis, parts, shape)
            followed.mark(axis, parts["back"], numbers, shape)
            text = (
                f"{row['label']}, {round(100 * float(parts['lost']), 6):.3g} % of the variance lost"
            )
            style.name_panel(axis, text, look)
        names = arrays[rows[0]["label"]]["class_names"]
        handles = [
            Line2D([], [], ls="", color=color, marker=marker, label=style.plain(str(name)))
            for name, (color, marker) in zip(names, class_looks(len(names)))
        ]
        handles += [
            Line2D([], [], ls="", color="0.7", marker="o", label="points"),
            Line2D([], [], ls="", color="black", marker="o", label="what the scheme keeps of them"),
        ]
        style.legend(figure, shape, handles)
        if numbers:
            style.note(figure, shape, followed.note(numbers))
    return figure


def _panel(axis: Any, parts: Mapping[str, Any], shape: Shape) -> None:
    points, back = parts["points"], parts["back"]
    for one, other in list(zip(points, back))[:MOST_THREADS]:
        axis.plot(*np.stack([one, other]).T, color="0.75", lw=0.6, label="_thread", zorder=1)
    for chosen, (color, marker) in _groups(parts):
        dots: Any = {"color": color, "marker": marker, "lw": 0}
        axis.scatter(
            *points[chosen].T, s=(0.5 * shape.font) ** 2, alpha=0.3, label="_points", **dots
        )
        axis.scatter(*back[chosen].T, s=(0.35 * shape.font) ** 2, label="_back", **dots)
    axis.set_aspect("equal")
    names = [style.plain(str(name)) for name in parts["names"]]
    axis.set_xlabel(names[0], fontsize="small")
    axis.set_ylabel(names[1], fontsize="small")
    directions = [axis.xaxis, axis.yaxis]
    if points.shape[1] == 3:
        axis.set_zlabel(names[2], fontsize="small")
        directions.append(axis.zaxis)
        axis.view_init(*_view(parts))
        if int(parts["kept"]) == 2:
            _plane(axis, parts)
    for direction in directions:
        direction.set_major_locator(MaxNLocator(4))
    axis.tick_params(labelsize="small")


def _groups(parts: Mapping[str, Any]) -> list[tuple[Any, tuple[str, str]]]:
    """Return the points of each class (a mask) and its look; all of them without classes."""
    count = len(parts["class_names"])
    if not count:
        return [(np.ones(len(parts["points"]), dtype=bool), PLAIN)]
    return [(parts["target"] == number, look) for number, look in enumerate(class_looks(count))]


def _across(parts: Mapping[str, Any]) -> Any:
    """Return principal directions (3, 3) of the images, a row each; the last is across them."""
    back = parts["back"]
    return np.linalg.svd(back - back.mean(axis=0), full_matrices=False)[2]


def _plane(axis: Any, parts: Mapping[str, Any]) -> None:
    """Draw the plane of the first two components."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    middle, directions = parts["back"].mean(axis=0), _across(parts)[:2]
    reach = 1.1 * np.abs((parts["back"] - middle) @ directions.T).max(axis=0)
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * reach
    plane = Poly3DCollection([middle + corners @ directions], alpha=0.15, color="0.3", lw=0)
    plane.set_label("_plane")
    axis.add_collection3d(plane)


def _view(parts: Mapping[str, Any]) -> tuple[float, float]:
    """Return elevation and azimuth in degrees, from which the plane of the images is seen aslant.

    Seen along its second direction, from ABOVE degrees over it; of the two sides the upper.
    """
    if int(parts["kept"]) != 2:
        return 25.0, -60.0
    _, second, normal = _across(parts)
    towards = np.cos(np.radians(ABOVE)) * second + np.sin(np.radians(ABOVE)) * normal
    towards = towards if towards[2] > 0 else -towards
    elevation = float(np.degrees(np.arcsin(np.clip(towards[2], -1, 1))))
    return elevation, float(np.degrees(np.arctan2(towards[1], towards[0])))


def _height(rows: Sequence[Mapping[str, Any]], size: int) -> float:
    """Return the height of a panel of the points, as a share of its width."""
    if size == 3:
        return 1.0 if len(rows) > 1 else 0.6
    across, up = np.ptp(rows[0]["points"], axis=0)
    return float(np.clip(up / max(across, 1e-12), 0.35, 1.0)) + 0.2


make = of_arrays("projection", draw)
