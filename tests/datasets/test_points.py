"""Points that are read by blocks: the same data set as of an array, in one reading."""

import numpy as np
import pytest

from normbench.datasets import Sampling, UserError, make_dataset
from normbench.datasets.on_disk import points
from normbench.datasets.on_disk.content import digest
from normbench.datasets.on_disk.points import Points

X = np.random.default_rng(0).standard_normal((1000, 7))
LABELS = np.arange(1000) % 3
CLASSES = ["a", "b", "c"]


class Read(Points):
    """Points of an array that count what is read of them."""

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.count = x, x.shape, x.dtype, 0

    def read(self, first, last, out=None):
        self.count += last - first
        out = np.empty((last - first, self.shape[1]), self.dtype) if out is None else out
        out[: last - first] = self.x[first:last]
        return out[: last - first]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make 36 blocks of the points, the last one a part."""
    monkeypatch.setattr(points, "BLOCK_BYTES", 28 * X[0].nbytes)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("targets", [{}, {"y": X[:, 0]}, {"y": LABELS, "class_names": CLASSES}])
def test_the_content_is_counted_as_that_of_arrays_in_one_reading(kind, targets):
    x = X.astype(kind)
    test = {"x_test": x[:50]} | ({"y_test": targets["y"][:50]} if targets else {})
    whole = make_dataset("made", x, precision=x.dtype.name, source="made", **targets, **test)
    read, tested = Read(x), Read(x[:50])
    blocks = make_dataset("made", read, source="made", **targets, **test | {"x_test": tested})
    assert blocks.x is read
    assert read.count == len(x)
    assert tested.count == 50
    assert blocks.fingerprint == whole.fingerprint
    assert digest(read, LABELS) == digest(x, LABELS)
    assert blocks.feature_names == whole.feature_names


@pytest.mark.parametrize("part", ["", "test "])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e151])
def test_what_is_no_finite_number_is_told_as_of_an_array(value, part):
    bad = X.copy()
    bad[[700, 701], [3, 5]] = value
    told = []
    for kind in (np.asarray, Read):
        given = {"x": kind(bad)} if not part else {"x": X, "x_test": kind(bad)}
        with pytest.raises(UserError, match=f"feature 'x3' of {part}point 700 .*2 in all") as error:
            make_dataset("made", source="made", **given)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_marks_say_which_rows_are_others():
    read = Read(X.copy())
    make_dataset("made", read, source="made")
    assert read.checksums.find_change(read) is None
    read.x[500, 2] += 1
    assert read.checksums.find_change(read) == (476, 503)  # the block of 28 rows


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"folds": 5}, "dataset.folds=5"),
        ({"augment": "round"}, "dataset.augment=round"),
        ({"test_fraction": 0.1, "fit_on": "all"}, "dataset.fit_on=all"),
    ],
)
def test_what_takes_points_in_memory_is_refused(settings, told):
    data = make_dataset("made", Read(X), source="made", x_test=X[:5])
    settings.pop("test_fraction", None)
    with pytest.raises(UserError, match=f"^{told}: takes points that are held in memory") as error:
        Sampling(**settings).apply(data)
    assert "\n" not in str(error.value)


def test_statistics_of_all_points_take_test_points_in_memory():
    data = make_dataset("made", X, source="made", x_test=Read(X[:5]))
    with pytest.raises(UserError, match=r"^dataset\.fit_on=all: takes points that are held in mem"):
        Sampling(fit_on="all").apply(data)
    assert Sampling(fit_on="train").apply(data).x_test is data.x_test
