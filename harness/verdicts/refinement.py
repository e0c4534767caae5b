"""Rules of finer step sizes around a best one, and of the number of iterations that they take.

Finer step sizes lie on one lattice, `10^(n/16)`, so that independent jobs share them. Around the
best step size of a grid every fourth of them within a decade comes first, then, around the best of
those, each within three sixteenths of a decade.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.verdicts.convergence import History

DECIDED_BY_ROUNDING = (
    "by_rounding"  # in the tag of finer step sizes: the numbers of runs it decides
)
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


class Arrivals:
    """The iteration from which on each run stays at a target, as known while the runs descend.

    Attributes:
        starts: The number of starts of a step size, whose runs are consecutive.
        goal: The cost of the target.
        arrival: The iteration at which each run arrived, `(R,)`; infinite while a run is above the
            goal.
    """

    def __init__(self, step_sizes: int, starts: int, goal: float) -> None:
        self.starts, self.goal = starts, goal
        self.arrival = np.full(step_sizes * starts, np.inf)

    def note(self, k: int, alive: NDArray[np.int64], costs: History) -> None:
        """Record the costs of the remaining runs at an iteration.

        Args:
            k: The iteration.
            alive: The indices of the remaining runs `(left,)`.
            costs: The costs of these `(left,)`. A run above the goal has not arrived, even if it
                had before, nor has a run that does not remain.
        """
        arrival = np.full(len(self.arrival), np.inf)
        arrival[alive] = np.where(costs <= self.goal, np.minimum(self.arrival[alive], k), np.inf)
        self.arrival = arrival

    def counts(self) -> History:
        """Return the iterations of each step size `(S,)`, the upper median over its starts.

        Infinite where the run from that start has not arrived.
        """
        by_step = np.sort(self.arrival.reshape(-1, self.starts), axis=1)
        return np.asarray(by_step[:, self.starts // 2])


class FirstArrival(Arrivals):
    """A rule that ends all runs when a step size has arrived, or a known one would have.

    Every run has a shadow, the same run from a start perturbed by rounding, in the second half of
    the runs. A run that separates from its shadow before it arrives does not count as arrived.

    Attributes:
        known_count: The iterations of the best of the step sizes that are not descended again.
        allowed: How far apart the costs of a run and its shadow may be.
        stays_together: Whether each run has stayed that close to its shadow, `(R,)`.
    """

    def __init__(
        self, known_count: float, allowed: float, step_sizes: int, starts: int, goal: float
    ) -> None:
        super().__init__(step_sizes, starts, goal)
        self.known_count, self.allowed = known_count, allowed
        self.stays_together = np.full(len(self.arrival), True)

    def __call__(self, k: int, alive: NDArray[np.int64], costs: History) -> NDArray[np.bool_]:
        """Return which of the remaining runs end at iteration k: all or none.

        Args:
            k: The iteration.
            alive: The indices of the remaining runs and shadows `(left,)`.
            costs: The costs of these `(left,)`.
        """
        # NaN for a run or a shadow that is not finite; a run without its shadow does not count.
        costs_by_run = np.full(2 * len(self.arrival), np.nan)
        costs_by_run[alive] = costs
        runs, shadows = costs_by_run.reshape(2, -1)
        previous_arrival = self.arrival
        self.note(k, np.arange(len(runs)), np.where(np.isnan(shadows), np.nan, runs))
        self.stays_together &= np.abs(runs - shadows) <= self.allowed
        # A run that arrived before it left its shadow has still arrived.
        unsure_arrivals = np.isinf(previous_arrival) & ~self.stays_together
        self.arrival[unsure_arrivals] = np.inf
        done = k >= self.known_count or np.isfinite(self.counts()).any()
        return np.full(len(alive), done)


class EndLateNeighbours(Arrivals):
    """A rule that ends smaller step sizes once two of three neighbours have reached the target.

    The smaller step sizes that have not reached it end. The three neighbours, which decide the
    number of iterations (see `fewest_iterations`), continue, to show whether they stay at the
    target. Larger step sizes continue, too: the lower bound of the number depends on whether they
    miss the target.

    Attributes:
        known_counts: The iterations, by lattice number, of the step sizes that are not descended
            again.
        numbers: The lattice numbers of all step sizes, consecutive.
        missing: The lattice numbers of those that are descended.
        decided: The iteration at which two of three neighbours had arrived; None before.
    """

    def __init__(
        self,
        known_counts: Mapping[float, float],
        numbers: list[int],
        missing: list[int],
        *starts_and_goal: Any,
    ) -> None:
        super().__init__(len(missing), *starts_and_goal)
        self.known_counts, self.numbers, self.missing = known_counts, numbers, missing
        self.decided: int | None = None

    def __call__(self, k: int, alive: NDArray[np.int64], costs: History) -> NDArray[np.bool_]:
        """Return which of the remaining runs end at iteration k.

        Args:
            k: The iteration.
            alive: The indices of the remaining runs `(left,)`.
            costs: The costs of these `(left,)`.
        """
        self.note(k, alive, costs)
        none_ends = np.zeros(len(alive), bool)
        if self.decided is not None:
            return none_ends
        arrived = {number: count for number, count in self.known_counts.items() if count <= k}
        arrived |= dict(zip(map(float, self.missing), self.counts().tolist()))
        # The median of a step size and its two neighbours is finite once two of them have arrived.
        is_decided = np.isfinite(smooth_counts(arrived, self.numbers))
        if not is_decided.any():
            return none_ends
        self.decided = k
        smallest_decided = np.array(self.numbers)[is_decided].min()
        # One entry for each step size that is descended; `missing` has their lattice numbers.
        is_late = np.isinf(self.counts()) & (self.missing < smallest_decided)
        return np.asarray(np.repeat(is_late, self.starts)[alive])


def cannot_reach(history: History, minimum: float, goal: float) -> bool:
    """Return whether no step size within a decade brings plain descent on a quadratic to a goal.

    Along each eigendirection, K iterations with a step ten times as large reduce the excess by at
    most as much as 10 K iterations with this one. And each of the 9 K iterations after this history
    would reduce the excess by no larger a factor than its last iteration did.

    Args:
        history: The costs `(K + 1,)` of the step size with the lowest cost, K at least 1.
        minimum: The least cost.
        goal: The target cost.

    Returns:
        True where that is certain; False says nothing.
    """
    excess, previous_excess = float(history[-1]) - minimum, float(history[-2]) - minimum
    if not 0 < excess < previous_excess:
        return False
    further_iterations = 9 * (len(history) - 1)
    return excess * (excess / previous_excess) ** further_iterations > goal - minimum


def lattice_number(step_size: float) -> float:
    """Return the number n of a step size `10^(n/16)`.

    It is a whole number, free of rounding, for a step size on the lattice, else a fraction.
    """
    number = SIZES_PER_DECADE * float(np.log10(step_size))
    return float(round(number)) if abs(number - round(number)) < 1e-9 else number


def step_size_of(number: int) -> float:
    """Return the step size `10^(n/16)` of a lattice number n.

    A power of ten equals the float of its literal, such as 1e-3, which the grid has.
    """
    decades, remainder = divmod(number, SIZES_PER_DECADE)
    return float(f"1e{decades}") if remainder == 0 else float(10.0 ** (number / SIZES_PER_DECADE))


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
    padded_counts = np.array([np.inf, *(counts.get(number, np.inf) for number in numbers), np.inf])
    return np.asarray(
        np.median(np.stack([padded_counts[:-2], padded_counts[1:-1], padded_counts[2:]]), axis=0)
    )


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
    missed_numbers = [
        other_number
        for other_number, count in counts.items()
        if other_number > number and np.isinf(count)
    ]
    ratio = (
        10.0 ** ((number - min(missed_numbers)) / SIZES_PER_DECADE)
        if missed_numbers
        else float("nan")
    )
    on_lattice = number == round(number)
    size = step_size_of(round(number)) if on_lattice else 10.0 ** (number / SIZES_PER_DECADE)
    return Fewest(iterations, size, iterations * ratio)
