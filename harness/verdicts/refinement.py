"""Finer step sizes around a best one, and the number of iterations that they come to: pure rules.

Finer step sizes lie on one lattice, `10^(n/16)`, so that jobs that know nothing of each other share
them. Around the best step size of a grid first every fourth of them within a decade, then, around
the best of those, each within three sixteenths of a decade.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.verdicts.convergence import History

PER_DECADE, COARSE, AROUND = 16, 4, 3


class Fewest(NamedTuple):
    """The fewest iterations to a target, the step size that takes them, and how few it might be.

    least: iterations times the step size over the next larger one that misses the target; NaN
    where none was tried that does.
    """

    iterations: float
    step_size: float
    least: float


class Arrivals:
    """When runs that descend come to a target: at each step size, from which iteration on.

    starts: of each step size, whose runs stand together.
    """

    def __init__(self, step_sizes: int, starts: int, goal: float) -> None:
        self.starts, self.goal = starts, goal
        self.arrival = np.full(step_sizes * starts, np.inf)

    def note(self, k: int, alive: NDArray[np.int64], costs: History) -> None:
        """Take the costs of the runs that are left at iteration k."""
        arrival = np.full(len(self.arrival), np.inf)
        arrival[alive] = np.where(costs <= self.goal, np.minimum(self.arrival[alive], k), np.inf)
        self.arrival = arrival

    def counts(self) -> History:
        """Return iterations by step size: the upper median over its starts, infinite for none."""
        by_step = np.sort(self.arrival.reshape(-1, self.starts), axis=1)
        return np.asarray(by_step[:, self.starts // 2])


class First(Arrivals):
    """All runs leave when the first step size has arrived, or when another is known to have.

    Every run has a shadow beside it, in the second half of the runs; one that parts from it before
    it arrives is not relied on. allowed: how far they may be apart. known: the iterations of the
    best of the step sizes that are not descended again.
    """

    def __init__(
        self, known: float, allowed: float, step_sizes: int, starts: int, goal: float
    ) -> None:
        super().__init__(step_sizes, starts, goal)
        self.known, self.allowed = known, allowed
        self.together = np.full(len(self.arrival), True)

    def __call__(self, k: int, alive: NDArray[np.int64], costs: History) -> NDArray[np.bool_]:
        """Return which of the runs that are left leave at iteration k."""
        every = np.full(2 * len(self.arrival), np.nan)
        every[alive] = costs
        runs, shadows = every.reshape(2, -1)
        before = self.arrival
        self.note(k, np.arange(len(runs)), np.where(np.isnan(shadows), np.nan, runs))
        self.together &= np.abs(runs - shadows) <= self.allowed
        new = np.isinf(before) & ~self.together
        self.arrival[new] = np.inf
        done = k >= self.known or np.isfinite(self.counts()).any()
        return np.full(len(alive), done)


class Neighbours(Arrivals):
    """Smaller step sizes leave that have not arrived when two of three neighbours have.

    Those three decide the number, see `fewest`; they go on, so that it is seen whether they stay,
    and so do larger step sizes: whether they miss the target decides the number's range.
    known: iterations by number, of the neighbours that are not descended again. numbers: of all
    neighbours; missing: of those that are descended. decided: the iteration, None before.
    """

    def __init__(
        self, known: Mapping[float, float], numbers: list[int], missing: list[int], *parts: Any
    ) -> None:
        super().__init__(len(missing), *parts)
        self.known, self.numbers, self.missing = known, numbers, missing
        self.decided: int | None = None

    def __call__(self, k: int, alive: NDArray[np.int64], costs: History) -> NDArray[np.bool_]:
        """Return which of the runs that are left leave at iteration k."""
        self.note(k, alive, costs)
        stays = np.zeros(len(alive), bool)
        if self.decided is not None:
            return stays
        arrived = {number: count for number, count in self.known.items() if count <= k}
        arrived |= dict(zip(map(float, self.missing), self.counts().tolist()))
        reaches = np.isfinite(smoothed(arrived, self.numbers))
        if not reaches.any():
            return stays
        self.decided = k
        late = np.isinf(self.counts()) & (self.missing < np.array(self.numbers)[reaches].min())
        return np.asarray(np.repeat(late, self.starts)[alive])


def hopeless(history: History, minimum: float, goal: float) -> bool:
    """Return whether no step size within a decade brings plain descent on a quadratic to a goal.

    history: `(K + 1,)`, of the step size that comes lowest. In each direction a step of ten times
    its size does in K iterations at most what it does in 10 K, and those that are left go no faster
    than its last one.
    """
    excess, before = float(history[-1]) - minimum, float(history[-2]) - minimum
    iterations = len(history) - 1
    return 0 < excess < before and excess * (excess / before) ** (9 * iterations) > goal - minimum


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
    smooth = smoothed(counts, numbers)
    best = int(np.argmin(smooth))
    if not np.isfinite(smooth[best]):
        return None
    return with_range(float(smooth[best]), numbers[best], counts)


def smoothed(counts: Mapping[float, float], numbers: list[int]) -> NDArray[np.float64]:
    """Return, for each number, the median of its iterations and of its two neighbours'."""
    own = np.array([np.inf, *(counts.get(number, np.inf) for number in numbers), np.inf])
    return np.asarray(np.median(np.stack([own[:-2], own[1:-1], own[2:]]), axis=0))


def with_range(iterations: float, number: float, counts: Mapping[float, float]) -> Fewest:
    """Return iterations at a number of the lattice, with the least that they might be."""
    missed = [other for other, count in counts.items() if other > number and np.isinf(count)]
    ratio = 10.0 ** ((number - min(missed)) / PER_DECADE) if missed else float("nan")
    on_lattice = number == round(number)
    size = step_size_of(round(number)) if on_lattice else 10.0 ** (number / PER_DECADE)
    return Fewest(iterations, size, iterations * ratio)
