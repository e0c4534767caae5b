"""Gradient descent with a backtracking line search, each run its own."""

import numpy as np

from normbench.optimizers.contract import Array, Objective, Optimizer, State, count, inner_share


def line_search(decrease: float = 1e-4, shrink: float = 0.5, trials: int = 50) -> Optimizer:
    """Return the rule `w <- w - t g`, t the first of `a, a s, a s^2, ...` that Armijo accepts.

    Accepted is `cost(w - t g) <= cost(w) - c t |g|^2`. The search of every step begins anew at the
    step size a. decrease: c, shrink: s, both above 0 and below 1. trials: how many t are tried;
    where none is accepted, the weights stay (at a minimum rounding does that). Raises `ValueError`
    for an option out of range. Nocedal and Wright, Numerical Optimization (2006), algorithm 3.1.
    """
    c, s = inner_share("decrease", decrease), inner_share("shrink", shrink)
    most = count("trials", trials)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> tuple[Array, State]:
        here = objective.costs(weights)
        flat = gradient.reshape(len(gradient), -1)
        slope = np.einsum("rd,rd->r", flat, flat, dtype=np.float64)
        found, t = weights.copy(), step_size.copy()
        open_runs = np.arange(len(weights))
        for _ in range(most):
            ahead = weights[open_runs] - t[open_runs] * gradient[open_runs]
            wanted = here[open_runs] - c * t[open_runs].ravel() * slope[open_runs]
            accepted = objective.costs(ahead) <= wanted
            found[open_runs[accepted]] = ahead[accepted]
            open_runs = open_runs[~accepted]
            if not len(open_runs):
                break
            t[open_runs] *= s
        return found, state

    note = (
        "every line search begins anew at the step size, and not at the last one that it accepted"
    )
    return Optimizer(step, uses_objective=True, rotation_equivariant=True, steady=True, note=note)
