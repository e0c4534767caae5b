"""Points under each scheme: as they lie, their features, components and eigenvalues."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Ellipse
from matplotlib.ticker import MaxNLocator

from normbench import names
from normbench.results.figures.base import landmarks, style, ticks
from normbench.results.figures.base.labels import End, end_labels, spread_beside
from normbench.results.figures.base.material import (
    ArraysByLabel,
    DrawnScheme,
    SchemeArrays,
    with_arrays,
)
from normbench.results.figures.base.panels import (
    Panel,
    add_class_legend,
    arrays_figure,
    panel_figure,
)
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.rows import number_in

# The points, with principal axes, covariance ellipse and unit circle.

RASTER_POINTS = 300  # more points are rasterized in SVG and PDF to keep the files small
SMALL_PANEL_CLASSES = 5  # more classes need larger panels
LINE_NOTE = (
    "cross: principal axes, one standard deviation long; ellipse: of the covariance, whose "
    "condition is told"
)
MIN_CIRCLE = 0.01  # of half a panel: a smaller circle looks like a dot


def _data_layout(schemes: Sequence[DrawnScheme], shape: Shape) -> dict[str, Any]:
    has_few_classes = len(schemes[0].arrays["class_names"]) <= SMALL_PANEL_CLASSES
    columns = shape.columns if has_few_classes else min(2, shape.columns)
    return {"aspect": 1.0 if len(schemes) > 1 else 0.55, "columns": columns}


def _finish_data(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> list[str]:
    """Add the colour bar of real targets, or the classes' legend; return the note on lines."""
    axes = list(figure.axes)
    target_dots = [dots for dots in axes[-1].collections if dots.get_array() is not None]
    # The targets, and so their colours, are the same in all panels.
    if target_dots:
        figure.colorbar(target_dots[0], ax=axes, shrink=0.8, pad=0.01).set_label("target")
    add_class_legend(figure, schemes, shape)
    # A single feature has no principal axes, and only some panels show the unit circle.
    has_circle = any(isinstance(patch, Circle) for axis in axes for patch in axis.patches)
    circle_note = "; dashed: unit circle" if has_circle else ""
    return [LINE_NOTE + circle_note] if len(schemes[0].arrays["axes"]) else []


@panel_figure(
    "data",
    "points",
    _data_layout,
    lettered_points=lambda scheme_arrays: scheme_arrays["points"],
    finish=_finish_data,
)
def draw_data(panel: Panel) -> str:
    """Draw one scheme's points, and return the condition number of their covariance.

    The arrays are `points` (p, 2) in the scheme's two features or two leading principal components;
    `names` (2,) of these coordinates; `mean` (2,); `axes` (2, 2), a principal axis in each row, one
    standard deviation long, or (0, 2) for a single feature, which is drawn against the target;
    `target` (p,), class indices or real targets; `class_names` (C,), empty without classes.
    """
    axis, shape = panel.axis, panel.shape
    scheme_arrays = _align_signs(panel.first_arrays, panel.arrays)
    points, half_axes = scheme_arrays["points"], scheme_arrays["axes"]
    _draw_target_dots(axis, scheme_arrays, shape)
    # Both ways from the mean; the white line below keeps the cross visible on dark points.
    for half_axis in half_axes:
        ends = np.stack([scheme_arrays["mean"] - half_axis, scheme_arrays["mean"] + half_axis]).T
        axis.plot(*ends, color="white", lw=4, label="_halo", zorder=4)
        axis.plot(*ends, color="black", lw=2, label="_axis", zorder=5)
    if len(half_axes):
        centre, half_side = style.enclosing_square(points)
        limits = np.stack([centre - half_side, centre + half_side], axis=1)
        axis.set(xlim=limits[0], ylim=limits[1])
        patches: list[Any] = [_covariance_ellipse(scheme_arrays["mean"], half_axes)]
        if _shows_circle(centre, half_side):
            patches.append(Circle((0, 0), 1, fill=False, ls="--", lw=1, zorder=3))
        for patch in patches:
            # Else the layout would make room for the part beyond the panel.
            axis.add_patch(patch).set_in_layout(False)
        axis.set_aspect("equal")
    ticks.set_even_ticks(axis.xaxis, 4)
    ticks.set_even_ticks(axis.yaxis)
    # A single feature, without axes, is drawn against the target, which no scheme scales.
    units = ", scaled" if panel.row.get(names.SCALES.column) == "true" else ""
    axis_units = (units, units if len(half_axes) else "")
    setters = (axis.set_xlabel, axis.set_ylabel)
    for set_label, name, suffix in zip(setters, scheme_arrays["names"], axis_units):
        set_label(style.escape_dollars(f"{name}{suffix}"), fontsize="small")
    axis.tick_params(labelsize="small")
    landmarks.mark_points(axis, points, panel.landmark_indices, shape)
    condition = number_in(panel.row, names.COVARIANCE_CONDITION.column)
    return "" if np.isnan(condition) else f", condition {ticks.short_text(condition)}"


def _align_signs(first_arrays: SchemeArrays, scheme_arrays: SchemeArrays) -> dict[str, Any]:
    """Return a scheme's arrays with the signs of principal directions as in the first panel.

    The sign of an eigenvector is arbitrary: a coordinate is negated if it correlates negatively
    with that of the first panel. Arrays on other coordinates than principal components, or of
    another number of points, are returned unchanged.
    """
    aligned_arrays, reference_points = dict(scheme_arrays), first_arrays["points"]
    if (
        tuple(scheme_arrays["names"]) != names.PRINCIPAL
        or reference_points.shape != scheme_arrays["points"].shape
    ):
        return aligned_arrays
    reference, points = (
        points - points.mean(axis=0) for points in (reference_points, scheme_arrays["points"])
    )
    signs = np.where((reference * points).sum(axis=0) < 0, -1.0, 1.0)
    return aligned_arrays | {key: scheme_arrays[key] * signs for key in ("points", "mean", "axes")}


def _draw_target_dots(axis: Any, scheme_arrays: SchemeArrays, shape: Shape) -> None:
    """Draw points in the looks of their classes, or coloured by their targets, or grey."""
    points, target = scheme_arrays["points"], scheme_arrays["target"]
    dot_style: Any = {"s": (0.32 * shape.font) ** 2, "lw": 0}
    dot_style["rasterized"] = len(points) > RASTER_POINTS
    if len(scheme_arrays["class_names"]):
        style.scatter_classes(axis, points, scheme_arrays, dot_style | {"lw": 0.3})
    elif np.any(target):  # points without a target have zeros
        axis.scatter(*points.T, c=target, cmap="viridis", label="_points", **dot_style)
    else:
        axis.scatter(*points.T, color="0.4", alpha=0.55, label="_points", **dot_style)


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


def _covariance_ellipse(mean: Any, axes: Any) -> Ellipse:
    """Return the ellipse around a mean (2,) whose half axes are the rows of `axes` (2, 2)."""
    # matplotlib takes whole axes, and the angle of the first in degrees.
    width, height = 2 * np.linalg.norm(axes, axis=1)
    angle = float(np.degrees(np.arctan2(axes[0, 1], axes[0, 0])))
    return Ellipse(mean, width, height, angle=angle, fill=False, lw=1, ec="0.25", zorder=4)


# The biplot: points in the plane of two principal components, with features as arrows.

MAX_NAMED = 12  # arrows with names; more names are not readable
MIN_ARROW = 0.05  # of the longest arrow: shorter arrows are not drawn
ARROW_REACH = 2.6  # length of the longest arrow in standard deviations of the points
MAX_REACH = 3 * ARROW_REACH  # farther points are cut off, or the arrows would be small
LETTER_CLEARANCE = 0.07  # of a panel's height, between a letter's and a name's centre
BIPLOT_RATIO = 0.62  # height over width of a panel, with room for names on both sides


@panel_figure(
    "biplot",
    "biplot",
    lambda _, shape: {"aspect": BIPLOT_RATIO, "columns": min(2, shape.columns)},
    # The outermost points are chosen at the true spread of the components: in standard deviations
    # both have the same, and the principal axes would be arbitrary.
    lettered_points=lambda scheme_arrays: scheme_arrays["points"] * scheme_arrays["shares"] ** 0.5,
    finish=add_class_legend,
)
def draw_biplot(panel: Panel) -> str:
    """Draw one scheme's points, pale, and its longest features as arrows with names.

    The arrays are `points` (p, 2), the coordinates in the two components in standard deviations;
    `loadings` (m, 2), the arrow of each feature, and `names` (m,) of the features; `shares` (2,) of
    the variance; `target` (p,), `class_names` (C,).
    """
    axis, scheme_arrays, shape = panel.axis, panel.arrays, panel.shape
    points, dot_area = scheme_arrays["points"], (0.3 * shape.font) ** 2
    for class_mask, (color, marker) in style.class_masks(scheme_arrays, "0.5"):
        axis.scatter(*points[class_mask].T, s=dot_area, color=color, marker=marker, alpha=0.6, lw=0)
    lengths = np.hypot(*scheme_arrays["loadings"].T)
    # Divided by 1 if all arrows have length 0.
    arrows = scheme_arrays["loadings"] * (ARROW_REACH / (lengths.max() or 1.0))
    # The features that are drawn: the longest arrows, without negligible ones.
    named_features = np.argsort(-lengths, kind="stable")[:MAX_NAMED]
    named_features = named_features[lengths[named_features] > MIN_ARROW * lengths.max()]
    for feature in named_features:
        arrow_style = {"arrowstyle": "->", "color": "black", "lw": 1}
        axis.annotate("", arrows[feature], (0, 0), arrowprops=arrow_style, zorder=4)
    width, height = np.abs(points).max(axis=0)
    # The panel, wider than high, contains the arrows, and the points unless they are far.
    farthest = 1.1 * float(max(height, BIPLOT_RATIO * width))
    half_height = min(max(1.15 * ARROW_REACH, farthest), MAX_REACH)
    half_width = half_height / BIPLOT_RATIO
    axis.set(xlim=(-half_width, half_width), ylim=(-half_height, half_height))
    axis.set_aspect("equal")  # angles between arrows show correlations
    letters = points[list(panel.landmark_indices)].reshape(-1, 2)  # (0, 2) without landmarks
    feature_names = scheme_arrays["names"][named_features]
    _write_names(axis, arrows[named_features], feature_names, letters, 0.7 * shape.font)
    shares = [
        f"{share:.0%}" if share >= 0.01 else f"{share:.1%}" for share in scheme_arrays["shares"][:2]
    ]
    axis_names = [f"component {n + 1}, {share} of the variance" for n, share in enumerate(shares)]
    axis.set(xlabel=axis_names[0], ylabel=axis_names[1])
    landmarks.mark_points(axis, points, panel.landmark_indices, shape)
    return ""


def _write_names(axis: Any, tips: Any, names: Any, letter_positions: Any, font: float) -> None:
    """Write names in a column on each side of the arrows, with a line from each name to its tip.

    Args:
        axis: the panel, whose vertical limits are set symmetrically around 0.
        tips: the tips of the arrows (n, 2).
        names: the names of the arrows (n,).
        letter_positions: the positions of the landmarks (f, 2), which the names avoid.
        font: the font size in points.
    """
    half_height = axis.get_ylim()[1]
    for side in (-1, 1):
        # The arrows that point to this side, the lowest first.
        side_arrows = [n for n in np.argsort(tips[:, 1]) if (tips[n, 0] >= 0) == (side > 0)]
        if not side_arrows:
            continue
        text_x = max(abs(tips[n, 0]) for n in side_arrows) + 0.12 * half_height
        # The heights of the letters that stand where the names begin, or farther out.
        is_near = side * letter_positions[:, 0] > text_x - LETTER_CLEARANCE * half_height
        # As fractions of the panel's height, which spans -half_height to half_height.
        heights = spread_beside(
            [(tips[n, 1] / half_height + 1) / 2 for n in side_arrows],
            0.06,  # of the panel's height, between two names
            (letter_positions[is_near, 1] / half_height + 1) / 2,
            LETTER_CLEARANCE,
        )
        for n, height in zip(side_arrows, heights):
            axis.annotate(
                style.escape_dollars(str(names[n])[:22]),  # letters that fit beside the arrows
                tips[n],
                (side * text_x, (2 * height - 1) * half_height),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=font,
                zorder=5,
                arrowprops={"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 1},
            )


# The entries of each principal component as a coloured table.

MAX_LOADING_FEATURES, MAX_COMPONENTS = 20, 8  # of a readable table
SINGLE_FEATURE = 0.999  # a component of length 1 with a larger entry is one feature
LOADING_ROW_LINES = 1.9  # a row's height in font sizes
LOADINGS_NOTE = "entries of each component, a vector of length 1; below its share of the variance"


def _mixes_features(scheme_arrays: SchemeArrays) -> bool:
    """Return whether some drawn component mixes features; otherwise the table says nothing."""
    entries = np.abs(scheme_arrays["entries"][:, :MAX_COMPONENTS])
    return not bool((entries.max(axis=0) > SINGLE_FEATURE).all())


def _loadings_layout(schemes: Sequence[DrawnScheme], shape: Shape) -> dict[str, Any]:
    columns = min(len(schemes), shape.columns, 2)
    features = max(len(scheme.arrays["names"]) for scheme in schemes)
    # 4 more rows hold the title and the ticks.
    height = (min(features, MAX_LOADING_FEATURES) + 4) * LOADING_ROW_LINES * shape.font / 72
    return {"aspect": height / (shape.width / columns), "columns": columns}


def _explain_loadings(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> list[str]:
    figure.supxlabel(LOADINGS_NOTE, fontsize="small")
    return []


@panel_figure(
    "loadings",
    "biplot",
    _loadings_layout,
    is_drawable=_mixes_features,
    finish=_explain_loadings,
)
def draw_loadings(panel: Panel) -> str:
    """Draw the table of a scheme's components: red entries are positive, blue ones negative.

    The arrays are the `entries` (m, K) of m features in K components and the standard `deviations`
    (K,) along these; `names` (m,) of the features; `loadings` (m, 2), their arrows in the biplot;
    `shares` (2,) of the variance along the first two components. At most `MAX_LOADING_FEATURES`
    rows, those with the longest arrows, and `MAX_COMPONENTS` columns are drawn.
    """
    axis, scheme_arrays = panel.axis, panel.arrays
    lengths = np.hypot(*scheme_arrays["loadings"].T)
    # The features with the longest arrows, in the order of the data set.
    feature_indices = np.sort(np.argsort(-lengths, kind="stable")[:MAX_LOADING_FEATURES])
    entries = scheme_arrays["entries"][feature_indices, :MAX_COMPONENTS]
    # `shares` has the first two components only: the total follows from the first. `or 1.0` is for
    # points without variance, and avoids a division by 0.
    total_variance = scheme_arrays["deviations"][0] ** 2 / (scheme_arrays["shares"][0] or 1.0)
    shares = scheme_arrays["deviations"][:MAX_COMPONENTS] ** 2 / (total_variance or 1.0)
    axis.imshow(entries, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for (row, column), entry in np.ndenumerate(entries):
        # A negative entry that is rounded to 0 has no minus sign.
        text = f"{entry:.2f}".replace("-0.00", "0.00")
        style.write_in_cell(axis, row, column, text, panel.shape, is_dark=abs(entry) > 0.7)
    feature_names = [str(scheme_arrays["names"][n])[:22] for n in feature_indices]
    axis.set_yticks(range(len(feature_names)), map(style.escape_dollars, feature_names))
    axis.set_xticks(range(len(shares)), [f"{n + 1}\n{share:.1%}" for n, share in enumerate(shares)])
    axis.tick_params(axis="x", labelsize=0.7 * panel.shape.font)  # as the entries above
    axis.grid(False)
    return ""


# The distribution of each feature.

JITTER = 0.16  # vertical jitter of the points of a feature, to both sides
FEATURE_LINES = 1.0  # the smallest height of a feature in lines of text
MAX_NAME_LETTERS = 18


def _features_layout(schemes: Sequence[DrawnScheme], shape: Shape) -> dict[str, Any]:
    count = max(scheme.arrays["values"].shape[1] for scheme in schemes)
    panel_width = shape.width / min(len(schemes), shape.columns)
    # A feature's row is at least one line of text high; 4 more lines hold the title and the ticks.
    height = max(0.9 * panel_width, (FEATURE_LINES * count + 4) * shape.font / 72)
    return {"aspect": height / panel_width}


@panel_figure("features", "features", _features_layout)
def draw_features(panel: Panel) -> str:
    """Draw the points and the box plot of each feature, the first feature on top.

    The box spans the quartiles, its line is the median, the whiskers span all points. The arrays
    are `values` (p, m) and `names` (m,) of the first m features under the scheme, and the number
    `all` () of features in total. The seed of the vertical jitter is fixed, so that equal arrays
    give equal figures.
    """
    axis, scheme_arrays, values = panel.axis, panel.arrays, panel.arrays["values"]
    count = values.shape[1]
    row_positions = np.arange(1, count + 1)
    jitter = np.random.default_rng(0).uniform(-JITTER, JITTER, values.shape)
    dot_style: Any = {"s": (0.2 * panel.shape.font) ** 2, "alpha": 0.3, "lw": 0}
    dot_style |= {"color": panel.look.color, "label": "_points", "rasterized": True}
    # All features at once: values (p, m), and for each its row with jitter.
    axis.scatter(values, row_positions + jitter, **dot_style)
    line_style = {"color": "black", "linewidth": 0.9}
    axis.boxplot(
        values,
        positions=row_positions,
        widths=0.6,
        whis=(0, 100),
        orientation="horizontal",
        showfliers=False,
        boxprops=line_style,
        whiskerprops=line_style,
        capprops=line_style,
        medianprops={**line_style, "linewidth": 2},
    )
    axis.axvline(0, color="0.4", lw=0.8, ls=":", label="_zero")
    names = [style.escape_dollars(str(name)[:MAX_NAME_LETTERS]) for name in scheme_arrays["names"]]
    axis.set_yticks(row_positions, names)
    axis.set_ylim(count + 0.6, 0.4)  # downwards
    axis.tick_params(labelsize="small")
    axis.grid(False, axis="y")
    axis.set_xlabel("value")
    omitted_count = int(scheme_arrays["all"]) - len(names)
    return f", and {omitted_count} more features" if omitted_count else ""


# Points of two or three features, and their images after each scheme's projection.

MAX_THREADS = 300  # lines from points to their images; more lines hide the points
ELEVATION = 30.0  # degrees of the camera above the plane of the images
POINT_OPACITY = 0.3
UNCLASSED_COLOR = "#0072b2"


def _projection_layout(schemes: Sequence[DrawnScheme], shape: Shape) -> dict[str, Any]:
    points = schemes[0].arrays["points"]
    if points.shape[1] == 3:  # one spatial panel alone is wide
        matplotlib.rcParams["axes.titley"] = None  # a fixed title would overlap the box
        spatial: Any = {"projection": "3d"}
        return {"aspect": 1.0 if len(schemes) > 1 else 0.6, "subplot_kw": spatial}
    # As high as the extent of the points; 1e-12 avoids a division by 0; 0.2 is for the title.
    width, height = np.ptp(points, axis=0)
    return {"aspect": float(np.clip(height / max(width, 1e-12), 0.35, 1.0)) + 0.2}


def _explain_projection(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> list[str]:
    """Add the legend: the classes, then pale points and dark images, grey for all classes."""
    class_names = [style.escape_dollars(str(name)) for name in schemes[0].arrays["class_names"]]
    pale, dark = to_rgba(UNCLASSED_COLOR, POINT_OPACITY), UNCLASSED_COLOR
    looks: list[Any] = style.class_looks(len(class_names))
    looks += [("0.7", "o"), ("black", "o")] if class_names else [(pale, "o"), (dark, "o")]
    handles = [Line2D([], [], ls="", color=color, marker=marker) for color, marker in looks]
    style.add_legend(
        figure, shape, handles, [*class_names, "points", "what the scheme keeps of them"]
    )
    return []


@panel_figure(
    "projection",
    "projection",
    _projection_layout,
    lettered_points=lambda scheme_arrays: scheme_arrays["points"],
    finish=_explain_projection,
)
def draw_projection(panel: Panel) -> str:
    """Draw each point pale, its image dark, a line between them; return the variance lost.

    The arrays are `points` and their images `back` (p, N) with N 2 or 3, the number of components
    `kept` (), the share of the variance `lost` (), `target` (p,), `class_names` (C,), `names` (N,).
    Images of points with three features have a grey plane if the scheme keeps two components.
    """
    axis, scheme_arrays, font = panel.axis, panel.arrays, panel.shape.font
    points, images = scheme_arrays["points"], scheme_arrays["back"]
    for point, image in list(zip(points, images))[:MAX_THREADS]:
        axis.plot(*np.stack([point, image]).T, color="0.75", lw=0.6, label="_thread", zorder=1)
    pale_style: Any = {"s": (0.5 * font) ** 2, "alpha": POINT_OPACITY, "label": "_points"}
    dark_style: Any = {"s": (0.35 * font) ** 2, "label": "_back"}
    for class_mask, (color, marker) in style.class_masks(scheme_arrays, UNCLASSED_COLOR):
        for shown, dot_style in ((points, pale_style), (images, dark_style)):
            axis.scatter(*shown[class_mask].T, color=color, marker=marker, lw=0, **dot_style)
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
    landmarks.mark_points(axis, images, panel.landmark_indices, panel.shape)
    # Rounded, so that a loss that is only rounding error is written as 0.
    return f", {round(100 * float(scheme_arrays['lost']), 6):.3g} % of the variance lost"


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
    angle = np.radians(ELEVATION)
    view_direction = np.cos(angle) * second_direction + np.sin(angle) * normal
    # The sign of a principal direction is arbitrary: take the camera that is above the points.
    x, y, z = view_direction if view_direction[2] > 0 else -view_direction
    return float(np.degrees(np.arcsin(np.clip(z, -1, 1)))), float(np.degrees(np.arctan2(y, x)))


# Eigenvalues of the covariance and their cumulative share.

BEFORE_LOOK = Look("#000000", "", "-")
RIDGE_RATIO = 1e4  # a ridge this factor below the lowest eigenvalue is written, not drawn
EPS = float(np.finfo(np.float64).eps)


@arrays_figure("spectrum", "spectrum")
def draw_spectrum(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: eigenvalues left, cumulative shares right, dead directions shaded.

    Args:
        arrays: by label, the eigenvalues of the covariance, decreasing: `before` (N,) the scheme,
            the same for all schemes, and `after` (M,); `dead` (), the number of directions whose
            eigenvalue before the scheme is only rounding error; `ridge` (), the constant that the
            scheme adds to each eigenvalue, NaN without one.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    first_arrays = drawn_schemes[0].arrays
    count, dead_count = len(first_arrays["before"]), int(first_arrays["dead"])
    height = max(0.6 * shape.width / 2, (len(drawn_schemes) + 4) * 1.25 * shape.font / 72)
    columns = 1 if shape.width < 8 else 2
    with style.figure_style(shape):
        figure, axes = style.panels(2, shape, title, height / (shape.width / columns), columns)
        spectra = [("before", first_arrays["before"], BEFORE_LOOK)]
        spectra += [(scheme.label, scheme.arrays["after"], scheme.look) for scheme in drawn_schemes]
        # Equal ridges of several schemes are drawn once.
        ridges = {float(scheme.arrays["ridge"]) for scheme in drawn_schemes}
        _draw_eigenvalues(axes[0], spectra, ridges, shape, height)
        for number, (text, values, look) in enumerate(spectra):
            total = float(values.sum())  # the shares are 0 if all eigenvalues are
            shares = np.cumsum(values) / total if total > 0 else np.zeros(len(values))
            _draw_spectrum_line(axes[1], shares, text, look, number / len(spectra))
        axes[1].set(ylim=(0, 1.02), ylabel="cumulative share of its total")
        for axis in axes:
            axis.set(xlabel="direction, by decreasing variance", xlim=(1, max(count, 2)))
            axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            if dead_count:  # from the middle between the last live direction and the first dead one
                first_dead = count - dead_count + 0.5
                axis.axvspan(first_dead, count, color="0.6", alpha=0.3, lw=0, label="_dead")
        if dead_count:
            text_style: Any = {"ha": "right", "va": "top", "color": "0.3"}
            text_style["transform"] = axes[0].get_xaxis_transform()
            axes[0].text(count - dead_count, 0.98, f"{dead_count} dead ", **text_style)
    return figure


def _draw_eigenvalues(
    axis: Any, spectra: Any, ridges: set[float], shape: Shape, height: float
) -> None:
    """Draw the eigenvalues and the ridges.

    Eigenvalues at the level of rounding are drawn at the lower edge of the panel.

    Args:
        axis: the panel.
        spectra: the name, the eigenvalues and the look of each curve.
        ridges: the ridges of the schemes; one far below the eigenvalues is written, not drawn.
        shape: the format of the figure.
        height: inches of the panel with its title, labels and ticks.
    """
    largest = max(float(values.max()) for _, values, _ in spectra) or 1.0
    # The eigenvalues above the level of rounding.
    live_spectra = [values[values > len(values) * EPS * values.max()] for _, values, _ in spectra]
    lowest = min([float(values.min()) for values in live_spectra if len(values)], default=largest)
    # Without NaN, the ridge of a scheme that adds none.
    positive_ridges = sorted(ridge for ridge in ridges if ridge > 0)
    drawn_ridges = [ridge for ridge in positive_ridges if ridge > lowest / RIDGE_RATIO]
    lower_edge = min([lowest / 10, *(ridge / 3 for ridge in drawn_ridges)])  # of the panel
    curve_ends = []
    for number, ((text, values, look), live_values) in enumerate(zip(spectra, live_spectra)):
        heights = np.maximum(values, lower_edge)
        _draw_spectrum_line(axis, heights, text, look, number / len(spectra))
        # The label stands at the last eigenvalue above rounding, or at the edge if there is none.
        end_value = float(live_values[-1]) if len(live_values) else lower_edge
        curve_ends.append(End(text, end_value, look))
    axis.set_yscale("log")
    text_style: Any = {"va": "bottom", "fontsize": "small", "color": "0.3"}
    text_style["transform"] = axis.get_yaxis_transform()
    for ridge in positive_ridges:
        is_far = ridge not in drawn_ridges
        if not is_far:
            axis.axhline(ridge, color="0.3", ls=(0, (1, 2)), lw=1.2, label="_ridge")
        ridge_label = f"ridge {ridge:g}" + ", far below" * is_far
        axis.text(0.02, max(ridge, lower_edge), ridge_label, **text_style)
    axis.set(ylim=(lower_edge, 5 * largest), ylabel="eigenvalue")
    ticks.set_log_ticks(axis.yaxis)
    end_labels(axis, curve_ends, shape, height)


def _draw_spectrum_line(axis: Any, values: Any, text: str, look: Look, phase: float) -> None:
    """Draw values (N,) by direction; without a marker in the look, the line is thick."""
    curve_style = style.marked_curve(look, len(values), phase)
    curve_style["lw"] = None if look.marker else 2.5
    axis.plot(np.arange(1, len(values) + 1), values, label=text, **curve_style)


# The errors of several normalization formulas on the same points.

FORMULA_ROW_LINES = 2.9  # a row's height in font sizes
EXACT_ERROR, USELESS_ERROR = 1e-4, 10.0  # the errors at the ends of the colour scale
DARK_ERROR = 0.1  # cells with larger errors have white letters
ITERATION_LIMIT = 1000  # iterations
FORMULAS_NOTE = (
    "off by: the largest error of the means and variances; iterations of gradient descent at 1/L "
    "until 1 percent of the excess cost is left; never there: not within 1000"
)


@arrays_figure("formulas", "formulas")
def draw_formulas(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a table with one column for each formula; red cells have large errors.

    Formulas are applied to the points before the scheme: schemes with equal numbers share a row.

    Args:
        arrays: by label, with one entry for each of F formulas: its name `formula`; the errors
            `mean`, the largest mean of a feature, and `off`, the largest error of a variance, NaN
            if the results are not finite; `iterations` of gradient descent to one percent of the
            excess, `ITERATION_LIMIT` if it does not get there.
        schemes: one row for each scheme in order (`label`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    # The first label of each set of schemes with equal numbers: the rows of the table.
    label_by_numbers: dict[bytes, str] = {}
    for label in schemes["label"]:
        if label in arrays:
            numbers = np.stack([arrays[label][key] for key in ("mean", "off", "iterations")])
            label_by_numbers.setdefault(np.asarray(numbers, dtype=float).tobytes(), label)
    labels = list(label_by_numbers.values())
    with style.figure_style(shape):
        height = (len(labels) + 2) * FORMULA_ROW_LINES * shape.font / 72 / shape.width
        figure, (axis,) = style.panels(1, shape, title, height)
        # (rows, F): the larger of both errors; results that are not finite are worst.
        errors = np.array(
            [np.fmax(arrays[label]["off"], arrays[label]["mean"]) for label in labels]
        )
        errors[np.isnan(errors)] = np.inf
        low, high = np.log10([EXACT_ERROR, USELESS_ERROR])
        with np.errstate(divide="ignore"):  # an error of 0 is drawn as `EXACT_ERROR`
            log_errors = np.clip(np.log10(errors), low, high)
        axis.imshow(log_errors, cmap="Reds", vmin=low, vmax=high, aspect="auto")
        for (row, column), error in np.ndenumerate(errors):
            iterations = arrays[labels[row]]["iterations"][column]
            is_there = not iterations >= ITERATION_LIMIT  # also if the number is NaN
            reached = f"{iterations:g} iterations" if is_there else "never there"
            text = f"off by {error:.1g}\n{reached}" if np.isfinite(error) else "not finite"
            style.write_in_cell(axis, row, column, text, shape, is_dark=error > DARK_ERROR)
        formula_names = [str(name).replace("_", "\n") for name in arrays[labels[0]]["formula"]]
        axis.set_xticks(range(len(formula_names)), formula_names)
        axis.set_yticks(range(len(labels)), map(style.escape_dollars, shorten_labels(labels)))
        axis.grid(False)
        style.add_note(figure, shape, FORMULAS_NOTE)
    return figure


def shorten_labels(labels: Sequence[str]) -> list[str]:
    """Return labels without the options that all labels share; a single label becomes `points`.

    Options are the parts of a label between commas, the scheme's name among them. A label of shared
    options alone stays as it is.
    """
    if len(labels) == 1:
        return ["points"]
    options_by_label = [label.split(", ") for label in labels]
    shared_options = set.intersection(*map(set, options_by_label))
    return [
        ", ".join(option for option in label_options if option not in shared_options) or label
        for label, label_options in zip(labels, options_by_label)
    ]
