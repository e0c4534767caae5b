"""The descents of one job, one after another: its grid, the shadows of its runs, finer grids.

A run whose cost rises may be chaotic: above `2/L` two trajectories can part exponentially, and
where they end is then decided by rounding, which differs between processors. A *shadow* is such a
run descended again, from a start that is moved by a tiny share of the distance that it travelled.
Shadows descend apart from the runs: beside them in one product they would change their rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.engine.descent import Histories, Progress, descend
from normbench.engine.midway import Checkpoint
from normbench.engine.problem import Problem
from normbench.optimizers import Optimizer
from normbench.verdicts.convergence import may_be_chaotic

Array = NDArray[Any]
T = TypeVar("T")
# How far a shadow's start is from the run's, as a share of the distance that the run travelled.
DISTANCE = {"float64": 1e-10, "float32": 1e-6}
SHADOWS = 3  # of a run: where one of them ends by chance where the run does, the others need not


@dataclass
class Rounds:
    """The descents of one job on one problem, see the module.

    start: `(starts, *shape)`. outward: from the problem's weights to those that are returned.
    shadows: whether runs get shadows. checkpoint: keeps the round that is descended, and those that
    are finished.
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
    kept: Mapping[str, Array] | None = None  # what the checkpoint holds; None: not looked at

    def descend(
        self, step_sizes: Sequence[float], progress: Progress | None = None, tested: bool = True
    ) -> Histories:
        """Return the histories of every step size and start, with their shadows.

        tested: those of the test points, too, where there are some.
        """
        start = np.concatenate([self.start] * len(step_sizes))
        sizes = np.repeat(np.array(step_sizes), len(self.start))
        histories = self._round(self.test if tested else None, start, sizes, progress)
        if self.shadows and len(histories.cost):
            histories = self._shadowed(histories, start, sizes)
        return replace(histories, weights=self.outward(histories.weights))

    def _shadowed(self, histories: Histories, start: Array, sizes: Array) -> Histories:
        """Return histories with the shadows of those runs that may be chaotic."""
        epsilon, steady = float(np.finfo(start.dtype).eps), self.optimizer.steady
        chaotic = [may_be_chaotic(cost, steady, epsilon) for cost in histories.cost]
        runs = np.repeat(np.flatnonzero(chaotic), SHADOWS)
        if not len(runs):
            return histories
        # The direction of a shadow depends on its run's number alone, whichever others have some.
        numbers = zip(runs, np.arange(len(runs)) % SHADOWS)
        shape, inner = start.shape[1:], tuple(range(1, start.ndim))
        drawn = [np.random.default_rng(pair).standard_normal(shape) for pair in numbers]
        directions = np.stack(drawn)
        directions /= np.sqrt((directions**2).sum(axis=inner, keepdims=True))
        travelled = (histories.weights[runs] - start[runs]).astype(np.float64)
        largest = np.abs(travelled).max(axis=inner, keepdims=True)  # whose square may overflow
        travelled /= np.where(largest > 0, largest, 1.0)
        length = largest * np.sqrt((travelled**2).sum(axis=inner, keepdims=True))
        moved = (start[runs] + DISTANCE[start.dtype.name] * length * directions).astype(start.dtype)
        shadows = self._round(None, moved, sizes[runs])
        costs = shadows.cost.reshape(-1, SHADOWS, shadows.cost.shape[1])
        return replace(histories, shadows=dict(zip(np.flatnonzero(chaotic).tolist(), costs)))

    def _round(
        self, test: Problem | None, start: Array, sizes: Array, progress: Progress | None = None
    ) -> Histories:
        """Descend runs; or take them from the checkpoint, where they were finished before."""
        number = len(self.finished)
        shape = len(start), self.iterations + 1
        histories = self._finished_before(number, shape, start.shape)
        if histories is None:
            file = _RoundFile(self, number) if self.checkpoint else None
            histories = descend(
                *(self.train, test, self.optimizer, start, sizes, self.iterations),
                progress,
                checkpoint=file,
            )
        self.finished.append(histories)
        return histories

    def _finished_before(
        self, number: int, shape: tuple[int, ...], weights: tuple[int, ...]
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
        if cost is None or last is None or cost.shape != shape or last.shape != weights:
            self.kept = {}  # of another descent: all is made again
            return None
        return Histories(**arrays)  # type: ignore[arg-type]

    def parts(self) -> dict[str, Array]:
        """Return the finished rounds as arrays."""
        every = {ROUND: np.array(len(self.finished))}
        for number, histories in enumerate(self.finished):
            own = {name: getattr(histories, name) for name in NAMES}
            every |= {
                f"{ROUND}/{number}/{name}": part for name, part in own.items() if part is not None
            }
        return every


ROUND = "round"
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
        if not kept or int(kept.get(ROUND, 0)) != self.number:
            return None
        return self.inner.resume(read)
