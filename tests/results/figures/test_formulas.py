"""The table of formulas: what stands in its cells."""

import numpy as np
import pandas as pd

from normbench.results.figures import formulas

PARTS = {
    "formula": np.array(["standard_textbook", "sphere_ours"]),
    "mean": np.array([np.nan, 0.5]),
    "off": np.array([np.nan, 1e-5]),
    "iterations": np.array([np.nan, 7]),
}


def test_a_cell_says_the_larger_of_both_errors_and_the_iterations():
    never = PARTS | {"iterations": np.array([3, 1000]), "off": np.array([2.0, 1e-15])}
    rows = pd.DataFrame({"label": ["pca, kind=a", "pca, kind=b", "pca, kind=c"]})
    arrays = {"pca, kind=a": PARTS, "pca, kind=b": never | {"mean": np.array([0, 0])}}
    (axis,) = formulas.draw(arrays, rows, "").axes
    told = [text.get_text() for text in axis.texts]
    assert told == [
        "not finite",
        "off by 0.5\n7 iterations",
        "off by 2\n3 iterations",
        "off by 1e-15\nnever there",
    ]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["kind=a", "kind=b"]
    assert [label.get_text() for label in axis.get_xticklabels()][1] == "sphere\nours"
    assert axis.images[0].get_array().max() == np.log10(formulas.USELESS_ERROR)


def test_schemes_on_the_same_points_are_one_row():
    rows = pd.DataFrame({"label": ["identity", "standard"]})
    (axis,) = formulas.draw({"identity": PARTS, "standard": dict(PARTS)}, rows, "").axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["points"]
    assert [text.get_text() for text in axis.texts] == ["not finite", "off by 0.5\n7 iterations"]


def test_jobs_that_differ_in_any_number_are_rows_of_their_own_and_red_is_useless():
    rows = pd.DataFrame({"label": ["identity", "standard"]})
    slower = PARTS | {"iterations": np.array([np.nan, 8]), "mean": np.array([np.nan, 0])}
    same = PARTS | {"mean": np.array([np.nan, 0])}
    (axis,) = formulas.draw({"identity": same, "standard": slower}, rows, "").axes
    useless, exact = axis.images[0].to_rgba(axis.images[0].get_array())[0, :, :3]
    assert useless.argmax() == 0
    assert useless.sum() < exact.sum()
    assert [text.get_text() for text in axis.texts][1::2] == [
        "off by 1e-05\n7 iterations",
        "off by 1e-05\n8 iterations",
    ]
    assert [text.get_color() for text in axis.texts][:2] == ["white", "black"]


def test_a_label_of_shared_options_alone_stays():
    labels = ["standard, points=9", "standard, points=9, scale=2", "standard, points=9, scale=3"]
    assert formulas.shorten_labels(labels) == [labels[0], "scale=2", "scale=3"]
    assert formulas.shorten_labels(labels[1:]) == ["scale=2", "scale=3"]
