"""Threads of our own: how many there are, and the library's on one while they work."""

import threading
import time
from contextlib import contextmanager

import pytest

from normbench.engine.fast import threads


class Controller:
    """Stands in for the library's: its pools, and what it was limited to while work was done."""

    def __init__(self, *pools):
        self.pools = [{"user_api": api, "num_threads": count} for api, count in pools]
        self.now, self.seen = None, []

    def info(self):
        return self.pools

    @contextmanager
    def limit(self, **asked):
        self.now = asked
        yield
        self.now = None


@pytest.fixture
def controller(monkeypatch):
    made = Controller(("openmp", 9), ("blas", 3), ("blas", 2))
    monkeypatch.setattr(threads, "_controller", lambda: made)
    return made


ONE = {"limits": 1, "user_api": "blas"}


def test_the_librarys_own_setting_is_what_is_available(controller):
    assert threads.available_threads() == 3
    controller.pools = controller.pools[:1]
    assert threads.available_threads() == 1


@pytest.mark.parametrize(
    ("work", "threads_of_many"),
    [(0, 1), (99, 1), (100, 2), (299, 2), (300, 3), (599, 3), (600, 4), (1e9, 64)],
)
def test_each_further_thread_needs_more_work(controller, work, threads_of_many):
    """The n-th pays from n (n - 1) / 2 times the work from which the second does."""
    controller.pools = [{"user_api": "blas", "num_threads": 64}]
    assert threads.count_worthwhile(work, 100) == threads_of_many
    controller.pools = [{"user_api": "blas", "num_threads": 2}]
    assert threads.count_worthwhile(work, 100) == min(2, threads_of_many)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_several_parts_are_worked_on_with_the_library_on_one_thread(controller, parts):
    found = threads.map_parallel(lambda part: (10 * part, controller.now), range(parts))
    assert found == [(10 * part, None if parts == 1 else ONE) for part in range(parts)]


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_an_error_of_a_part_is_raised_when_all_have_ended(controller, fails):
    ended = []

    def work(part):
        time.sleep(0.02 * (part != fails))
        ended.append(part)
        if part == fails:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.map_parallel(work, range(3))
    assert sorted(ended) == [0, 1, 2]


def test_the_last_part_is_the_callers_own(controller):
    names = threads.map_parallel(lambda part: threading.current_thread().name, range(3))
    assert names[-1] == threading.current_thread().name
    assert names[-1] not in names[:-1]


def test_all_parts_are_worked_on_at_once():
    together = threading.Barrier(20, timeout=60)
    assert sorted(threads.map_parallel(lambda part: together.wait(), range(20))) == [*range(20)]


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return a function that says how many programs run or wait, on a machine of 3 cores."""
    monkeypatch.setattr(threads, "LOADAVG", tmp_path / "loadavg")
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 3)
    looks = iter(())
    monkeypatch.setattr(threads.time, "sleep", lambda _: write(next(looks)))

    def write(running):
        (tmp_path / "loadavg").write_text(f"1.50 1.30 1.00 {running}/150 4711\n")

    def running(*counts):
        nonlocal looks
        looks = iter(counts)

    return running


def test_the_free_cores_are_those_that_other_programs_leave(load):
    for counts, free in {(1,) * 5: 3, (2, 2, 3, 2, 2): 2, (9, 9, 1, 9, 9): 3, (9,) * 5: 1}.items():
        load(*counts)
        assert threads.count_free_cores() == free, counts


def test_on_a_machine_without_that_file_all_cores_are_free(load, monkeypatch, tmp_path):
    monkeypatch.setattr(threads.time, "sleep", lambda _: None)
    monkeypatch.setattr(threads, "LOADAVG", tmp_path / "none")
    assert threads.count_free_cores() == 3


def test_large_matrices_have_the_free_cores(controller, load):
    for running, asked in ((1, None), (2, ONE | {"limits": 2}), (4, ONE)):
        load(*[running] * 5)
        controller.pools = [{"user_api": "blas", "num_threads": 3}]
        with threads.limit_threads(threads.MAX_ONE_THREAD_ENTRIES):
            controller.pools = controller.pools if asked is None else []
            assert controller.now == asked
            assert threads.available_threads() == 3  # points are parted as on a quiet machine


def test_only_small_matrices_keep_the_library_to_one_thread(controller, load):
    load(*[1] * 10)
    for numbers, asked in (
        (threads.MAX_ONE_THREAD_ENTRIES - 1, ONE),
        (threads.MAX_ONE_THREAD_ENTRIES, None),
    ):
        with threads.limit_threads(numbers):
            assert controller.now == asked
