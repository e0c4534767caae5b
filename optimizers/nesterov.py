"""Nesterov's accelerated gradient descent, with a fixed momentum."""

from normbench.optimizers.contract import Array, Optimizer, State, Update, check_share


def nesterov(momentum: float = 0.9) -> Optimizer:
    """Return the rule `v+ = w - a g(w)`, `w+ <- v+ + m (v+ - v)`, with v = w at first.

    a is the step size, and g(w) the gradient at w.
    The weights w, whose costs make the history, are the points ahead at which Nesterov's method
    takes its gradients.

    Args:
        momentum: m, 0 <= m < 1; 0 is gradient descent.

    Returns:
        A rule whose state is v.

    Raises:
        ValueError: For an m out of range.

    References:
        Nesterov, Introductory Lectures on Convex Optimization (2004), section 2.2, constant step
        scheme III.
    """
    m = check_share("momentum", momentum)

    def init(weights: Array) -> State:
        return (weights,)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        descended = weights - step_size * gradient  # v+
        return descended + m * (descended - state[0]), (descended,)

    note = "of nesterov the points ahead are recorded, at which its gradients are taken"
    return Optimizer(step, init, rotation_equivariant=True, steady=True, note=note)
