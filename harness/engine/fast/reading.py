"""Rows of points, block after block: of points that are not in memory, the next is on its way."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows
from normbench.engine.problem import Workspace


def buffer_of(memory: Workspace, key: tuple[str, int], size: int, dtype: Any) -> Array:
    """Return memory of this size, kept from block to block and step to step."""
    kept = memory.get(key)
    if kept is None or len(kept) < size or kept.dtype != dtype:
        kept = memory[key] = np.empty(size, dtype=dtype)
    return kept[:size]


def reading(
    x: Rows, spans: Sequence[slice], memory: Workspace, number: int
) -> Iterator[tuple[slice, Array]]:
    """Yield spans of points x with their rows, which stay as they are until the next.

    number: of the thread that asks, which has a buffer of its own. The system is told of the next
    block while this one is worked on: a thread of ours that read ahead would take a core from
    those that multiply.
    """
    if isinstance(x, np.ndarray):
        for span in spans:
            yield span, x[span]
        return
    size = max((span.stop - span.start for span in spans), default=0)
    buffer = buffer_of(memory, ("rows", number), size * x.shape[1], x.dtype)
    buffer = buffer.reshape(size, x.shape[1])
    for place, span in enumerate(spans):
        for following in spans[place + 1 : place + 2]:
            x.read_ahead(following.start, following.stop)
        yield span, x.read(span.start, span.stop, buffer)
