"""State of a descent on its way: histories as they grow, written and read back."""

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from normbench.engine.descent import Midway, empty_histories
from normbench.engine.problem import Evaluation
from normbench.engine.scheme.applying import transform_points

X = np.random.default_rng(2).standard_normal((40, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -1.0]


class Counted:
    """A problem that counts misclassifications."""

    classify = True


def empty():
    """Return empty histories of four runs."""
    return empty_histories(Counted(), Counted(), 5, np.zeros((4, 2, 3)))


def half_way():
    """Return the histories of four runs before iteration 3, one of which ended at iteration 1."""
    histories = empty()
    alive = np.arange(4)
    for k in range(3):
        if k == 1:
            histories.diverged_at[2], alive = 1, np.array([0, 1, 3])
        evaluation = Evaluation(10.0 * k + alive, None, alive)
        of_test = Evaluation(np.full(len(alive), 6.0 * (k + 1)), None, np.full(len(alive), 9))
        histories.weights[alive] = 1.0 + k
        histories.write(k, alive, evaluation, of_test)
    state = (np.arange(3.0), np.ones((3, 2), dtype=np.int64))
    return histories, Midway(3, alive, np.full((3, 2, 3), 4.0), state, 5)


def test_histories_are_written_where_their_runs_are_and_read_back():
    histories, midway = half_way()
    expected = [[0, 10, 20], [1, 11, 21], [2, np.nan, np.nan], [3, 13, 23]]
    np.testing.assert_array_equal(histories.cost[:, :3], expected)
    assert np.isnan(histories.cost[:, 3:]).all()
    np.testing.assert_array_equal(histories.misclassifications[:, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(histories.test_cost[0], [6, 12, 18, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(histories.test_misclassifications[2], [9, *[np.nan] * 5])
    arrays = {**histories.to_arrays(), **midway.to_arrays()}
    at_start = Midway(0, np.arange(4), np.zeros((4, 2, 3)), midway.state, 0)
    saved, again = empty().of_arrays(arrays), at_start.of_arrays(arrays)
    assert (again.k, again.updates, again.alive.tolist()) == (3, 5, [0, 1, 3])
    for mine, theirs in zip((*again.state, again.weights), (*midway.state, midway.weights)):
        np.testing.assert_array_equal(mine, theirs)
    for name, array in histories.to_arrays().items():
        np.testing.assert_array_equal(getattr(saved, name), array)


def test_points_that_a_scheme_leaves_as_they_are_are_not_copied():
    assert transform_points(FunctionTransformer(), X, np.float64) is X
    single = transform_points(FunctionTransformer(), X, np.float32)
    np.testing.assert_array_equal(single, X.astype(np.float32))
