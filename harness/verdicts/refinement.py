"""Finer step sizes around a best one, and the number of iterations that they come to: pure rules.

Finer step sizes lie on one lattice, `10^(n/16)`, so that jobs that know nothing of each other share
them. Around the best step size of a grid first every fourth of them within a decade, then, around
the best of those, each within three sixteenths of a decade.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

PER_DECADE, COARSE, AROUND = 16, 4, 3


class Fewest(NamedTuple):
    """The fewest iterations to a target, the step size that takes them, and how few it might be.

    least: iterations times the step size over the next larger one that misses the target; NaN
    where none was tried that does.
    """

    iterations: float
    step_size: float
    least: float


def number_of(step_size: float) -> float:
    """Return a step size's number on the lattice; whole to rounding for one that is on it."""
    number = PER_DECADE * float(np.log10(step_size))
    return float(round(number)) if abs(number - round(number)) < 1e-9 else number


def step_size_of(number: int) -> float:
    """Return the step size of a lattice's number; a power of ten is the float that one types."""
    decades, rest = divmod(number, PER_DECADE)
    return float(f"1e{decades}") if rest == 0 else float(10.0 ** (number / PER_DECADE))


def coarse_numbers(best: float) -> list[int]:
    """Return the numbers of four step sizes a decade, within a decade of a best step size."""
    number = number_of(best)
    first = int(np.ceil((number - PER_DECADE) / COARSE)) * COARSE
    return [*range(first, int(np.floor(number + PER_DECADE)) + 1, COARSE)]


def fine_numbers(centre: int) -> list[int]:
    """Return the numbers of the step sizes around the best of the coarse ones."""
    return [*range(centre - AROUND, centre + AROUND + 1)]


def fewest(counts: Mapping[float, float], numbers: list[int]) -> Fewest | None:
    """Return the fewest iterations over neighbouring numbers; None where none is sure.

    counts: iterations by number, of all step sizes that were tried; infinite where the target is
    not reached. Each step size counts with the median of it and of its two neighbours, since a
    single one may be lucky; of equal ones the smaller.
    """
    own = np.array([np.inf, *(counts.get(number, np.inf) for number in numbers), np.inf])
    smooth = np.median(np.stack([own[:-2], own[1:-1], own[2:]]), axis=0)
    best = int(np.argmin(smooth))
    if not np.isfinite(smooth[best]):
        return None
    return with_range(float(smooth[best]), numbers[best], counts)


def with_range(iterations: float, number: float, counts: Mapping[float, float]) -> Fewest:
    """Return iterations at a number of the lattice, with the least that they might be."""
    missed = [other for other, count in counts.items() if other > number and np.isinf(count)]
    ratio = 10.0 ** ((number - min(missed)) / PER_DECADE) if missed else float("nan")
    on_lattice = number == round(number)
    size = step_size_of(round(number)) if on_lattice else 10.0 ** (number / PER_DECADE)
    return Fewest(iterations, size, iterations * ratio)
