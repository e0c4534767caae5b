"""Sign descent: every coordinate moves by the step size."""

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State


def sign() -> Optimizer:
    """Return the rule `w <- w - a s`, s the signs of g, 0 where g is 0.

    It is the steepest descent of the largest-coordinate norm without its factor `|g|_1`. Watt,
    Borhani, Katsaggelos, Machine Learning Refined, appendix A.3 (normalized by component).
    """

    def init(weights: Array) -> State:
        return ()

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array
    ) -> tuple[Array, State]:
        return weights - step_size * np.sign(gradient), state

    return Optimizer(init, step)
