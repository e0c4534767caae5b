"""All runs of a grid at once: one descent for every step size and start of a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.midway import Checkpoint, Growing, Midway
from normbench.engine.problem import Evaluation, Problem, Workspace
from normbench.optimizers import Optimizer

Array = NDArray[Any]
Progress = Callable[[int], None]
Observe = Callable[[int, NDArray[np.int64], Array], None]
Leave = Callable[[int, NDArray[np.int64], NDArray[np.float64]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Histories:
    """What R runs did from iteration 0 (the start) to iteration K.

    Each history is `(R, K + 1)`, NaN from the iteration at which a run stopped being finite; the
    misclassifications are None for real targets, the test histories without test points.
    diverged_at: `(R,)`, the iteration at which a run stopped being finite, -1 for never. weights:
    `(R, *shape)`, of the last finite iteration. shadows: the costs of the shadows of those runs
    that have some, by the runs' numbers, `(M, K + 1)` each: see `engine.rounds`.
    """

    cost: NDArray[np.float64]
    misclassifications: NDArray[np.float64] | None
    test_cost: NDArray[np.float64] | None
    test_misclassifications: NDArray[np.float64] | None
    diverged_at: NDArray[np.int64]
    weights: Array
    shadows: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)


def descend(
    train: Problem,
    test: Problem | None,
    optimizer: Optimizer,
    start: Array,
    step_sizes: Array,
    iterations: int,
    progress: Progress | None = None,
    observe: Observe | None = None,
    checkpoint: Checkpoint | None = None,
    leave: Leave | None = None,
) -> Histories:
    """Return the histories of R runs that descend together.

    start: `(R, *shape)`, of the problem's shape; step_sizes: `(R,)`. Costs and counts at iteration
    k belong to the weights of iteration k. A run whose cost, weights or gradient stop being finite
    leaves the stack with its history up to there; the others do not notice. observe: called at
    every iteration k with the numbers of the runs that are left and their weights `(left, *shape)`,
    which it must not change. checkpoint: keeps the descent now and then, and on Ctrl-C; one that
    is kept goes on, and progress and observe are not called for the iterations that it has made.
    leave: called with k, the numbers of the runs that are left and their costs `(left,)`; says
    which of them leave the stack, their histories ending there.
    """
    growing = Growing(train, test, start, iterations)
    now = Midway(0, np.arange(len(start)), start, optimizer.init(start))
    if checkpoint:
        now = checkpoint.resume(growing.read) or now
    steps = step_sizes.reshape(-1, *[1] * (start.ndim - 1)).astype(start.dtype)[now.alive]
    memory: Workspace = {}
    extra = (_Asked(train, memory),) if optimizer.uses_objective else ()
    try:
        # Overflow is what a diverging run does; it is recorded, not warned of. So are its NaNs.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            while True:
                k, alive, weights, state = now
                if checkpoint and k and checkpoint.due():
                    checkpoint.save(growing.parts(now))
                here = _evaluate(train, weights, k, k < iterations, memory)
                finite = _finite(here)
                if not finite.all():
                    growing.diverged_at[alive[~finite]] = k
                    here = _keep(here, finite)
                    alive, weights, steps = alive[finite], weights[finite], steps[finite]
                    state = tuple(array[finite] for array in state)
                growing.write(k, alive, here, weights)
                if leave:
                    stay = ~leave(k, alive, here.costs)
                    if not stay.all():
                        here = _keep(here, stay)
                        alive, weights, steps = alive[stay], weights[stay], steps[stay]
                        state = tuple(array[stay] for array in state)
                if observe:
                    observe(k, alive, weights)
                if progress:
                    progress(k)
                if k == iterations or not len(alive):
                    return _histories(growing)
                assert here.gradient is not None
                weights, state = optimizer.step(weights, here.gradient, state, steps, *extra)
                now = Midway(k + 1, alive, weights, state)
    except KeyboardInterrupt:
        if checkpoint and now.k:
            checkpoint.save(growing.parts(now))
        raise


def _evaluate(train: Problem, weights: Array, k: int, steps: bool, memory: Workspace) -> Evaluation:
    """Return what iteration k records, with the gradient that its step follows, if it steps."""
    if train.full_batch or not steps:  # one pass over the points for both
        return train.evaluate(weights, steps, memory)
    recorded = train.evaluate(weights, False, memory)
    return recorded._replace(gradient=train.gradient(weights, k, memory))


def _finite(here: Evaluation) -> NDArray[np.bool_]:
    """Return of each run whether its cost and its gradient are finite."""
    finite: NDArray[np.bool_] = np.isfinite(here.costs)
    if here.gradient is not None:
        finite &= np.isfinite(here.gradient.reshape(len(finite), -1)).all(axis=1)
    return finite


def _histories(growing: Growing) -> Histories:
    cost, misclassifications = growing.train
    assert cost is not None
    return Histories(cost, misclassifications, *growing.test, growing.diverged_at, growing.final)


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
