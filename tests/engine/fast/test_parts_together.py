"""Training and test points of one file are read block beside block, with the same numbers."""

from threading import get_ident

import numpy as np
import pytest

from normbench import costs, optimizers
from normbench.choices import build, options
from normbench.datasets.on_disk.npy import npy
from normbench.datasets.on_disk.row_selection import SelectedRows
from normbench.engine.descent import descend
from normbench.engine.fast import blocked
from normbench.engine.fast.triangle import make_triangle
from normbench.engine.scheme.applying import normalize
from tests import door

POINTS, FEATURES, RUNS = 4000, 8, 3
ROWS = 100  # of a block


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request, monkeypatch):
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: request.param)
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 1)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", ROWS * 8 * (FEATURES + RUNS))
    return request.param


@pytest.fixture
def data(tmp_path):
    """Return points on disk, their targets, and which are the training points'."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((POINTS, FEATURES)) * np.geomspace(1, 5, FEATURES) + 2
    y = (x @ rng.standard_normal(FEATURES) + rng.standard_normal(POINTS) > 1).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    on_disk = npy(str(tmp_path / "x.npy"), str(tmp_path / "y.npy"), in_blocks=True)
    return on_disk.x, 2.0 * y - 1, rng.random(POINTS) < 0.7


def parts(x, targets, is_train, select=SelectedRows):
    """Return the problems of the training and the test points, under a folded scheme."""
    masks = is_train, ~is_train
    scheme = build("normalizer", options("normalizer", "standard"))
    points = normalize(scheme, *(select(x, mask) for mask in masks), "float64", None, True)
    return [
        door.problem(costs.softmax, rows, targets[mask], True, 0.1, 1, mask is not is_train)
        for rows, mask in zip(points, masks, strict=True)
    ]


def weights_of(runs=RUNS):
    return np.random.default_rng(1).standard_normal((runs, 1, FEATURES + 1))


def test_both_are_what_each_is_alone(data, threads):
    train, test = parts(*data)
    together = train.evaluate_parts(test, weights_of(), True, {}, {})
    apart = train.evaluate(weights_of(), True), test.evaluate(weights_of(), False)
    for one, other in zip(together, apart, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert together[1].gradient is None
    without = train.evaluate_parts(test, weights_of(), False, {}, {})
    assert [evaluation.gradient for evaluation in without] == [None, None]
    np.testing.assert_array_equal(without[0].costs, apart[0].costs)


def test_fewer_test_points_share_the_threads_of_the_training_points(data, threads, monkeypatch):
    train, test = parts(*data)
    alone = train.evaluate(weights_of(), True), test.evaluate(weights_of(), False)
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: 16)
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 20_000)
    counts = [len(problem.thread_spans(RUNS)) for problem in (train, test)]
    assert counts[0] > counts[1] > 1
    for mine, apart in zip(train.evaluate_parts(test, weights_of(), True, {}, {}), alone):
        np.testing.assert_allclose(mine.costs, apart.costs, rtol=1e-13)
        np.testing.assert_array_equal(mine.misclassifications, apart.misclassifications)


def test_the_two_are_never_far_apart_in_the_file(data, threads, monkeypatch):
    _, _, is_train = data
    train, test = parts(*data)
    read, begun = SelectedRows.read, []

    def noted(self, first, last, out=None):
        part = "train" if self.mask[is_train].any() else "test"
        begun.append((get_ident(), part, first / len(self)))
        return read(self, first, last, out)

    memory = {}
    test.evaluate(weights_of(), False, memory)  # reads the lengths of some points, once
    monkeypatch.setattr(SelectedRows, "read", noted)
    train.evaluate_parts(test, weights_of(), True, {}, memory)
    for thread in {number for number, _, _ in begun}:
        mine = [(part, place) for number, part, place in begun if number == thread]
        latest = dict.fromkeys(("train", "test"), min(place for _, place in mine))
        for part, place in mine:
            latest[part] = place
            # A block of the smaller part is a twelfth of it.
            assert abs(latest["train"] - latest["test"]) < 0.15
    assert len(begun) >= POINTS / ROWS
    begun.clear()
    train.evaluate(weights_of(), True)
    assert {part for _, part, _ in begun} == {"train"}


@pytest.mark.parametrize(
    "other", ["in memory", "another file", "many runs", "fewer points than threads"]
)
def test_where_nothing_is_gained_the_test_points_are_left(
    data, threads, other, monkeypatch, tmp_path
):
    x, targets, is_train = data
    train, test = parts(*data)
    if other == "in memory":
        _, test = parts(x[:], targets, is_train, lambda rows, mask: rows[mask])
    if other == "another file":
        np.save(tmp_path / "copy.npy", x[:])
        copy = npy(str(tmp_path / "copy.npy"), str(tmp_path / "y.npy"), in_blocks=True)
        _, test = parts(copy.x, targets, is_train)
    if other == "many runs":
        monkeypatch.setattr(blocked.Blocked, "_runs_per_pass", lambda self, runs: 1)
    if other == "fewer points than threads":
        train, test = parts(x, targets, np.arange(POINTS) >= 2)
        monkeypatch.setattr(blocked.threads, "available_threads", lambda: 3)
    evaluation, left = train.evaluate_parts(test, weights_of(), True, {}, {})
    assert left is None
    np.testing.assert_array_equal(evaluation.costs, train.evaluate(weights_of(), True).costs)


def test_least_squares_that_read_no_points_stay_apart(data, threads):
    """Whatever the test points are: those of a triangle are not read, others by themselves."""
    x, targets, is_train = data
    pair = [
        door.problem(costs.least_squares, SelectedRows(x, mask), targets[mask], False)
        for mask in (is_train, ~is_train)
    ]
    triangles = [make_triangle(problem) for problem in pair]
    for train, test in (
        (triangles[0], triangles[1]),
        (triangles[0], pair[1]),
        (pair[0], triangles[1]),
    ):
        evaluation, left = train.evaluate_parts(test, weights_of(), True, {}, {})
        assert left is None
        np.testing.assert_array_equal(evaluation.costs, train.evaluate(weights_of(), True).costs)
    assert pair[0].evaluate_parts(pair[1], weights_of(), True, {}, {})[1] is not None


def test_histories_are_those_of_points_in_memory_where_a_run_diverges(data, threads, monkeypatch):
    x, targets, is_train = data
    together = []
    evaluate_parts = blocked.Blocked.evaluate_parts

    def noted(*arguments):
        together.append(evaluate_parts(*arguments)[1] is not None)
        return evaluate_parts(*arguments)

    monkeypatch.setattr(blocked.Blocked, "evaluate_parts", noted)
    histories = []
    for points, select in ((x, SelectedRows), (x[:], lambda rows, mask: rows[mask])):
        train, test = parts(points, targets, is_train, select)
        start, steps = np.zeros((RUNS, 1, FEATURES + 1)), np.array([0.5, 1e200, 1.0])
        rule = optimizers.gradient_descent()
        histories.append(descend(train, test, rule, start, steps, 20))
        assert set(together) == {points is x}
        together.clear()
    one, other = histories
    assert list(one.diverged_at) == list(other.diverged_at)
    assert one.diverged_at[1] > 0
    assert one.diverged_at[0] == one.diverged_at[2] == -1
    for name in ("cost", "test_cost", "misclassifications", "test_misclassifications"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    assert np.isfinite(one.test_cost[[0, 2]]).all()
    assert np.isnan(one.test_cost[1, one.diverged_at[1] :]).all()
