"""The batches of a descent: which points each update sees, in an order that a seed draws."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError
from normbench.engine.settings import Settings
from normbench.optimizers import Optimizer
from normbench.settings import CYCLIC as CYCLIC
from normbench.settings import ONCE, REPLACEMENT, SHUFFLED

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Batches:
    """The batches of all passes over P points, equal for all runs, step sizes and schemes.

    An update sees `size` points; the last update of a pass sees those that are left. points: P.
    order: `shuffled` draws a permutation for each pass, `once` one for all passes; `cyclic` is the
    points' own order; `replacement` draws P points for each pass. The order of pass n is drawn by
    `numpy.random.default_rng([seed, n])`, so that it does not depend on the passes before. records:
    the records of a pass, at equal numbers of updates to within one. joins_last: the last batch of
    a pass is joined to the one before.
    """

    points: int
    size: int
    order: str = SHUFFLED
    seed: int = 0
    records: int = 1
    joins_last: bool = False

    @property
    def updates_per_pass(self) -> int:
        """The number of updates of a pass."""
        return -(-self.points // self.size) - self.joins_last  # the division is rounded up

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record; record 0 is the start."""
        passes, part = divmod(record, self.records)  # whole passes, and records of the next one
        return passes * self.updates_per_pass + part * self.updates_per_pass // self.records

    def points_of(self, update: int) -> Indices:
        """Return the indices of the points of an update, counted from 0 over all passes."""
        number, position = divmod(update, self.updates_per_pass)  # of the pass, and in the pass
        drawn = draw_order(self.points, self.order, self.seed, number)
        is_joined = self.joins_last and position == self.updates_per_pass - 1
        return drawn[position * self.size : None if is_joined else (position + 1) * self.size]


@lru_cache(maxsize=2)
def draw_order(count: int, order: str, seed: int, number: int) -> Indices:
    """Return the order of `count` points: indices, with repetitions under `replacement`.

    The array is cached and must not be changed.

    Args:
        count: The number of points.
        order: One of `settings.BATCH_ORDERS`.
        seed: The seed of the order.
        number: The number of the pass.

    Returns:
        Indices `(count,)`, from `numpy.random.default_rng([seed, number])`. Under `once` the
        number of the pass does not count; `cyclic` draws nothing.
    """
    if order == CYCLIC:
        return np.arange(count)
    rng = np.random.default_rng([seed, 0 if order == ONCE else number])
    drawn: Any = rng.integers(0, count, count) if order == REPLACEMENT else rng.permutation(count)
    return np.asarray(drawn, dtype=np.intp)


def join_single_point(batches: Batches) -> Batches:
    """Return batches whose last one of a pass is joined to the one before if it is one point."""
    return replace(batches, joins_last=batches.points % batches.size == 1)


def check_batch(settings: Settings, name: str, points: int, optimizer: Optimizer) -> None:
    """Check a batch against the points, the records and the optimizer.

    Args:
        settings: The engine's.
        name: The name of the data set, for the message.
        points: The number of training points P.
        optimizer: The step rule.

    Raises:
        UserError: The batch is larger than P, the optimizer needs all points at each step, or a
            pass has fewer updates than records.
    """
    batch = settings.batch
    if batch is None:
        return
    if batch > points:
        raise UserError(
            f"batch={batch}: {name} has {points} training points; choose at most {points}, "
            "or batch=null for all of them"
        )
    if optimizer.uses_objective:
        raise UserError(
            f"batch={batch}: the optimizer needs all points at each step, as line_search, newton "
            "and lbfgs do; use batch=null, or another one, such as optimizer=gradient_descent"
        )
    # Two records with the same number of updates would be equal.
    updates = Batches(points, batch).updates_per_pass
    if settings.records_per_pass > updates:
        raise UserError(
            f"records_per_pass={settings.records_per_pass}: a pass over {points} points with "
            f"batch={batch} has {updates} updates; choose at most {updates}"
        )
