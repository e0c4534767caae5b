"""State of a descent on its way: histories as they grow, written and read back."""

import numpy as np
import pytest

from normbench.engine.midway import GrowingHistories, Midway
from normbench.engine.problem import Evaluation
from normbench.engine.scheme.applying import transform_points
from tests import door
from tests.door import Batches

X = np.random.default_rng(2).standard_normal((40, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -1.0]


class Counted:
    """A problem of two scores that counts."""

    classify, model = True, "a model"

    def evaluate(self, weights, with_gradient):
        return Evaluation(weights.sum(axis=(1, 2)), None, np.full(len(weights), 9))


def growing():
    """Return empty histories of four runs, whose five records are two updates apart."""
    plan = door.plan(5, Batches(4, 2))
    return GrowingHistories(Counted(), Counted(), plan, np.zeros((4, 2, 3)))


def half_way():
    """Return the histories of four runs before iteration 3, one of which ended at iteration 1."""
    histories = growing()
    alive = np.arange(4)
    for k in range(3):
        if k == 1:
            histories.diverged_at[2], alive = 1, np.array([0, 1, 3])
        weights = np.full((len(alive), 2, 3), 1.0 + k)
        costs_at_k = 10.0 * k + alive
        evaluation = Evaluation(costs_at_k, None, alive)
        histories.write(Midway(k, alive, weights, (), 2 * k), evaluation)
    state = (np.arange(3.0), np.ones((3, 2), dtype=np.int64))
    return histories, Midway(3, alive, np.full((3, 2, 3), 4.0), state, 5)


def test_histories_are_written_where_their_runs_are_and_read_back():
    histories, midway = half_way()
    cost, counts = histories.train
    expected = [[0, 10, 20], [1, 11, 21], [2, np.nan, np.nan], [3, 13, 23]]
    np.testing.assert_array_equal(cost[:, :3], expected)
    assert np.isnan(cost[:, 3:]).all()
    np.testing.assert_array_equal(counts[:, 0], [0, 1, 2, 3])
    test_cost, test_counts = histories.test
    np.testing.assert_array_equal(test_cost[0], [6, 12, 18, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(test_counts[2], [9, *[np.nan] * 5])
    np.testing.assert_array_equal(histories.final[:, 0, 0], [3, 3, 1, 3])
    arrays = histories.to_arrays(midway)
    new = growing()
    again = new.read(arrays)
    assert (again.k, again.updates, again.alive.tolist()) == (3, 5, [0, 1, 3])
    for mine, theirs in zip((*again.state, again.weights), (*midway.state, midway.weights)):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip((*new.train, *new.test), (*histories.train, *histories.test)):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(new.final, histories.final)
    assert new.diverged_at.tolist() == [-1, -1, 1, -1]
    early = histories.to_arrays(midway._replace(k=1, alive=np.arange(4)))
    assert early["diverged_at"].tolist() == [-1] * 4  # what is not recorded yet is descended again
    assert early["history/0"].shape == (4, 1)


WRONG = {
    "model": np.array("another model"),
    "order": np.array("another"),
    "diverged_at": [np.array([-1, -1, 3, -1]), np.array([-2, -1, 1, -1]), np.zeros(4, int)],
    "iteration": [np.array(0), np.array(6), np.array(-1)],
    "updates": [np.array(3), np.array(7)],
    "final": [np.zeros((4, 2, 2)), np.zeros((4, 2, 3), np.float32), np.full((4, 2, 3), np.nan)],
    "weights": np.zeros((2, 2, 3)),
    "state/0": [np.zeros(4), np.array(1.0), np.array(["a", "b", "c"])],
    "history/0": [np.zeros((4, 2)), np.full((4, 3), np.nan), np.zeros((4, 3), np.float32)],
    "history/3": [np.zeros((3, 3)), None],
}
CASES = [
    (name, value)
    for name, values in WRONG.items()
    for value in (values if isinstance(values, list) else [values])
]


@pytest.mark.parametrize(("name", "value"), CASES, ids=str)
def test_arrays_of_another_descent_are_refused_and_nothing_is_taken(name, value):
    histories, midway = half_way()
    arrays = histories.to_arrays(midway)
    arrays = {key: array for key, array in (arrays | {name: value}).items() if array is not None}
    new = growing()
    with pytest.raises((ValueError, KeyError)):
        new.read(arrays)
    assert np.isnan(new.train[0]).all()
    assert (new.diverged_at == -1).all()


@pytest.mark.parametrize("updates", [4, 5, 6])
def test_updates_lie_between_two_records(updates):
    histories, midway = half_way()
    arrays = histories.to_arrays(midway._replace(updates=updates))
    new = growing()
    assert new.read(arrays).updates == updates


def test_points_that_a_scheme_leaves_as_they_are_are_not_copied():
    class Same:
        """A scheme that changes nothing."""

        def transform(self, x):
            return x

    assert transform_points(Same(), X, np.float64) is X
    single = transform_points(Same(), X, np.float32)
    np.testing.assert_array_equal(single, X.astype(np.float32))
