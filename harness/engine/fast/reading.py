"""Read rows of points, block after block, while the next block of a file is prefetched."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows
from normbench.engine.problem import Workspace


def get_buffer(memory: Workspace, key: tuple[str, int], size: int, dtype: Any) -> Array:
    """Return an array of undefined entries, reused from block to block and step to step.

    Args:
        memory: Holds the array between the calls.
        key: What the array is for, and the number of the thread.
        size: The number of entries.
        dtype: Their type.

    Returns:
        `(size,)`, the beginning of the array that is held.
    """
    buffer = memory.get(key)
    if buffer is None or len(buffer) < size or buffer.dtype != dtype:
        buffer = memory[key] = np.empty(size, dtype=dtype)
    return buffer[:size]


def read_spans(
    x: Rows, spans: Sequence[slice], memory: Workspace, number: int
) -> Iterator[tuple[slice, Array]]:
    """Yield spans of points x with their rows, which are valid until the next span.

    The system prefetches the next block while this one is processed: a thread that read ahead would
    take a core from those that multiply.

    Args:
        x: Points (P, N), in memory or read by blocks.
        spans: The spans, in the order in which they are read.
        memory: Holds the buffer that blocks are read into.
        number: The number of the calling thread, which has its own buffer.

    Yields:
        A span, and its points `(p, N)`: a view of an array, or the buffer.
    """
    if isinstance(x, np.ndarray):
        for span in spans:
            yield span, x[span]
        return
    size = max((span.stop - span.start for span in spans), default=0)
    buffer = get_buffer(memory, ("rows", number), size * x.shape[1], x.dtype)
    buffer = buffer.reshape(size, x.shape[1])
    for index, span in enumerate(spans):
        for following in spans[index + 1 : index + 2]:  # the next one, if there is one
            x.read_ahead(following.start, following.stop)
        yield span, x.read(span.start, span.stop, buffer)
