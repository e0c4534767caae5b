"""How one frame of a film is drawn: the points, the cost, and what their marks are."""

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm

from normbench.results.figures.base import followed, style
from normbench.results.figures.base.style import Shape
from normbench.results.figures.contours import LEVEL_COUNT
from normbench.results.figures.data import RASTER_POINTS
from normbench.results.figures.film.reel import Reel, View

LETTERS = 24  # of a line beside a panel
DOTS = "plasma"  # of iterations, dark to bright


def draw_points(axis: Any, reel: Reel, frame: int, shape: Shape) -> None:
    """Draw the points of a frame, in one scale on both axes, some marked to be followed."""
    points = reel.points(frame)
    dots: Any = {"s": (0.3 * shape.font) ** 2, "lw": 0, "alpha": 0.8}
    dots["rasterized"] = len(points) > RASTER_POINTS
    for chosen, (color, marker) in style.class_masks(reel.arrays, "0.6"):
        axis.scatter(*points[chosen].T, color=color, marker=marker, **dots)
    followed.mark_points(axis, points, reel.marked, shape)
    axis.axhline(0, color="0.4", lw=0.5, zorder=1)
    axis.axvline(0, color="0.4", lw=0.5, zorder=1)
    _look_at(axis, reel.about(frame), reel.arrays["signs"][frame], reel.names(frame))


def draw_cost(axis: Any, reel: Reel, frame: int, shape: Shape) -> None:
    """Draw the contours of the cost and the descent at a frame, in one scale on both axes."""
    for number, level in enumerate(reel.lines(frame)):
        start = number == LEVEL_COUNT - 1
        color, width = ("0.25", 1.0) if start else ("0.62", 0.6)
        axis.add_collection(LineCollection(level, colors=color, linewidths=width, zorder=1))
    path = reel.path(frame)
    axis.plot(*path.T, color="black", lw=0.7, alpha=0.7, zorder=2)
    colors = matplotlib.colormaps[DOTS](progress(reel))
    axis.scatter(*path.T, color=colors, s=(0.35 * shape.font) ** 2, zorder=3, lw=0)
    ends = ((path[0], "o"), (path[-1], "*"), (reel.arrays["origin"][frame], "P"))
    mark = {"color": "white", "mec": "black", "ms": 0.75 * shape.font, "ls": "", "zorder": 4}
    for place, marker in ends:
        axis.plot(*place, marker=marker, **mark)
    names = [f"weight of {name}" for name in reel.names(frame)]
    _look_at(axis, reel.around(frame), reel.arrays["signs"][frame], names)


def progress(reel: Reel) -> Any:
    """Return how bright each dot of a path is, (n,): most happens early."""
    iteration = reel.arrays["iteration"]
    return PowerNorm(0.5, 0, iteration[-1])(iteration).data


def _look_at(axis: Any, view: View, signs: Any, names: Sequence[str]) -> None:
    """Set what a panel shows, which way its axes point, and what they are called."""
    axis.set_box_aspect(1)
    limits = (axis.set_xlim, axis.set_ylim)
    for put, middle, sign in zip(limits, view.middle, signs):
        put(middle - sign * view.half, middle + sign * view.half)
    style.label_plane(axis, names, LETTERS)


def legend(reel: Reel) -> list[str]:
    """Return what the marks are, a line each."""
    last = int(reel.arrays["iteration"][-1])
    classes = [f"{mark} {name}" for mark, name in zip("●▲", reel.arrays["class_names"])]
    return [
        ", ".join([*classes, f"{followed.letter_range(reel.marked)}: points to follow"]),
        f"circle: the start; star: iteration {last}",
        f"cross: {reel.arrays['through']}",
    ]


def note(reel: Reel) -> str:
    """Return what the panels show, in lines."""
    lines = [
        "one cost in every frame, descended at step 1/L from one start",
        f"contours through {reel.arrays['through']}: the bias is held in the scheme's coordinates, "
        "so that moving the points shows in paths and numbers alone",
    ]
    if (reel.arrays["signs"] < 0).any():
        lines.append("one axis is drawn backwards: the scheme mirrors the plane")
    return "\n".join(lines)
