"""Targets of any kind: what is a class, and which."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from normbench.datasets import UserError, encode_labels, label_dataset, make_dataset

X = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["yes", "no", "yes", "no"], ["no", "yes"]),
        ([1, -1, 1, -1], ["-1", "1"]),
        ([1.0, -1.0, 1.0, -1.0], ["-1", "1"]),
        ([True, False, True, False], ["False", "True"]),
        ([5, 3, 5, 3], ["3", "5"]),
        ([0.5, -0.5, 0.5, -0.5], ["-0.5", "0.5"]),
        (np.array(["b", 1, "b", 1], dtype=object), ["1", "b"]),
        (pd.Series(["y", "n", "y", "n"], dtype="category"), ["n", "y"]),
    ],
)
def test_labels_are_sorted_and_counted_from_0(labels, names):
    indices, found = encode_labels("made", labels)
    assert found == names
    assert indices.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
def test_a_missing_label_is_named(gap):
    with pytest.raises(UserError, match="target of point 2"):
        encode_labels("made", np.array(["a", "b", gap, "a"], dtype=object))


@pytest.mark.parametrize(
    ("entries", "gap"), [([1.5, 2, 3, 2], "nan"), ([0, 1, 1, 0], "nan"), (list("abba"), "missing")]
)
def test_a_masked_entry_is_a_gap(entries, gap):
    masked = np.ma.array(entries, mask=[False, False, True, False])
    with pytest.raises(UserError, match=f"target of point 2 .* is {gap} "):
        label_dataset("made", X, masked, source="made")
    points = np.ma.masked_equal(X, 3)
    with pytest.raises(UserError, match=r"feature 'x1' of point 1 .* is nan \(1 in all\)"):
        label_dataset("made", points, list("abab"), source="made")
    with pytest.raises(UserError, match=r"target of point 2 .* is nan"):
        make_dataset("made", X, np.ma.array(X[:, 0], mask=masked.mask), source="made")


def test_a_mask_of_nothing_changes_nothing():
    plain = label_dataset("made", X, [1.5, 2, 3, 2], source="made")
    masked = label_dataset("made", np.ma.array(X), np.ma.array([1.5, 2, 3, 2]), source="made")
    assert masked.fingerprint == plain.fingerprint


def test_large_integers_stay_apart_where_they_are_objects():
    _, names = encode_labels("made", np.array([2**60, 2**60 + 1], dtype=object))
    assert names == [str(2**60), str(2**60 + 1)]


@pytest.mark.parametrize(
    ("targets", "task", "found"),
    [
        ([0, 1, 2, 0], None, "multiclass"),
        ([0.0, 1.0, 1.0, 0.0], None, "binary"),
        ([0.5, 1, 2, 3], None, "regression"),
        ([0, 1, 2, 0], "regression", "regression"),
        ([0.5, 1, 0.5, 1], "classes", "binary"),
        (["a", "b", "c", "a"], None, "multiclass"),
        ([True, False, True, False], None, "binary"),
        (np.array([0.5, 1, 2, 3], dtype=object), None, "regression"),
        ([Decimal("0.5"), Decimal(1), 2, 3], None, "regression"),
        (np.array([0, 1, 2, 0], dtype=object), None, "multiclass"),
        (np.array([True, False, True, False], dtype=object), None, "binary"),
        (None, None, "unlabelled"),
    ],
)
def test_the_task_follows_the_targets_and_the_option(targets, task, found):
    assert label_dataset("made", X, targets, task, source="made").task == found


def test_more_than_20_numbers_are_real_targets():
    x = np.arange(60.0).reshape(60, 1)
    tasks = [
        label_dataset("made", x, np.arange(60) % count, source="made").task for count in (20, 21)
    ]
    assert tasks == ["multiclass", "regression"]


def test_test_labels_have_the_training_points_indices():
    data = label_dataset("made", X, list("abab"), source="made", x_test=X[:2], y_test=["b", "b"])
    assert data.y_test.tolist() == [1, 1]
    assert data.encoding == "a=0, b=1"


def test_a_real_target_that_no_float_holds_is_told():
    with pytest.raises(UserError, match=r"a target is not a number .*too large"):
        label_dataset("made", X, [10**400, 1, 2, 3], "regression", source="made")
