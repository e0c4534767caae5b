"""Choose the fastest equivalent implementation of a problem.

Without `engine.fast`, the plain implementations here are all that there is.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Rows
from normbench.datasets.values import UserError, check_choice
from normbench.engine.fast import span, triangle
from normbench.engine.fast.blocked import on_points
from normbench.engine.fast.wrappers import drop_last_class, merge, pack
from normbench.engine.problem import Cost, Linear, Objective, Problem
from normbench.engine.scheme.under import Under
from normbench.optimizers import Optimizer

Array = NDArray[Any]
ENGINES = ("fast", "plain")


def objective(engine: str, cost: Cost, points: Rows, *parts: Any) -> Objective:
    """Return the `Objective` of these parts, or its equal that is quicker: see `ENGINES`."""
    if check_choice("engine", engine, ENGINES) == "fast":
        return on_points(cost, points, *parts)
    if isinstance(points, Under):
        raise UserError("engine=plain: takes points that are in memory, and no fold; use fast")
    return Objective(cost, points, *parts)


class Route(NamedTuple):
    """Problems that are descended instead of others, and the same weights for both.

    start: `(A, *shape)`, of the problem that is descended. outward: from its weights to the others.
    """

    train: Problem
    test: Problem | None
    start: Array
    outward: Callable[[Array], Array] = lambda weights: weights


def quickest(
    engine: str,
    train: Problem,
    test: Problem | None,
    start: Array,
    optimizer: Optimizer,
    work: tuple[int, int],
) -> Route:
    """Return quicker problems of the same costs, to rounding; they leave all points as they are.

    work: runs, and iterations.
    """
    linear, other = train.linear, test.linear if test else None
    if engine == "plain" or linear is None or not train.full_batch:
        return Route(train, test, start)
    axes = None
    if isinstance(linear.points, np.ndarray) and span.pays_off(linear, optimizer, start, *work):
        axes = span.find_span(linear.points, start)
    if axes:
        linear, other = axes.train(linear), axes.test(other) if other else None
    # A rule that does not turn with the axes may amplify rounding.
    quick = _quick(linear, work, True, drops=optimizer.rotation_equivariant)
    quick_test = _quick(other, work, False, drops=True) if other else None
    if axes:
        return Route(quick, quick_test, axes.inward(start), axes.outward)
    return Route(quick, quick_test, start)


def _quick(problem: Linear, work: tuple[int, int], trains: bool, drops: bool) -> Problem:
    """Return the quickest Problem of these parts; drops: the last class need not be multiplied."""
    whole = on_points(
        *(problem.cost, problem.points, problem.targets),
        *(problem.classify, problem.l2, problem.shape[0], not trains),
    )
    if triangle.pays_off(whole, *work):
        return triangle.make_triangle(whole)
    merged = merge(whole)
    return pack(drop_last_class(merged) if drops else merged, *work, with_gradient=trains)
