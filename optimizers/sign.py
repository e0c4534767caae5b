"""Sign descent: every coordinate moves by the step size."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State, Update

ZERO_EPSILONS = 8  # machine epsilons of the largest component, below which a component is 0


def sign() -> Optimizer:
    """Return the rule `w <- w - a s`, s the signs of g, 0 where g is 0 up to rounding.

    A component counts as 0 if it is at most 8 machine epsilons times the run's largest: a sum over
    the points that is exactly 0 is computed as about 1e-16, and its sign differs from machine to
    machine. The rule is the steepest descent with respect to the norm `max |w_j|`, without the
    factor `|g|_1` of that descent.

    Returns:
        A rule without state.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, appendix A.3 (normalized by
        component).
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        magnitude = np.abs(gradient)
        largest = magnitude.max(axis=tuple(range(1, gradient.ndim)), keepdims=True)
        is_nonzero = magnitude > ZERO_EPSILONS * np.finfo(gradient.dtype).eps * largest
        return weights - step_size * np.where(is_nonzero, np.sign(gradient), 0), state

    note = "sign takes a component of rounding size, 8 machine epsilons of the largest, for 0"
    return Optimizer(step, note=note)
