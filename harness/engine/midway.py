"""Checkpoint state of a descent: resuming from it reproduces the run bit for bit."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.engine.plan import Plan
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


class GrowingHistories:
    """The histories of R runs while they descend.

    train, test: the histories of cost and of misclassifications on the training and the test
    points, each `(R, K + 1)` or None. diverged_at: `(R,)`. final: the last finite weights, `(R,
    *shape)`.
    """

    def __init__(self, train: Problem, test: Problem | None, plan: Plan, start: Array) -> None:
        def empty(wanted: bool) -> NDArray[np.float64] | None:
            """Return a history `(R, K + 1)` of NaN; None where none is wanted."""
            return np.full((len(start), plan.records + 1), np.nan) if wanted else None

        self.model, self.test_problem, self.plan = repr(train.model), test, plan
        self.train = (empty(True), empty(train.classify))
        # Both problems are of one task: misclassifications are counted in both or in neither.
        self.test = (empty(test is not None), empty(test is not None and train.classify))
        self.diverged_at = np.full(len(start), -1)
        self.final = start.copy()

    def write(self, midway: Midway, evaluation: Evaluation) -> None:
        """Record an iteration of the remaining runs, on the training and the test points.

        Args:
            midway: The state of the descent at iteration k, with the weights `(left, *shape)`.
            evaluation: The evaluation of the training points at these weights.
        """
        k, alive, weights = midway.k, midway.alive, midway.weights
        self.final[alive] = weights  # overwritten at each iteration, until the run stops
        evaluations = [(self.train, evaluation)]
        if self.test_problem and len(alive):  # weights of no runs are not evaluated
            test = self.plan.recorded(self.test_problem, midway.updates)
            evaluations.append((self.test, test.evaluate(weights, with_gradient=False)))
        for histories, evaluated in evaluations:
            for history, values in zip(histories, (evaluated.costs, evaluated.misclassifications)):
                if history is not None:
                    history[alive, k] = values

    def to_arrays(self, midway: Midway) -> dict[str, Array]:
        """Return all that the descent resumes from, however much of iteration k is recorded.

        Iteration k is evaluated again after resuming: its entries of the histories and runs that
        diverged at k are left out.
        """
        return {
            "model": np.array(self.model),
            "order": np.array(self.plan.order),
            "iteration": np.array(midway.k),
            "updates": np.array(midway.updates),
            "diverged_at": np.where(self.diverged_at < midway.k, self.diverged_at, -1),
            "final": self.final,
            "weights": midway.weights,
            **{name: history[:, : midway.k] for name, history in self._histories()},
            **{f"state/{number}": array for number, array in enumerate(midway.state)},
        }

    def read(self, arrays: Mapping[str, Array]) -> Midway:
        """Restore the arrays that `to_arrays` returned; return where the descent resumes.

        Everything is checked before anything is restored.

        Args:
            arrays: The saved arrays, by name.

        Returns:
            The state of the descent before it evaluates the saved iteration.

        Raises:
            ValueError, KeyError: The arrays are those of another descent; nothing is restored.
        """
        k, diverged_at = int(arrays["iteration"]), arrays["diverged_at"]
        plan, updates = self.plan, int(arrays["updates"])
        _check("model", str(arrays["model"]) == self.model)
        _check("iteration", 0 < k <= plan.records)  # the start is never saved
        _check("order", str(arrays["order"]) == plan.order)
        # The updates lead from record k - 1 to record k.
        between_records = plan.updates_before(k - 1) <= updates <= plan.updates_before(k)
        _check("updates", between_records)
        _check_array("diverged_at", diverged_at, self.diverged_at)
        _check("diverged_at", bool(np.all((diverged_at >= -1) & (diverged_at < k))))
        alive = np.flatnonzero(diverged_at == -1)
        _check("diverged_at", len(alive) > 0)  # a descent without runs has ended
        _check_array("final", arrays["final"], self.final)
        _check_array("weights", arrays["weights"], self.final[alive])
        count = sum(name.startswith("state/") for name in arrays)
        state = tuple(arrays[f"state/{number}"] for number in range(count))
        for array in state:
            # Numbers, whose first axis is the remaining runs.
            _check("state", array.dtype.kind in "biuf" and array.shape[:1] == alive.shape)
        for name, history in self._histories():
            _check_array(name, arrays[name], history[:, :k])
        alive_arrays = {name: arrays[name][alive] for name, _ in self._histories()}
        alive_arrays["final"] = arrays["final"]
        # Between the records of batches a run may overflow, which the next record finds.
        if plan.full_batch:
            alive_arrays["weights"] = arrays["weights"]
            alive_arrays |= {f"state/{number}": array for number, array in enumerate(state)}
        # Numbers of remaining runs are finite: a descent retires the others.
        for name, array in alive_arrays.items():
            _check(name, bool(np.isfinite(array).all()))
        for name, history in self._histories():
            history[:, :k] = arrays[name]
        self.diverged_at, self.final = diverged_at.copy(), arrays["final"].copy()
        return Midway(k, alive, arrays["weights"], state, updates)

    def _histories(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Yield the histories that there are, each with its name in a checkpoint."""
        for number, history in enumerate((*self.train, *self.test)):
            if history is not None:
                yield f"history/{number}", history


def _check(name: str, holds: bool) -> None:
    """Raise ValueError unless a condition on a saved array holds."""
    if not holds:
        raise ValueError(f"{name} is not that of this descent")


def _check_array(name: str, array: Array, expected: Array) -> None:
    """Raise ValueError unless a saved array has the expected shape and type."""
    _check(name, array.shape == expected.shape and array.dtype == expected.dtype)
