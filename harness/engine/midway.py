"""Checkpoint state of descents: resuming from it reproduces a run bit for bit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from normbench.engine.problem import Array, Evaluation, Problem

Arrays = dict[str, Array]


class Checkpoint(Protocol):
    """The storage of the checkpoints of one job, as the engine sees it."""

    def due(self) -> bool:
        """Return whether it is time to save."""

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Save these arrays, replacing those saved before."""

    def resume(self, restore: Callable[[Mapping[str, Array]], Arrays]) -> Arrays | None:
        """Return what `restore` returns for the saved arrays; None where nothing is saved."""


@dataclass(frozen=True)
class Histories:
    """The histories of R runs from iteration 0 (the start) to iteration K.

    Each history is `(R, K + 1)`, NaN from the iteration at which a run stopped being finite; the
    misclassifications are None for real targets, the test histories without test points.
    diverged_at: `(R,)`, the iteration at which a run stopped being finite, -1 for never. weights:
    `(R, *shape)`, of the last finite iteration. seconds: those of the descent, with the time before
    it was resumed. shadows: by the index of a run, the costs `(M, K + 1)` of its M shadows:
    repetitions from a slightly moved start, see `engine.rounds`.
    """

    cost: NDArray[np.float64]
    misclassifications: NDArray[np.float64] | None
    test_cost: NDArray[np.float64] | None
    test_misclassifications: NDArray[np.float64] | None
    diverged_at: NDArray[np.int64]
    weights: Array
    seconds: float = 0.0
    shadows: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def write(self, k: int, alive: Array, train: Evaluation, test: Evaluation | None) -> None:
        """Record iteration k of the remaining runs.

        Args:
            k: The iteration.
            alive: The indices of the remaining runs, `(left,)`.
            train: The evaluation of the training points.
            test: That of the test points; None without any.
        """
        histories = [(self.cost, train.costs), (self.misclassifications, train.misclassifications)]
        if test:
            histories += [(self.test_cost, test.costs)]
            histories += [(self.test_misclassifications, test.misclassifications)]
        for history, values in histories:
            if history is not None:
                history[alive, k] = values

    def to_arrays(self) -> Arrays:
        """Return all that there is but the shadows, as arrays by name."""
        values = vars(self).items()
        return {name: np.asarray(v) for name, v in values if v is not None and name != "shadows"}

    def of_arrays(self, arrays: Mapping[str, Array]) -> "Histories":
        """Return the saved histories of the descent of which these are the empty ones."""
        saved: Any = {name: arrays[name] for name in self.to_arrays()}
        return replace(self, **{**saved, "seconds": float(saved["seconds"])})


def empty_histories(train: Problem, test: Problem | None, records: int, start: Array) -> Histories:
    """Return the histories of runs from starts `(R, *shape)`, before anything is recorded."""

    def empty(is_recorded: bool) -> NDArray[np.float64] | None:
        return np.full((len(start), records + 1), np.nan) if is_recorded else None

    cost = np.full((len(start), records + 1), np.nan)
    # Both problems are of one task: misclassifications are counted in both or in neither.
    counts = (empty(train.classify), empty(test is not None), empty(bool(test) and train.classify))
    return Histories(cost, *counts, np.full(len(start), -1), start.copy())


class Midway(NamedTuple):
    """The state of a descent before it evaluates iteration k, or on its way there.

    alive: `(left,)`, the indices of the remaining runs. weights: `(left, *shape)`, of the remaining
    runs. state: the arrays of the step rule. updates: how many were made since the start; where a
    step sees a batch of the points, several lie between two records.
    """

    k: int
    alive: NDArray[np.int64]
    weights: Array
    state: tuple[Array, ...]
    updates: int

    def of(self, mask: NDArray[np.bool_]) -> "Midway":
        """Return the state of those remaining runs whose mask `(left,)` is true."""
        state = tuple(array[mask] for array in self.state)
        return self._replace(alive=self.alive[mask], weights=self.weights[mask], state=state)

    def to_arrays(self) -> Arrays:
        """Return the state as arrays by name."""
        counts = {"iteration": np.array(self.k), "updates": np.array(self.updates)}
        state = {f"state/{number}": array for number, array in enumerate(self.state)}
        return {**counts, "alive": self.alive, "remaining": self.weights, **state}

    def of_arrays(self, arrays: Mapping[str, Array]) -> "Midway":
        """Return the saved state of the descent of which this is the state at the start."""
        k, updates = int(arrays["iteration"]), int(arrays["updates"])
        count = sum(name.startswith("state/") for name in arrays)  # a rule may begin without
        state = tuple(arrays[f"state/{number}"] for number in range(count))
        return Midway(k, arrays["alive"], arrays["remaining"], state, updates)


class SavedDescents:
    """The descents of one job in its checkpoint, each by a name.

    A descent that has ended has its histories there, another one its state, too.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.arrays = dict(checkpoint.resume(dict) or {})  # by `NAME/ARRAY`

    def save(self, name: str, arrays: Arrays, is_written: bool = True) -> None:
        """Replace the arrays of a descent; write those of all, or leave that to the next one."""
        others = {key: array for key, array in self.arrays.items() if not key.startswith(name)}
        self.arrays = others | {f"{name}/{key}": array for key, array in arrays.items()}
        if is_written:
            self.checkpoint.save(self.arrays)

    def of(self, name: str) -> Arrays:
        """Return the arrays of a descent; none where it has not begun."""
        keys = [key for key in self.arrays if key.startswith(name)]
        return {key.removeprefix(f"{name}/"): self.arrays[key] for key in keys}
