"""Gradient descent with a step size that diminishes as 1/k."""

from normbench.optimizers.contract import Array, Optimizer, State, Update, zero_per_run


def diminishing() -> Optimizer:
    """Return the rule `w <- w - (a / k) g` at step k = 1, 2, ..., a being the step size.

    Returns:
        A rule whose state is the number of steps so far, `(R, 1, ..)`, at first 0.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 3.5.
    """

    def init(weights: Array) -> State:
        return (zero_per_run(weights),)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        k = state[0] + 1
        return weights - step_size / k * gradient, (k,)

    return Optimizer(step, init, rotation_equivariant=True, steady=True)
