"""Arrays that are reused from block to block."""

from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array
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
