"""The contract that every step rule fulfils."""

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]
State = tuple[Array, ...]


class Optimizer(NamedTuple):
    """A step rule: `init(weights) -> state` and `step(weights, gradient, state, step_size)`."""

    init: Callable[[Array], State]
    step: Callable[[Array, Array, State, Array], tuple[Array, State]]
