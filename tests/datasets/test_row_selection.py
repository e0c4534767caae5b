"""Points that are not in memory: what is chosen of them and told of them, as of an array."""

import numpy as np
import pytest

from normbench.datasets import (
    Sampling,
    UserError,
    draw_subset,
    encode_labels,
    label_dataset,
    make_dataset,
    split,
)
from normbench.datasets.on_disk import row_selection
from normbench.datasets.on_disk.npy import npy
from normbench.datasets.on_disk.points import Points
from normbench.datasets.on_disk.row_selection import STRIDE, SelectedRows
from tests.datasets.reading import wrong_spans

RNG = np.random.default_rng(1)
X = RNG.standard_normal((3 * STRIDE + 100, 3))
LABELS = RNG.integers(0, 4, len(X)) ** 2
MASKS = {
    "half": RNG.random(len(X)) < 0.5,
    "few": RNG.random(len(X)) < 0.001,
    "all": np.ones(len(X), dtype=bool),
    "one": np.arange(len(X)) == 2 * STRIDE,
    "the ends": np.isin(np.arange(len(X)), [0, len(X) - 1]),
    "a gap of two strides": np.abs(np.arange(len(X)) - 1.5 * STRIDE) > STRIDE,
}


class Read(Points):
    """Points of an array that is read by blocks."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def read(self, first, last, out=None):
        out = np.empty((last - first, self.shape[1]), self.dtype) if out is None else out
        out[: last - first] = self.x[first:last]
        return out[: last - first]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(row_selection, "CACHE_BYTES", 1000 * X[0].nbytes)


@pytest.fixture
def no_room(monkeypatch):
    """Leave no memory for points beside those of the file."""
    monkeypatch.setattr(row_selection, "available_bytes", lambda: 0)


@pytest.mark.parametrize("name", MASKS)
def test_any_rows_are_those_of_the_array(name):
    mask = MASKS[name]
    rows, chosen = SelectedRows(Read(X), mask), X[mask]
    assert rows.shape == chosen.shape
    assert np.array_equal(rows[:], chosen)
    for first, last in np.sort(RNG.integers(0, len(chosen) + 1, (50, 2)), axis=1):
        assert np.array_equal(rows.read(first, last), chosen[first:last])
    out = np.full(chosen.shape, 7.0)
    assert rows.read(0, len(chosen) // 2, out).base is out
    assert np.array_equal(out[: len(chosen) // 2], chosen[: len(chosen) // 2])
    numbers = RNG.integers(0, len(chosen), 9)
    assert np.array_equal(rows[numbers], chosen[numbers])


def test_many_threads_read_at_once():
    mask = MASKS["half"]
    assert wrong_spans(SelectedRows(Read(X), mask), X[mask]) == []


def of_file(folder, targets):
    np.save(folder / "made.npy", X)
    np.save(folder / "y.npy", targets)
    paths = [str(folder / name) for name in ("made.npy", "y.npy")]
    whole = label_dataset("made", X, targets, source=paths[0])
    return npy(*paths, in_blocks=True), whole


@pytest.mark.parametrize("targets", [LABELS, X[:, 0], np.array(["no", "yes"])[LABELS % 2]])
@pytest.mark.parametrize(
    "settings",
    [{"points": 5000}, {"test_fraction": 0.25}, {"points": 9000, "test_fraction": 0.4}],
)
@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("room", [True, False])
def test_the_same_seed_takes_the_same_rows_as_in_memory(
    tmp_path, monkeypatch, targets, settings, seed, room
):
    if not room:
        monkeypatch.setattr(row_selection, "available_bytes", lambda: 0)
    blocks, whole = (
        Sampling(**settings, split_seed=seed).apply(data) for data in of_file(tmp_path, targets)
    )
    assert isinstance(blocks.x, Points)
    assert isinstance(blocks.x_test, Points) == (not room and "test_fraction" in settings)
    assert np.array_equal(blocks.x[:], whole.x)
    assert np.array_equal(blocks.x_test[:], whole.x_test)
    assert np.array_equal(blocks.y, whole.y)
    assert np.array_equal(blocks.y_test, whole.y_test)
    assert blocks.fingerprint == whole.fingerprint


def test_few_points_of_a_large_file_are_held(tmp_path, monkeypatch):
    of_file(tmp_path, LABELS)
    paths = [str(tmp_path / name) for name in ("made.npy", "y.npy")]
    monkeypatch.setattr(
        "normbench.datasets.on_disk.files_on_disk.available_bytes", lambda: X.nbytes
    )
    monkeypatch.setattr(row_selection, "available_bytes", lambda: X.nbytes)
    large = npy(*paths)
    assert isinstance(large.x, Points)
    assert isinstance(draw_subset(large, len(X) // 4, 0).x, np.ndarray)
    assert isinstance(draw_subset(large, len(X) // 4 + 1, 0).x, Points)
    for fraction, kind in ((1 / 17, np.ndarray), (1 / 15, Points)):
        held = split(large, fraction, 0)
        assert isinstance(held.x, Points)
        assert isinstance(held.x_test, kind)


def test_rows_of_a_file_that_changed_are_told(tmp_path, no_room):
    data = split(of_file(tmp_path, LABELS)[0], 0.25, 0)
    data.x.check()
    data.x_test.check()
    np.save(tmp_path / "made.npy", X + 1)
    for part in (data.x, data.x_test):
        with pytest.raises(UserError, match=r"was changed while the sweep ran \(first in rows 0 "):
            part.check()


def test_labels_of_many_points_are_those_of_few_at_a_time(monkeypatch):
    targets = (LABELS, LABELS.astype(float), LABELS.astype(str), LABELS % 4 == 0, [1, "b"] * 40)
    for y in map(np.asarray, (*targets, np.array([1, "b", None][:2] * 40, dtype=object))):
        values, numbers = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)
        for block in (1 << 18, 7):
            monkeypatch.setattr("normbench.datasets.entries.LABELS_PER_BLOCK", block)
            found, names = encode_labels("made", y)
            assert np.array_equal(found, numbers)
            assert len(names) == len(values)


@pytest.mark.parametrize("part", ["", "test "])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e151])
def test_what_is_no_finite_number_is_told_as_of_an_array(value, part):
    bad = X.copy()
    bad[[700, 701], [1, 2]] = value
    told = []
    for kind in (np.asarray, Read):
        given = {"x": kind(bad)} if not part else {"x": X, "x_test": kind(bad)}
        with pytest.raises(UserError, match=f"feature 'x1' of {part}point 700 .*2 in all") as error:
            make_dataset("made", source="made", **given)
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"folds": 5}, "dataset.folds=5"),
        ({"augment": "round"}, "dataset.augment=round"),
        ({"fit_on": "all"}, "dataset.fit_on=all"),
    ],
)
def test_what_takes_points_in_memory_is_refused(settings, told):
    data = make_dataset("made", Read(X), source="made", x_test=X[:5])
    with pytest.raises(UserError, match=f"^{told}: takes points that are held in memory") as error:
        Sampling(**settings).apply(data)
    assert "\n" not in str(error.value)
