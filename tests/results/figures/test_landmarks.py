"""Points that the eye follows: the same ones, with the same letters, in every panel."""

import numpy as np
import pandas as pd
import pytest

from normbench.results.figures import biplot, contours, data, projection
from normbench.results.figures.base import landmarks, style
from tests.results.figures.shapes import SHAPES
from tests.results.figures.test_figures import drawing

RNG = np.random.default_rng(7)
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])
POINTS = RNG.standard_normal((40, 2)) * [5.0, 1.0] @ TURN + [3.0, -2.0]
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


def of_data(points, classes=2):
    kept = {"points": points, "mean": points.mean(axis=0), "axes": np.eye(2)}
    kept |= {"names": np.array(["x", "y"]), "target": np.arange(len(points)) % classes}
    return kept | {"class_names": np.arange(classes).astype(str)}


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
        grid = np.linspace(-1, 1, 5)
        bowl = {"a": grid, "b": grid, "cost": grid**2 + grid[:, None] ** 2, "path": np.eye(2)}
        bowl |= {"iteration": np.arange(2), "step_size": np.array(0.1), "path_cost": np.ones(2)}
        bowl |= {"least": np.array(0.0), "condition": np.array(1.0), "held": np.array("")}
        bowl |= {"minimum": np.zeros(2)}
        parts = {label: own | bowl for label, own in parts.items()}
    drawn = {"data": data, "biplot": biplot, "contours": contours, "projection": projection}
    axes = drawn[name].draw(parts, ROWS, "").axes
    panels = [letters(axis) for axis in axes if letters(axis)]
    assert len(panels) == 2
    weights = [0.9**0.5, 0.1**0.5] if name == "biplot" else [1, 1]
    numbers = landmarks.choose(POINTS * weights)
    for panel, own in zip(panels, places.values(), strict=True):
        for letter, number in zip(panel, numbers, strict=True):
            assert panel[letter].tolist() == own[number].tolist()


def test_a_single_panel_has_nobody_to_follow():
    parts = of_data(POINTS) | {"kept": np.array(2), "lost": np.array(0.0), "back": POINTS}
    for drawn in (data, projection):
        figure = drawn.draw({"a": parts}, ROWS, "")
        assert letters(figure.axes[0]) == {}
        assert "A to D" not in figure.legends[0].get_title().get_text()


def test_other_data_have_other_points():
    parts = {"a": of_data(POINTS), "b": of_data(POINTS[:9])}
    for fingerprints, followed_in in (("xx", 2), ("xy", 0)):
        same = parts if followed_in == 0 else parts | {"b": of_data(POINTS)}
        figure = data.draw(same, ROWS.assign(data=list(fingerprints)), "")
        assert sum(bool(letters(axis)) for axis in figure.axes) == followed_in


def test_ten_classes_have_room_and_one_row_of_names():
    rows = pd.DataFrame({"label": list("abcd"), "normalizer": list("abcd")})
    figure = data.draw({label: of_data(POINTS, 10) for label in "abcd"}, rows, "t")
    figure.draw_without_rendering()
    assert {axis.get_subplotspec().get_gridspec().ncols for axis in figure.axes} == {2}
    (names,) = figure.legends
    assert [text.get_text() for text in names.get_texts()] == list("0123456789")
    heights = {round(text.get_window_extent().y0) for text in names.get_texts()}
    assert len(heights) == 1
    few = data.draw({label: of_data(POINTS, 2) for label in "abcd"}, rows, "t")
    assert {axis.get_subplotspec().get_gridspec().ncols for axis in few.axes} == {4}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_names_of_ten_classes_are_not_cut(shape):
    rows = pd.DataFrame({"label": list("ab"), "normalizer": list("ab")})
    parts = dict.fromkeys("ab", of_data(POINTS, 10))
    figure = data.draw(parts, rows, "t", shape=style.FORMATS[shape])
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.get_figwidth() * figure.dpi


@pytest.mark.parametrize("shape", SHAPES)
def test_a_note_stands_above_the_legend(three, shape):
    options = drawing.Options(shape=style.FORMATS[shape])
    figure = drawing.figure(three.sweep, three.name, "data", options)
    figure.draw_without_rendering()
    (names,) = figure.legends
    assert landmarks.describe_letters(range(4)) in names.get_title().get_text().replace("\n", " ")
    top = names.get_title().get_window_extent()
    assert all(text.get_window_extent().y1 <= top.y0 for text in names.get_texts())
    assert 0 <= top.x0 < top.x1 <= figure.get_figwidth() * figure.dpi
    assert all(axis.get_tightbbox().y0 >= top.y1 - 2 for axis in figure.axes)
