"""Threads of our own over parts of the points, each with the matrix products on one thread.

The library would run the products alone on threads of its own, and all elementwise work between
them on one thread. With half of the points on each of two threads, both take half the time.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
SMALL = 1_000_000  # numbers: below, linear algebra is as quick on one thread


def available() -> int:
    """Return the threads that the matrix products may use: the library's own setting."""
    found = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    return max(found, default=1)


def few(numbers: int) -> AbstractContextManager[Any]:
    """Keep the library to one thread for small matrices, of so many numbers.

    Where others use the cores, waiting for a second thread took 50 ms a product of 1 ms.
    """
    return _controller().limit(limits=1, user_api="blas") if numbers < SMALL else nullcontext()


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
