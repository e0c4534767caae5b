"""The biplot: what its arrows mean, and that it is drawn."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import normbench
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import iris
from normbench.measures import biplot, inputs
from normbench.measures.contract import FinishedJob
from normbench.results.figures import biplot as drawn
from normbench.results.figures.base import landmarks
from normbench.results.figures.base.labels import spread_beside
from normbench.results.store.errors import ResultsError
from normbench.theory.shared import PointsCache

SETTINGS = {"cost": "multiclass_softmax", "iterations": 1, "step_sizes": [0.1]}


@pytest.fixture(scope="module")
def found():
    data = iris()
    return normbench.compare(
        data.x, data.y, normalizers=["standard", "pca"], record=["biplot"], **SETTINGS
    )


def arrays(found, label):
    rows = found.sweep.of_role("scheme")
    return found.sweep.arrays(rows, "biplot")[label]


def test_over_all_directions_the_cosines_between_arrows_are_correlations():
    """And over two within what the other two directions leave: 0.14 on iris."""
    z = (iris().x - iris().x.mean(axis=0)) / iris().x.std(axis=0)
    deviations, directions = inputs.principal_directions(z)

    def cosines(loadings):
        unit = loadings / np.linalg.norm(loadings, axis=1)[:, None]
        return unit @ unit.T

    correlation = np.corrcoef(iris().x.T)
    assert cosines(directions.T * deviations) == pytest.approx(correlation, abs=1e-12)
    assert np.abs(cosines(directions[:2].T * deviations[:2]) - correlation).max() < 0.14


def test_what_is_kept_is_of_the_two_leading_directions(found):
    parts = arrays(found, "standard")
    assert parts["shares"] == pytest.approx([0.72962, 0.22851], abs=5e-6)  # of iris, known
    assert parts["points"].std(axis=0) == pytest.approx([1, 1], rel=1e-12)
    lengths = np.hypot(*parts["loadings"].T)
    assert (lengths <= 1 + 1e-12).all()  # of features of variance 1: at most all of it
    products = parts["loadings"] @ parts["loadings"].T  # what the other two directions leave
    assert np.abs(products - np.corrcoef(iris().x.T)).max() < 0.15  # measured: 0.08
    assert list(parts["names"]) == ["x0", "x1", "x2", "x3"]


def test_a_direction_without_variance_has_its_points_at_0():
    x = np.column_stack([iris().x[:, 0], np.full(150, 3.0)])
    data = make_dataset("flat", x, iris().y, class_names=list("abc"), source="-")
    parts = biplot.MEASURE.take(FinishedJob(data, None, x, PointsCache(x))).arrays
    assert parts["points"].std(axis=0) == pytest.approx([1, 0])
    assert parts["shares"].tolist() == [1, 0]


def test_the_figure_has_a_panel_a_scheme_and_names_its_arrows(found):
    figure = found.figure("biplot")
    assert len(figure.axes) == 2
    for axis, count in zip(figure.axes, (4, 2), strict=True):  # two of pca's are in the plane
        words = [text.get_text() for text in axis.texts if len(text.get_text()) > 1]
        assert len(words) == count
        assert axis.get_aspect() == 1  # angles are seen as they are


def test_one_feature_is_refused_and_many_are_cut():
    rng = np.random.default_rng(0)
    one = make_dataset("one", rng.standard_normal((9, 1)), np.arange(9) % 2, source="-")
    with pytest.raises(UserError, match="record=biplot: is of two features and more; one has one"):
        biplot.MEASURE.check(one, None)
    wide = rng.standard_normal((80, 70))
    found = normbench.compare(
        wide, np.arange(80) % 2, normalizers=["identity"], record=["biplot"], iterations=1
    )
    kept = np.hypot(*arrays(found, "identity")["loadings"].T)
    deviations, directions = inputs.principal_directions(wide)
    longest = np.sort(np.hypot(*(directions[:2].T * deviations[:2]).T))[-biplot.MAX_ARROWS :]
    assert np.sort(kept) == pytest.approx(longest)
    assert arrays(found, "identity")["points"].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert len([text for text in found.figure("biplot").axes[0].texts if text.get_text()]) == 12
    with pytest.raises(ResultsError, match="biplot"):
        normbench.compare(wide, np.arange(80) % 2, iterations=1).figure("biplot")


def test_arrows_that_cannot_be_seen_have_no_name():
    points = np.random.default_rng(0).standard_normal((9, 2))
    parts = {"points": points, "loadings": np.array([[1.0, 0], [0.06, 0], [0, 0.04], [0, 0]])}
    parts |= {"names": np.array(["one", "two", "three", "four"]), "shares": np.array([0.6, 0.4])}
    parts |= {"target": np.zeros(9), "class_names": np.array([])}
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["a"]})
    (axis,) = drawn.draw({"a": parts}, rows, "").axes
    assert sorted(text.get_text() for text in axis.texts if text.get_text()) == ["one", "two"]


def test_the_outermost_points_are_in_sight_unless_arrows_would_be_lost():
    for far, seen in ((6.0, True), (60.0, False)):
        points = np.random.default_rng(0).standard_normal((30, 2))
        points[3, 1] = far
        parts = {"points": points, "loadings": np.eye(2), "names": np.array(["one", "two"])}
        parts |= {"shares": np.array([0.6, 0.4]), "target": np.zeros(30)}
        rows = pd.DataFrame({"label": ["a"], "normalizer": ["a"]})
        (axis,) = drawn.draw({"a": parts | {"class_names": np.array([])}}, rows, "").axes
        assert (axis.get_ylim()[1] > far) == seen
        assert axis.get_ylim()[1] <= drawn.MAX_REACH
        wide, tall = np.abs(points).max(axis=0)
        filled = max(drawn.ARROW_REACH, tall, drawn.PANEL_RATIO * wide)
        assert axis.get_ylim()[1] <= 1.2 * filled  # the panel is used


def test_no_name_of_a_feature_lies_on_a_letter():
    """One point lies where the name of the longest arrow would stand, three elsewhere."""
    points = np.array([[3.6, 0.0], [-3.0, 0.4], [0.2, 2.0], [0.0, -2.0], [0.1, 0.1]])
    parts = {
        "points": points,
        "loadings": np.array([[1.0, 0.0], [0.1, 0.4]]),
        "names": np.array(["a feature", "another"]),
        "shares": np.array([0.7, 0.3]),
        "target": np.zeros(5),
        "class_names": np.array([]),
    }
    rows = pd.DataFrame({"label": ["a", "b"], "normalizer": ["identity", "standard"]})
    figure = drawn.draw({"a": parts, "b": parts}, rows, "made")
    figure.draw_without_rendering()
    for axis in figure.axes[:2]:
        # An annotation's own extent takes its line in; the line may pass below a letter.
        shown = [(text.get_text(), Text.get_window_extent(text)) for text in axis.texts]
        letters = [box for words, box in shown if words and words in landmarks.LANDMARK_LETTERS]
        assert len(letters) == 4
        covered = [
            words
            for words, box in shown
            if words in ("a feature", "another") and any(map(box.overlaps, letters))
        ]
        assert covered == []


def test_places_keep_apart_from_each_other_and_from_those_that_are_taken():
    places = spread_beside([0.1, 0.48, 0.5, 0.52, 0.9], 0.05, [0.5], 0.1)
    assert places == sorted(places)
    assert min(np.diff(places)) >= 0.05 - 1e-12
    assert min(abs(place - 0.5) for place in places) >= 0.1 - 1e-12
    assert spread_beside([0.1, 0.9], 0.05, [], 0.1) == [0.1, 0.9]
