"""Threads of our own over parts of the points, each with the matrix products on one thread.

The library would run the products alone on threads of its own, and all elementwise work between
them on one thread. With half of the points on each of two threads, both take half the time. Where
other programs have the cores, threads of our own get their share of them; the library's wait for
each other at every product.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
SMALL = 1_000_000  # numbers: below, linear algebra is as quick on one thread
LOAD = Path("/proc/loadavg")
_unlimited: list[int] = []  # the library's own setting, while a busy machine overrules it
LOOKS, BETWEEN = 5, 0.02  # looks at the load, and the seconds between two of them


def available() -> int:
    """Return the threads that the matrix products may use: the library's own setting.

    On a busy machine, too, so that points are parted alike and numbers are the same.
    """
    if _unlimited:
        return _unlimited[-1]
    found = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    return max(found, default=1)


@contextmanager
def few(numbers: int) -> Iterator[None]:
    """Keep the library to one thread for small matrices, of so many numbers, and on a busy machine.

    Where others use the cores, waiting for a second thread took 50 ms a product of 1 ms.
    """
    large = numbers >= SMALL
    if large and not busy():
        yield
        return
    if large:
        _unlimited.append(available())
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        if large:
            _unlimited.pop()


def busy() -> bool:
    """Return whether other programs leave fewer cores than the matrix products may use.

    Programs that run or wait for a core are counted, at several times, of which the lowest counts:
    the library's own threads go on for some milliseconds after their work. False elsewhere than on
    Linux.
    """
    running = []
    for _ in range(LOOKS):
        time.sleep(BETWEEN)
        try:
            running.append(int(LOAD.read_text().split()[3].partition("/")[0]))
        except (OSError, ValueError, IndexError):
            return False
    others = min(running) - 1  # but for the one that looks
    return (os.cpu_count() or 1) - others < available()


def over(work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
    """Return what work gives for each part, in order; one thread a part where there are several.

    The last part is the caller's own: one thread less has to be woken.
    """
    if len(parts) == 1:
        return [work(parts[0])]
    with _controller().limit(limits=1, user_api="blas"):
        others = [_pool(len(parts) - 1).submit(work, part) for part in parts[:-1]]
        try:
            own = work(parts[-1])
        finally:
            wait(others)
        return [*(other.result() for other in others), own]


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="points")
