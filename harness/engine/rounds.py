"""The descents of one job, one after another: its grid, the shadows of its runs, finer grids.

A run whose cost rises may be chaotic: above `2/L` two trajectories can part exponentially, and
where they end is then decided by rounding, which differs between processors. A *shadow* is such a
run descended again, from a start that is moved by a tiny share of the distance that it travelled.
Shadows descend apart from the runs: beside them in one product they would change their rounding.
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
DISTANCE = {"float64": 1e-10, "float32": 1e-6}
MORE = 2  # shadows of a run whose first one parts from it and ends by chance where it does
PARTED = 1e-3  # of the start's excess: a run and its shadow that are so far apart have parted


@dataclass
class Rounds:
    """The descents of one job on one problem, see the module.

    start: `(starts, *shape)`. outward: from the problem's weights to those that are returned.
    shadows: whether runs get shadows. checkpoint: keeps the round that is descended, and those that
    are finished. seconds: that the first round took, those of an earlier command included. far: in
    multiples of the start's cost, above which a run needs no shadow, since it
    has diverged whatever its shadow does.
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
    kept: Mapping[str, Array] | None = None  # what the checkpoint holds; None: not looked at
    far: float = np.inf
    seconds: float = 0.0

    @property
    def passes(self) -> int:
        """How many iterations the runs of all finished rounds have made."""
        return sum(int(np.isfinite(each.cost[:, 1:]).sum()) for each in self.finished)

    def descend(
        self,
        step_sizes: Sequence[float],
        progress: Progress | None = None,
        tested: bool = True,
        leave: Leave | None = None,
    ) -> Histories:
        """Return the histories of every step size and start, with their shadows.

        tested: those of the test points, too, where there are some. leave: see `descend`; runs that
        leave get no shadow.
        """
        start = np.concatenate([self.start] * len(step_sizes))
        sizes = np.repeat(np.array(step_sizes), len(self.start))
        test = self.test if tested else None
        histories = self._round(test, start, sizes, progress, leave)
        if self.shadows and len(histories.cost):
            shadows = self._shadows(histories, start, sizes)
            histories = replace(histories, shadows=shadows)
        return replace(histories, weights=self.outward(histories.weights))

    def _shadows(self, histories: Histories, start: Array, sizes: Array) -> dict[int, Array]:
        """Return the costs of the shadows of those runs that may be chaotic.

        Each has one; and more, where that one parts from its run on the way and meets it at the
        end.
        """
        epsilon, cost = float(np.finfo(start.dtype).eps), histories.cost
        steady = self.optimizer.steady
        chaotic = [may_be_chaotic(each, steady, epsilon, self.far) for each in cost]
        runs = np.flatnonzero(chaotic)
        if not len(runs):
            return {}
        first = self._shadows_of(runs, [0], histories, start, sizes)
        apart, excess = np.abs(first[:, 0] - cost[runs]), cost[runs, 0] - np.nanmin(cost)
        met = np.nanmax(apart, axis=1) > PARTED * excess
        met &= apart[:, -1] <= sensitivity(epsilon) * excess
        shadows = dict(zip(runs.tolist(), first))
        if met.any():
            others = range(1, 1 + MORE)
            again = self._shadows_of(runs[met], others, histories, start, sizes)
            for run, costs in zip(runs[met].tolist(), again):
                shadows[run] = np.concatenate([shadows[run], costs])
        return shadows

    def _shadows_of(
        self, runs: Array, numbers: Sequence[int], histories: Histories, start: Array, sizes: Array
    ) -> Array:
        """Return the costs `(runs, numbers, K + 1)` of some shadows of some runs."""
        seeds = [
            _seed(sizes[run], run % len(self.start), number) for run in runs for number in numbers
        ]
        runs = np.repeat(runs, len(numbers))
        way = _length(histories.weights[runs] - start[runs])
        cost = self._round(None, _moved(start[runs], way, seeds), sizes[runs]).cost
        return cost.reshape(-1, len(numbers), cost.shape[1])

    def scout(self, step_sizes: Sequence[float], leave: Leave) -> None:
        """Descend other step sizes, each run's shadow beside it, as far as somebody looks.

        A shadow's start is moved by a share of the run's first step. leave: see `descend`; all runs
        are followed by their shadows, in the same order.
        """
        starts, count = len(self.start), len(step_sizes)
        start = np.concatenate([self.start] * count)
        sizes = np.repeat(np.array(step_sizes), starts)
        gradient = self.train.evaluate(self.start).gradient
        assert gradient is not None
        way = np.concatenate([_length(gradient)] * count) * sizes.reshape(
            -1, *[1] * (start.ndim - 1)
        )
        seeds = [_seed(size, run % starts, 0) for run, size in enumerate(sizes)]
        both = np.concatenate([start, _moved(start, way, seeds)]), np.concatenate([sizes, sizes])
        self._round(None, *both, leave=leave)

    def _round(
        self,
        test: Problem | None,
        start: Array,
        sizes: Array,
        progress: Progress | None = None,
        leave: Leave | None = None,
    ) -> Histories:
        """Descend runs; or take them from the checkpoint, where they were finished before.

        A round whose runs leave is short, and begins anew where it was cut off.
        """
        number, tick = len(self.finished), time.perf_counter()
        histories = self._finished_before(number, sizes, start.shape)
        if histories is None:
            histories = self._descended(test, start, sizes, progress, leave)
            if number == 0:
                spent = self.checkpoint.spent if self.checkpoint else 0.0
                self.seconds = time.perf_counter() - tick + spent
        elif leave:
            _replay(histories.cost, leave)
        self.finished.append(histories)
        self.sizes.append(sizes)
        return histories

    def _descended(
        self,
        test: Problem | None,
        start: Array,
        sizes: Array,
        progress: Progress | None,
        leave: Leave | None,
    ) -> Histories:
        file = _RoundFile(self, len(self.finished)) if self.checkpoint and not leave else None
        parts = (self.train, test, self.optimizer, start, sizes, self.iterations, progress)
        try:
            return descend(*parts, checkpoint=file, leave=leave)
        except KeyboardInterrupt:
            if self.checkpoint and leave and self.finished:
                self.checkpoint.save(self.parts())
            raise

    def _finished_before(
        self, number: int, sizes: Array, weights: tuple[int, ...]
    ) -> Histories | None:
        """Return a round that the checkpoint holds whole; None where it does not."""
        if self.checkpoint and self.kept is None:
            self.kept = self.checkpoint.resume(dict) or {}
        if not self.kept or number >= int(self.kept.get(ROUND, 0)):
            return None
        prefix = f"{ROUND}/{number}/"
        parts = {
            name.removeprefix(prefix): part
            for name, part in self.kept.items()
            if name.startswith(prefix)
        }
        arrays = {name: parts.get(name) for name in NAMES}
        cost, last = arrays["cost"], arrays["weights"]
        shape = len(sizes), self.iterations + 1
        same = np.array_equal(parts.get(SIZES, ()), sizes)
        if not same or cost is None or last is None or (cost.shape, last.shape) != (shape, weights):
            self.kept = {}  # of another descent: all is made again
            return None
        if number == 0:
            self.seconds = float(self.kept.get(SECONDS, 0.0))
        return Histories(**arrays)  # type: ignore[arg-type]

    def parts(self) -> dict[str, Array]:
        """Return the finished rounds as arrays."""
        every = {ROUND: np.array(len(self.finished)), SECONDS: np.array(self.seconds)}
        for number, (histories, sizes) in enumerate(zip(self.finished, self.sizes)):
            own = {SIZES: sizes, **{name: getattr(histories, name) for name in NAMES}}
            every |= {
                f"{ROUND}/{number}/{name}": part for name, part in own.items() if part is not None
            }
        return every


def _seed(step_size: float, start: int, shadow: int) -> tuple[int, int, int]:
    """Return the seed of a shadow's direction: the same whichever other step sizes descend."""
    return int(np.float64(step_size).view(np.uint64)), int(start), shadow


def _length(ways: Array) -> Array:
    """Return the lengths of ways `(R, *shape)`, with axes of length one, in float64."""
    inner = tuple(range(1, ways.ndim))
    ways = ways.astype(np.float64)
    largest = np.abs(ways).max(axis=inner, keepdims=True)  # whose square may overflow
    ways /= np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt((ways**2).sum(axis=inner, keepdims=True)))


def _moved(start: Array, way: Array, seeds: Sequence[tuple[int, int, int]]) -> Array:
    """Return starts moved by a tiny share of a way, each in a direction of its own seed."""
    drawn = [np.random.default_rng(seed).standard_normal(start.shape[1:]) for seed in seeds]
    directions = np.stack(drawn)
    directions /= _length(directions)
    return (start + DISTANCE[start.dtype.name] * way * directions).astype(start.dtype)


def _replay(cost: Array, leave: Leave) -> None:
    """Tell somebody of a round that was finished before, whose runs left as it says."""
    for k in range(cost.shape[1]):
        alive = np.flatnonzero(np.isfinite(cost[:, k]))
        if not len(alive):
            return
        leave(k, alive, cost[alive, k])


ROUND, SIZES, SECONDS = "round", "step_sizes", "round_seconds"
NAMES = tuple(name for name in Histories.__dataclass_fields__ if name != "shadows")


class _RoundFile:
    """The checkpoint of a job, as the descent of one of its rounds sees it."""

    def __init__(self, rounds: Rounds, number: int) -> None:
        assert rounds.checkpoint is not None
        self.rounds, self.number, self.inner = rounds, number, rounds.checkpoint
        self.spent = self.inner.spent

    def due(self) -> bool:
        return self.inner.due()

    def save(self, parts: Mapping[str, Array]) -> None:
        self.inner.save({**self.rounds.parts(), **parts})

    def resume(self, read: Callable[[Mapping[str, Array]], T]) -> T | None:
        kept = self.rounds.kept
        if not kept or int(kept.get(ROUND, 0)) != self.number or "iteration" not in kept:
            return None
        return self.inner.resume(read)
