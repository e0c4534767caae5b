"""The table of loadings: what its numbers are, and that it is drawn."""

import numpy as np
import pandas as pd
import pytest

import normbench
from normbench.datasets.bundled import iris
from normbench.results.figures import loadings


@pytest.fixture(scope="module")
def found():
    settings = {"cost": "multiclass_softmax", "iterations": 1, "step_sizes": [0.1]}
    return normbench.compare(
        iris().x, iris().y, normalizers=["standard", "pca"], record=["biplot"], **settings
    )


def arrays(found, label):
    return found.sweep.arrays(found.sweep.of_role("scheme"), "biplot")[label]


def test_the_entries_are_the_eigenvectors_of_the_correlation(found):
    parts = arrays(found, "standard")
    correlation = np.corrcoef(iris().x.T)
    assert parts["correlation"] == pytest.approx(correlation, abs=1e-12)
    assert parts["entries"].T @ parts["entries"] == pytest.approx(np.eye(4), abs=1e-12)
    made = parts["entries"] * parts["deviations"]
    assert made @ made.T == pytest.approx(correlation, abs=1e-12)
    assert made[:, :2] == pytest.approx(parts["loadings"])
    largest = np.abs(parts["entries"]).argmax(axis=0)
    assert (parts["entries"][largest, range(4)] > 0).all()


def test_the_table_has_a_cell_for_each_entry_and_the_shares(found):
    figure = found.figure("loadings")
    assert len(figure.axes) == 1  # of the sphered scheme it would be an identity matrix
    parts, axis = arrays(found, "standard"), figure.axes[0]
    assert [text.get_text() for text in axis.texts] == [
        f"{e:.2f}".replace("-0.00", "0.00") for e in parts["entries"].flat
    ]
    assert axis.get_xticklabels()[0].get_text() == "1\n73.0%"
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x0", "x1", "x2", "x3"]


def test_the_table_of_a_sphered_scheme_is_left_out_whatever_its_dead_directions_are():
    rng = np.random.default_rng(0)
    entries = np.eye(12)
    entries[8:, 8:] = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert not loadings._mixes_features({"entries": entries})
    assert loadings._mixes_features({"entries": entries[:, ::-1]})


def test_many_features_are_cut():
    rng = np.random.default_rng(0)
    parts = {"loadings": rng.standard_normal((60, 2)), "entries": np.eye(60)}
    parts |= {"deviations": np.ones(60), "names": np.arange(60).astype(str)}
    parts["shares"] = np.array([1 / 60, 1 / 60])
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["a"]})
    (axis,) = loadings.draw({"a": parts}, rows, "").axes
    assert axis.images[0].get_array().shape == (20, 8)
    assert axis.get_xticklabels()[7].get_text() == "8\n1.7%"
