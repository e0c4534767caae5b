"""Threads of this program over spans of points, each with its matrix products on one thread.

The library of the matrix products (BLAS) would run only the products on its own threads, and all
elementwise work between them on one thread. With half of the points on each of two threads, both
take half the time. Where other programs use the cores, these threads get their share of them; the
library's threads wait for each other at every product.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")
MAX_ONE_THREAD_ENTRIES = 1_000_000  # numbers: below, linear algebra is as quick on one thread
MAX_POOL_THREADS = 1024
LOADAVG = Path("/proc/loadavg")
# The library's own number of threads, once for each `limit_threads` in which a busy machine
# overrules it.
_unlimited: list[int] = []
LOAD_SAMPLES, SAMPLE_SECONDS = 5, 0.02  # samples of the load, and the seconds between two of them


def available_threads() -> int:
    """Return the number of threads that the matrix products may use: the library's own setting.

    It is the same while a busy machine overrules that setting, so that points are always split
    equally and costs have the same rounding.
    """
    if _unlimited:
        return _unlimited[-1]
    pool_sizes = [
        pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"
    ]
    return max(pool_sizes, default=1)


def count_worthwhile(work: float, pays_from: float) -> int:
    """Return the number of threads, of those available, that a piece of work is shared among.

    Each thread costs as much as it saves of little work: it is woken, and only one at a time runs
    Python between its products. So n threads take `work / n + c n`, and the n-th pays where
    `work / (n (n - 1))` is at least c. On 16 cores all of them would take longer than three for
    the 10,000 digits of MNIST and one run.

    Args:
        work: What one thread would do, in any unit.
        pays_from: The work from which a second thread pays, 2 c.
    """
    count = int((1 + sqrt(1 + 8 * work / pays_from)) / 2)
    return min(count, available_threads()) if count > 1 else 1  # asking the library takes time


@contextmanager
def limit_threads(entries: int) -> Iterator[None]:
    """Limit the library to one thread for matrices of few entries, for others to the free cores.

    Where other programs use the cores, waiting for a second thread took 50 ms a product of 1 ms.

    Args:
        entries: The number of entries of the matrices that are multiplied; 0 limits in any case.
    """
    if entries < MAX_ONE_THREAD_ENTRIES:
        with _controller().limit(limits=1, user_api="blas"):
            yield
        return
    available, free = available_threads(), count_free_cores()
    if free >= available:
        yield
        return
    _unlimited.append(available)  # limited for the machine's sake alone: see `available_threads`
    try:
        with _controller().limit(limits=free, user_api="blas"):
            yield
    finally:
        _unlimited.pop()


def count_free_cores() -> int:
    """Return the number of cores that other programs leave, at least one; outside Linux all.

    Programs that run or wait for a core are counted several times, and the lowest count is used:
    the library's own threads continue for some milliseconds after their work.
    """
    cores, running = os.cpu_count() or 1, []
    for _ in range(LOAD_SAMPLES):
        time.sleep(SAMPLE_SECONDS)
        try:
            # The fourth field is the number of running threads, a slash, and the number of all.
            running.append(int(LOADAVG.read_text().split()[3].partition("/")[0]))
        except (OSError, ValueError, IndexError):
            return cores
    other_programs = min(running) - 1  # without this one
    return max(1, cores - other_programs)


def map_parallel(work: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
    """Return what `work` returns for each argument, each argument on its own thread.

    The last argument is the calling thread's: one thread less has to be woken. Each thread's matrix
    products stay on that thread.

    Args:
        work: A function of one argument.
        arguments: One for each thread.

    Returns:
        The values, in the order of the arguments. An exception of `work` is raised here, after all
        threads have ended.
    """
    if len(arguments) == 1:
        return [work(arguments[0])]
    # Else the library would start threads of its own inside each of these.
    with _controller().limit(limits=1, user_api="blas"):
        futures = [_pool().submit(work, argument) for argument in arguments[:-1]]
        try:
            own_value = work(arguments[-1])
        finally:  # no thread may still work on the caller's arrays after an exception
            wait(futures)
        return [*(future.result() for future in futures), own_value]


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Return the controller of the library's threads, made once: it searches loaded libraries."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return a pool, which is kept for later calls and starts a thread where none is idle."""
    return ThreadPoolExecutor(MAX_POOL_THREADS, thread_name_prefix="points")
