"""What a cost declares of itself: the tasks that it fits, its scores, its fused derivative."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.core import make_vjp
from autograd.extend import defvjp, primitive
from autograd.tracer import isbox
from numpy.typing import NDArray

Formula = Callable[[Any, Any], Any]
Fused = Callable[[NDArray[Any], NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.int64] | None]]


def declare(
    *tasks: str,
    score_per_class: bool | None = None,
    curvature: float | None = None,
    fused: Fused | None = None,
) -> Callable[[Formula], Formula]:
    """Return a decorator that writes what it is given on a cost.

    tasks: those of `binary`, `multiclass`, `regression` that the cost is defined for.
    score_per_class: True for C scores a point whatever the task; None for one score a point,
    and C only where there are more than two classes. A cost without a declaration is taken to
    fit every task, with None.
    curvature: the largest second derivative of a point's cost in its scores, wherever the scores
    are; None where there is no such bound, or none is known.
    fused: `fused(scores, targets) -> (values (R,) float64, counts (R,) or None)` turns the block
    of scores `(R, C, p)`, contiguous, IN PLACE into the derivative of the cost with respect to
    them. From the same pass come the cost's sums over the points, added up in float64 whatever
    the scores' type, and the counts of `count_misclassified`, None where there are no classes.
    The cost is then an autograd primitive with that derivative; `formula` keeps the plain one.
    """

    def write(formula: Formula) -> Formula:
        cost: Any = formula if fused is None else _with_derivative(formula, fused)
        cost.tasks = tasks
        cost.score_per_class = score_per_class
        cost.curvature = curvature
        return cost

    return write


def _with_derivative(formula: Formula, fused: Fused) -> Any:
    """Return formula as an autograd primitive whose derivative is the fused one."""
    cost = primitive(formula)
    cost.formula = formula
    cost.fused = fused

    def pull_back(values: Any, scores: Any, targets: Any) -> Callable[[Any], Any]:
        if isbox(scores):  # the derivative is derived in turn: autograd must see its inside
            return make_vjp(lambda s: formula(s, targets), scores)[0]
        derivative = scores.copy()
        fused(derivative, targets)
        return lambda weight: anp.reshape(weight, (-1, 1, 1)) * derivative

    defvjp(cost, pull_back)
    return cost


def total(values: Any) -> NDArray[np.float64]:
    """Return the sum over points `(R,)` of values `(R, p)`, added up in float64."""
    return np.sum(values, axis=-1, dtype=np.float64)
