"""The descents of one job, one after another: its grid, the shadows of its runs, finer grids.

A run whose cost rises may be chaotic: above `2/L` two trajectories can separate exponentially, and
where they end is then decided by rounding, which differs between processors. A *shadow* is such a
run descended again, from a start that is moved by a tiny share of the distance that it travelled.
Shadows descend separately from the runs: in one product with them they would change their rounding.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.descent import Histories, Observe, SavedDescents, descend
from normbench.engine.plan import Plan
from normbench.engine.problem import Problem
from normbench.optimizers import Optimizer
from normbench.verdicts.convergence import needs_shadow, shadow_tolerance_share

Array = NDArray[Any]
Progress = Callable[[int], None]  # called with the iteration
# How far a shadow's start is from the run's, as a share of the distance that the run travelled.
SHADOW_DISTANCE = {"float64": 1e-10, "float32": 1e-6}
EXTRA_SHADOWS = (1, 2)  # numbers of further shadows, where the first meets its run again by chance
# A run and its shadow have parted if their costs differ by more than this share of the excess of
# the start, above the lowest cost of the grid.
SEPARATION = 1e-3
# A run that reaches so many times the start's cost has diverged, and so would its shadow: it needs
# none. The number does not depend on the rules of judging, by which it may be judged again.
FAR = 100
MAX_KEPT_NUMBERS = 10_000_000  # of the weights of a grid at all iterations: 80 MB


@dataclass(frozen=True)
class Rounds:
    """The descents of one job on one problem, one after another.

    train, test: the problems of the training and of the test points, None without these. start:
    `(starts, *shape)`. to_given: maps weights of the problem to those that are returned, where the
    problem that is descended has other coordinates than the job's. plan: that of each descent.
    shadows: whether runs get shadows (see the module). saved: the descents in the checkpoint.
    snapshots: by iteration, the indices of the remaining runs of the grid and their weights, where
    they are few.
    """

    train: Problem
    test: Problem | None
    start: Array
    to_given: Callable[[Array], Array]
    optimizer: Optimizer
    plan: Plan
    shadows: bool
    saved: SavedDescents | None = None
    snapshots: dict[int, tuple[NDArray[np.int64], Array]] = field(default_factory=dict)

    def descend(
        self, step_sizes: Sequence[float], progress: Progress | None = None, is_grid: bool = True
    ) -> Histories:
        """Descend every step size from every start, then the shadows of these runs.

        Args:
            step_sizes: The step sizes, `(S,)`.
            progress: Called at every iteration of the runs, not of their shadows.
            is_grid: Whether the runs are those of the grid, whose test points are evaluated, too,
                and whose weights are kept where they are few.

        Returns:
            The histories of `S` times `starts` runs, those of one step size together. The weights
            are those that `to_given` returns.
        """
        start, sizes = self._runs(step_sizes)
        is_kept = is_grid and start.size * (self.plan.records + 1) <= MAX_KEPT_NUMBERS

        def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
            if is_kept:
                self.snapshots[k] = alive, weights
            if progress:
                progress(k)

        runs = self.train, self.test if is_grid else None, self.optimizer, start, sizes, self.plan
        histories = descend(*runs, observe, self.saved)
        shadows = self._descend_shadows(histories, start, sizes) if self.shadows else {}
        return replace(histories, shadows=shadows, weights=self.to_given(histories.weights))

    def replay(
        self, step_sizes: Sequence[float], iterations: Collection[int], observe: Observe
    ) -> None:
        """Show the weights of the runs of the grid.

        Where they were too many to be kept, the runs descend again, all together, to the same
        numbers.

        Args:
            step_sizes: The step sizes of the grid, `(S,)`.
            iterations: The iterations at which `observe` is called.
            observe: Called with an iteration k, the indices of the remaining runs and their
                weights `(left, *shape)`, those that `to_given` returns.
        """

        def observe_given(k: int, alive: NDArray[np.int64], weights: Array) -> None:
            """Show the weights in the coordinates of the job."""
            if k in iterations:
                observe(k, alive, self.to_given(weights))

        if 0 in self.snapshots:  # else they were too many, or an earlier command began the grid
            for k, remaining in self.snapshots.items():
                observe_given(k, *remaining)
        else:
            runs = self._runs(step_sizes)
            descend(self.train, None, self.optimizer, *runs, self.plan, observe_given)

    def _runs(self, step_sizes: Sequence[float]) -> tuple[Array, Array]:
        """Return the starts `(R, *shape)` and the step sizes `(R,)` of all runs."""
        start = np.concatenate([self.start] * len(step_sizes))
        return start, np.repeat(np.array(step_sizes), len(self.start))

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

        def draw_direction(run: int, number: int) -> Array:
            """Return the direction in which a shadow's start is moved, of any length."""
            # The runs of one step size stand together, one for each start. All 64 bits of the step
            # size count, so that no direction depends on the other step sizes.
            seed = int(sizes[run].view(np.uint64)), int(run % len(self.start)), number
            return np.random.default_rng(seed).standard_normal(start.shape[1:])

        def descend_moved(runs: Array, numbers: Sequence[int]) -> Array:
            """Return the costs `(runs, numbers, K + 1)` of some shadows of some runs."""
            directions = np.stack([draw_direction(run, each) for run in runs for each in numbers])
            directions /= _measure_lengths(directions)
            runs = np.repeat(runs, len(numbers))
            distance = _measure_lengths(histories.weights[runs] - start[runs])
            move = SHADOW_DISTANCE[start.dtype.name] * distance * directions
            moved_start = (start[runs] + move).astype(start.dtype)
            moved_runs = self.train, None, self.optimizer, moved_start, sizes[runs], self.plan
            moved_cost = descend(*moved_runs, saved=self.saved).cost
            return moved_cost.reshape(-1, len(numbers), cost.shape[1])

        # A positively homogeneous cost grows with the weights: no height of it is a divergence.
        far = np.inf if self.train.traits.positively_homogeneous else FAR
        steady = self.optimizer.steady
        chaotic = [needs_shadow(history, steady, epsilon, far) for history in cost]
        runs = np.flatnonzero(chaotic)
        if not len(runs):
            return {}
        first_costs = descend_moved(runs, [0])
        # Of each run from its shadow, (runs, K + 1), NaN where the shadow has diverged.
        distances = np.abs(first_costs[:, 0] - cost[runs])
        excess = cost[runs, 0] - np.nanmin(cost)  # of the start, above the lowest cost of the grid
        has_parted = np.nanmax(distances, axis=1) > SEPARATION * excess
        meets_again = has_parted & (distances[:, -1] <= shadow_tolerance_share(epsilon) * excess)
        shadows = dict(zip(runs.tolist(), first_costs))
        if meets_again.any():
            doubtful = runs[meets_again]
            for run, costs in zip(doubtful.tolist(), descend_moved(doubtful, EXTRA_SHADOWS)):
                shadows[run] = np.concatenate([shadows[run], costs])
        return shadows


def _measure_lengths(vectors: Array) -> Array:
    """Return the lengths `(R, 1, ..)` of vectors `(R, *shape)`, whose squares may overflow."""
    axes = tuple(range(1, vectors.ndim))
    largest = np.abs(vectors.astype(np.float64)).max(axis=axes, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt((scaled**2).sum(axis=axes, keepdims=True)))
