"""The contract of step rules, and the checks of their options."""

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
State = tuple[Array, ...]
Update = tuple[Array, State]  # the next weights and state


class Objective(Protocol):
    """The objective at weights `(R, *shape)`, for step rules that need more than the gradient.

    steps: the number of steps of the whole descent.
    """

    steps: int

    def costs(self, weights: Array) -> Array:
        """Return the costs `(R,)`, mean over points."""

    def gradient(self, weights: Array) -> Array:
        """Return the gradients `(R, *shape)`."""

    def costs_and_gradient(self, weights: Array) -> tuple[Array, Array]:
        """Return the costs `(R,)` and the gradients `(R, *shape)` of one evaluation."""

    def hessian(self, weights: Array) -> Array:
        """Return the second derivatives `(R, D, D)`, D weights in C order."""


class Optimizer(NamedTuple):
    """A step rule: two pure functions, and what may be relied on.

    Attributes:
        step: Returns the next weights and state, both in new arrays. Weights and gradient are `(R,
            *shape)`, step_size is `(R, 1, ..)`.
        init: Returns the state at the start: a tuple of arrays whose first axis is the runs.
        uses_objective: The rule gets the objective as its last argument: `step(..., step_size,
            objective)`. The objective is of all points, so that there are no batches.
        rotation_equivariant: From rotated weights and gradients the rule steps to the rotated
            weights, so that the costs of a descent do not depend on the axes.
        plain: The rule keeps no state and steps to `w - a g` (a the step size, g the gradient), so
            that the theory of gradient descent holds.
        curved: The rule divides by second derivatives, and so needs a cost that has some.
        gridless: The rule chooses its own step sizes, so that a job makes one run from each start,
            whatever the grid of step sizes; that run is recorded under step size 1.
        steady: Rounding can decide where a run ends only if the run's cost rises at some iteration;
            under a rule that is not steady it can decide that of any run.
        scheme: A scheme that is fitted on the points of the problem before the descent, by whose
            map gradients are multiplied; None without one.
        note: How the rule differs from what its name usually means; empty if it does not.
    """

    step: Callable[..., Update]
    init: Callable[[Array], State] = lambda weights: ()
    uses_objective: bool = False
    rotation_equivariant: bool = False
    plain: bool = False
    curved: bool = False
    gridless: bool = False
    steady: bool = False
    scheme: Any = None
    note: str = ""


def zero_per_run(weights: Array) -> Array:
    """Return a zero for each run, `(R, 1, ..)`, in the weights' type, to count steps."""
    return np.zeros((len(weights), *[1] * (weights.ndim - 1)), dtype=weights.dtype)


def check_share(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a number from 0 to below 1."""
    return _check_number(name, value, lambda x: 0 <= x < 1, "a number, 0 or more and below 1")


def check_open_share(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a number strictly between 0 and 1."""
    return _check_number(name, value, lambda x: 0 < x < 1, "a number, above 0 and below 1")


def check_nonnegative(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a finite number, 0 or more."""
    return _check_number(name, value, lambda x: x >= 0, "a finite number, 0 or more")


def check_count(name: str, value: Any) -> int:
    """Return value; raise `ValueError` unless it is an integer, 1 or more."""
    rule = "a whole number, 1 or more"
    return int(_check_number(name, value, lambda x: x == int(x) and x >= 1, rule))


def _check_number(name: str, value: Any, is_valid: Callable[[Any], bool], rule: str) -> float:
    """Return value as a float; raise `ValueError` unless it is finite and valid.

    Args:
        name: The name of the option, for the message.
        value: The value of the option.
        is_valid: Tells whether a finite number is valid.
        rule: The same condition in words: the message says `must be {rule}`.
    """
    is_number = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    if not (is_number and np.isfinite(float(value)) and is_valid(float(value))):
        raise ValueError(f"{name}={value}: must be {rule}")
    return float(value)
