"""Draw one frame of a film: the points, the cost, and the legend of their marks."""

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm

from normbench.results.figures.base import landmarks, style
from normbench.results.figures.base.style import Shape
from normbench.results.figures.contours import LEVEL_COUNT
from normbench.results.figures.data import RASTER_POINTS
from normbench.results.figures.film.reel import Reel, View

FILM_NAME_LETTERS = 24  # letters of a line of the vertical label
DOT_COLOR_MAP = "plasma"  # of iterations, from dark to bright


def draw_points(axis: Any, reel: Reel, frame: int, shape: Shape) -> None:
    """Draw the points of a frame, with letters on the landmarks (points to follow).

    Both axes have the same scale.

    Args:
        axis: the panel, empty.
        reel: the film.
        frame: the index of the frame.
        shape: the format of the figure.
    """
    points = reel.points(frame)
    dot_style: Any = {"s": (0.3 * shape.font) ** 2, "lw": 0, "alpha": 0.8}
    dot_style["rasterized"] = len(points) > RASTER_POINTS  # an SVG of many points would be large
    for class_mask, (color, marker) in style.class_masks(reel.arrays, "0.6"):
        axis.scatter(*points[class_mask].T, color=color, marker=marker, **dot_style)
    landmarks.mark_points(axis, points, reel.landmark_indices, shape)
    # Lines through the origin, towards which some schemes move the points.
    axis.axhline(0, color="0.4", lw=0.5, zorder=1)
    axis.axvline(0, color="0.4", lw=0.5, zorder=1)
    _set_view(axis, reel.points_view(frame), reel.arrays["signs"][frame], reel.names(frame))


def draw_cost(axis: Any, reel: Reel, frame: int, shape: Shape) -> None:
    """Draw the cost's contours over a frame's weights, and the path of the descent in that frame.

    The contour through the start is dark; a circle marks the start, a star the end, a cross the
    point through which the contours are drawn. Both axes have the same scale.

    Args:
        axis: the panel, empty.
        reel: the film.
        frame: the index of the frame.
        shape: the format of the figure.
    """
    for level_number, level in enumerate(reel.lines(frame)):
        is_start_level = level_number == LEVEL_COUNT - 1  # see `Reel.contours`
        color, width = ("0.25", 1.0) if is_start_level else ("0.62", 0.6)
        axis.add_collection(LineCollection(level, colors=color, linewidths=width, zorder=1))
    path = reel.path(frame)
    axis.plot(*path.T, color="black", lw=0.7, alpha=0.7, zorder=2)
    colors = matplotlib.colormaps[DOT_COLOR_MAP](dot_brightness(reel))
    axis.scatter(*path.T, color=colors, s=(0.35 * shape.font) ** 2, zorder=3, lw=0)
    marked_points = ((path[0], "o"), (path[-1], "*"), (reel.arrays["origin"][frame], "P"))
    marker_style = {
        "color": "white",
        "mec": "black",
        "ms": 0.75 * shape.font,
        "ls": "",
        "zorder": 4,
    }
    for position, marker in marked_points:
        axis.plot(*position, marker=marker, **marker_style)
    names = [f"weight of {name}" for name in reel.names(frame)]
    _set_view(axis, reel.cost_view(frame), reel.arrays["signs"][frame], names)


def dot_brightness(reel: Reel) -> Any:
    """Return the brightness of each dot of a path (n,), from 0 to 1 over the iterations.

    Early iterations, which change the weights most, differ most in brightness.
    """
    iteration = reel.arrays["iteration"]
    # The square root of the share of the iterations. `data` drops the mask of matplotlib's array.
    return PowerNorm(0.5, 0, iteration[-1])(iteration).data


def _set_view(axis: Any, view: View, signs: Any, axis_names: Sequence[str]) -> None:
    """Set the limits, the directions and the names of a panel's axes.

    Args:
        axis: the panel.
        view: the square that the panel shows.
        signs: for each axis 1, or -1 if it is drawn backwards.
        axis_names: the name of each axis.
    """
    axis.set_box_aspect(1)
    limits = (axis.set_xlim, axis.set_ylim)
    for set_limits, centre, sign in zip(limits, view.centre, signs):
        # With sign -1, the left or lower limit is the larger one: the axis runs backwards.
        set_limits(centre - sign * view.half, centre + sign * view.half)
    style.label_plane(axis, axis_names, FILM_NAME_LETTERS)


def legend_lines(reel: Reel) -> list[str]:
    """Return the lines of the legend that explain the marks in both panels."""
    last_iteration = int(reel.arrays["iteration"][-1])
    # A film has at most two classes, because its cost has one score for each point.
    class_labels = [f"{mark} {name}" for mark, name in zip("●▲", reel.arrays["class_names"])]
    return [
        ", ".join(
            [*class_labels, f"{landmarks.letter_range(reel.landmark_indices)}: points to follow"]
        ),
        f"circle: the start; star: iteration {last_iteration}",
        f"cross: {reel.arrays['through']}",
    ]


def note_text(reel: Reel) -> str:
    """Return the note that explains the panels, as lines in one text.

    A line on axes that are drawn backwards is added if there are any.
    """
    lines = [
        "one cost in every frame, descended at step 1/L from one start",
        f"contours through {reel.arrays['through']}: the bias is held in the scheme's coordinates, "
        "so that moving the points shows in paths and numbers alone",
    ]
    if (reel.arrays["signs"] < 0).any():
        lines.append("one axis is drawn backwards: the scheme mirrors the plane")
    return "\n".join(lines)
