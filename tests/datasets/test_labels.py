"""Targets of any kind: what is a class, and which."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from normbench.datasets import UserError, label_dataset, make_dataset

X = np.arange(8.0).reshape(4, 2)


def labelled(labels, **fields):
    """Return a data set of some labels, and of points that have nothing to do with them."""
    return label_dataset(
        "made", np.arange(float(len(labels)))[:, None], labels, "classes", **fields, source="-"
    )


LABELS = [
    (["yes", "no", "yes", "no"], ("no", "yes"), [1, 0, 1, 0]),
    ([1, -1, 1, -1], ("-1", "1"), [1, 0, 1, 0]),
    ([10.0, -9.0, 10.0, -9.0], ("-9", "10"), [1, 0, 1, 0]),
    ([True, False, True, False], ("False", "True"), [1, 0, 1, 0]),
    (np.array(["b", 1, "b", 1], dtype=object), ("1", "b"), [1, 0, 1, 0]),
    (np.array([2**60 + 1, 2**60] * 2, dtype=object), (str(2**60), str(2**60 + 1)), [1, 0, 1, 0]),
    (["Yes ", "No", " Yes", "No\t"], ("No", "Yes"), [1, 0, 1, 0]),
    (np.array(["10 ", 9, "9", 10], dtype=object), ("10", "9"), [0, 1, 1, 0]),
    (pd.Series(["x ", "y", "x", "y "], dtype="category"), ("x", "y"), [0, 1, 0, 1]),
]


@pytest.mark.parametrize(("labels", "names", "indices"), LABELS)
def test_labels_are_sorted_and_counted_from_0_without_blanks_at_their_ends(labels, names, indices):
    data = labelled(labels)
    assert data.class_names == names
    assert data.y.tolist() == indices


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
def test_a_missing_label_is_named(gap):
    with pytest.raises(UserError, match="target of point 2"):
        labelled(np.array(["a", "b", gap, "a"], dtype=object))


@pytest.mark.parametrize(
    ("entries", "gap"), [([1.5, 2, 3, 2], "nan"), ([0, 1, 1, 0], "nan"), (list("abba"), "missing")]
)
def test_a_masked_entry_is_a_gap(entries, gap):
    masked = np.ma.array(entries, mask=[False, False, True, False])
    with pytest.raises(UserError, match=f"target of point 2 .* is {gap} "):
        label_dataset("made", X, masked, source="made")
    points = np.ma.masked_equal(X, 3)
    with pytest.raises(UserError, match=r"feature 'x1' of point 1 .* is nan"):
        label_dataset("made", points, list("abab"), source="made")
    with pytest.raises(UserError, match=r"target of point 2 .* is nan"):
        make_dataset("made", X, np.ma.array(X[:, 0], mask=masked.mask), source="made")


@pytest.mark.parametrize(
    ("targets", "task", "found"),
    [
        ([0, 1, 2, 0], None, "regression"),
        ([0.0, 1.0, 1.0, 0.0], None, "binary"),
        ([0.5, 1, 2, 3], None, "regression"),
        ([0, 1, 2, 0], "regression", "regression"),
        ([0.5, 1, 0.5, 1], "classes", "binary"),
        (["a", "b", "c", "a"], None, "multiclass"),
        ([True, False, True, False], None, "binary"),
        (np.array([0.5, 1, 2, 3], dtype=object), None, "regression"),
        ([Decimal("0.5"), Decimal(1), 2, 3], None, "regression"),
        (np.array([0, 1, 2, 0], dtype=object), None, "regression"),
        (np.array([0, 1, 1, 0], dtype=object), None, "binary"),
        (np.array([True, False, True, False], dtype=object), None, "binary"),
        (None, None, "unlabelled"),
    ],
)
def test_the_task_follows_the_targets_and_the_option(targets, task, found):
    assert label_dataset("made", X, targets, task, source="made").task == found


@pytest.mark.parametrize(
    ("kinds", "points", "task"),
    [
        (20, 60, "multiclass"),
        (21, 60, "regression"),
        (20, 41, "multiclass"),
        (20, 40, "regression"),
        (3, 7, "multiclass"),
        (3, 6, "regression"),
        (2, 4, "binary"),  # two numbers are labels, however few points there are
    ],
)
def test_whole_numbers_are_classes_where_they_are_few(kinds, points, task):
    x, y = np.arange(float(points))[:, None], np.arange(points) % kinds
    for targets in (y, y.astype(float), y.astype(object), -y):
        data = label_dataset("made", x, targets, source="made")
        assert data.task == task
        assert data.has_numbered_classes == (task != "regression")
    assert not label_dataset("made", x, y, "classes", source="made").has_numbered_classes


SPELLINGS = [*["Yes", "no", "yes", "No."] * 2, "yes", "no "]


def test_a_note_names_classes_that_are_spelled_alike():
    x = np.arange(10.0)[:, None]
    (note,) = label_dataset("made", x, SPELLINGS, source="made").notes
    assert "4 classes (No. 2, Yes 2, no 3, yes 3), some of which differ by capitals" in note
    assert "dataset.merge_labels=true joins them" in note
    for labels in (["Yes", "no"] * 5, ["1.", "2"] * 5, [1, -1] * 5, [True, False] * 5, x[:, 0]):
        assert label_dataset("made", x, labels, source="made").notes == ()


def test_merged_labels_are_named_by_the_first_of_them():
    x, y_test = np.arange(10.0)[:, None], ["YES", "No", "yes."]
    fields = {"x_test": x[:3], "y_test": y_test, "source": "made"}
    data = label_dataset("made", x, SPELLINGS, merge_labels=True, **fields)
    assert data.class_names == ("No.", "Yes")
    assert data.y.tolist() == [1, 0] * 5
    assert data.y_test.tolist() == [1, 0, 1]
    assert data.notes == ()
    assert labelled([10, 9] * 5, merge_labels=True).class_names == ("9", "10")  # in their order
    with pytest.raises(UserError, match=r"test point has the label 'No', which no training point"):
        label_dataset("made", x, SPELLINGS, **fields)
    with pytest.raises(UserError, match=r"dataset\.merge_labels=1: must be true or false"):
        labelled(SPELLINGS, merge_labels=1)


@pytest.mark.parametrize(
    ("targets", "summary"),
    [
        (["No", "Yes", "No", "No"], "2 classes (No 3, Yes 1)"),
        ([1.2, 9.8, 3, 4], "real numbers, 1.2 to 9.8"),
        ([0, 346, 25, 7], "real numbers, 0 to 346"),
        (["a" * 30, "b", "b", "b"], f"2 classes ({'a' * 20} 1, b 3)"),
        (None, ""),
    ],
)
def test_the_targets_are_summed_up(targets, summary):
    assert label_dataset("made", X, targets, source="made").target_summary == summary


def test_of_many_classes_ten_are_counted():
    x, labels = np.arange(52.0)[:, None], [*"abcdefghijklmnopqrstuvwxyz"] * 2
    summary = label_dataset("made", x, labels, source="made").target_summary
    assert summary == f"26 classes ({', '.join(f'{label} 2' for label in 'abcdefghij')}, 16 more)"


def test_test_labels_have_the_training_points_indices():
    data = label_dataset("made", X, list("abab"), source="made", x_test=X[:2], y_test=["b", "b"])
    assert data.y_test.tolist() == [1, 1]
    assert data.encoding == "a=0, b=1"
