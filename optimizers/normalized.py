"""Normalized gradient descent: every step has the same length."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State, Update


def normalized() -> Optimizer:
    """Return the rule `w <- w - a g / |g|`, `|g|` the Euclidean norm over all weights of a run.

    Where the gradient is zero the weights stay.

    Returns:
        A rule without state.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, appendix A.3.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        weight_axes = tuple(range(1, gradient.ndim))  # all axes but that of the runs
        largest = np.max(np.abs(gradient), axis=weight_axes, keepdims=True)
        # A power of two, by which a division is exact: the squares stay within the type's range.
        unit = np.ldexp(np.ones_like(largest), np.frexp(largest)[1] - 1)
        scaled = gradient / unit
        norm = np.sqrt(np.sum(scaled**2, axis=weight_axes, keepdims=True))
        direction = np.divide(scaled, norm, out=np.zeros_like(gradient), where=norm > 0)
        return weights - step_size * direction, state

    return Optimizer(step, rotation_equivariant=True, steady=True)
