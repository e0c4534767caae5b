"""Find the critical step size without a grid: double until a bracket is found, then divide it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from normbench.settings import check, default

SIZES_PER_DESCENT = 8  # batched: together they cost little more than one
MAX_DOUBLINGS = 64


@dataclass(frozen=True)
class Search:
    """Whether the critical step size is searched for, and to what relative width.

    Raises `UserError` unless width is above 0 and below 1, and critical true or false.
    """

    critical: bool = default("search.critical")
    width: float = default("search.width")

    def __post_init__(self) -> None:
        for field in fields(self):
            check(f"search.{field.name}", getattr(self, field.name))


class Critical(NamedTuple):
    """The largest step size that does not fail, and the smallest that does, after the search.

    upper is None where nothing failed (no upper limit was found), lower where everything did.
    descents: how many were run.
    """

    lower: float | None
    upper: float | None
    descents: int


def critical_step(
    fails: Callable[[Sequence[float]], Sequence[bool]], first: float, width: float
) -> Critical:
    """Return the critical step size of a job to a relative width: `upper / lower <= 1 + width`.

    The first failure from below counts, since the set of step sizes that pass need not be an
    interval.

    Args:
        fails: Runs one descent of several step sizes and returns which fail.
        first: Where the bracket starts; it doubles upwards while nothing fails, and halves
            downwards while everything does.
        width: Relative, above 0.

    Returns:
        The bracket, open where nothing or everything failed, and the number of descents.
    """
    lower: float | None = None
    upper: float | None = None
    powers = 2.0 ** np.arange(SIZES_PER_DESCENT)
    descents = 0
    sizes = first * powers
    while descents * SIZES_PER_DESCENT < MAX_DOUBLINGS:
        answers = list(fails([float(size) for size in sizes]))
        descents += 1
        lower, upper = _bracket(sizes, answers, lower, upper)
        if lower is not None and upper is not None:
            break
        # Continue above the largest size, or below the smallest, in increasing order.
        sizes = sizes[-1] * 2 * powers if upper is None else sizes[0] / 2 / powers[::-1]
    if lower is None or upper is None:
        return Critical(lower, upper, descents)
    while upper / lower > 1 + width:
        sizes = np.geomspace(lower, upper, SIZES_PER_DESCENT + 2)[1:-1]
        answers = list(fails([float(size) for size in sizes]))
        descents += 1
        lower, upper = _bracket(sizes, answers, lower, upper)
        assert lower is not None
        assert upper is not None
    return Critical(lower, upper, descents)


def _bracket(
    sizes: np.ndarray, failed: list[bool], lower: float | None, upper: float | None
) -> tuple[float | None, float | None]:
    """Return the bracket narrowed to the first failure among increasing sizes."""
    first = failed.index(True) if True in failed else len(failed)
    if first > 0:
        lower = float(sizes[first - 1])
    if first < len(failed):
        upper = float(sizes[first])
    return lower, upper
