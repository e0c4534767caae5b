"""Landmarks: a few points that carry the same letters in every panel of a figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from normbench.results.figures.base.material import DrawnScheme
from normbench.results.figures.base.style import Shape

LANDMARK_LETTERS = "ABCD"


def choose_for_panels(schemes: Sequence[DrawnScheme], points: Any) -> list[int]:
    """Return the landmarks of a figure with one panel for each scheme.

    Args:
        schemes: The schemes of the panels.
        points: The points of the first panel (p, N), from which the landmarks are chosen.

    Returns:
        Indices of points; none for a single panel, where nothing is compared, and none if the
        panels show several data sets, whose points with one index differ.
    """
    data_sets = {scheme.row.get("data") for scheme in schemes}
    return choose(points) if len(schemes) > 1 and len(data_sets) == 1 else []


def choose(points: Any) -> list[int]:
    """Return the indices of the outermost points along the first two principal axes.

    Args:
        points: (p, N).

    Returns:
        For each axis the index of the lowest and of the highest point, each index once.
    """
    centred = points - points.mean(axis=0)
    # Principal axes as rows, one for points of a single feature.
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    # The sign of an eigenvector is arbitrary: make its largest entry positive.
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    coordinates = centred @ (directions * signs[:, None]).T
    # The lowest and the highest point along the first axis, then those along the second.
    outermost = np.stack([coordinates.argmin(axis=0), coordinates.argmax(axis=0)]).T.ravel()
    return list(dict.fromkeys(int(index) for index in outermost))


def mark_points(axis: Any, points: Any, landmark_indices: Sequence[int], shape: Shape) -> None:
    """Write the landmarks' letters on points in a panel.

    Args:
        axis: The panel, plane or spatial, with N axes.
        points: The points in the panel (p, N).
        landmark_indices: The indices of the landmarks, in the order of the letters.
        shape: The format of the figure.
    """
    box_style = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "black", "lw": 0.8}
    text_style = {"ha": "center", "va": "center", "fontsize": 0.65 * shape.font}
    for index, letter in zip(landmark_indices, LANDMARK_LETTERS):
        text = axis.text(
            *points[index], letter, bbox=box_style, zorder=6, clip_on=True, **text_style
        )
        text.set_in_layout(False)  # else the layout would make room for letters beyond the panel


def describe_letters(landmark_indices: Sequence[int]) -> str:
    """Return the note that explains the letters."""
    letters = letter_range(landmark_indices)
    return f"{letters}: the same points everywhere, the outermost of the first panel"


def letter_range(landmark_indices: Sequence[int]) -> str:
    """Return the first and the last letter of the landmarks: `A to D`."""
    return f"{LANDMARK_LETTERS[0]} to {LANDMARK_LETTERS[len(landmark_indices) - 1]}"
