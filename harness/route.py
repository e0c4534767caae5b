"""The way that a job's problem is descended: the one place that chooses it.

Without `engine.fast`, what is plain here is all that there is.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Rows
from normbench.datasets.values import UserError, one_of
from normbench.engine.fast import span, triangle
from normbench.engine.fast.blocked import Blocked, folded
from normbench.engine.problem import Cost, Linear, Objective, Problem
from normbench.engine.scheme.under import Under
from normbench.optimizers import Optimizer

Array = NDArray[Any]
ENGINES = ("fast", "plain")


def objective(engine: str, cost: Cost, points: Rows, *parts: Any) -> Objective:
    """Return the `Objective` of these parts, or its equal that is quicker: see `ENGINES`."""
    if one_of("engine", engine, ENGINES) == "fast":
        return replace(Blocked(cost, points, *parts), **folded(points))
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
    outward: Callable[[Array], Array]


@contextmanager
def quickest(
    train: Linear,
    test: Linear | None,
    raw: tuple[Rows, Rows],
    start: Array,
    optimizer: Optimizer,
    work: tuple[int, int],
) -> Iterator[Route]:
    """Yield quicker problems of the same costs, to rounding; meanwhile nobody reads their points.

    raw: the data set's own points of both parts, which other jobs use: no short cut writes there.
    work: runs, and iterations.
    """
    if isinstance(train, Blocked) and optimizer.rotation_equivariant:  # others amplify rounding
        train = train.with_fewer_rows()
    if isinstance(test, Blocked):
        test = test.with_fewer_rows()
    whole = isinstance(train, Blocked) and train.under is None
    if whole and span.pays(train, optimizer, start, *work):
        axes = span.span(train.points, start)
        inner = axes.test(test) if test else None
        yield Route(axes.train(train), inner, axes.inward(start), axes.outward)
        return
    with ExitStack() as stack:
        quick: list[Problem | None] = []
        for part, given in zip((train, test), raw):
            if isinstance(part, Blocked) and triangle.pays(part, *work):
                quick.append(triangle.triangle(part))
            elif isinstance(part, Blocked):
                both = isinstance(part.x, np.ndarray), isinstance(given, np.ndarray)
                own = both[0] and not (both[1] and np.may_share_memory(part.x, given))
                merged = stack.enter_context(part.merged(own))
                quick.append(merged.with_packed_points(*work, with_gradient=part is train))
            else:
                quick.append(part)
        yield Route(train if quick[0] is None else quick[0], quick[1], start, lambda found: found)
