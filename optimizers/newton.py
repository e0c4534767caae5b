"""Damped Newton, as the second-order reference."""

import numpy as np

from normbench.optimizers.contract import Array, Objective, Optimizer, State, check_nonnegative


def newton(ridge: float = 1e-7) -> Optimizer:
    """Return the rule `w <- w - a (H + r I)^-1 g`, H the second derivatives at w.

    The step size a is the damping: 1 is Newton's method. A run whose matrix is singular gets NaN
    for its weights, and so is retired as diverged. The system is solved in float64, one run at a
    time: a matrix has C (N + 1) rows.

    Args:
        ridge: r, 0 or more; above 0 it makes a singular H of a convex cost invertible.

    Returns:
        A rule without state.

    Raises:
        ValueError: For a ridge out of range.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 4.3, with its ridge of 1e-7.
    """
    r = check_nonnegative("ridge", ridge)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> tuple[Array, State]:
        """Return the next weights; see `Optimizer.step`."""
        # One Hessian at a time, (D, D), so that memory never holds those of all runs.
        directions = [
            _solve_direction(objective.hessian(weights[run][None])[0], gradient[run], r)
            for run in range(len(weights))
        ]
        # A float32 run is solved in float64, and stays in float32.
        return (weights - step_size * np.array(directions)).astype(weights.dtype), state

    return Optimizer(
        step,
        uses_objective=True,
        rotation_equivariant=True,
        curved=True,
        steady=True,
        needs_full_batch=True,
    )


def _solve_direction(hessian: Array, gradient: Array, ridge: float) -> Array:
    """Return `(H + ridge I)^-1 g` of one run; NaN where the matrix is singular.

    Args:
        hessian: The second derivatives H, `(D, D)`.
        gradient: The gradient g, `(*shape)` with D entries, which is the shape of the result.
        ridge: What is added to the diagonal.
    """
    matrix = hessian + ridge * np.eye(len(hessian))
    try:
        return np.linalg.solve(matrix, gradient.reshape(-1)).reshape(gradient.shape)
    except np.linalg.LinAlgError:
        return np.full(gradient.shape, np.nan)
