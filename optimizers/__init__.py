"""Step rules: two pure functions each, state in and state out, elementwise over runs.

`init(weights)` returns the state: a tuple of arrays whose first axis is the runs, so that a run
that diverged can leave. `step(weights, gradient, state, step_size)` returns the next weights and
state, in new arrays. Weights and gradient are `(R, *shape)`, whatever the shape of one model's
weights; step_size is `(R, 1, ..)`, of as many axes. A rule that needs costs or second derivatives
says `uses_objective`.
"""

from normbench.optimizers.adam import adam
from normbench.optimizers.contract import Objective, Optimizer, State
from normbench.optimizers.diminishing import diminishing
from normbench.optimizers.gradient_descent import gradient_descent
from normbench.optimizers.lbfgs import lbfgs
from normbench.optimizers.line_search import line_search
from normbench.optimizers.momentum import momentum
from normbench.optimizers.nesterov import nesterov
from normbench.optimizers.newton import newton
from normbench.optimizers.normalized import normalized
from normbench.optimizers.preconditioned import preconditioned
from normbench.optimizers.rmsprop import rmsprop
from normbench.optimizers.sign import sign

__all__ = [
    "Objective",
    "Optimizer",
    "State",
    "adam",
    "diminishing",
    "gradient_descent",
    "lbfgs",
    "line_search",
    "momentum",
    "nesterov",
    "newton",
    "normalized",
    "preconditioned",
    "rmsprop",
    "sign",
]
