"""Step rules: two pure functions each, state in and state out, elementwise over runs.

`init(weights)` returns the state: a tuple of arrays whose first axis is the runs, so that a run
that diverged can leave. `step(weights, gradient, state, step_size)` returns the next weights and
state. Weights and gradient are `(R, C, N + 1)`, bias first; step_size is `(R, 1, 1)`.
"""

from optimizers.contract import Optimizer, State
from optimizers.gradient_descent import gradient_descent

__all__ = ["Optimizer", "State", "gradient_descent"]
