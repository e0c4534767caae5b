"""Step sizes beside the grid: finer ones around a best one, and the search for the critical one.

Finer step sizes lie on one lattice, `10^(n/16)`, so that independent jobs share them. Around the
best step size of a grid every fourth of them within a decade comes first, then, around the best of
those, each within three sixteenths of a decade. The critical step size is found without a grid: the
search doubles until a bracket is found, then divides it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.settings import check, default

# In the tag of finer step sizes: the numbers of those whose runs rounding decides.
DECIDED_BY_ROUNDING = "by_rounding"
SIZES_PER_DECADE = 16  # of the lattice
COARSE_STRIDE = 4  # lattice numbers from one coarse step size to the next
FINE_RADIUS = 3  # lattice numbers from the best coarse step size to the farthest fine one
SIZES_PER_DESCENT = 8  # batched: together they cost little more than one
MAX_DOUBLINGS = 64


class Fewest(NamedTuple):
    """The fewest iterations to a target over the step sizes that were tried.

    Attributes:
        iterations: The iterations.
        step_size: The step size that takes them.
        least: A lower bound of the iterations of any step size in between: `iterations` times the
            step size over the next larger one that misses the target; NaN where no larger one was
            tried that misses it.
    """

    iterations: float
    step_size: float
    least: float


def lattice_number(step_size: float) -> float:
    """Return the number n of a step size `10^(n/16)`.

    It is a whole number, free of rounding, for a step size on the lattice, else a fraction.
    """
    number = SIZES_PER_DECADE * float(np.log10(step_size))
    return float(round(number)) if abs(number - round(number)) < 1e-9 else number


def step_size_of(number: float) -> float:
    """Return the step size `10^(n/16)` of a number n, whole on the lattice.

    A power of ten equals the float of its literal, such as 1e-3, which the grid has.
    """
    decades, remainder = divmod(number, SIZES_PER_DECADE)
    exact = float(f"1e{int(decades)}")
    return exact if remainder == 0 else float(10.0 ** (number / SIZES_PER_DECADE))


def coarse_numbers(best: float) -> list[int]:
    """Return the lattice numbers of coarse step sizes, within a decade of a best step size.

    They are four a decade, at multiples of `COARSE_STRIDE`, increasing.
    """
    number = lattice_number(best)
    first = int(np.ceil((number - SIZES_PER_DECADE) / COARSE_STRIDE)) * COARSE_STRIDE
    return [*range(first, int(np.floor(number + SIZES_PER_DECADE)) + 1, COARSE_STRIDE)]


def fine_numbers(centre: int) -> list[int]:
    """Return the lattice numbers of the fine step sizes around the best coarse one, it included."""
    return [*range(centre - FINE_RADIUS, centre + FINE_RADIUS + 1)]


def fewest_iterations(counts: Mapping[float, float], numbers: list[int]) -> Fewest | None:
    """Return the fewest iterations over neighbouring numbers of the lattice.

    Each step size counts with the median of it and of its two neighbours, since a single one may be
    lucky; of equal ones the smaller. The step size returned is the one of the three that takes the
    median.

    Args:
        counts: Iterations by number, of all step sizes that were tried; infinite where the target
            is not reached.
        numbers: Consecutive lattice numbers n, of step sizes `10^(n/16)`.

    Returns:
        The iterations, their step size and a lower bound; None where none is certain.
    """
    medians = smooth_counts(counts, numbers)
    best = int(np.argmin(medians))
    if not np.isfinite(medians[best]):
        return None
    # The best step size itself comes first, then its neighbours, of which the ends have one.
    neighbours = [numbers[best], *numbers[max(best - 1, 0) : best], *numbers[best + 1 : best + 2]]
    # The median is the number of iterations of one of the three.
    median_number = next(number for number in neighbours if counts.get(number) == medians[best])
    return bound_iterations(float(medians[best]), median_number, counts)


def smooth_counts(counts: Mapping[float, float], numbers: list[int]) -> NDArray[np.float64]:
    """Return, for each number, the median of its iterations and of its two neighbours'.

    Args:
        counts: Iterations by number; infinite where the target is not reached.
        numbers: Consecutive lattice numbers; one that was not tried, and those beyond the ends,
            count as infinite.

    Returns:
        (n,), in the order of the numbers.
    """
    padded = np.array([np.inf, *(counts.get(number, np.inf) for number in numbers), np.inf])
    return np.asarray(np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0))


def bound_iterations(iterations: float, number: float, counts: Mapping[float, float]) -> Fewest:
    """Return iterations at a lattice number, with their lower bound.

    Iterations fall at most in proportion to the step size. Larger step sizes are better only up to
    the next one that misses the target.

    Args:
        iterations: The iterations to the target.
        number: The lattice number n of their step size `10^(n/16)`, whole or not.
        counts: Iterations by number, of all step sizes that were tried; infinite where the target
            is not reached.

    Returns:
        The iterations, their step size, and the bound, see `Fewest`.
    """
    missed = [tried for tried, count in counts.items() if tried > number and np.isinf(count)]
    ratio = 10.0 ** ((number - min(missed)) / SIZES_PER_DECADE) if missed else np.nan
    return Fewest(iterations, step_size_of(number), iterations * ratio)


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
