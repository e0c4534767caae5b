"""Rows of points, block after block: of points that are not in memory, the next is read ahead."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from normbench.datasets.points import Array, Rows
from normbench.engine.problem import Workspace


def reading(
    x: Rows, spans: Sequence[slice], memory: Workspace, number: int
) -> Iterator[tuple[slice, Array]]:
    """Yield spans of points x with their rows, which stay as they are until the next but one.

    number: of the thread that asks; it has a reader and two buffers of its own.
    """
    if isinstance(x, np.ndarray):
        for span in spans:
            yield span, x[span]
        return
    size = max((span.stop - span.start for span in spans), default=0)
    buffers = memory.get(("rows", number))
    if buffers is None or buffers.shape[1] < size:
        buffers = memory["rows", number] = np.empty((2, size, x.shape[1]), x.dtype)
    if not x.waits:
        for span in spans:
            yield span, x.read(span.start, span.stop, buffers[0])
        return
    reader = _reader(number)
    ahead = [reader.submit(x.read, span.start, span.stop, buffers[0]) for span in spans[:1]]
    for place, span in enumerate(spans):
        rows = ahead.pop().result()
        for following in spans[place + 1 : place + 2]:
            into = buffers[(place + 1) % 2]
            ahead = [reader.submit(x.read, following.start, following.stop, into)]
        yield span, rows


@lru_cache(maxsize=64)
def _reader(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix=f"reader {number}")
