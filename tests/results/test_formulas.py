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
    assert told == ["not finite", "0.5\n7", "2\n3", "1e-15\nnever"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["kind=a", "kind=b"]
    assert [label.get_text() for label in axis.get_xticklabels()][1] == "sphere\nours"
    assert axis.images[0].get_array().max() == np.log10(formulas.USELESS)


def test_schemes_on_the_same_points_are_one_row():
    rows = pd.DataFrame({"label": ["identity", "standard"]})
    (axis,) = formulas.draw({"identity": PARTS, "standard": dict(PARTS)}, rows, "").axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["points"]
    assert [text.get_text() for text in axis.texts] == ["not finite", "0.5\n7"]
