"""Declare the traits of a cost, and attach its fused derivative."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.core import make_vjp
from autograd.extend import defvjp, primitive
from autograd.tracer import isbox
from numpy.typing import NDArray

Array = NDArray[Any]
Counts = NDArray[np.int64]
Formula = Callable[[Any, Any], Any]
# The costs (R,) of a block of points, and its misclassified points (R,), None without classes.
Sums = tuple[NDArray[np.float64], Counts | None]
Fused = Callable[[Array, Array], Sums]
COST_TASKS = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Traits:
    """What callers may rely on in a cost; a cost without a declaration has the default values.

    Attributes:
        tasks: The tasks that the cost is defined for.
        score_per_class: True where a point has C scores whatever the task; None where it has one
            score, and C scores only with more than two classes.
        curvature: The largest second derivative of a point's cost in its scores, at any scores;
            None where there is no such bound, or none is known.
        quadratic: The second derivatives are the same at all scores.
        squares: With one score a point, the cost is the sum of `(s - y)^2`.
        shift_invariant: A number added to all scores of a point changes nothing.
        positively_homogeneous: Scores t times as large have t times the cost, for every t > 0.
        separable: The cost is above 0 everywhere and falls as any margin grows; it goes to 0 when
            scores that leave no point misclassified are scaled up.
        convex: The cost is convex in the scores of a point, so that a solver reaches the least
            cost. A cost that is not convex says `convex=False`: the one trait that holds unless it
            is denied.
        piecewise: `linear` or `quadratic` where the cost consists of such pieces, otherwise empty.
            With either kind some weights attain the least cost, whatever the points.
    """

    tasks: tuple[str, ...] = COST_TASKS
    score_per_class: bool | None = None
    curvature: float | None = None
    quadratic: bool = False
    squares: bool = False
    shift_invariant: bool = False
    positively_homogeneous: bool = False
    separable: bool = False
    convex: bool = True
    piecewise: str = ""


def traits(cost: Any) -> Traits:
    """Return the declared traits of a cost, or the defaults."""
    declared_traits = getattr(cost, "traits", None)
    # A user's function may have an attribute of this name that is something else.
    return declared_traits if isinstance(declared_traits, Traits) else Traits()


def declare(
    *tasks: str, fused: Fused | None = None, **declared: Any
) -> Callable[[Formula], Formula]:
    """Declare what holds of a cost, and its derivative if it has one of its own.

    A cost with a fused derivative is an autograd primitive with that derivative; its attribute
    `formula` keeps the plain function.

    Args:
        *tasks: The tasks that the cost is defined for.
        fused: None without a fused derivative, for autograd's own. Otherwise
            `fused(scores, targets) -> (values (R,) float64, counts (R,) or None)` turns the
            block of scores `(R, C, p)` IN PLACE into the derivative of the cost with respect to
            them. The block is contiguous; that of a shift-invariant cost may also be a contiguous
            block `(C, R, p)` with its first two axes swapped. It returns the cost's sums over the
            points, added up in float64 whatever the scores' type, and the counts of
            `count_misclassified`; None for a cost of real targets alone.
        **declared: Other traits, by their names in `Traits`.

    Returns:
        The decorator of the plain function `(scores, targets) -> sums (R,)`.
    """

    def attach_traits(formula: Formula) -> Formula:
        """Return the cost with its traits, as a primitive if it has a fused derivative."""
        cost: Any = formula
        if fused is not None:
            cost = primitive(formula)
            cost.formula, cost.fused = formula, fused
            # For the scores alone: nothing is differentiated by the targets.
            defvjp(cost, lambda values, scores, targets: _pull_back(cost, scores, targets))
        cost.traits = Traits(tasks, **declared)
        return cost

    return attach_traits


def _pull_back(cost: Any, scores: Any, targets: Any) -> Callable[[Any], Any]:
    """Return the function that autograd's reverse pass calls for the scores `(R, C, p)`.

    That function takes the derivatives of autograd's output with respect to the sums, `(R,)`
    (`weight`), and returns those with respect to the scores, `(R, C, p)`.
    """
    if isbox(scores):  # for a second derivative autograd must see the formula
        return make_vjp(lambda s: cost.formula(s, targets), scores)[0]
    derivative = scores.copy()  # `fused` overwrites its argument
    cost.fused(derivative, targets)
    return lambda weight: anp.reshape(weight, (-1, 1, 1)) * derivative
