"""Threads of our own over parts of the points, each with the matrix products on one thread.

The products alone would run on the library's own threads, but what lies between them, elementwise,
on one: over half of the points each, both halve.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def available() -> int:
    """Return the threads that the matrix products may use: the library's own setting."""
    found = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    return max(found, default=1)


def over(work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
    """Return what work gives for each part, in order; one thread a part where there are several."""
    if len(parts) == 1:
        return [work(parts[0])]
    with _controller().limit(limits=1, user_api="blas"):
        return list(_pool(len(parts)).map(work, parts))


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="points")
