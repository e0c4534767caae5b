"""The contract that every step rule fulfils, and the checks of its options."""

import sys
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
State = tuple[Array, ...]
Stepped = tuple[Array, State]  # the next weights and state


class Objective(Protocol):
    """What a step rule may ask of the objective, at weights `(R, *shape)`."""

    def costs(self, weights: Array) -> Array:
        """Return the costs `(R,)`, mean over points."""

    def gradient(self, weights: Array) -> Array:
        """Return the gradients `(R, *shape)`."""

    def hessian(self, weights: Array) -> Array:
        """Return the second derivatives `(R, D, D)`, D weights in C order."""


class Optimizer(NamedTuple):
    """A step rule: two pure functions, and what may be relied on.

    Attributes:
        step: `step(weights, gradient, state, step_size) -> (weights, state)`, in new arrays.
            Weights and gradient are `(R, *shape)`, the step size is `(R, 1, ..)`.
        init: `init(weights) -> state`, a tuple of arrays whose first axis is the runs; a rule
            without it keeps no state.
        uses_objective: `step` gets the `Objective` as its last argument.
        rotation_equivariant: From weights and gradients that are rotated, it steps to the rotated
            weights, so that the costs of a descent do not depend on the axes.
        plain: It keeps no state and steps to `w - a g`, so that what theory says of gradient
            descent holds.
        curved: It divides by second derivatives, and so needs a cost that has some.
        gridless: It finds its own step sizes, so that a job makes one run of each start, whatever
            the grid, called step size 1.
        steady: Rounding decides where a run ends only where its cost rises at times; of other
            rules any run may be so.
        scheme: A transformer whose map the rule steps by, fitted on the points of the problem.
        under: `under(T)` is the rule for that map, T `(N + 1, M + 1)` on `[1 x]`.
        note: How it differs from what is usually called by its name.
    """

    step: Callable[..., Stepped]
    init: Callable[[Array], State] = lambda weights: ()
    uses_objective: bool = False
    rotation_equivariant: bool = False
    plain: bool = False
    curved: bool = False
    gridless: bool = False
    steady: bool = False
    scheme: Any = None
    under: "Callable[[Array], Optimizer] | None" = None
    note: str = ""


def zero_a_run(weights: Array) -> Array:
    """Return a zero for each run, `(R, 1, ..)`, in the weights' type: a state that counts steps."""
    return np.zeros((len(weights), *[1] * (weights.ndim - 1)), dtype=weights.dtype)


def share(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a number from 0 to below 1."""
    return _checked(name, value, lambda x: 0 <= x < 1, "a number, 0 or more and below 1")


def inner_share(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a number strictly between 0 and 1."""
    return _checked(name, value, lambda x: 0 < x < 1, "a number, above 0 and below 1")


def at_least_zero(name: str, value: Any) -> float:
    """Return value; raise `ValueError` unless it is a finite number, 0 or more."""
    return _checked(name, value, lambda x: x >= 0, "a finite number, 0 or more")


def count(name: str, value: Any) -> int:
    """Return value; raise `ValueError` unless it is a whole number, 1 or more."""
    rule = "a whole number, 1 or more"
    return int(_checked(name, value, lambda x: x == int(x) and x >= 1, rule))


def _checked(name: str, value: Any, holds: Callable[[Any], bool], rule: str) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and abs(value) <= sys.float_info.max and holds(value)):
        raise ValueError(f"{name}={value}: must be {rule}")
    return float(value)
