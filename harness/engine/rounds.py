"""The descents of one job, one after another: its grid, the shadows of its runs, finer grids.

A run whose cost rises may be chaotic: above `2/L` two trajectories can separate exponentially, and
where they end is then decided by rounding, which differs between processors. A *shadow* is such a
run descended again, from a start that is moved by a tiny share of the distance that it travelled.
Shadows descend separately from the runs: in one product with them they would change their rounding.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.descent import Histories, Observe, Progress, descend
from normbench.engine.midway import Checkpoint
from normbench.engine.plan import Plan
from normbench.engine.problem import Problem
from normbench.optimizers import Optimizer
from normbench.verdicts.convergence import needs_shadow, shadow_tolerance_share

Array = NDArray[Any]
# How far a shadow's start is from the run's, as a share of the distance that the run travelled.
SHADOW_DISTANCE = {"float64": 1e-10, "float32": 1e-6}
EXTRA_SHADOWS = 2  # shadows of a run whose first one parts from it and ends by chance where it does
# A run and its shadow have parted if their costs differ by more than this share of the excess of
# the start, above the lowest cost of the grid.
SEPARATION = 1e-3
# By iteration, the indices of the remaining runs and their weights; and the most numbers that are
# kept of a grid: 80 MB.
Snapshots = dict[int, tuple[NDArray[np.int64], Array]]
MAX_KEPT_NUMBERS = 10_000_000
ROUND, STEP_SIZES, ROUND_SECONDS = "round", "step_sizes", "round_seconds"
HISTORY_FIELDS = tuple(name for name in Histories.__dataclass_fields__ if name != "shadows")


@dataclass
class Rounds:
    """The descents of one job on one problem, one after another; each of them is a round.

    A round descends a grid of step sizes, or the shadows of a grid's runs (see the module).

    train, test: the problems of the training and of the test points, None without these. start:
    `(starts, *shape)`. to_given: maps weights of the problem to those that are returned, where the
    problem that is descended has other coordinates than the job's. plan: that of each round.
    shadows: whether runs get shadows. checkpoint: saves the current round and the finished ones.
    finished: the arrays of the finished rounds, as the checkpoint holds them: those of round n are
    named `round/n/..`, and `round` is their number. saved: what the checkpoint held at first, while
    rounds are found in it. far: a cost, in multiples of the start's, above which a run has diverged
    whatever its shadow does, so that it needs none. seconds: the time of the first round, with
    that of an earlier command that it resumes. snapshots: the weights of its runs at each
    iteration, where they are few.
    """

    train: Problem
    test: Problem | None
    start: Array
    to_given: Callable[[Array], Array]
    optimizer: Optimizer
    plan: Plan
    shadows: bool
    checkpoint: Checkpoint | None = None
    finished: dict[str, Array] = field(default_factory=lambda: {ROUND: np.array(0)})
    saved: Mapping[str, Array] = field(default_factory=dict)
    far: float = np.inf
    seconds: float = 0.0
    snapshots: Snapshots = field(default_factory=dict)

    def descend(
        self,
        step_sizes: Sequence[float],
        progress: Progress | None = None,
        tested: bool = True,
    ) -> Histories:
        """Descend every step size from every start, then the shadows of these runs.

        Args:
            step_sizes: The step sizes of the round, `(S,)`.
            progress: Called at every iteration of the runs, not of their shadows.
            tested: Whether the test points are evaluated too, if there are any.

        Returns:
            The histories of `S` times `starts` runs, those of one step size together. The weights
            are those that `to_given` returns.
        """
        start = np.concatenate([self.start] * len(step_sizes))
        sizes = np.repeat(np.array(step_sizes), len(self.start))
        test = self.test if tested else None
        histories = self._run_round(test, start, sizes, progress)
        if self.shadows and len(histories.cost):  # without runs there are no shadows
            shadows = self._descend_shadows(histories, start, sizes)
            histories = replace(histories, shadows=shadows)
        return replace(histories, weights=self.to_given(histories.weights))

    def replay(self, iterations: Collection[int], observe: Observe) -> None:
        """Show the weights of the runs of the first round.

        Where they were too many to be kept, the runs descend again, all together, to the same
        numbers.

        Args:
            iterations: The iterations at which `observe` is called.
            observe: Called with an iteration k, the indices of the remaining runs and their
                weights `(left, *shape)`, those that `to_given` returns.
        """
        if self.snapshots:
            for k in sorted(set(iterations) & self.snapshots.keys()):
                alive, weights = self.snapshots[k]
                observe(k, alive, self.to_given(weights))
            return

        def observe_given(k: int, alive: NDArray[np.int64], weights: Array) -> None:
            """Show the weights in the coordinates of the job."""
            if k in iterations:
                observe(k, alive, self.to_given(weights))

        sizes = self.finished[f"{ROUND}/0/{STEP_SIZES}"]
        start = np.concatenate([self.start] * (len(sizes) // len(self.start)))
        runs = (self.train, None, self.optimizer, start, sizes, self.plan)
        descend(*runs, observe=observe_given)

    def _descend_shadows(
        self, histories: Histories, start: Array, sizes: Array
    ) -> dict[int, Array]:
        """Return the costs of the shadows of those runs that may be chaotic.

        Each of these runs has one shadow. Where the shadow parts from its run on the way and ends
        close to it, that end may be chance, and the run gets `EXTRA_SHADOWS` more.

        Args:
            histories: The histories of R runs.
            start: The weights that the runs started from, `(R, *shape)`.
            sizes: The step sizes of the runs, `(R,)`.

        Returns:
            By the index of a run, the costs of its shadows `(shadows, K + 1)`. Runs without a
            shadow are left out.
        """
        epsilon, cost = float(np.finfo(start.dtype).eps), histories.cost
        steady = self.optimizer.steady
        chaotic = [needs_shadow(history, steady, epsilon, self.far) for history in cost]
        runs = np.flatnonzero(chaotic)
        if not len(runs):
            return {}
        first_costs = self._descend_shadows_of(runs, [0], histories, start, sizes)
        # Of each run from its shadow, (runs, K + 1), NaN where the shadow has diverged.
        distances = np.abs(first_costs[:, 0] - cost[runs])
        excess = cost[runs, 0] - np.nanmin(cost)  # of the start, above the lowest cost of the grid
        has_parted = np.nanmax(distances, axis=1) > SEPARATION * excess
        meets_again = has_parted & (distances[:, -1] <= shadow_tolerance_share(epsilon) * excess)
        shadows = dict(zip(runs.tolist(), first_costs))
        if meets_again.any():
            extra_numbers = range(1, 1 + EXTRA_SHADOWS)
            extra_costs = self._descend_shadows_of(
                runs[meets_again], extra_numbers, histories, start, sizes
            )
            for run, costs in zip(runs[meets_again].tolist(), extra_costs):
                shadows[run] = np.concatenate([shadows[run], costs])
        return shadows

    def _descend_shadows_of(
        self, runs: Array, numbers: Sequence[int], histories: Histories, start: Array, sizes: Array
    ) -> Array:
        """Return the costs `(runs, numbers, K + 1)` of some shadows of some runs.

        Args:
            runs: The indices of the runs among R.
            numbers: Which shadows of each run, 0 for its first; each is moved in a direction of its
                own.
            histories: The histories of R runs.
            start: The weights that these started from, `(R, *shape)`.
            sizes: Their step sizes, `(R,)`.
        """
        draws = []
        for run in runs:
            # The runs of one step size stand together, one for each start. All 64 bits of the step
            # size count, so that no direction depends on the other step sizes.
            seed = int(np.float64(sizes[run]).view(np.uint64)), int(run % len(self.start))
            for number in numbers:
                rng = np.random.default_rng((*seed, number))
                draws.append(rng.standard_normal(start.shape[1:]))
        directions = np.stack(draws)
        directions /= _measure_lengths(directions)
        runs = np.repeat(runs, len(numbers))
        distance = _measure_lengths(histories.weights[runs] - start[runs])
        move = SHADOW_DISTANCE[start.dtype.name] * distance * directions
        cost = self._run_round(None, (start[runs] + move).astype(start.dtype), sizes[runs]).cost
        return cost.reshape(-1, len(numbers), cost.shape[1])

    def _run_round(
        self,
        test: Problem | None,
        start: Array,
        sizes: Array,
        progress: Progress | None = None,
    ) -> Histories:
        """Return the histories of a round: descended, or from the checkpoint if it was finished.

        The round is added to `finished`. The checkpoint is read before the first round.

        Args:
            test: The problem of the test points; None to leave them out.
            start: `(R, *shape)`.
            sizes: The step sizes, `(R,)`.
            progress: Called at every iteration.
        """
        number, tick = int(self.finished[ROUND]), time.perf_counter()
        if self.checkpoint and number == 0:
            self.saved = self.checkpoint.resume(dict) or {}
        prefix = f"{ROUND}/{number}/"
        saved = {
            name.removeprefix(prefix): array
            for name, array in self.saved.items()
            if name.startswith(prefix)
        }
        if saved and np.array_equal(saved[STEP_SIZES], sizes):
            fields_of_round: Any = {name: saved.get(name) for name in HISTORY_FIELDS}
            histories = Histories(**fields_of_round)
            self.seconds = float(self.saved[ROUND_SECONDS])
        else:
            resumes = bool(self.saved.get(ROUND) == number)
            self.saved = {}  # of no further round, or of another descent
            runs = (self.train, test, self.optimizer, start, sizes, self.plan)
            snapshots: Snapshots = {}
            is_kept = number == 0 and start.size * (self.plan.records + 1) <= MAX_KEPT_NUMBERS

            def keep(k: int, alive: NDArray[np.int64], weights: Array) -> None:
                snapshots[k] = alive, weights

            observe = keep if is_kept else None
            histories = descend(
                *runs, progress, observe, self.checkpoint, beside=self.finished, resumes=resumes
            )
            if 0 in snapshots:  # else the round was resumed
                self.snapshots = snapshots
            if number == 0:  # `seconds` is the time of the first round alone
                spent = self.checkpoint.spent if self.checkpoint else 0.0
                self.seconds = time.perf_counter() - tick + spent
        arrays = {STEP_SIZES: sizes, **histories.to_arrays()}
        self.finished |= {prefix + name: array for name, array in arrays.items()}
        self.finished |= {ROUND: np.array(number + 1), ROUND_SECONDS: np.array(self.seconds)}
        return histories


def _measure_lengths(vectors: Array) -> Array:
    """Return the lengths `(R, 1, ..)` of vectors `(R, *shape)`, in float64."""
    inner = tuple(range(1, vectors.ndim))
    vectors = vectors.astype(np.float64)
    # Divided by the largest entry first, whose square may overflow.
    largest = np.abs(vectors).max(axis=inner, keepdims=True)
    vectors /= np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt((vectors**2).sum(axis=inner, keepdims=True)))
