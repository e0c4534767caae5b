"""All runs of a grid at once: one descent for every step size and start of a job."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.problem import Evaluation, Problem, Workspace
from normbench.optimizers import Optimizer

Array = NDArray[Any]
Progress = Callable[[int], None]
Observe = Callable[[int, NDArray[np.int64], Array], None]


@dataclass(frozen=True)
class Histories:
    """What R runs did from iteration 0 (the start) to iteration K.

    Each history is `(R, K + 1)`, NaN from the iteration at which a run stopped being finite; the
    misclassifications are None for real targets, the test histories without test points.
    diverged_at: `(R,)`, the iteration at which a run stopped being finite, -1 for never. weights:
    `(R, *shape)`, of the last finite iteration.
    """

    cost: NDArray[np.float64]
    misclassifications: NDArray[np.float64] | None
    test_cost: NDArray[np.float64] | None
    test_misclassifications: NDArray[np.float64] | None
    diverged_at: NDArray[np.int64]
    weights: Array


def descend(
    train: Problem,
    test: Problem | None,
    optimizer: Optimizer,
    start: Array,
    step_sizes: Array,
    iterations: int,
    progress: Progress | None = None,
    observe: Observe | None = None,
) -> Histories:
    """Return the histories of R runs that descend together.

    start: `(R, *shape)`, of the problem's shape; step_sizes: `(R,)`. Costs and counts at iteration
    k belong to the weights of iteration k. A run whose cost, weights or gradient stop being finite
    leaves the stack with its history up to there; the others do not notice. observe: called at
    every iteration k with the numbers of the runs that are left and their weights `(left, *shape)`,
    which it must not change.
    """
    runs = len(start)
    shape = (runs, iterations + 1)
    growing = _Growing(shape, train.classify, test)
    diverged_at = np.full(runs, -1)
    final = start.copy()
    alive = np.arange(runs)
    weights, state = start, optimizer.init(start)
    steps = step_sizes.reshape(-1, *[1] * (start.ndim - 1)).astype(start.dtype)
    memory: Workspace = {}
    extra = (_Asked(train, memory),) if optimizer.uses_objective else ()
    # Overflow is what a diverging run does; it is recorded, not warned of. So are its NaNs.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k in range(iterations + 1):
            here = train.evaluate(weights, k < iterations, memory)
            finite = np.isfinite(here.costs)
            if here.gradient is not None:
                finite &= np.isfinite(here.gradient.reshape(len(alive), -1)).all(axis=1)
            if not finite.all():
                diverged_at[alive[~finite]] = k
                here = _keep(here, finite)
                alive, weights, steps = alive[finite], weights[finite], steps[finite]
                state = tuple(array[finite] for array in state)
            final[alive] = weights
            growing.write(k, alive, here, test, weights)
            if observe:
                observe(k, alive, weights)
            if progress:
                progress(k)
            if k == iterations or not len(alive):
                break
            assert here.gradient is not None
            weights, state = optimizer.step(weights, here.gradient, state, steps, *extra)
    return growing.histories(diverged_at, final)


def _keep(here: Evaluation, finite: NDArray[np.bool_]) -> Evaluation:
    return Evaluation(
        here.costs[finite],
        None if here.gradient is None else here.gradient[finite],
        None if here.misclassifications is None else here.misclassifications[finite],
    )


@dataclass(frozen=True)
class _Asked:
    """What a step rule may ask of the problem, in the descent's own memory."""

    problem: Problem
    memory: Workspace

    def costs(self, weights: Array) -> NDArray[np.float64]:
        return self.problem.evaluate(weights, False, self.memory).costs

    def gradient(self, weights: Array) -> Array:
        found = self.problem.evaluate(weights, True, self.memory).gradient
        assert found is not None
        return found.copy()

    def hessian(self, weights: Array) -> Array:
        return np.array([self.problem.hessian(one).matrix() for one in weights])


class _Growing:
    """The histories while they grow."""

    def __init__(self, shape: tuple[int, int], classify: bool, test: Problem | None) -> None:
        def empty(wanted: bool) -> NDArray[np.float64] | None:
            return np.full(shape, np.nan) if wanted else None

        self.train = (empty(True), empty(classify))
        self.test = (empty(test is not None), empty(test is not None and classify))
        self.memory: Workspace = {}  # of the test points' evaluation

    def write(
        self,
        k: int,
        alive: NDArray[np.int64],
        here: Evaluation,
        test: Problem | None,
        weights: Array,
    ) -> None:
        there = test.evaluate(weights, False, self.memory) if test and len(alive) else None
        for histories, part in ((self.train, here), (self.test, there)):
            if part is None:
                continue
            for history, values in zip(histories, (part.costs, part.misclassifications)):
                if history is not None:
                    history[alive, k] = values

    def histories(self, diverged_at: NDArray[np.int64], weights: Array) -> Histories:
        cost, misclassifications = self.train
        assert cost is not None
        return Histories(cost, misclassifications, *self.test, diverged_at, weights)
