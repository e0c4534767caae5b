"""Read rows of points, block after block, while the next block of a file is prefetched."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows
from normbench.engine.problem import Workspace


def get_buffer(memory: Workspace, key: tuple[str, int], size: int, dtype: Any) -> Array:
    """Return memory of this size, reused from block to block and step to step."""
    buffer = memory.get(key)
    if buffer is None or len(buffer) < size or buffer.dtype != dtype:
        buffer = memory[key] = np.empty(size, dtype=dtype)
    return buffer[:size]


def read_spans(
    x: Rows, spans: Sequence[slice], memory: Workspace, number: int
) -> Iterator[tuple[slice, Array]]:
    """Yield spans of points x with their rows, which stay unchanged until the next span.

    number: of the calling thread, which has its own buffer. The system prefetches the next block
    while this one is processed: a thread that read ahead would take a core from those that
    multiply.
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
