"""Normalized gradient descent: steps of one length."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State, Stepped


def normalized() -> Optimizer:
    """Return the rule `w <- w - a g / |g|`, the norm over all weights of a run.

    Where the gradient is zero the weights stay. Watt, Borhani, Katsaggelos, Machine Learning
    Refined, appendix A.3.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Stepped:
        within = tuple(range(1, gradient.ndim))
        norm = np.sqrt(np.sum(gradient**2, axis=within, keepdims=True))
        direction = np.divide(gradient, norm, out=np.zeros_like(gradient), where=norm > 0)
        return weights - step_size * direction, state

    return Optimizer(step, rotation_equivariant=True, steady=True)
