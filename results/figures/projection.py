"""Points of two or three features, and their images after each scheme's projection."""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normbench.results.figures.base import landmarks, style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape

MAX_THREADS = 300  # lines from points to their images; more lines hide the points
ELEVATION = 30.0  # degrees of the camera above the plane of the images
POINT_OPACITY = 0.3
UNCLASSED_COLOR = "#0072b2"
UNCLASSED_PALE = to_rgba(UNCLASSED_COLOR, POINT_OPACITY)


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: each point pale, its image dark, and a line between them.

    Args:
        arrays: by label, `points` and their images `back` (p, N) with N 2 or 3, the number of
            components `kept` (), the share of the variance `lost` (), `target` (p,),
            `class_names` (C,), `names` (N,).
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    first_arrays = drawn_schemes[0].arrays
    dimension = first_arrays["points"].shape[1]  # 2 or 3
    with style.figure_style(shape):
        axes_options: Any = {}
        if dimension == 3:
            axes_options = {"subplot_kw": {"projection": "3d"}}
            matplotlib.rcParams["axes.titley"] = None  # a fixed title would overlap the box
        height = _height(first_arrays["points"], len(drawn_schemes))
        figure, axes = style.panels(len(drawn_schemes), shape, title, height, **axes_options)
        landmark_indices = landmarks.choose_for_panels(drawn_schemes, first_arrays["points"])
        for axis, (label, _, scheme_arrays, look) in zip(axes, drawn_schemes):
            _draw_panel(axis, scheme_arrays, shape)
            landmarks.mark_points(axis, scheme_arrays["back"], landmark_indices, shape)
            # Rounded, so that a loss that is only rounding error is written as 0.
            lost_percent = round(100 * float(scheme_arrays["lost"]), 6)
            style.name_panel(axis, f"{label}, {lost_percent:.3g} % of the variance lost", look)
        legend_labels = [style.escape_dollars(str(name)) for name in first_arrays["class_names"]]
        # After the classes, an entry each for pale points and dark images: grey for all classes.
        pale, dark = ("0.7", "black") if legend_labels else (UNCLASSED_PALE, UNCLASSED_COLOR)
        legend_looks: list[Any] = style.class_looks(len(legend_labels))
        legend_looks += [(pale, "o"), (dark, "o")]
        legend_labels += ["points", "what the scheme keeps of them"]
        handles = [
            Line2D([], [], ls="", color=color, marker=marker) for color, marker in legend_looks
        ]
        style.add_legend(figure, shape, handles, legend_labels)
        if landmark_indices:
            style.add_note(figure, shape, landmarks.describe_letters(landmark_indices))
    return figure


def _draw_panel(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw points, their images, and lines between them.

    Images of points with three features have a grey plane if the scheme keeps two components.

    Args:
        axis: the panel, spatial for points with three features.
        scheme_arrays: as for `draw`, of one scheme.
        shape: the format of the figure.
    """
    points, images = scheme_arrays["points"], scheme_arrays["back"]
    for point, image in list(zip(points, images))[:MAX_THREADS]:
        axis.plot(*np.stack([point, image]).T, color="0.75", lw=0.6, label="_thread", zorder=1)
    point_area, image_area = (0.5 * shape.font) ** 2, (0.35 * shape.font) ** 2
    for class_mask, (color, marker) in style.class_masks(scheme_arrays, UNCLASSED_COLOR):
        dot_style: Any = {"color": color, "marker": marker, "lw": 0}
        axis.scatter(
            *points[class_mask].T, s=point_area, alpha=POINT_OPACITY, label="_points", **dot_style
        )
        axis.scatter(*images[class_mask].T, s=image_area, label="_back", **dot_style)
    axis.set_aspect("equal")
    if points.shape[1] == 3:
        axis.view_init(*_view_angles(scheme_arrays))
        if int(scheme_arrays["kept"]) == 2:  # the images lie in a plane
            _draw_plane(axis, scheme_arrays)
    for letter, name in zip("xyz", scheme_arrays["names"]):
        matplotlib_axis = getattr(axis, f"{letter}axis")
        matplotlib_axis.set_label_text(style.escape_dollars(str(name)), fontsize="small")
        matplotlib_axis.set_major_locator(MaxNLocator(4))
    axis.tick_params(labelsize="small")


def _image_directions(scheme_arrays: SchemeArrays) -> Any:
    """Return principal directions of the images as rows (3, 3); the last is normal to the plane."""
    images = scheme_arrays["back"]
    # Full matrices, to get three directions of two points; of more, they would only be large.
    return np.linalg.svd(images - images.mean(axis=0), full_matrices=len(images) < 3)[2]


def _draw_plane(axis: Any, scheme_arrays: SchemeArrays) -> None:
    """Draw the part of the plane of the images that contains them, with a margin."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    centre, directions = scheme_arrays["back"].mean(axis=0), _image_directions(scheme_arrays)[:2]
    # Half the lengths of the drawn part along both directions.
    extents = 1.1 * np.abs((scheme_arrays["back"] - centre) @ directions.T).max(axis=0)
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * extents
    plane = Poly3DCollection([centre + corners @ directions], alpha=0.15, color="0.3", lw=0)
    plane.set_label("_plane")
    axis.add_collection3d(plane)


def _view_angles(scheme_arrays: SchemeArrays) -> tuple[float, float]:
    """Return elevation and azimuth of the camera in degrees, for an oblique view of the images.

    If the images lie in a plane, the camera looks along the second direction of the plane, from
    `ELEVATION` degrees above it. Otherwise the view is a usual one that depends on nothing.
    """
    if int(scheme_arrays["kept"]) != 2:
        return 25.0, -60.0
    _, second_direction, normal = _image_directions(scheme_arrays)
    view_direction = (
        np.cos(np.radians(ELEVATION)) * second_direction + np.sin(np.radians(ELEVATION)) * normal
    )
    # The sign of a principal direction is arbitrary: take the camera that is above the points.
    view_direction = view_direction if view_direction[2] > 0 else -view_direction
    elevation = float(np.degrees(np.arcsin(np.clip(view_direction[2], -1, 1))))
    return elevation, float(np.degrees(np.arctan2(view_direction[1], view_direction[0])))


def _height(points: Any, panels: int) -> float:
    """Return the height of a panel over its width, including its title.

    Args:
        points: the points (p, N), N 2 or 3; in a plane, the panel is as high as their extent needs.
        panels: the number of panels; one spatial panel alone is wide.
    """
    if points.shape[1] == 3:
        return 1.0 if panels > 1 else 0.6
    width, height = np.ptp(points, axis=0)
    # 1e-12 avoids a division by 0; 0.2 is the room of the title.
    return float(np.clip(height / max(width, 1e-12), 0.35, 1.0)) + 0.2


make = maker_from_arrays("projection", draw)
