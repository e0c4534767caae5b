"""Gradient descent of all runs of a grid at once: every step size and start of a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.midway import Checkpoint, GrowingHistories, Midway
from normbench.engine.problem import Evaluation, Problem, Workspace
from normbench.optimizers import Optimizer

Array = NDArray[Any]
# The callbacks of `descend`, see its arguments `progress` and `observe`.
Progress = Callable[[int], None]
Observe = Callable[[int, NDArray[np.int64], Array], None]


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
) -> Histories:
    """Return the histories of R runs that descend together.

    Costs and counts at iteration k belong to the weights of iteration k. In full batches an
    iteration is an update; otherwise it is a record, after as many updates as the problem says. A
    run whose cost, weights or gradient stop being finite leaves the stack with its history up to
    there; the others are unaffected.

    Args:
        train: The problem of the training points.
        test: The problem of the test points; None without any.
        optimizer: The step rule.
        start: Weights `(R, *shape)`, of the problem's shape; their type is that of the descent.
        step_sizes: `(R,)`, one for each run.
        iterations: The number K of the last iteration.
        progress: Called with k at every iteration.
        observe: Called at every iteration k with the indices of the remaining runs and their
            weights `(left, *shape)`, which it must not change.
        checkpoint: Saves the descent from time to time, and on Ctrl-C. A saved descent resumes, and
            progress and observe are not called for the iterations that it has made.

    Returns:
        The histories `(R, K + 1)`, the iterations of divergence and the last finite weights.

    Raises:
        KeyboardInterrupt: Ctrl-C, raised again after the checkpoint is saved.
    """
    histories = GrowingHistories(train, test, start, iterations)
    midway = Midway(0, np.arange(len(start)), start, optimizer.init(start), 0)
    if checkpoint:
        midway = checkpoint.resume(histories.read) or midway
    # Of the remaining runs, (left, 1, ..): with as many axes as their weights.
    step_sizes_by_run = step_sizes.reshape(-1, *[1] * (start.ndim - 1)).astype(start.dtype)[
        midway.alive
    ]
    workspace: Workspace = {}
    # Rules that use the objective need full batches: the updates between records do not pass it.
    objective = _ProblemObjective(train, workspace, iterations)
    extra = (objective,) if optimizer.uses_objective else ()
    try:
        # Overflow is what a diverging run does; it is recorded, not warned of. So are its NaNs.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            while True:
                # Iteration 0 is not saved: it is the start.
                if checkpoint and midway.k and checkpoint.due():
                    checkpoint.save(histories.to_arrays(midway))
                k = midway.k  # Ctrl-C saves `midway`, so it is replaced only after a whole step
                if midway.updates < train.updates_before(k):  # an update between two records
                    gradient = train.gradient(midway.weights, midway.updates, workspace)
                    midway = _update(midway, gradient, optimizer, step_sizes_by_run)
                    continue
                # The last iteration has no step, and batches have gradients of their own.
                with_gradient = train.full_batch and k < iterations
                evaluation, test_evaluation = histories.evaluate(midway, with_gradient, workspace)
                finite = _find_finite(evaluation)
                histories.diverged_at[midway.alive[~finite]] = k
                remaining, evaluation, step_sizes_by_run = _select_runs(
                    finite, midway, evaluation, step_sizes_by_run
                )
                if test_evaluation:
                    test_evaluation = test_evaluation.of(finite)
                histories.write(remaining, evaluation, test_evaluation)
                if observe:
                    observe(k, remaining.alive, remaining.weights)
                if progress:
                    progress(k)
                if k == iterations or not len(remaining.alive):
                    return _finish(histories)
                following = remaining._replace(k=k + 1)
                if evaluation.gradient is None:  # the steps to the next record see batches
                    midway = following
                else:
                    midway = _update(
                        following, evaluation.gradient, optimizer, step_sizes_by_run, *extra
                    )
    except KeyboardInterrupt:
        if checkpoint and midway.k:
            checkpoint.save(histories.to_arrays(midway))
        raise


def _update(
    midway: Midway, gradient: Array, optimizer: Optimizer, step_sizes: Array, *objective: Any
) -> Midway:
    """Return the state after one step of all remaining runs.

    Args:
        midway: The state before the step, of `left` runs.
        gradient: `(left, *shape)`, at the weights of `midway`.
        optimizer: The step rule.
        step_sizes: `(left, 1, ..)`, with as many axes as the weights.
        *objective: The objective, for rules that use it.
    """
    weights, state = optimizer.step(midway.weights, gradient, midway.state, step_sizes, *objective)
    return midway._replace(weights=weights, state=state, updates=midway.updates + 1)


def _find_finite(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Return for each run whether its cost and its gradient, if there is one, are finite."""
    finite: NDArray[np.bool_] = np.isfinite(evaluation.costs)
    if evaluation.gradient is not None:
        finite &= np.isfinite(evaluation.gradient.reshape(len(finite), -1)).all(axis=1)
    return finite


def _finish(histories: GrowingHistories) -> Histories:
    """Return the histories of a finished descent, as frozen values."""
    cost, misclassifications = histories.train
    assert cost is not None  # the cost of the training points is always recorded
    return Histories(
        cost, misclassifications, *histories.test, histories.diverged_at, histories.final
    )


def _select_runs(
    mask: NDArray[np.bool_], midway: Midway, evaluation: Evaluation, step_sizes: Array
) -> tuple[Midway, Evaluation, Array]:
    """Return the state, the evaluation and the step sizes of those runs whose mask is true.

    Args:
        mask: `(left,)`.
        midway: The state of the runs.
        evaluation: The evaluation of the runs.
        step_sizes: `(left, 1, ..)`.

    Returns:
        The same of the selected runs; the arguments themselves, uncopied, where all are selected.
    """
    if mask.all():
        return midway, evaluation, step_sizes
    state = tuple(array[mask] for array in midway.state)
    selected = midway._replace(alive=midway.alive[mask], weights=midway.weights[mask], state=state)
    return selected, evaluation.of(mask), step_sizes[mask]


@dataclass(frozen=True)
class _ProblemObjective:
    """The objective that a step rule may ask, see `optimizers.contract.Objective`.

    problem: of all points. workspace: the descent's memory, which each evaluation overwrites.
    steps: the number of steps of the whole descent.
    """

    problem: Problem
    workspace: Workspace
    steps: int

    def costs(self, weights: Array) -> NDArray[np.float64]:
        """Return the costs `(R,)` at weights `(R, *shape)`."""
        return self.problem.evaluate(weights, False, self.workspace).costs

    def gradient(self, weights: Array) -> Array:
        """Return the gradient `(R, *shape)` at weights of that shape."""
        return self.costs_and_gradient(weights)[1]

    def costs_and_gradient(self, weights: Array) -> tuple[NDArray[np.float64], Array]:
        """Return the costs `(R,)` and the gradient `(R, *shape)` at weights `(R, *shape)`.

        The gradient is a copy, because the next evaluation overwrites the workspace.
        """
        evaluation = self.problem.evaluate(weights, True, self.workspace)
        assert evaluation.gradient is not None
        return evaluation.costs, evaluation.gradient.copy()

    def hessian(self, weights: Array) -> Array:
        """Return the Hessians `(R, D, D)` at weights `(R, *shape)`, D numbers each."""
        return np.array([self.problem.hessian(run_weights).matrix() for run_weights in weights])
