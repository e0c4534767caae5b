"""The descents of one job, one after another: its grid, the shadows of its runs, finer grids.

A run whose cost rises may be chaotic: above `2/L` two trajectories can separate exponentially, and
where they end is then decided by rounding, which differs between processors. A *shadow* is such a
run descended again, from a start that is moved by a tiny share of the distance that it travelled.
Shadows descend separately from the runs: in one product with them they would change their rounding.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.engine.descent import Histories, Leave, Progress, descend
from normbench.engine.midway import Checkpoint
from normbench.engine.problem import Problem
from normbench.optimizers import Optimizer
from normbench.verdicts.convergence import may_be_chaotic, sensitivity

Array = NDArray[Any]
T = TypeVar("T")
# How far a shadow's start is from the run's, as a share of the distance that the run travelled.
SHADOW_DISTANCE = {"float64": 1e-10, "float32": 1e-6}
EXTRA_SHADOWS = 2  # shadows of a run whose first one parts from it and ends by chance where it does
SEPARATION = 1e-3  # of the start's excess: a run and its shadow that are so far apart have parted


@dataclass
class Rounds:
    """The descents of one job on one problem, see the module.

    start: `(starts, *shape)`. outward: from the problem's weights to those that are returned.
    shadows: whether runs get shadows. checkpoint: saves the current round, and those that are
    finished. seconds: that the first round took, those of an earlier command included. far: in
    multiples of the start's cost, above which a run needs no shadow, since it has diverged whatever
    its shadow does.
    """

    train: Problem
    test: Problem | None
    start: Array
    outward: Callable[[Array], Array]
    optimizer: Optimizer
    iterations: int
    shadows: bool
    checkpoint: Checkpoint | None = None
    finished: list[Histories] = field(default_factory=list)
    sizes: list[Array] = field(default_factory=list)  # the step sizes of the finished rounds
    # What the checkpoint holds; None: not looked at.
    saved_arrays: Mapping[str, Array] | None = None
    far: float = np.inf
    seconds: float = 0.0

    @property
    def passes(self) -> int:
        """The iterations that the runs of all finished rounds have made."""
        return sum(int(np.isfinite(histories.cost[:, 1:]).sum()) for histories in self.finished)

    def descend(
        self,
        step_sizes: Sequence[float],
        progress: Progress | None = None,
        tested: bool = True,
        leave: Leave | None = None,
    ) -> Histories:
        """Descend every step size from every start, then the shadows of these runs.

        Args:
            step_sizes: Of the round, `(S,)`.
            progress: Called at every iteration.
            tested: Whether the test points are evaluated too, if there are any.
            leave: See `engine.descent.descend`; runs that leave get no shadow.

        Returns:
            The histories of `S` times `starts` runs, those of one step size together. The weights
            are those that `outward` returns.
        """
        start = np.concatenate([self.start] * len(step_sizes))
        sizes = np.repeat(np.array(step_sizes), len(self.start))
        test = self.test if tested else None
        histories = self._round(test, start, sizes, progress, leave)
        if self.shadows and len(histories.cost):
            shadows = self._descend_shadows(histories, start, sizes)
            histories = replace(histories, shadows=shadows)
        return replace(histories, weights=self.outward(histories.weights))

    def _descend_shadows(
        self, histories: Histories, start: Array, sizes: Array
    ) -> dict[int, Array]:
        """Return the costs of the shadows of those runs that may be chaotic.

        Each of these runs has one shadow. Where the shadow parts from its run on the way and ends
        close to it, the run gets `EXTRA_SHADOWS` more.

        Args:
            histories: Of the runs R.
            start: The weights that they started from, `(R, *shape)`.
            sizes: Their step sizes, `(R,)`.

        Returns:
            By the index of a run, the costs of its shadows `(shadows, K + 1)`.
        """
        epsilon, cost = float(np.finfo(start.dtype).eps), histories.cost
        steady = self.optimizer.steady
        chaotic = [may_be_chaotic(history, steady, epsilon, self.far) for history in cost]
        runs = np.flatnonzero(chaotic)
        if not len(runs):
            return {}
        first_costs = self._descend_shadows_of(runs, [0], histories, start, sizes)
        distances, excess = np.abs(first_costs[:, 0] - cost[runs]), cost[runs, 0] - np.nanmin(cost)
        has_parted = np.nanmax(distances, axis=1) > SEPARATION * excess
        meets_again = has_parted & (distances[:, -1] <= sensitivity(epsilon) * excess)
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

        runs: indices. numbers: which shadows of each run, 0 for its first. Others: see
        `_descend_shadows`.
        """
        seeds = [
            _seed(sizes[run], run % len(self.start), number) for run in runs for number in numbers
        ]
        runs = np.repeat(runs, len(numbers))
        distance = _measure_lengths(histories.weights[runs] - start[runs])
        cost = self._round(None, _perturb(start[runs], distance, seeds), sizes[runs]).cost
        return cost.reshape(-1, len(numbers), cost.shape[1])

    def scout(self, step_sizes: Sequence[float], leave: Leave) -> None:
        """Descend other step sizes, together with a shadow of each run.

        The runs end when `leave` returns them; the caller collects what it needs there.

        A shadow's start is moved by a share of the run's first step, since the distance that the
        run will travel is not known.

        Args:
            step_sizes: `(S,)`.
            leave: See `engine.descent.descend`. The first half of the indices are the runs, the
                second half their shadows in the same order.
        """
        starts, count = len(self.start), len(step_sizes)
        start = np.concatenate([self.start] * count)
        sizes = np.repeat(np.array(step_sizes), starts)
        gradient = self.train.evaluate(self.start).gradient
        assert gradient is not None
        distance = np.concatenate([_measure_lengths(gradient)] * count) * sizes.reshape(
            -1, *[1] * (start.ndim - 1)
        )
        seeds = [_seed(size, run % starts, 0) for run, size in enumerate(sizes)]
        start_and_sizes = (
            np.concatenate([start, _perturb(start, distance, seeds)]),
            np.concatenate([sizes, sizes]),
        )
        self._round(None, *start_and_sizes, leave=leave)

    def _round(
        self,
        test: Problem | None,
        start: Array,
        sizes: Array,
        progress: Progress | None = None,
        leave: Leave | None = None,
    ) -> Histories:
        """Descend runs, or load them from the checkpoint, where they were finished before.

        A round whose runs leave is short, and restarts where it was interrupted.
        """
        number, tick = len(self.finished), time.perf_counter()
        histories = self._load_round(number, sizes, start.shape)
        if histories is None:
            histories = self._descend_round(test, start, sizes, progress, leave)
            if number == 0:
                spent = self.checkpoint.spent if self.checkpoint else 0.0
                self.seconds = time.perf_counter() - tick + spent
        elif leave:
            _replay(histories.cost, leave)
        self.finished.append(histories)
        self.sizes.append(sizes)
        return histories

    def _descend_round(
        self,
        test: Problem | None,
        start: Array,
        sizes: Array,
        progress: Progress | None,
        leave: Leave | None,
    ) -> Histories:
        """Descend runs with the job's checkpoint.

        A round whose runs may leave is not saved on its way: Ctrl-C saves finished rounds alone.
        """
        file = _RoundFile(self, len(self.finished)) if self.checkpoint and not leave else None
        descent_arguments = (
            self.train,
            test,
            self.optimizer,
            start,
            sizes,
            self.iterations,
            progress,
        )
        try:
            return descend(*descent_arguments, checkpoint=file, leave=leave)
        except KeyboardInterrupt:
            if self.checkpoint and leave and self.finished:
                self.checkpoint.save(self.to_arrays())
            raise

    def _load_round(self, number: int, sizes: Array, weights: tuple[int, ...]) -> Histories | None:
        """Return a finished round from the checkpoint; None where it is not there.

        number: of the round, from 0. sizes: the step sizes of its runs. weights: the SHAPE of the
        weights of its runs, `(R, *shape)`.
        """
        if self.checkpoint and self.saved_arrays is None:
            self.saved_arrays = self.checkpoint.resume(dict) or {}
        if not self.saved_arrays or number >= int(self.saved_arrays.get(ROUND, 0)):
            return None
        prefix = f"{ROUND}/{number}/"
        round_arrays = {
            name.removeprefix(prefix): array
            for name, array in self.saved_arrays.items()
            if name.startswith(prefix)
        }
        arrays = {name: round_arrays.get(name) for name in HISTORY_FIELDS}
        cost, final_weights = arrays["cost"], arrays["weights"]
        shape = len(sizes), self.iterations + 1
        is_same = np.array_equal(round_arrays.get(STEP_SIZES, ()), sizes)
        if (
            not is_same
            or cost is None
            or final_weights is None
            or (cost.shape, final_weights.shape) != (shape, weights)
        ):
            self.saved_arrays = {}  # of another descent: all is made again
            return None
        if number == 0:
            self.seconds = float(self.saved_arrays.get(ROUND_SECONDS, 0.0))
        return Histories(**arrays)  # type: ignore[arg-type]

    def to_arrays(self) -> dict[str, Array]:
        """Return the finished rounds as arrays."""
        arrays = {ROUND: np.array(len(self.finished)), ROUND_SECONDS: np.array(self.seconds)}
        for number, (histories, sizes) in enumerate(zip(self.finished, self.sizes)):
            round_arrays = {
                STEP_SIZES: sizes,
                **{name: getattr(histories, name) for name in HISTORY_FIELDS},
            }
            arrays |= {
                f"{ROUND}/{number}/{name}": array
                for name, array in round_arrays.items()
                if array is not None
            }
        return arrays


def _seed(step_size: float, start: int, shadow: int) -> tuple[int, int, int]:
    """Return the seed of a shadow's direction, independent of the other step sizes."""
    return int(np.float64(step_size).view(np.uint64)), int(start), shadow


def _measure_lengths(vectors: Array) -> Array:
    """Return the lengths of vectors `(R, *shape)`, with axes of length one, in float64."""
    inner = tuple(range(1, vectors.ndim))
    vectors = vectors.astype(np.float64)
    largest = np.abs(vectors).max(axis=inner, keepdims=True)  # whose square may overflow
    vectors /= np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt((vectors**2).sum(axis=inner, keepdims=True)))


def _perturb(start: Array, distance: Array, seeds: Sequence[tuple[int, int, int]]) -> Array:
    """Return starts moved by a tiny share of a distance, each in a direction of its own seed."""
    draws = [np.random.default_rng(seed).standard_normal(start.shape[1:]) for seed in seeds]
    directions = np.stack(draws)
    directions /= _measure_lengths(directions)
    return (start + SHADOW_DISTANCE[start.dtype.name] * distance * directions).astype(start.dtype)


def _replay(cost: Array, leave: Leave) -> None:
    """Call `leave` for every iteration of a round that was finished before.

    What it returns is not needed: the costs `(R, K + 1)` of runs that left are NaN from there.
    """
    for k in range(cost.shape[1]):
        alive = np.flatnonzero(np.isfinite(cost[:, k]))
        if not len(alive):
            return
        leave(k, alive, cost[alive, k])


ROUND, STEP_SIZES, ROUND_SECONDS = "round", "step_sizes", "round_seconds"
HISTORY_FIELDS = tuple(name for name in Histories.__dataclass_fields__ if name != "shadows")


class _RoundFile:
    """The checkpoint of a job, as the descent of one of its rounds sees it."""

    def __init__(self, rounds: Rounds, number: int) -> None:
        assert rounds.checkpoint is not None
        self.rounds, self.number, self.inner = rounds, number, rounds.checkpoint
        self.spent = self.inner.spent

    def due(self) -> bool:
        """Return whether the job's checkpoint is due."""
        return self.inner.due()

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Save the arrays of the current round beside the finished rounds."""
        self.inner.save({**self.rounds.to_arrays(), **arrays})

    def resume(self, read: Callable[[Mapping[str, Array]], T]) -> T | None:
        """Return the saved state of this round; None where the checkpoint holds another round."""
        saved_arrays = self.rounds.saved_arrays
        if (
            not saved_arrays
            or int(saved_arrays.get(ROUND, 0)) != self.number
            or "iteration" not in saved_arrays
        ):
            return None
        return self.inner.resume(read)
