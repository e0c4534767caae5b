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
    lower: float | None = None
    upper: float | None = None
    powers = 2.0 ** np.arange(SIZES_PER_DESCENT)  # each size of a descent is twice the last
    descents = 0
    sizes = first * powers
    while descents * SIZES_PER_DESCENT < MAX_DOUBLINGS:
        failures = list(fails([float(size) for size in sizes]))
        descents += 1
        lower, upper = _narrow_bracket(sizes, failures, lower, upper)
        if lower is not None and upper is not None:
            break
        # Continue above the largest size, or below the smallest, in increasing order.
        sizes = sizes[-1] * 2 * powers if upper is None else sizes[0] / 2 / powers[::-1]
    if lower is None or upper is None:
        return Critical(lower, upper, descents)
    while upper / lower > 1 + width:
        # Between the ends, which are known.
        sizes = np.geomspace(lower, upper, SIZES_PER_DESCENT + 2)[1:-1]
        failures = list(fails([float(size) for size in sizes]))
        descents += 1
        lower, upper = _narrow_bracket(sizes, failures, lower, upper)
        assert lower is not None
        assert upper is not None
    return Critical(lower, upper, descents)


def _narrow_bracket(
    sizes: np.ndarray, failures: list[bool], lower: float | None, upper: float | None
) -> tuple[float | None, float | None]:
    """Return a bracket narrowed to the first failure among new step sizes.

    Args:
        sizes: The new step sizes, increasing, within the bracket or beside its open end.
        failures: Whether each of them fails.
        lower: The lower end of the bracket, None where it is open.
        upper: The upper end of the bracket, None where it is open.
    """
    first_failure = failures.index(True) if True in failures else len(failures)
    if first_failure > 0:
        lower = float(sizes[first_failure - 1])
    if first_failure < len(failures):
        upper = float(sizes[first_failure])
    return lower, upper
