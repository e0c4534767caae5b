"""Gradient descent of all runs of a grid at once: every step size and start of a job."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.midway import Histories as Histories
from normbench.engine.midway import Midway, SavedDescents, empty_histories
from normbench.engine.plan import Plan
from normbench.engine.problem import QUIET, Evaluation, Problem
from normbench.optimizers import Optimizer

Array = NDArray[Any]
Observe = Callable[[int, NDArray[np.int64], Array], None]


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
    midway = Midway(0, np.arange(len(start)), start, optimizer.init(start), 0)
    # Of all runs, (R, 1, ..): with as many axes as their weights.
    sizes = step_sizes.reshape(-1, *[1] * (start.ndim - 1)).astype(start.dtype)
    objective = (_ProblemObjective(train, plan.records),) if optimizer.uses_objective else ()
    name = hashlib.sha256(start.tobytes() + step_sizes.tobytes()).hexdigest()
    if arrays := saved.of(name) if saved else {}:
        histories = histories.of_arrays(arrays)
        if "iteration" not in arrays:  # an earlier command has ended it
            return histories
        midway = midway.of_arrays(arrays)
    began = time.perf_counter() - histories.seconds

    def timed_histories() -> Histories:
        """Return the histories with the time until now."""
        return replace(histories, seconds=time.perf_counter() - began)

    def save() -> None:
        """Save the descent. Iteration 0 is not saved: it is the start."""
        if saved and midway.k:
            saved.save(name, {**timed_histories().to_arrays(), **midway.to_arrays()})

    def update(midway: Midway, gradient: Array) -> Midway:
        """Return the state after one step of all remaining runs, of their gradient."""
        rest = midway.state, sizes[midway.alive], *objective
        weights, state = optimizer.step(midway.weights, gradient, *rest)
        return midway._replace(weights=weights, state=state, updates=midway.updates + 1)

    try:
        # Overflow is what a diverging run does; it is recorded, not warned of. So are its NaNs.
        with QUIET():
            while True:
                if saved and saved.checkpoint.due():
                    save()
                k = midway.k  # Ctrl-C saves `midway`, so it is replaced only after a whole step
                if midway.updates < plan.updates_before(k):  # an update between two records
                    midway = update(midway, plan.gradient(train, midway.weights, midway.updates))
                    continue
                # The last iteration has no step, and batches have gradients of their own.
                with_gradient = plan.full_batch and k < plan.records
                recorded = plan.recorded(train, midway.updates)
                evaluation = recorded.evaluate(midway.weights, with_gradient=with_gradient)
                remaining, finite = midway, _find_finite(evaluation)
                if not finite.all():
                    histories.diverged_at[midway.alive[~finite]] = k
                    remaining, evaluation = midway.of(finite), evaluation.of(finite)
                alive, weights = remaining.alive, remaining.weights
                histories.weights[alive] = weights  # overwritten until the run stops
                of_test = None
                if test and len(alive):  # weights of no runs are not evaluated
                    recorded_test = plan.recorded(test, midway.updates)
                    of_test = recorded_test.evaluate(weights, with_gradient=False)
                histories.write(k, alive, evaluation, of_test)
                if observe:
                    observe(k, alive, weights)
                if k == plan.records or not len(alive):
                    break
                following = remaining._replace(k=k + 1)
                if evaluation.gradient is None:  # the steps to the next record see batches
                    midway = following
                else:
                    midway = update(following, evaluation.gradient)
    except KeyboardInterrupt:
        save()
        raise
    histories = timed_histories()
    if saved:
        saved.save(name, histories.to_arrays(), is_written=False)
    return histories


def _find_finite(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Return for each run whether its cost and its gradient, if there is one, are finite."""
    finite: NDArray[np.bool_] = np.isfinite(evaluation.costs)
    if evaluation.gradient is not None:
        finite &= np.isfinite(evaluation.gradient.reshape(len(finite), -1)).all(axis=1)
    return finite


@dataclass(frozen=True)
class _ProblemObjective:
    """The objective that a step rule may ask, see `optimizers.Objective`.

    problem: of all points. steps: the number of steps of the whole descent.
    """

    problem: Problem
    steps: int

    def costs(self, weights: Array) -> NDArray[np.float64]:
        """Return the costs `(R,)` at weights `(R, *shape)`."""
        return self.problem.evaluate(weights, with_gradient=False).costs

    def gradient(self, weights: Array) -> Array:
        """Return the gradient `(R, *shape)` at weights of that shape."""
        return self.costs_and_gradient(weights)[1]

    def costs_and_gradient(self, weights: Array) -> tuple[NDArray[np.float64], Array]:
        """Return the costs `(R,)` and the gradient `(R, *shape)` at weights `(R, *shape)`."""
        evaluation = self.problem.evaluate(weights)
        assert evaluation.gradient is not None
        return evaluation.costs, evaluation.gradient

    def hessian(self, weights: Array) -> Array:
        """Return the Hessians `(R, D, D)` at weights `(R, *shape)`, D numbers each."""
        return np.array([self.problem.hessian(run_weights).matrix() for run_weights in weights])
