"""Small parts of the engine by their formulas: sizes, bounds, orders, work on threads."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from normbench.costs import softmax
from normbench.engine import smaller, threads
from normbench.engine.linear import bound_rounding
from normbench.engine.plan import Batches
from tests import door


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def measure_sizes(x):
    """Return the sizes of the entries of held-out points."""
    return door.problem(softmax, x, np.ones(len(x)), True).entry_sizes


def test_scores_are_the_bias_and_the_weighted_features(rng):
    problem = door.problem(softmax, rng.standard_normal((5, 2)), np.ones(5), True, scores=2)
    scores = problem.scores(np.array([[10.0, 1.0, 2.0], [-3.0, 0.0, 4.0]]), np.eye(2))
    assert scores.tolist() == [[11.0, 12.0], [-3.0, 1.0]]


def test_units_of_the_features_change_no_bound_of_rounding(rng):
    x, weights = rng.standard_normal((9, 3)), rng.standard_normal((2, 2, 4))
    units = np.array([1e9, 1.0, 1e-6])
    in_units = weights / np.r_[1.0, units]
    np.testing.assert_allclose(
        bound_rounding(in_units, measure_sizes(x * units)),
        bound_rounding(weights, measure_sizes(x)),
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "32 shuffled 0 1"),
        ({"order": "cyclic", "seed": 5, "records": 3}, "32 cyclic 5 3"),
    ],
)
def test_a_checkpoint_holds_what_the_order_of_batches_depends_on(more, text):
    assert door.plan(1, Batches(100, 32, **more)).order == text


@pytest.mark.parametrize(
    ("joins_last", "updates", "before"),
    [(False, 4, [0, 1, 2, 4, 5, 6, 8]), (True, 3, [0, 1, 2, 3, 4, 5, 6])],
)
def test_records_of_a_pass_are_at_equal_numbers_of_updates(joins_last, updates, before):
    batches = Batches(97, 32, records=3, joins_last=joins_last)
    assert batches.updates_per_pass == updates
    assert [batches.updates_before(record) for record in range(7)] == before


def test_a_number_whose_square_overflows_is_found_in_any_array():
    most = smaller.MAX_SQUARABLE
    fine, high = np.array([-0.9 * most, 0.9 * most]), np.array([0.0, 1.1 * most])
    assert smaller.can_be_squared(fine)
    assert smaller.can_be_squared(fine, fine)
    for bad in (high, -high, np.array([most]), np.array([-most]), np.array([np.nan])):
        assert not smaller.can_be_squared(fine, bad)
        assert not smaller.can_be_squared(bad, fine)


@pytest.fixture
def controller(monkeypatch):
    """Stand in for the library's pools; `now`: what they are limited to."""
    controller = SimpleNamespace(now=None)

    @contextmanager
    def limit(**asked):
        controller.now = asked
        yield
        controller.now = None

    pools = [{"user_api": api, "num_threads": n} for api, n in (("openmp", 9), ("blas", 3))]
    controller.limit, controller.info = limit, lambda: pools
    monkeypatch.setattr(threads, "_controller", lambda: controller)
    threads.available_threads.cache_clear()
    yield controller
    threads.available_threads.cache_clear()


ONE = {"limits": 1, "user_api": "blas"}


@pytest.mark.parametrize("work", [(0, 1), (0.99, 1), (1, 2), (2.99, 2), (3, 3), (1e9, 3)])
def test_each_further_thread_needs_more_work(controller, work):
    """The n-th pays from n (n - 1) / 2 times the work from which the second does."""
    assert threads.count_worthwhile(work[0]) == work[1]


def test_only_small_matrices_keep_the_library_to_one_thread(controller):
    for missing, asked in ((1, ONE), (0, None)):
        with threads.limit_threads(threads.MAX_ONE_THREAD_ENTRIES - missing):
            assert controller.now == asked


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_work_with_the_library_on_one_thread_and_the_last_is_the_callers(controller, count):
    names = threads.map_parallel(
        lambda number: (number, controller.now, threading.current_thread().name), range(count)
    )
    assert [name[:2] for name in names] == [(n, None if count == 1 else ONE) for n in range(count)]
    assert names[-1][2] == threading.current_thread().name


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_an_error_of_a_thread_is_raised_when_all_have_ended(controller, fails):
    ended = []

    def work(number):
        time.sleep(0.02 * (number != fails))
        ended.append(number)
        if number == fails:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.map_parallel(work, range(3))
    assert sorted(ended) == [0, 1, 2]
