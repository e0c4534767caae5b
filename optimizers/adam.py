"""Adam: momentum over the running size of each coordinate's gradient."""

import numpy as np

from normbench.optimizers.contract import (
    Array,
    Optimizer,
    State,
    Update,
    check_nonnegative,
    check_share,
    zero_per_run,
)


def adam(mean_decay: float = 0.9, square_decay: float = 0.999, epsilon: float = 1e-8) -> Optimizer:
    """Return the rule `w <- w - a m' / (sqrt(v') + e)`, at step k = 1, 2, ...

    The running means `m <- b m + (1 - b) g` and `v <- c v + (1 - c) g^2` start at zero, and are
    corrected for that start by `m' = m / (1 - b^k)`, `v' = v / (1 - c^k)`.

    Args:
        mean_decay: b, 0 <= b < 1.
        square_decay: c, 0 <= c < 1.
        epsilon: e, 0 or more, outside the root.

    Returns:
        A rule whose state is m, v and k `(R, 1, ..)`.

    Raises:
        ValueError: For an option out of range.

    References:
        Kingma and Ba, Adam (ICLR 2015), algorithm 1.
    """
    b, c = check_share("mean_decay", mean_decay), check_share("square_decay", square_decay)
    e = check_nonnegative("epsilon", epsilon)

    def init(weights: Array) -> State:
        """Return zero means, `(R, *shape)` each, and zero steps; see `Optimizer.init`."""
        zero = np.zeros_like(weights)
        return zero, zero, zero_per_run(weights).astype(float)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        """Return the next weights, and m, v and k; see `Optimizer.step`."""
        m = b * state[0] + (1 - b) * gradient
        v = c * state[1] + (1 - c) * gradient**2
        k = state[2] + 1
        # The divisors are computed in float64, and only then cast to the weights' type: 1 - 0.999
        # in float32 has four digits.
        mean = m / (1 - b**k).astype(m.dtype)
        square = v / (1 - c**k).astype(v.dtype)
        return weights - step_size * mean / (np.sqrt(square) + e), (m, v, k)

    return Optimizer(step, init)
