"""The way that a job's problem is descended: the one place that chooses it.

Without `engine.fast`, what is plain here is all that there is.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import one_of
from normbench.engine.fast.blocked import Blocked
from normbench.engine.problem import Objective, Problem

Array = NDArray[Any]
ENGINES = ("fast", "plain")


def objective(engine: str, *parts: Any) -> Objective:
    """Return the `Objective` of these parts, or its equal that is quicker: see `ENGINES`."""
    return Objective(*parts) if one_of("engine", engine, ENGINES) == "plain" else Blocked(*parts)


@contextmanager
def quickest(
    train: Objective, test: Objective | None, raw: tuple[Array, Array]
) -> Iterator[tuple[Problem, Problem | None]]:
    """Yield quicker problems of the same costs, to rounding; meanwhile nobody reads their points.

    raw: the data set's own points of both parts, which other jobs use: no short cut writes there.
    """
    with ExitStack() as stack:
        quick = [
            stack.enter_context(part.merged(own=not np.may_share_memory(part.x, given)))
            if isinstance(part, Blocked)
            else part
            for part, given in zip((train, test), raw)
        ]
        yield train if quick[0] is None else quick[0], quick[1]
