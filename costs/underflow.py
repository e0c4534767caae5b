"""The exponential of a block of scores, without slow subnormal numbers."""

from functools import cache
from typing import Any

import numpy as np


def exp_in_place(scores: Any) -> None:
    """Replace scores, of any shape, by `e^s` in place; the smallest powers become 0.

    A power below the smallest normal number takes numpy 10 to 100 times as long as another, in
    float64 a power that is rounded to 0 does too, and each later product with such a number is as
    slow. A run with a large step size has many of them. So scores are raised to the logarithm of a
    small normal number (the floor), which is then subtracted from all powers: 1e-35 in float32,
    1e-305 in float64.
    """
    log_floor = _least_exponent(scores.dtype)
    # Also true where a score is NaN, which stays NaN below.
    has_underflow = not np.minimum.reduce(scores, axis=None, initial=0) >= log_floor
    if has_underflow:
        np.maximum(scores, log_floor, out=scores)
    np.exp(scores, out=scores)
    if has_underflow:
        # The floor is computed in an array as the powers above are, not as a scalar, so that the
        # difference is exactly 0.
        scores -= np.exp(np.full(1, log_floor, scores.dtype))


@cache
def _least_exponent(dtype: Any) -> Any:
    """Return an exponent whose power of e is a normal number, with some room, of that type."""
    return np.log(np.finfo(dtype).tiny) + 7
