"""Gradient descent with a fixed step size."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State, Update


def gradient_descent() -> Optimizer:
    """Return the rule `w <- w - a g`, where a is the step size and g the gradient at w.

    Returns:
        A rule without state.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        moved = step_size * gradient
        # Written over the product: one new array instead of two.
        return np.subtract(weights, moved, out=moved), state

    return Optimizer(step, rotation_equivariant=True, steady=True, plain=True)
