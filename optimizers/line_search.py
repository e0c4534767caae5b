"""Gradient descent with a backtracking line search, for each run separately."""

import numpy as np

from normbench.optimizers.contract import (
    Array,
    Objective,
    Optimizer,
    State,
    check_count,
    check_open_share,
)


def line_search(decrease: float = 1e-4, shrink: float = 0.5, trials: int = 50) -> Optimizer:
    """Return the rule `w <- w - t g`, t the first of `a, a s, a s^2, ...` that Armijo accepts.

    Armijo's condition is `cost(w - t g) <= cost(w) - c t |g|^2`, with the gradient g. The search of
    every step begins at the step size a.

    Args:
        decrease: c, between 0 and 1.
        shrink: s, between 0 and 1.
        trials: How many t are tried, at most. Where none is accepted, the weights stay: this
            happens at a minimum, because of rounding.

    Returns:
        A rule without state.

    Raises:
        ValueError: For an option out of range.

    References:
        Nocedal and Wright, Numerical Optimization (2006), algorithm 3.1.
    """
    decrease_factor, shrink_factor = (
        check_open_share("decrease", decrease),
        check_open_share("shrink", shrink),
    )
    max_trials = check_count("trials", trials)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> tuple[Array, State]:
        """Return the weights after one search for each run; see `Optimizer.step`."""
        costs = objective.costs(weights)
        flat = gradient.reshape(len(gradient), -1)
        squared_norms = np.einsum("rd,rd->r", flat, flat, dtype=np.float64)
        next_weights, t = weights.copy(), step_size.copy()  # t (R, 1, ..): one for each run
        searching_runs = np.arange(len(weights))  # the runs that have accepted no t yet
        for _ in range(max_trials):
            trial_weights = weights[searching_runs] - t[searching_runs] * gradient[searching_runs]
            cost_bounds = (
                costs[searching_runs]
                - decrease_factor * t[searching_runs].ravel() * squared_norms[searching_runs]
            )
            accepted = objective.costs(trial_weights) <= cost_bounds  # never for a cost that is NaN
            next_weights[searching_runs[accepted]] = trial_weights[accepted]
            searching_runs = searching_runs[~accepted]
            if not len(searching_runs):
                break
            t[searching_runs] *= shrink_factor
        return next_weights, state

    note = (
        "every line search begins anew at the step size, and not at the last one that it accepted"
    )
    return Optimizer(
        step,
        uses_objective=True,
        rotation_equivariant=True,
        steady=True,
        needs_full_batch=True,
        note=note,
    )
