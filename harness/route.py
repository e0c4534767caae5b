"""Choose the fastest equivalent implementation of a problem; `engine.fast` has the candidates."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.engine.fast import span, triangle
from normbench.engine.fast.blocked import on_points
from normbench.engine.fast.wrappers import drop_last_class, merge
from normbench.engine.problem import Linear, Problem
from normbench.optimizers import Optimizer

Array = NDArray[Any]


class Route(NamedTuple):
    """Problems that are descended in place of equivalent ones.

    Attributes:
        train: The training problem that is descended.
        test: The test problem in the same coordinates.
        start: The starting weights of that problem, `(A, *shape)`.
        outward: Maps the weights of the descended problem to those of the original one.
    """

    train: Problem
    test: Problem | None
    start: Array
    outward: Callable[[Array], Array] = lambda weights: weights


def fastest_route(
    train: Problem,
    test: Problem | None,
    start: Array,
    optimizer: Optimizer,
    work: tuple[int, int],
) -> Route:
    """Return the fastest problems of the same costs, to rounding.

    Args:
        train: The training problem; one that is not linear, or has batches, is returned as it is.
        test: The test problem, if any.
        start: The starting weights of A starts, `(A, *shape)`.
        optimizer: The optimizer, which decides what is equivalent: some depend on the coordinates.
        work: The numbers of runs and of iterations.

    Returns:
        The problems to descend, with their start and the map of their weights.
    """
    linear, linear_test = train.linear, test.linear if test else None
    if linear is None or not train.full_batch:
        return Route(train, test, start)
    # Coordinates of the span of the points, in which there are fewer weights; None: unchanged.
    # They are computed from dense points in memory alone.
    axes = None
    if isinstance(linear.points, np.ndarray) and span.pays_off(linear, optimizer, start, *work):
        axes = span.find_span(linear.points, start)
    if axes:
        linear, linear_test = axes.train(linear), axes.test(linear_test) if linear_test else None
    # An optimizer that is not rotation equivariant may amplify the rounding of a dropped class; the
    # test problem, of which only costs are computed, may always drop it.
    quick = _fastest(linear, work, trains=True, drops=optimizer.rotation_equivariant)
    quick_test = _fastest(linear_test, work, trains=False, drops=True) if linear_test else None
    if axes:
        return Route(quick, quick_test, axes.inward(start), axes.outward)
    return Route(quick, quick_test, start)


def _fastest(problem: Linear, work: tuple[int, int], trains: bool, drops: bool) -> Problem:
    """Return the fastest problem that has the costs of a linear one.

    Args:
        problem: The linear problem.
        work: The numbers of runs and of iterations: the more, the more setup pays off.
        trains: Whether the problem is descended; otherwise its points are held out, and no gradient
            is computed.
        drops: Whether the weights of the last class may be left out, see `drop_last_class`.

    Returns:
        The problem; its costs are equal to rounding.
    """
    fast_objective = on_points(
        *(problem.cost, problem.points, problem.targets),
        *(problem.classify, problem.l2, problem.shape[0], not trains),
    )
    # A triangle has the least squares cost of all points in N + 2 rows or fewer.
    if triangle.pays_off(fast_objective, *work):
        return triangle.make_triangle(fast_objective)
    # Both return the problem that they are given where they do not apply or gain nothing.
    merged = merge(fast_objective)
    return drop_last_class(merged) if drops else merged
