"""RMSProp: each coordinate's step over the running size of its gradient."""

import numpy as np

from normbench.optimizers.contract import (
    Array,
    Optimizer,
    State,
    Update,
    check_nonnegative,
    check_share,
)


def rmsprop(decay: float = 0.9, epsilon: float = 1e-8) -> Optimizer:
    """Return the rule `v <- d v + (1 - d) g^2`, `w <- w - a g / (sqrt(v) + e)`, v = 0 at first.

    Args:
        decay: d, 0 <= d < 1.
        epsilon: e, 0 or more, outside the root; with 0, a coordinate whose gradient has always been
            0 is divided by zero.

    Returns:
        A rule whose state is v.

    Raises:
        ValueError: For an option out of range.

    References:
        Tieleman and Hinton, lecture 6.5 of Neural Networks for Machine Learning (2012); Watt,
        Borhani, Katsaggelos, Machine Learning Refined, appendix A.4.
    """
    d, e = check_share("decay", decay), check_nonnegative("epsilon", epsilon)

    def init(weights: Array) -> State:
        return (np.zeros_like(weights),)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        v = d * state[0] + (1 - d) * gradient**2
        return weights - step_size * gradient / (np.sqrt(v) + e), (v,)

    note = (
        "rmsprop's decay is 0.9 unless it is set, where PyTorch's is 0.99, and its mean of squares "
        "starts at 0 and is not corrected for it, unlike adam's"
    )
    return Optimizer(step, init, note=note)
