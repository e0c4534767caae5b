"""Threads: how many pay, and their work."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from normbench.engine import threads


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
    monkeypatch.setattr(threads, "blas_controller", lambda: controller)
    threads.available_threads.cache_clear()
    yield controller
    threads.available_threads.cache_clear()


ONE = {"limits": 1, "user_api": "blas"}


@pytest.mark.parametrize("work", [(0, 1), (0.99, 1), (1, 2), (2.99, 2), (3, 3), (1e9, 3)])
def test_each_further_thread_needs_more_work(controller, work):
    """The n-th pays from n (n - 1) / 2 times the work from which the second does."""
    assert threads.count_worthwhile(work[0]) == work[1]


def test_only_small_matrices_keep_the_library_to_one_thread(controller):
    for missing, asked in ((1, ONE), (0, {**ONE, "limits": None})):
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
