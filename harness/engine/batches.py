"""The batches of a descent: which points each update sees, in an order that a seed draws."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import rows_per_block
from normbench.datasets.values import UserError
from normbench.engine.settings import Settings
from normbench.optimizers import Optimizer
from normbench.settings import CYCLIC as CYCLIC
from normbench.settings import ONCE, REPLACEMENT, SHUFFLED

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Batches:
    """The batches of all passes over P points, equal for all runs, step sizes and schemes.

    An update sees `size` points; the last update of a pass (in blocks: of the last block) sees
    those that are left. points: P. order: `shuffled` draws a permutation for each pass, `once` one
    for all passes; `cyclic` is the points' own order; `replacement` draws P points for each pass.
    The order of pass n is drawn by `numpy.random.default_rng([seed, n])`, so that it does not
    depend on the passes before. records: the records of a pass, at equal numbers of updates to
    within one. block: of points that are read from a disk, the number of batches of a block of
    consecutive points: the order is drawn of the blocks, and of the points within each; 0 for all
    points at once. joins_last: the last batch of a pass is joined to the one before; only without
    blocks.
    """

    points: int
    size: int
    order: str = SHUFFLED
    seed: int = 0
    records: int = 1
    block: int = 0
    joins_last: bool = False

    @property
    def updates_per_pass(self) -> int:
        """The number of updates of a pass."""
        return -(-self.points // self.size) - self.joins_last  # the division is rounded up

    @property
    def description(self) -> str:
        """The fields that determine the order, as a checkpoint holds them."""
        return f"{self.size} {self.order} {self.seed} {self.records} {self.block}"

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record; record 0 is the start."""
        passes, part = divmod(record, self.records)  # whole passes, and records of the next one
        return passes * self.updates_per_pass + part * self.updates_per_pass // self.records

    def points_of(self, update: int) -> Indices:
        """Return the indices of the points of an update, counted from 0 over all passes."""
        number, position = divmod(update, self.updates_per_pass)  # of the pass, and in the pass
        if self.block:
            return self._points_in_block(number, position)
        drawn = draw_order(self.points, self.order, self.seed, number)
        is_joined = self.joins_last and position == self.updates_per_pass - 1
        return drawn[position * self.size : None if is_joined else (position + 1) * self.size]

    def _points_in_block(self, number: int, position: int) -> Indices:
        """Return the points of the update at a position of a pass, all of one block."""
        blocks = -(-self.updates_per_pass // self.block)  # rounded up
        # Every block is visited once; `replacement` draws points within a block.
        order_of_blocks = SHUFFLED if self.order == REPLACEMENT else self.order
        visited = draw_order(blocks, order_of_blocks, self.seed, number)
        # Of each visited block, the number of its updates; and the position where the next begins.
        lengths = np.minimum(self.block, self.updates_per_pass - visited * self.block)
        ends = np.cumsum(lengths)
        visit = int(np.searchsorted(ends, position, side="right"))
        block = int(visited[visit])
        first_point = block * self.block * self.size
        count = min(self.block * self.size, self.points - first_point)
        drawn = draw_order(count, self.order, self.seed, number, block + 1)
        begin = (position - int(ends[visit] - lengths[visit])) * self.size
        return first_point + drawn[begin : begin + self.size]


@lru_cache(maxsize=2)
def draw_order(count: int, order: str, seed: int, *numbers: int) -> Indices:
    """Return the order of `count` points: indices, with repetitions under `replacement`.

    The array is cached and must not be changed.

    Args:
        count: The number of points, or of blocks.
        order: One of `settings.BATCH_ORDERS`.
        seed: The seed of the order.
        *numbers: The number of the pass and, where points are read by blocks, one more than the
            number of the block.

    Returns:
        Indices `(count,)`, from `numpy.random.default_rng([seed, *numbers])`. Under `once` the
        number of the pass does not count; `cyclic` draws nothing.
    """
    if order == CYCLIC:
        return np.arange(count)
    # Under `once` the number of the pass is replaced by 0.
    key = [seed, 0, *numbers[1:]] if order == ONCE else [seed, *numbers]
    rng = np.random.default_rng(key)
    drawn: Any = rng.integers(0, count, count) if order == REPLACEMENT else rng.permutation(count)
    return np.asarray(drawn, dtype=np.intp)


def batches_of(settings: Settings, points: Any) -> Batches | None:
    """Return the batches of a descent; None where a step sees all points.

    Args:
        settings: The engine's, with the size, order and seed of the batches.
        points: The points (P, N). A fold of cross-validation may have fewer than a batch: then all
            of them are one batch. Of points that are read from a disk, a block is read at once.
    """
    if settings.batch is None:
        return None
    size = min(settings.batch, points.shape[0])
    block = 0
    if isinstance(points, np.memmap) or not isinstance(points, np.ndarray):
        block = max(1, rows_per_block(points) // size)
    order = settings.batch_order, settings.batch_seed, settings.records_per_pass
    return Batches(points.shape[0], size, *order, block)


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
    if optimizer.needs_full_batch or optimizer.uses_objective:
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
