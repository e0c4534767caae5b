"""Rules of finer step sizes around a best one, and of the number of iterations that they take.

Finer step sizes lie on one lattice, `10^(n/16)`, so that independent jobs share them. Around the
best step size of a grid every fourth of them within a decade comes first, then, around the best of
those, each within three sixteenths of a decade.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# In the tag of finer step sizes: the numbers of those whose runs rounding decides.
DECIDED_BY_ROUNDING = "by_rounding"
SIZES_PER_DECADE = 16  # of the lattice
COARSE_STRIDE = 4  # lattice numbers from one coarse step size to the next
FINE_RADIUS = 3  # lattice numbers from the best coarse step size to the farthest fine one


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
