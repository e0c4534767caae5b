"""Adam: momentum over the running size of each coordinate's gradient."""

import numpy as np

from normbench.optimizers.contract import (
    Array,
    Optimizer,
    State,
    Stepped,
    at_least_zero,
    share,
    zero_a_run,
)


def adam(mean_decay: float = 0.9, square_decay: float = 0.999, epsilon: float = 1e-8) -> Optimizer:
    """Return the rule `w <- w - a m' / (sqrt(v') + e)`, at step k = 1, 2, ...

    `m <- b m + (1 - b) g` and `v <- c v + (1 - c) g^2` from zero, freed of their start by
    `m' = m / (1 - b^k)`, `v' = v / (1 - c^k)`. mean_decay: b, square_decay: c, each 0 <= . < 1.
    epsilon: e, 0 or more, outside the root. State: m, v and k `(R, 1, ..)`. Raises `ValueError`
    for an option out of range. Kingma and Ba, Adam (ICLR 2015), algorithm 1.
    """
    b, c = share("mean_decay", mean_decay), share("square_decay", square_decay)
    e = at_least_zero("epsilon", epsilon)

    def init(weights: Array) -> State:
        zero = np.zeros_like(weights)
        return zero, zero, zero_a_run(weights).astype(float)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Stepped:
        m = b * state[0] + (1 - b) * gradient
        v = c * state[1] + (1 - c) * gradient**2
        k = state[2] + 1
        # In float64 whatever the weights' type: 1 - 0.999 in float32 has four digits.
        mean = m / (1 - b**k).astype(m.dtype)
        square = v / (1 - c**k).astype(v.dtype)
        return weights - step_size * mean / (np.sqrt(square) + e), (m, v, k)

    return Optimizer(step, init)
