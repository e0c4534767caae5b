"""The parts of a data set: what is held out, and what has no targets."""

import numpy as np
import pytest

from normbench.datasets import UserError, make_dataset, split

X = np.arange(6.0).reshape(3, 2)


def test_a_split_leaves_two_training_points_at_least():
    data = make_dataset("few", X, [0.0, 1.0, 2.0], source="arrays")
    assert len(split(data, 0.4, 0).x) == 2
    with pytest.raises(UserError, match=r"test_fraction=0\.7: leaves 1 point of few to train on"):
        split(data, 0.7, 0)


def test_a_split_leaves_points_of_each_class():
    x, labels = np.arange(22.0).reshape(11, 2), [0] + [1] * 10
    data = make_dataset("rare", x, labels, class_names=["a", "b"], source="-")
    with pytest.raises(UserError, match=r"leaves no point of class a of rare"):
        split(data, 0.6, 0)


def test_a_test_part_of_points_without_targets_has_none():
    data = make_dataset("bare", X, None, x_test=X[:1], source="arrays")
    assert data.task == "unlabelled"
    assert data.x_test.shape == (1, 2)
    assert data.y_test.shape == (0,)


def test_infinite_numbers_of_7_digits_are_refused_as_those_of_16_are():
    far = np.array([[1, 2], [np.inf, 4], [5, 6]], dtype=np.float32)
    for precision in ("float32", "float64"):
        with pytest.raises(UserError, match=r"feature 'x0' of point 1 .* is inf; entries must"):
            make_dataset("far", far, source="arrays", precision=precision)
    with pytest.raises(UserError, match="target of point 1"):
        make_dataset("far", X, far[:, 0], source="arrays")


@pytest.mark.parametrize(
    "given",
    [{"y": [0, 1]}, {"y": None, "x_test": [[1.0]]}],
)
def test_targets_of_the_test_points_are_not_passed_over(given):
    with pytest.raises(UserError, match="the test targets are given without"):
        make_dataset("d", [[0.0], [1.0]], y_test=[1], source="made", **given)


def test_feature_names_are_taken_as_an_array_too():
    data = make_dataset("few", X, None, feature_names=np.array(["a", "b"]), source="arrays")
    assert data.feature_names == ("a", "b")
    bare = make_dataset("few", X, None, feature_names=[], source="arrays")
    assert bare.feature_names == ("x0", "x1")
