"""The biplot: points in the plane of two principal components, with features as arrows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import landmarks, style
from normbench.results.figures.base.labels import spread_beside
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape

MAX_NAMED = 12  # arrows with names; more names are not readable
MIN_ARROW = 0.05  # of the longest arrow: shorter arrows are not drawn
ARROW_REACH = 2.6  # length of the longest arrow in standard deviations of the points
MAX_REACH = 3 * ARROW_REACH  # farther points are cut off, or the arrows would be small
LETTER_CLEARANCE = 0.07  # of a panel's height, between a letter's and a name's centre
PANEL_RATIO = 0.62  # height over width of a panel, with room for names on both sides


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, with pale points and named arrows.

    Args:
        arrays: by label, `points` (p, 2), the coordinates in the two components in standard
            deviations; `loadings` (m, 2), the arrow of each feature, and `names` (m,) of the
            features; `shares` (2,) of the variance; `target` (p,), `class_names` (C,).
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    first_arrays = drawn_schemes[0].arrays
    with style.figure_style(shape):
        figure, axes = style.panels(
            len(drawn_schemes), shape, title, PANEL_RATIO, columns=min(2, shape.columns)
        )
        # The outermost points are chosen at the true spread of the components: in standard
        # deviations both have the same, and the principal axes would be arbitrary.
        landmark_indices = landmarks.choose_for_panels(
            drawn_schemes, first_arrays["points"] * first_arrays["shares"] ** 0.5
        )
        for axis, scheme in zip(axes, drawn_schemes):
            _draw_panel(axis, scheme.arrays, landmark_indices, shape)
            landmarks.mark_points(axis, scheme.arrays["points"], landmark_indices, shape)
            style.name_panel(axis, scheme.label, scheme.look)
        style.add_legend(figure, shape, style.class_handles(first_arrays["class_names"]))
        if landmark_indices:
            style.add_note(figure, shape, landmarks.describe_letters(landmark_indices))
    return figure


def _draw_panel(
    axis: Any, scheme_arrays: SchemeArrays, landmark_indices: Sequence[int], shape: Shape
) -> None:
    """Draw one scheme's points, and its longest features as arrows with names.

    Args:
        axis: the panel.
        scheme_arrays: as for `draw`, of one scheme.
        landmark_indices: the points on which the caller writes letters; names avoid these.
        shape: the format of the figure.
    """
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
    half_height = min(
        max(1.15 * ARROW_REACH, 1.1 * float(max(height, PANEL_RATIO * width))), MAX_REACH
    )
    axis.set(
        xlim=(-half_height / PANEL_RATIO, half_height / PANEL_RATIO),
        ylim=(-half_height, half_height),
    )
    axis.set_aspect("equal")  # angles between arrows show correlations
    letter_positions = points[list(landmark_indices)].reshape(-1, 2)  # (0, 2) without landmarks
    _write_names(
        axis,
        arrows[named_features],
        scheme_arrays["names"][named_features],
        letter_positions,
        0.7 * shape.font,
        half_height,
    )
    shares = [
        f"{share:.0%}" if share >= 0.01 else f"{share:.1%}" for share in scheme_arrays["shares"][:2]
    ]
    axis_names = [f"component {n + 1}, {share} of the variance" for n, share in enumerate(shares)]
    axis.set(xlabel=axis_names[0], ylabel=axis_names[1])


def _write_names(
    axis: Any, tips: Any, names: Any, letter_positions: Any, font: float, half_height: float
) -> None:
    """Write names in a column on each side of the arrows, with a line from each name to its tip.

    Args:
        axis: the panel.
        tips: the tips of the arrows (n, 2).
        names: the names of the arrows (n,).
        letter_positions: the positions of the landmarks (f, 2), which the names avoid.
        font: the font size in points.
        half_height: half the height of the panel in axis units.
    """
    for side in (-1, 1):
        # The arrows that point to this side, the lowest first.
        side_arrows = [n for n in np.argsort(tips[:, 1]) if (tips[n, 0] >= 0) == (side > 0)]
        if not side_arrows:
            continue
        text_x = max(abs(tips[n, 0]) for n in side_arrows) + 0.12 * half_height
        # The heights of the letters that stand where the names begin, or farther out.
        occupied = letter_positions[
            side * letter_positions[:, 0] > text_x - LETTER_CLEARANCE * half_height, 1
        ]
        # As fractions of the panel's height, which spans -half_height to half_height.
        heights = spread_beside(
            [(tips[n, 1] / half_height + 1) / 2 for n in side_arrows],
            0.06,  # of the panel's height, between two names
            (occupied / half_height + 1) / 2,
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


make = maker_from_arrays("biplot", draw)
