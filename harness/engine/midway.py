"""Checkpoint state of a descent: resuming from it reproduces the run bit for bit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.engine.problem import Array, Evaluation, Problem

T = TypeVar("T")


class Checkpoint(Protocol):
    """The storage of checkpoints, as the engine sees it.

    spent: the seconds that the descent had taken before it was resumed.
    """

    spent: float

    def due(self) -> bool:
        """Return whether it is time to save."""

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Save these arrays, replacing those saved before."""

    def resume(self, read: Callable[[Mapping[str, Array]], T]) -> T | None:
        """Return the value that `read` returns for the saved arrays.

        None where nothing is saved, or where `read` refuses the arrays by a ValueError or a
        KeyError.
        """


@dataclass(frozen=True)
class Histories:
    """The histories of R runs from iteration 0 (the start) to iteration K.

    Each history is `(R, K + 1)`, NaN from the iteration at which a run stopped being finite; the
    misclassifications are None for real targets, the test histories without test points.
    diverged_at: `(R,)`, the iteration at which a run stopped being finite, -1 for never. weights:
    `(R, *shape)`, of the last finite iteration. shadows: by the index of a run, the costs `(M, K +
    1)` of its M shadows: repetitions from a slightly moved start, see `engine.rounds`.
    """

    cost: NDArray[np.float64]
    misclassifications: NDArray[np.float64] | None
    test_cost: NDArray[np.float64] | None
    test_misclassifications: NDArray[np.float64] | None
    diverged_at: NDArray[np.int64]
    weights: Array
    shadows: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def write(self, k: int, alive: Array, evaluations: Sequence[Evaluation]) -> None:
        """Record iteration k of the remaining runs.

        Args:
            k: The iteration.
            alive: The indices of the remaining runs, `(left,)`.
            evaluations: Those of the training points and, where there are any, of the test points.
        """
        train, test = (
            (self.cost, self.misclassifications),
            (self.test_cost, self.test_misclassifications),
        )
        for histories, evaluation in zip((train, test), evaluations):
            values_of_runs = evaluation.costs, evaluation.misclassifications
            for history, values in zip(histories, values_of_runs):
                if history is not None and values is not None:
                    history[alive, k] = values

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays that there are by their names, without the shadows."""
        return {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}


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

    def to_arrays(self, histories: Histories) -> dict[str, Array]:
        """Return all that the descent resumes from, however much of iteration k is recorded.

        Iteration k is evaluated again after resuming, so that runs that diverged at k remain.
        """
        diverged_at = histories.diverged_at
        return {
            **histories.to_arrays(),
            "diverged_at": np.where(diverged_at < self.k, diverged_at, -1),
            "iteration": np.array(self.k),
            "updates": np.array(self.updates),
            "remaining": self.weights,
            **{f"state/{number}": array for number, array in enumerate(self.state)},
        }


def read_arrays(arrays: Mapping[str, Array], histories: Histories) -> tuple[Histories, Midway]:
    """Return the histories and the state of a descent, from the arrays of `Midway.to_arrays`.

    Args:
        arrays: The saved arrays, by name.
        histories: Those of the descent at its start.

    Raises:
        ValueError, KeyError: The arrays are those of another descent.
    """
    own_arrays = histories.to_arrays()
    saved_arrays: Any = {name: arrays[name] for name in own_arrays}
    saved = replace(histories, **saved_arrays)
    alive, weights = np.flatnonzero(saved.diverged_at == -1), arrays["remaining"]
    count = sum(name.startswith("state/") for name in arrays)
    state = tuple(arrays[f"state/{number}"] for number in range(count))
    expected = {**own_arrays, "remaining": histories.weights[alive]}
    for name, array in expected.items():
        if arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
            raise ValueError(f"{name} is not that of this descent")
    if any(array.shape[:1] != alive.shape for array in state):
        raise ValueError("state is not that of this descent")
    return saved, Midway(int(arrays["iteration"]), alive, weights, state, int(arrays["updates"]))
