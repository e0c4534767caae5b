"""Threads over points or runs, each with its matrix products on one thread.

The library of the matrix products (BLAS) would run only the products on its own threads, and all
elementwise work between them on one. With half of the points on each of two threads, both take half
the time; and where other programs use the cores, the library's threads wait for each other at every
product.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import Any, TypeVar

from normbench.normalizers.decomposition import blas_controller

Argument = TypeVar("Argument")
Value = TypeVar("Value")
MAX_ONE_THREAD_ENTRIES = 1_000_000  # numbers: below, linear algebra is as quick on one thread

# Parameters of glibc's `mallopt`, and the bytes beyond which memory goes back to the system.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_BYTES, MAX_HEAP_ARRAY_BYTES = 1 << 28, 1 << 25


@lru_cache(maxsize=1)
def available_threads() -> int:
    """Return the number of threads that the matrix products may use: the library's own setting.

    It is asked before the first limit: points are split equally within a limit, too, so that costs
    have the same rounding.
    """
    pools = blas_controller().info()
    return max((pool["num_threads"] for pool in pools if pool["user_api"] == "blas"), default=1)


def count_worthwhile(work: float) -> int:
    """Return the number of threads, of those available, that a piece of work is shared among.

    Each thread costs as much as it saves of little work: it is woken, and only one at a time runs
    Python between its products. So n threads take `work / n + c n`, and the n-th pays where
    `work / (n (n - 1))` is at least c.

    Args:
        work: What one thread would do, in multiples of that from which a second thread pays, 2 c.
    """
    count = int((1 + sqrt(1 + 8 * work)) / 2)
    return min(count, available_threads()) if count > 1 else 1  # asking the library takes time


def split(span: slice, parts: int) -> list[slice]:
    """Return so many equal parts of a span of items, no more than it has items."""
    count = span.stop - span.start
    parts = max(1, min(parts, count))
    ends = [span.start + count * part // parts for part in range(parts + 1)]
    return [slice(*both) for both in pairwise(ends)]


def blocks(span: slice, size: int) -> list[slice]:
    """Return the blocks of so many items that make up a span; the last one may be shorter."""
    return [
        slice(first, min(first + size, span.stop)) for first in range(span.start, span.stop, size)
    ]


def limit_threads(entries: int) -> Any:
    """Limit the library to one thread for matrices of so few entries that more do not pay."""
    available_threads()
    count = 1 if entries < MAX_ONE_THREAD_ENTRIES else None
    return blas_controller().limit(limits=count, user_api="blas")


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
    _keep_pages()
    if len(arguments) == 1:
        return [work(arguments[0])]
    # Else the library would start threads of its own inside each of these.
    with blas_controller().limit(limits=1, user_api="blas"):
        futures = [_pool().submit(work, argument) for argument in arguments[:-1]]
        try:
            own_value = work(arguments[-1])
        finally:  # no thread may still work on the caller's arrays after an exception
            wait(futures)
        return [*(future.result() for future in futures), own_value]


@lru_cache(maxsize=1)
def _keep_pages() -> None:
    """Let glibc keep the pages of freed arrays: each step needs as many, and new ones are slow."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(library, "mallopt"):
        library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(MMAP_THRESHOLD, MAX_HEAP_ARRAY_BYTES)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return a pool, which is kept for later calls and starts a thread where none is idle."""
    return ThreadPoolExecutor(1024, "points")
