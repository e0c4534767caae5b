"""Rows of points, block after block: of points that are not in memory, the next is on its way."""

from collections.abc import Iterator, Sequence

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows
from normbench.engine.problem import Workspace


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
    buffer = memory.get(("rows", number))
    if buffer is None or len(buffer) < size:
        buffer = memory["rows", number] = np.empty((size, x.shape[1]), x.dtype)
    for place, span in enumerate(spans):
        for following in spans[place + 1 : place + 2]:
            x.ahead(following.start, following.stop)
        yield span, x.read(span.start, span.stop, buffer)
