"""Gradient descent with a step size that diminishes as 1/k."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State


def diminishing() -> Optimizer:
    """Return the rule `w <- w - (a / k) g` at step k = 1, 2, ..., a being the step size.

    State: the steps made, `(R, 1, 1)`. Watt, Borhani, Katsaggelos, Machine Learning Refined,
    section 3.5.
    """

    def init(weights: Array) -> State:
        return (np.zeros((len(weights), 1, 1), dtype=weights.dtype),)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array
    ) -> tuple[Array, State]:
        k = state[0] + 1
        return weights - step_size / k * gradient, (k,)

    return Optimizer(init, step)
