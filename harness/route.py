"""Choose the fastest equivalent implementation of a problem; `engine.fast` has the candidates."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points, is_in_memory
from normbench.datasets.values import UserError, check_choice
from normbench.engine.batches import Batches
from normbench.engine.fast import span, triangle
from normbench.engine.fast.blocked import Blocked
from normbench.engine.fast.jax_network import JaxNetwork, check_traceable
from normbench.engine.fast.minibatch import ThreadedMinibatch
from normbench.engine.fast.threaded_network import ThreadedNetwork
from normbench.engine.fast.wrappers import drop_last_class, merge, pack
from normbench.engine.minibatch import Minibatch
from normbench.engine.network import Model, Network
from normbench.engine.problem import Cost, Linear, Objective, Problem
from normbench.models.formulas import PCA, ZCA
from normbench.optimizers import Optimizer
from normbench.settings import ENGINES

Array = NDArray[Any]
FAST, PLAIN_ENGINE, JAX = ENGINES


def build_objective(engine: str, cost: Cost, points: Points, *arguments: Any) -> Objective:
    """Return an objective, as a faster equivalent where the engine allows it.

    Args:
        engine: One of `ENGINES`.
        cost: The cost.
        points: The points (P, M) under the scheme.
        arguments: The remaining arguments of `Objective`, in order: targets, classify, l2, classes
            and held_out.

    Returns:
        The objective, or its faster equivalent.

    Raises:
        UserError: The engine is unknown, or cannot read these points.
    """
    if check_choice("engine", engine, ENGINES) == FAST:
        return Blocked(cost, points, *arguments)
    # The engine is plain: `check_engine` refuses jax for the linear model.
    if not is_in_memory(points):
        raise UserError("engine=plain: takes points that are in memory; use fast")
    return Objective(cost, points, *arguments)


def network(engine: str, problem: Network) -> Network:
    """Return the problem of a network, on several threads or compiled by JAX, as the engine says.

    Args:
        engine: One of `ENGINES`.
        problem: The problem, in the reference implementation.

    Returns:
        A problem of the same costs, to rounding.
    """
    equivalents = {FAST: ThreadedNetwork, PLAIN_ENGINE: Network, JAX: JaxNetwork}
    return equivalents[check_choice("engine", engine, ENGINES)].around(problem)


def check_engine(engine: str, model: Model | None, cost: Cost, scores: int) -> None:
    """Raise `UserError` for an engine that the model or cost lacks, or that is not installed.

    Args:
        engine: One of `ENGINES`.
        model: The model; None for the linear one.
        cost: The cost.
        scores: The number of scores of a point C.
    """
    if check_choice("engine", engine, ENGINES) != JAX:
        return
    if model is None:
        raise UserError("engine=jax: is for networks; choose model=mlp, or engine=fast")
    if model.normalize in (PCA, ZCA):
        raise UserError(
            f"engine=jax: has no model.normalize={model.normalize}, whose derivatives need care "
            "where eigenvalues are equal; choose newton, or engine=fast"
        )
    if find_spec("jax") is None:
        raise UserError(
            "engine=jax: needs the package jax; pip install 'normbench[jax]', or use engine=fast"
        )
    check_traceable(cost, scores)


def build_minibatch(engine: str, whole: Linear, batches: Batches) -> Minibatch:
    """Return the problem whose steps see batches, on several threads where the engine allows it.

    Args:
        engine: One of `ENGINES`.
        whole: The problem of all points.
        batches: The batches of these points.

    Returns:
        The problem: its gradient is of one batch, and its recorded costs are of all points.
    """
    return (Minibatch if engine == PLAIN_ENGINE else ThreadedMinibatch).around(whole, batches)


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
    engine: str,
    train: Problem,
    test: Problem | None,
    start: Array,
    optimizer: Optimizer,
    work: tuple[int, int],
) -> Route:
    """Return the fastest problems of the same costs, to rounding.

    Args:
        engine: One of `ENGINES`; `plain` returns the given problems.
        train: The training problem; one that is not linear, or has batches, is returned as it is.
        test: The test problem, if any.
        start: The starting weights of A starts, `(A, *shape)`.
        optimizer: The optimizer, which decides what is equivalent: some depend on the coordinates.
        work: The numbers of runs and of iterations.

    Returns:
        The problems to descend, with their start and the map of their weights.
    """
    linear, linear_test = train.linear, test.linear if test else None
    if engine == PLAIN_ENGINE or linear is None or not train.full_batch:
        return Route(train, test, start)
    # Coordinates of the span of the points, in which there are fewer weights; None: unchanged.
    # They are computed from dense points in memory alone.
    axes = None
    if is_in_memory(linear.points) and span.pays_off(linear, optimizer, start, *work):
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
    fast_objective = Blocked(
        *(problem.cost, problem.points, problem.targets),
        *(problem.classify, problem.l2, problem.shape[0], not trains),
    )
    # A triangle has the least squares cost of all points in N + 2 rows or fewer.
    if triangle.pays_off(fast_objective, *work):
        return triangle.make_triangle(fast_objective)
    # Each of these returns the problem that it is given where it does not apply or gains nothing.
    merged = merge(fast_objective)
    return pack(drop_last_class(merged) if drops else merged, *work, with_gradient=trains)
