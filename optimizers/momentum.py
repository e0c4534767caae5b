"""Gradient descent with Polyak's momentum, the heavy ball."""

from normbench.optimizers.contract import Array, Optimizer, State, Update, check_share


def momentum(momentum: float = 0.9) -> Optimizer:
    """Return the rule `w+ <- w - a g + m (w - w-)`, w- the previous weights, at first w itself.

    a is the step size and g the gradient at w. g has no factor `1 - m`: so in the long run a step
    size a acts like `a / (1 - m)`.

    Args:
        momentum: m, 0 <= m < 1; 0 is gradient descent.

    Returns:
        A rule whose state is w-.

    Raises:
        ValueError: For an m out of range.

    References:
        Polyak, Some methods of speeding up the convergence of iteration methods (1964).
    """
    m = check_share("momentum", momentum)

    def init(weights: Array) -> State:
        return (weights,)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        return weights - step_size * gradient + m * (weights - state[0]), (weights,)

    return Optimizer(step, init, rotation_equivariant=True, steady=True)
