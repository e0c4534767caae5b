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
    """The settings of the search for the critical step size.

    Attributes:
        critical: Whether it is searched for.
        width: The relative width of the bracket at which the search ends.

    Raises:
        UserError: The width is not above 0 and below 1, or critical not true or false.
    """

    critical: bool = default("search.critical")
    width: float = default("search.width")

    def __post_init__(self) -> None:
        for field in fields(self):
            check(f"search.{field.name}", getattr(self, field.name))


class Critical(NamedTuple):
    """The bracket of the critical step size, after the search.

    Attributes:
        lower: The largest step size below the first failure; None where everything failed.
        upper: The smallest step size that fails; None where nothing failed.
        descents: The number of descents that were run, each of several step sizes.
    """

    lower: float | None
    upper: float | None
    descents: int


def critical_step(
    fails: Callable[[Sequence[float]], Sequence[bool]], first: float, width: float
) -> Critical:
    """Return the bracket of a job's critical step size, with `upper / lower <= 1 + width`.

    The first failure from below counts, since the set of step sizes that pass need not be an
    interval.

    Args:
        fails: Runs one descent of several step sizes and returns which fail.
        first: The step size where the bracket starts; it doubles upwards while nothing fails, and
            halves downwards while everything does.
        width: The relative width of the bracket, above 0.

    Returns:
        The bracket, open where nothing or everything failed, and the number of descents.
    """
    lower, upper, descents = 0.0, np.inf, 0
    powers = 2.0 ** np.arange(SIZES_PER_DESCENT)  # each size of a descent is twice the last
    sizes = first * powers
    while lower == 0 or upper / lower > 1 + width:
        failures = [*fails(sizes.tolist()), True]  # the upper end fails
        descents += 1
        # The sizes increase, within the bracket or beside its open end.
        ends = [lower, *sizes.tolist(), upper]
        first_failure = failures.index(True)
        lower, upper = ends[first_failure : first_failure + 2]
        if 0 < lower < upper < np.inf:  # continue between the ends, which are known
            sizes = np.geomspace(lower, upper, SIZES_PER_DESCENT + 2)[1:-1]
        elif descents * SIZES_PER_DESCENT >= MAX_DOUBLINGS:
            break
        else:  # continue above the largest size, or below the smallest
            sizes = sizes[-1] * 2 * powers if np.isinf(upper) else sizes[0] / 2 / powers[::-1]
    return Critical(lower or None, upper if np.isfinite(upper) else None, descents)
