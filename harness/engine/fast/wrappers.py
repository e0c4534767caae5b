"""Problems that wrap a Problem in blocks, each with its rule for when it pays off.

From the inside out: `merge` (equal columns are multiplied once), `drop_last_class` (C - 1 rows of
weights a run), `pack` (points are packed once).
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.values import ARRAY_SHARE, available_bytes
from normbench.engine.fast import packed
from normbench.engine.fast.blocked import Blocked, Factors, Folded, ThreadSpan, Wrapper, split_span
from normbench.engine.fast.columns import find_distinct_columns
from normbench.engine.fast.packed import Packed
from normbench.engine.problem import QUIET, Array, Workspace

MIN_POINT_ENTRIES = 1_000_000  # numbers in the points: below, a step is too short to gain
MAX_DISTINCT_SHARE = 0.95  # of the columns: where more are different, merging gains nothing


def merge(problem: Blocked) -> Blocked:
    """Return the Problem that multiplies equal columns once.

    The given problem is returned where that gains nothing (few entries, or columns that are nearly
    all distinct), where the points are not an array, and where the copy of the distinct columns
    does not fit the free memory.
    """
    x = problem.x
    if not is_in_memory(x) or x.size < MIN_POINT_ENTRIES:
        return problem
    columns = find_distinct_columns(x)
    width = len(columns.first)
    too_large = x.itemsize * len(x) * width > ARRAY_SHARE * available_bytes()
    if width > MAX_DISTINCT_SHARE * x.shape[1] or too_large:
        return problem
    # The penalty is on the weights of all features: `Folded` adds it.
    inner = replace(problem, x=x.take(columns.first, axis=1), l2=0.0)
    return Folded.around(inner, x=x, l2=problem.l2, columns=columns)


class WithoutLastClass(Wrapper):
    """A Problem that multiplies C - 1 rows of weights for each run, of a shift-invariant cost.

    The last class's weights are subtracted from those of the other classes, so that its scores are
    0. Its derivative is minus the sum of the others. The rows are ordered by class, then by run.
    """

    @property
    def rows_per_run(self) -> int:
        """See `Blocked.rows_per_run`."""
        return self.inner.rows_per_run - 1

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        by_class = weights.swapaxes(0, 1)  # so that the last class's scores are the last rows
        with QUIET():
            return self.inner.rows_in(np.subtract(by_class[:-1], by_class[-1], order="C"))

    def by_run(self, scores: Array, runs: int) -> Array:
        """See `Blocked.by_run`; the rows of scores are ordered by class, then by run."""
        return scores.reshape(-1, runs, scores.shape[1]).swapaxes(0, 1)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`; the rows are those of the other classes."""
        other_classes = self.inner.gradient_out(rows, runs)
        other_classes = other_classes.reshape(-1, runs, other_classes.shape[-1])
        gradient = np.empty(
            (runs, len(other_classes) + 1, other_classes.shape[-1]), other_classes.dtype
        )
        gradient[:, :-1] = other_classes.swapaxes(0, 1)
        np.sum(other_classes, axis=0, out=gradient[:, -1])
        gradient[:, -1] *= -1
        return gradient


def drop_last_class(problem: Blocked) -> Blocked:
    """Return the Problem that multiplies C - 1 rows of weights for each run.

    The problem itself is returned unless its cost is shift-invariant, smooth and fused, with a
    score for each class. Of a cost with kinks, rounding would choose the derivative where scores
    are equal.
    """
    # `is_thread_safe` tells that the cost has a fused derivative.
    smooth = problem.traits.shift_invariant and not problem.traits.piecewise
    if smooth and problem.is_thread_safe and problem.classes > 1:
        return WithoutLastClass.around(problem)
    return problem


@dataclass(frozen=True, kw_only=True)
class PackedPoints(Wrapper):
    """A Problem whose points are packed for their products.

    blocks: all points, packed, in their order.
    """

    blocks: tuple[Packed, ...]

    def thread_spans(self, runs: int) -> list[ThreadSpan]:
        """Return the inner Problem's spans, each end moved on to where the next block begins.

        Spans that become empty are left out.
        """
        # A block belongs to the thread whose span its first point is in.
        begins = [*(block.span.start for block in self.blocks), len(self.targets)]
        ends = (span.stop for _, span in self.inner.thread_spans(runs))
        block_ends = sorted({0, *(begins[bisect_left(begins, end)] for end in ends)})
        return [(number, slice(*span)) for number, span in enumerate(pairwise(block_ends))]

    def factors(
        self, count: int, score_rows: int, thread_span: ThreadSpan, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """See `Blocked.factors`."""
        span = thread_span[1]
        for block in self.blocks:
            if span.start <= block.span.start < span.stop:
                yield block.span, block


def pack(problem: Blocked, runs: int, steps: int, with_gradient: bool = True) -> Blocked:
    """Return the Problem on packed points; itself where that does not pay off.

    Args:
        problem: The problem in blocks of points (P, N).
        runs: The number of runs R, approximately.
        steps: The number of steps, approximately.
        with_gradient: False packs for costs alone.

    Returns:
        A problem with the same costs and gradients to rounding.
    """
    x, rows = problem.multiplied, runs * problem.rows_per_run
    # Of a folded scheme the points are no array: folding saves memory that copies would take.
    # `is_thread_safe` tells that the cost has a fused derivative. Without one, products are on the
    # library's own threads, and packed products would be on one.
    is_suitable = is_in_memory(problem.points) and problem.is_thread_safe
    if not (
        is_suitable
        and x.size >= MIN_POINT_ENTRIES
        and packed.pays_off(x, rows, steps, with_gradient)
    ):
        return problem
    return with_packed_points(problem, runs, with_gradient)


def with_packed_points(problem: Blocked, runs: int, with_gradient: bool = True) -> PackedPoints:
    """Return the Problem on packed points, whether that pays off or not.

    Args:
        problem: The problem in blocks of points (P, N) in memory.
        runs: The number of runs R, approximately.
        with_gradient: False packs for costs alone.

    Returns:
        A problem with the same costs and gradients to rounding.
    """
    x = problem.multiplied
    # A block of scores has rows for all classes, also for one without rows of weights.
    max_points = packed.points_per_block(runs * problem.classes, x.shape[1], x.itemsize)
    spans = [
        span
        for thread_span in problem.thread_spans(runs)
        for span in split_span(thread_span, max_points)
    ]
    blocks = packed.blocks(x, spans, runs * problem.rows_per_run, with_gradient)
    return PackedPoints.around(problem, blocks=blocks)
