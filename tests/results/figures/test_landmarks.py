"""Points that the eye follows: the same ones, with the same letters, in every panel."""

import numpy as np
import pandas as pd
import pytest

from normbench.results.figures import contours
from normbench.results.figures.base import landmarks
from normbench.results.figures.points import draw_biplot, draw_data, draw_projection
from tests.results.figures.pictures import POINTS, TURN, bowl, of_data

ROWS = pd.DataFrame({"label": ["a", "b"], "normalizer": ["identity", "standard"]})


def letters(axis):
    """Where the letters of a panel stand."""
    found = [text for text in axis.texts if text.get_text() in set(landmarks.LANDMARK_LETTERS)]
    return {text.get_text(): np.array(text.get_position()) for text in found}


def test_they_are_the_outermost_along_the_principal_axes():
    numbers = landmarks.choose(POINTS)
    along = POINTS @ TURN.T  # the axes that the points were made with: 5 to 1
    ends = [*along.argmin(axis=0), *along.argmax(axis=0)]
    assert set(numbers) == set(ends)
    assert len(numbers) == 4


def test_an_axis_has_no_sign_and_no_scale():
    numbers = landmarks.choose(POINTS)
    assert landmarks.choose(100 * POINTS + 7) == numbers
    along = POINTS @ TURN.T
    assert landmarks.choose(along) == [
        *(along[:, 0].argmin(), along[:, 0].argmax(), along[:, 1].argmin(), along[:, 1].argmax())
    ]


@pytest.mark.parametrize("points", [np.zeros((3, 2)), np.eye(2), np.arange(5.0)[:, None]])
def test_few_points_are_named_once(points):
    numbers = landmarks.choose(points)
    assert len(set(numbers)) == len(numbers) <= len(points)


@pytest.mark.parametrize("name", ["data", "biplot", "contours", "projection"])
def test_every_panel_has_the_same_points(name):
    other = -3 * POINTS[:, ::-1]
    parts = {"a": of_data(POINTS), "b": of_data(other)}
    places = {"a": POINTS, "b": other}
    if name == "biplot":
        more = {"loadings": np.eye(2), "shares": np.array([0.9, 0.1])}
        parts = {label: own | more for label, own in parts.items()}
    if name == "projection":
        more = {"kept": np.array(2), "lost": np.array(0.0)}
        parts = {label: own | more | {"back": own["points"]} for label, own in parts.items()}
    if name == "contours":
        parts = {label: own | bowl(1.0) for label, own in parts.items()}
    drawn = {"data": draw_data, "biplot": draw_biplot, "projection": draw_projection}
    axes = drawn.get(name, contours.draw)(parts, ROWS, "").axes
    panels = [letters(axis) for axis in axes if letters(axis)]
    assert len(panels) == 2
    weights = [0.9**0.5, 0.1**0.5] if name == "biplot" else [1, 1]
    numbers = landmarks.choose(POINTS * weights)
    for panel, own in zip(panels, places.values(), strict=True):
        for letter, number in zip(panel, numbers, strict=True):
            assert panel[letter].tolist() == own[number].tolist()


def test_other_data_have_other_points():
    parts = {"a": of_data(POINTS), "b": of_data(POINTS[:9])}
    for fingerprints, followed_in in (("xx", 2), ("xy", 0)):
        same = parts if followed_in == 0 else parts | {"b": of_data(POINTS)}
        figure = draw_data(same, ROWS.assign(data=list(fingerprints)), "")
        assert sum(bool(letters(axis)) for axis in figure.axes) == followed_in
