"""The biplot and the table of loadings: what their numbers are."""

import numpy as np
import pytest
from matplotlib.text import Text

import normbench
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import iris
from normbench.measures import points as points_module
from normbench.measures.contract import FinishedJob
from normbench.measures.points import MAX_ARROWS, biplot
from normbench.normalizers.decomposition import PointsCache
from normbench.results.figures import points as drawn
from normbench.results.figures.base import landmarks
from normbench.results.store.errors import ResultsError
from tests.results.figures.pictures import of_schemes

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
    deviations, directions = points_module.principal_directions(z)

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
    parts = biplot.take(FinishedJob(data, None, x, PointsCache(x))).arrays
    assert parts["points"].std(axis=0) == pytest.approx([1, 0])
    assert parts["shares"].tolist() == [1, 0]


def test_one_feature_is_refused_and_many_are_cut():
    rng = np.random.default_rng(0)
    one = make_dataset("one", rng.standard_normal((9, 1)), np.arange(9) % 2, source="-")
    with pytest.raises(
        UserError, match="record=biplot: needs 2 to 4096 features; one has 9 points of 1"
    ):
        biplot.check(one, None)
    wide = rng.standard_normal((80, 70))
    found = normbench.compare(
        wide, np.arange(80) % 2, normalizers=["identity"], record=["biplot"], iterations=1
    )
    kept = np.hypot(*arrays(found, "identity")["loadings"].T)
    deviations, directions = points_module.principal_directions(wide)
    longest = np.sort(np.hypot(*(directions[:2].T * deviations[:2]).T))[-MAX_ARROWS:]
    assert np.sort(kept) == pytest.approx(longest)
    assert arrays(found, "identity")["points"].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert len([text for text in found.figure("biplot").axes[0].texts if text.get_text()]) == 12
    with pytest.raises(ResultsError, match="biplot"):
        normbench.compare(wide, np.arange(80) % 2, iterations=1).figure("biplot")


def test_the_entries_of_loadings_are_the_eigenvectors_of_the_correlation(found):
    parts = arrays(found, "standard")
    correlation = np.corrcoef(iris().x.T)
    assert parts["correlation"] == pytest.approx(correlation, abs=1e-12)
    assert parts["entries"].T @ parts["entries"] == pytest.approx(np.eye(4), abs=1e-12)
    made = parts["entries"] * parts["deviations"]
    assert made @ made.T == pytest.approx(correlation, abs=1e-12)
    assert made[:, :2] == pytest.approx(parts["loadings"])
    largest = np.abs(parts["entries"]).argmax(axis=0)
    assert (parts["entries"][largest, range(4)] > 0).all()
    # Of the sphered scheme the table would be an identity matrix.
    assert len(found.figure("loadings").axes) == 1


def test_the_table_of_a_sphered_scheme_is_left_out_whatever_its_dead_directions_are():
    rng = np.random.default_rng(0)
    entries = np.eye(12)
    entries[8:, 8:] = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert not drawn._mixes_features({"entries": entries})
    assert drawn._mixes_features({"entries": entries[:, ::-1]})


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
    figure = of_schemes(drawn.draw_biplot, parts, parts)()
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
