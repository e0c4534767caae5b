"""Points of two or three features, and what is left of them after each scheme."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench.results.figures.base import followed, style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape

MOST_THREADS = 300  # lines from a point to its image; more hide what they show
ABOVE = 30.0  # degrees over the plane of the images, from which it is seen
UNCLASSED = "#0072b2"


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, each point pale, its image dark, a line between them.

    arrays: by label, `points` and `back` (p, N) with N 2 or 3, `kept` () components, `lost` ()
    share of the variance, `target` (p,), `class_names` (C,), `names` (N,). schemes: one row a
    scheme (`label`, `normalizer`), in order.
    """
    shown = with_arrays(schemes, arrays)
    first = shown[0].parts
    size = first["points"].shape[1]
    with style.drawn(shape):
        kwargs: Any = {}
        if size == 3:
            kwargs = {"subplot_kw": {"projection": "3d"}}
            matplotlib.rcParams["axes.titley"] = None  # a fixed title would stand in the box
        height = _height(first["points"], len(shown))
        figure, axes = style.panels(len(shown), shape, title, height, **kwargs)
        numbers = followed.in_panels(shown, first["points"])
        for axis, (label, _, parts, look) in zip(axes, shown):
            _panel(axis, parts, shape)
            followed.mark(axis, parts["back"], numbers, shape)
            lost = round(100 * float(parts["lost"]), 6)
            style.name_panel(axis, f"{label}, {lost:.3g} % of the variance lost", look)
        names = [style.plain(str(name)) for name in first["class_names"]]
        looks = [*style.class_looks(len(names)), ("0.7", "o"), ("black", "o")]
        names += ["points", "what the scheme keeps of them"]
        marks = [Line2D([], [], ls="", color=color, marker=marker) for color, marker in looks]
        style.legend(figure, shape, marks, names)
        if numbers:
            style.note(figure, shape, followed.note(numbers))
    return figure


def _panel(axis: Any, parts: Parts, shape: Shape) -> None:
    points, back = parts["points"], parts["back"]
    for one, other in list(zip(points, back))[:MOST_THREADS]:
        axis.plot(*np.stack([one, other]).T, color="0.75", lw=0.6, label="_thread", zorder=1)
    large, small = (0.5 * shape.font) ** 2, (0.35 * shape.font) ** 2
    for chosen, (color, marker) in style.by_class(parts, UNCLASSED):
        dots: Any = {"color": color, "marker": marker, "lw": 0}
        axis.scatter(*points[chosen].T, s=large, alpha=0.3, label="_points", **dots)
        axis.scatter(*back[chosen].T, s=small, label="_back", **dots)
    axis.set_aspect("equal")
    if points.shape[1] == 3:
        axis.view_init(*_view(parts))
        if int(parts["kept"]) == 2:
            _plane(axis, parts)
    for letter, name in zip("xyz", parts["names"]):
        direction = getattr(axis, f"{letter}axis")
        direction.set_label_text(style.plain(str(name)), fontsize="small")
        direction.set_major_locator(MaxNLocator(4))
    axis.tick_params(labelsize="small")


def _across(parts: Parts) -> Any:
    """Return principal directions (3, 3) of the images, a row each; the last is across them."""
    back = parts["back"]
    return np.linalg.svd(back - back.mean(axis=0), full_matrices=False)[2]


def _plane(axis: Any, parts: Parts) -> None:
    """Draw the plane of the first two components."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    middle, directions = parts["back"].mean(axis=0), _across(parts)[:2]
    reach = 1.1 * np.abs((parts["back"] - middle) @ directions.T).max(axis=0)
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * reach
    plane = Poly3DCollection([middle + corners @ directions], alpha=0.15, color="0.3", lw=0)
    plane.set_label("_plane")
    axis.add_collection3d(plane)


def _view(parts: Parts) -> tuple[float, float]:
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


def _height(points: Any, panels: int) -> float:
    """Return the height of a panel of the points, as a share of its width."""
    if points.shape[1] == 3:
        return 1.0 if panels > 1 else 0.6
    across, up = np.ptp(points, axis=0)
    return float(np.clip(up / max(across, 1e-12), 0.35, 1.0)) + 0.2


make = of_arrays("projection", draw)
