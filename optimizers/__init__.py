"""Step rules: two pure functions each, state in and state out, elementwise over runs.

`init(weights)` returns the state: a tuple of arrays whose first axis is the runs, so that a run
that diverged can leave. `step(weights, gradient, state, step_size)` returns the next weights and
state, in new arrays. Weights and gradient are `(R, *shape)`, whatever the shape of one model's
weights; step_size is `(R, 1, ..)`, of as many axes. A rule that needs costs or second derivatives
says `uses_objective`.
"""

from normbench.optimizers.contract import Objective as Objective
from normbench.optimizers.contract import Optimizer as Optimizer
from normbench.optimizers.contract import State as State
from normbench.optimizers.rules import adam as adam
from normbench.optimizers.rules import diminishing as diminishing
from normbench.optimizers.rules import gradient_descent as gradient_descent
from normbench.optimizers.rules import lbfgs as lbfgs
from normbench.optimizers.rules import line_search as line_search
from normbench.optimizers.rules import momentum as momentum
from normbench.optimizers.rules import nesterov as nesterov
from normbench.optimizers.rules import newton as newton
from normbench.optimizers.rules import normalized as normalized
from normbench.optimizers.rules import preconditioned as preconditioned
from normbench.optimizers.rules import rmsprop as rmsprop
from normbench.optimizers.rules import sign as sign
