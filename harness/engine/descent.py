"""Gradient descent of all runs of a grid at once: every step size and start of a job.

A descent can be saved on its way; resuming it reproduces every run bit for bit.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.plan import Plan
from normbench.engine.problem import QUIET, Array, Evaluation, Problem
from normbench.optimizers import Optimizer

Arrays = dict[str, Array]
Observe = Callable[[int, NDArray[np.int64], Array], None]


class SavedDescents:
    """The descents of one job in its checkpoint, each by a name.

    A descent that has ended has its histories there, another one its state, too.

    checkpoint: has `due()`, whether it is time to save, `save(arrays)`, which replaces the arrays
    saved before, and `resume(restore)`, which returns `restore(arrays)`, or None without any.
    """

    def __init__(self, checkpoint: Any) -> None:
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
        """Record iteration k of the remaining runs `(left,)`, on training and on test points."""
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
    # Both problems are of one task: misclassifications are counted in both or in neither.
    has_test, counts = test is not None, train.classify
    recorded = True, counts, has_test, has_test and counts
    empty: Any = (np.full((len(start), records + 1), np.nan) if each else None for each in recorded)
    cost, misclassified, test_cost, test_misclassified = empty
    ends = np.full(len(start), -1), start.copy()
    return Histories(cost, misclassified, test_cost, test_misclassified, *ends)


class Midway(NamedTuple):
    """The state of a descent before it evaluates iteration k.

    alive: `(left,)`, the indices of the remaining runs. weights: `(left, *shape)`, of the remaining
    runs. state: the arrays of the step rule.
    """

    k: int
    alive: NDArray[np.int64]
    weights: Array
    state: tuple[Array, ...]

    def of(self, mask: NDArray[np.bool_]) -> "Midway":
        """Return the state of those remaining runs whose mask `(left,)` is true."""
        state = tuple(array[mask] for array in self.state)
        return self._replace(alive=self.alive[mask], weights=self.weights[mask], state=state)

    def to_arrays(self) -> Arrays:
        """Return the state as arrays by name."""
        state = {f"state/{number}": array for number, array in enumerate(self.state)}
        runs = {"alive": self.alive, "remaining": self.weights}
        return {"iteration": np.array(self.k), **runs, **state}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> "Midway":
        """Return a saved state."""
        # In the order in which they were saved.
        state = tuple(array for name, array in arrays.items() if name.startswith("state/"))
        return cls(int(arrays["iteration"]), arrays["alive"], arrays["remaining"], state)


def descend(
    train: Problem,
    test: Problem | None,
    optimizer: Optimizer,
    start: Array,
    step_sizes: Array,
    plan: Plan,
    observe: Observe | None = None,
    saved: SavedDescents | None = None,
) -> Histories:
    """Return the histories of R runs that descend together.

    Costs and counts at iteration k belong to the weights of iteration k. In full batches an
    iteration is an update; otherwise it is a record, after as many updates as the plan says. A
    run whose cost, weights or gradient stop being finite leaves the stack with its history up to
    there; the others are unaffected.

    Args:
        train: The problem of the training points.
        test: The problem of the test points; None without any.
        optimizer: The step rule.
        start: Weights `(R, *shape)`, of the problem's shape; their type is that of the descent.
        step_sizes: `(R,)`, one for each run.
        plan: Which points each update sees, and the number K of the last record.
        observe: Called at every iteration k with the indices of the remaining runs and their
            weights `(left, *shape)`, which it must not change. Iterations that an earlier command
            has made are left out.
        saved: Saves the descent from time to time, and on Ctrl-C; a saved one resumes.

    Returns:
        The histories `(R, K + 1)`, the iterations of divergence and the last finite weights.

    Raises:
        KeyboardInterrupt: Ctrl-C, raised again after the descent is saved.
    """
    histories = empty_histories(train, test, plan.records, start)
    midway = Midway(0, np.arange(len(start)), start, optimizer.init(start))
    # Of all runs, (R, 1, ..): with as many axes as their weights.
    sizes = step_sizes.reshape(-1, *[1] * (start.ndim - 1)).astype(start.dtype)
    problem = (train, plan.records) if optimizer.uses_problem else ()
    name = hashlib.sha256(start.tobytes() + step_sizes.tobytes()).hexdigest()
    if arrays := saved.of(name) if saved else {}:
        histories = histories.of_arrays(arrays)
        if "iteration" not in arrays:  # an earlier command has ended it
            return histories
        midway = Midway.of_arrays(arrays)
    began = time.perf_counter() - histories.seconds

    def save(is_midway: bool = True) -> Histories:
        """Save the descent on its way, or at its end, and return its histories until now.

        Iteration 0 is not saved: it is the start.
        """
        timed = replace(histories, seconds=time.perf_counter() - began)
        if saved and midway.k:
            state = midway.to_arrays() if is_midway else {}
            saved.save(name, {**timed.to_arrays(), **state}, is_written=is_midway)
        return timed

    def update(midway: Midway, gradient: Array) -> Midway:
        """Return the state after one step of all remaining runs, of their gradient."""
        rest = midway.state, sizes[midway.alive], *problem
        weights, state = optimizer.step(midway.weights, gradient, *rest)
        return midway._replace(weights=weights, state=state)

    try:
        # Overflow is what a diverging run does; it is recorded, not warned of. So are its NaNs.
        with QUIET():
            while True:
                if saved and saved.checkpoint.due():
                    save()
                # Ctrl-C saves `midway`, so it is replaced only after the updates of an iteration.
                k, updates = midway.k, plan.updates_before(midway.k)
                # The last iteration has no step, and batches have gradients of their own.
                with_gradient = plan.batches is None and k < plan.records
                recorded = plan.recorded(train, updates)
                evaluation = recorded.evaluate(midway.weights, with_gradient=with_gradient)
                remaining, finite = midway, _find_finite(evaluation)
                if not finite.all():
                    histories.diverged_at[midway.alive[~finite]] = k
                    remaining, evaluation = midway.of(finite), evaluation.of(finite)
                alive, weights = remaining.alive, remaining.weights
                histories.weights[alive] = weights  # overwritten until the run stops
                of_test = None
                if test and len(alive):  # weights of no runs are not evaluated
                    recorded_test = plan.recorded(test, updates)
                    of_test = recorded_test.evaluate(weights, with_gradient=False)
                histories.write(k, alive, evaluation, of_test)
                if observe:
                    observe(k, alive, weights)
                if k == plan.records or not len(alive):
                    return save(is_midway=False)
                following = remaining._replace(k=k + 1)
                if evaluation.gradient is not None:
                    following = update(following, evaluation.gradient)
                else:  # the steps to the next record see batches
                    for number in range(updates, plan.updates_before(k + 1)):
                        gradient = plan.gradient(train, following.weights, number)
                        following = update(following, gradient)
                midway = following
    except KeyboardInterrupt:
        save()
        raise


def _find_finite(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Return for each run whether its cost and its gradient, if there is one, are finite."""
    finite: NDArray[np.bool_] = np.isfinite(evaluation.costs)
    if evaluation.gradient is not None:
        finite &= np.isfinite(evaluation.gradient.reshape(len(finite), -1)).all(axis=1)
    return finite
