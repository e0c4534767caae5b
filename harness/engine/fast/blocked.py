"""The linear model's Problem in blocks of points: quicker, and the same to rounding.

The points pass through the cache block by block, on several threads, and the cost's fused
derivative replaces the scores in place. This is the only loop over blocks. A `Wrapper` is a Problem
that wraps such a Problem: it changes how the points are read or how rows of weights are laid out,
by methods that the loop calls.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from autograd.core import make_vjp

from normbench.costs import count_misclassified
from normbench.datasets.on_disk.points import Points, give_back, is_in_memory, rows_per_block
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import ARRAY_SHARE, available_bytes
from normbench.engine.fast import products, threads
from normbench.engine.fast.columns import Columns
from normbench.engine.fast.hessian import FoldedHessian, ReadHessian, read_effort
from normbench.engine.fast.packed import Packed
from normbench.engine.fast.reading import get_buffer
from normbench.engine.fast.sparse import SparseBlock, SparseHessian
from normbench.engine.hessian import Effort, Hessian, linear_effort
from normbench.engine.problem import (
    QUIET,
    Array,
    Counts,
    Evaluation,
    Objective,
    Workspace,
    bound_rounding,
    cast_targets,
    linear_hessian,
    measure_sizes,
    zero_rounded_scores,
)

# The points and scores of a block, in bytes. Measured at 784 features: smaller blocks slow the
# products down by more than a second trip to memory takes; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
# Scores times (features plus the elementwise work of a score) from which a second thread pays.
PARALLEL_WORK = 20_000_000
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
# Arrays as large as a run's weights that a pass over the points works in, those of all threads.
ARRAYS_PER_RUN = 8
SMALL_STACK_BYTES = 1 << 26  # bytes of these arrays; more are compared with the free memory

ThreadSpan = tuple[int, slice]  # the number of a thread, and the span of its points
# A block of points, with the methods `scores` and `gradient`: the two products of a step.
Factors = products.Plain | Packed | SparseBlock


class _Sums(NamedTuple):
    """Sums over some of the points: costs `(R,)`, gradient `(k, N + 1)`, counts `(R,)`.

    The gradient is that of the k rows of weights that are multiplied.
    """

    costs: Array
    gradient: Array
    counts: Counts


# A generator that sums over a thread's points. After each block it yields the share of the points
# that is done, from 0 to 1; at the end it returns the sums.
Walk = Generator[float, None, _Sums]


@dataclass(frozen=True)
class Blocked(Objective):
    """An `Objective`, see there, evaluated in blocks of points.

    x: an array, or points that are read by blocks.
    """

    @property
    def effort(self) -> Effort:
        """The work of `hessian` and of its products."""
        x = self.multiplied
        if is_in_memory(x):
            return linear_effort(len(x), *self.shape)
        return read_effort(len(x), rows_per_block(x), *self.shape)

    def on(self, points: Points, l2: float | Array) -> "Blocked":
        """Return the same cost on other points, with another penalty, and without wrappers.

        Args:
            points: (P, M), in memory or read by blocks, with the same targets.
            l2: One number, one for each feature `(M,)`, or a matrix `(M, M)`.

        Returns:
            The problem, of weights `(C, M + 1)`.
        """
        targets = cast_targets(self.targets, points.dtype)
        fields_after_l2 = self.classes, self.held_out
        return Blocked(self.cost, points, targets, self.classify, l2, *fields_after_l2)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`, as `Objective.hessian` does."""
        arguments = self.cost, self.x, self.targets, weights, self.l2
        if is_in_memory(self.x):
            return linear_hessian(*arguments)
        return (SparseHessian if isinstance(self.x, SparsePoints) else ReadHessian)(*arguments)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications; see `Problem.evaluate`.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            with_gradient: Whether the gradient is computed.
            workspace: Memory to work in: scores of a block, and the threads' gradients.

        Returns:
            Costs `(R,)`, gradient `(R, C, N + 1)` or None, and counts `(R,)` or None. The sums of
            the threads are added in the order of their points.
        """
        memory: Workspace = {} if workspace is None else workspace
        runs_per_pass = self._runs_per_pass(len(weights))
        if runs_per_pass < len(weights):
            return self._evaluate_in_turns(weights, runs_per_pass, with_gradient, memory)
        walks = self._make_walks(weights, with_gradient, memory)
        return self._combine(weights, with_gradient, threads.map_parallel(_finish_walk, walks))

    # What a wrapper may change.

    @property
    def multiplied(self) -> Points:
        """The points (P, M) that weights are multiplied with; without a wrapper x itself."""
        return self.x

    @property
    def rows_per_run(self) -> int:
        """The number of rows of weights that are multiplied for each run."""
        return self.classes

    def rows_in(self, weights: Array) -> Array:
        """Return the rows that are multiplied, `(k, M + 1)`, from weights `(.., N + 1)`."""
        return np.ascontiguousarray(weights, self.x.dtype).reshape(-1, weights.shape[-1])

    def by_run(self, scores: Array, runs: int) -> Array:
        """Return a block of scores by run, as a view.

        Args:
            scores: The scores of p points, `(R C, p)`, in the order of the rows that are
                multiplied.
            runs: The number of runs R.

        Returns:
            `(R, C, p)`.
        """
        return scores.reshape(runs, -1, scores.shape[1])

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """Return the gradient of all weights from that of the rows that are multiplied.

        Args:
            rows: The gradient of the rows of `rows_in`, `(k, M + 1)`.
            runs: The number of runs R.

        Returns:
            As many numbers as weights `(R, C, N + 1)`, which the caller reshapes to that. Without a
            wrapper the rows are all weights, and their gradient is returned as it is.
        """
        return rows

    def thread_spans(self, runs: int) -> list[ThreadSpan]:
        """Return numbered spans of the points, one a thread; one span where work is small.

        runs: the number of runs R.
        """
        rows, features = runs * self.classes, self.x.shape[1] + 1
        work = rows * len(self.x) * (features + ELEMENTWISE)
        count = threads.count_worthwhile(work, PARALLEL_WORK) if self.is_thread_safe else 1
        return _split_points(len(self.x), count)

    def factors(
        self, count: int, score_rows: int, thread_span: ThreadSpan, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """Yield the blocks of a thread's points.

        Args:
            count: The number of rows of weights that are multiplied.
            score_rows: The number of rows of scores; larger than `count` where some scores stay 0.
            thread_span: The thread's number, and the span of its points.
            memory: Holds the buffer that blocks are read into.

        Yields:
            The span of a block among the points, and the block as the two products of a step take
            it. A block has about `BLOCK_BYTES` of points and scores, so that both stay in the
            cache.
        """
        itemsize = self.x.dtype.itemsize
        if isinstance(self.x, SparsePoints):
            for block in split_span(thread_span, BLOCK_BYTES // (itemsize * score_rows)):
                yield block, SparseBlock(self.x[block])
            return
        # Under any other cost the products are on the library's own threads, which take them whole.
        piece_sizes = 0, 0
        if self.is_thread_safe:
            scores = products.scores_piece_size(count, self.x.shape[1], itemsize)
            piece_sizes = scores, products.slopes_piece_size(count, self.x.shape[1])
        points_per_block = BLOCK_BYTES // (itemsize * (score_rows + self.x.shape[1]))
        for block in split_span(thread_span, points_per_block):
            x = self.x[block]
            yield block, products.Plain(x, *piece_sizes)
            give_back(x)

    # The loop.

    def _runs_per_pass(self, runs: int) -> int:
        """Return how many runs a pass over the points takes: all where they fit, at least one."""
        size = ARRAYS_PER_RUN * self.x.dtype.itemsize * prod(self.shape)
        if runs * size <= SMALL_STACK_BYTES:
            return runs
        return max(1, min(runs, int(ARRAY_SHARE * available_bytes()) // size))

    def _evaluate_in_turns(
        self, weights: Array, runs_per_pass: int, with_gradient: bool, memory: Workspace
    ) -> Evaluation:
        """Return costs, gradient and counts, one pass over the points for each group of runs.

        The arguments are those of `evaluate`, and the number of runs of a group.
        """
        evaluations = [
            self.evaluate(weights[first : first + runs_per_pass], with_gradient, memory)
            for first in range(0, len(weights), runs_per_pass)
        ]
        fields: Any = zip(*evaluations)  # the costs of all groups, their gradients, their counts
        stacks: list[Any] = [
            None if field[0] is None else np.concatenate(field) for field in fields
        ]
        return Evaluation(*stacks)

    def _make_walks(
        self,
        weights: Array,
        with_gradient: bool,
        memory: Workspace,
        spans: Sequence[ThreadSpan] | None = None,
    ) -> list["Walk"]:
        """Return one generator a thread, not begun, that sums over the thread's points.

        Args:
            weights: `(R, C, N + 1)`.
            with_gradient: Whether the gradient is summed.
            memory: The workspace, which holds each thread's arrays.
            spans: The threads' points; by default as many as are worthwhile.
        """
        rows = self.rows_in(weights)
        spans = self.thread_spans(len(weights)) if spans is None else spans
        # Of held-out points, rounding must not choose the class, see `zero_rounded_scores`.
        bounds = None
        if self.held_out and self.classify:
            if "sizes" not in memory:
                memory["sizes"] = measure_sizes(self.x)
            with QUIET():
                bounds = bound_rounding(weights, memory["sizes"])
        return [
            self._walk_points(rows, weights.shape[:2], thread_span, with_gradient, memory, bounds)
            for thread_span in spans
        ]

    def _combine(self, weights: Array, with_gradient: bool, sums: Sequence[_Sums]) -> Evaluation:
        """Return costs, gradient and counts from the threads' sums, the first of which is changed.

        Costs and gradient are means over the points plus the penalty at the weights.
        """
        with QUIET():
            costs, total, counts = sums[0]
            for sums_of_span in sums[1:]:
                costs += sums_of_span.costs
                counts += sums_of_span.counts
                if with_gradient:
                    total += sums_of_span.gradient
            gradient = None
            if with_gradient:
                gradient = self.gradient_out(total, len(weights)).reshape(weights.shape)
            return self.average_sums(weights, costs, gradient, counts if self.classify else None)

    def _walk_points(
        self,
        rows: Array,
        models: tuple[int, int],
        thread_span: ThreadSpan,
        with_gradient: bool,
        memory: Workspace,
        bounds: Array | None,
    ) -> "Walk":
        """Sum costs, gradient and counts over a thread's points, block after block.

        Args:
            rows: The k rows of weights that are multiplied, from `rows_in`.
            models: The numbers of runs R and of classes C.
            thread_span: The thread's number, and the span of its points.
            with_gradient: Whether the gradient is summed; otherwise that of the sums is undefined.
            memory: The workspace, which holds the thread's arrays.
            bounds: See `zero_rounded_scores`; None where all scores stay as they are.

        Yields:
            After each block, the share of the thread's points that is done, from 0 to 1.

        Returns:
            The sums.
        """
        runs, count, score_rows = models[0], len(rows), models[0] * models[1]
        costs, counts = np.zeros(runs), np.zeros(runs, dtype=np.int64)
        # Twice the gradient: the second is scratch memory of a block's product.
        buffer = get_buffer(memory, ("gradient", thread_span[0]), 2 * rows.size, rows.dtype)
        gradient, scratch = buffer.reshape(2, *rows.shape)
        has_begun = False
        first, last = thread_span[1].start, thread_span[1].stop
        for span, block in self.factors(count, score_rows, thread_span, memory):
            size = score_rows * (span.stop - span.start)
            scores = get_buffer(memory, ("scores", thread_span[0]), size, rows.dtype)
            scores = scores.reshape(score_rows, -1)
            block.scores(rows, scores[:count])
            scores[count:] = 0  # of a class without rows of weights, see `WithoutLastClass`
            scores_by_run = self.by_run(scores, runs)
            if bounds is not None:
                zero_rounded_scores(scores_by_run, bounds)
            # A view of `scores`, which from here on holds the derivative by the scores.
            values, misclassified = self._derive(scores_by_run, self.targets[span], with_gradient)
            costs += values
            counts += misclassified
            if with_gradient:
                block.gradient(scores[:count], gradient, scratch, has_begun)
                has_begun = True
            yield (span.stop - first) / (last - first)
        return _Sums(costs, gradient, counts)

    @property
    def is_thread_safe(self) -> bool:
        """Whether spans of points are evaluated on this program's threads.

        Autograd traces in one thread: a cost of the user's own stays on one thread, but its
        products do not.
        """
        return hasattr(self.cost, "fused")

    def _derive(
        self, scores: Array, targets: Array, with_gradient: bool
    ) -> tuple[Array, Counts | int]:
        """Return costs and misclassifications, sums over points; replace scores by the derivative.

        Args:
            scores: `(R, C, p)`. The derivative of the cost by them is written in their place;
                without a gradient they are undefined afterwards.
            targets: (p,).
            with_gradient: Whether the derivative is needed.

        Returns:
            Costs `(R,)`, and counts `(R,)`, or 0 where misclassifications are not counted.
        """
        fused = getattr(self.cost, "fused", None)
        if fused is not None:
            values, misclassified = fused(scores, targets)
            return values, 0 if misclassified is None else misclassified
        counts = count_misclassified(scores, targets) if self.classify else 0
        if not with_gradient:
            return self.cost(scores, targets), counts
        pull_back, values = make_vjp(lambda s: self.cost(s, targets), scores)
        scores[...] = pull_back(np.ones(len(scores), dtype=scores.dtype))
        return values, counts


def _split_points(points: int, count: int) -> list[ThreadSpan]:
    """Return so many numbered spans of equally many points, no more than there are points."""
    count = min(count, points)
    bounds = [points * number // count for number in range(count + 1)]
    return [(number, slice(*span)) for number, span in enumerate(pairwise(bounds))]


def _finish_walk(walk: Walk) -> _Sums:
    """Run a walk to its end; return its sums."""
    with QUIET():  # a thread does not inherit the caller's setting
        while True:
            try:
                next(walk)
            except StopIteration as end:
                sums: _Sums = end.value
                return sums


@dataclass(frozen=True, kw_only=True)
class Wrapper(Blocked):
    """A Problem with the costs of another, to rounding, that reads points or weights otherwise.

    inner: the Problem that it wraps, of which it uses the methods of `Blocked` alone. Each method
    passes on what that of the inner Problem returns; a subclass overrides those that it changes.
    """

    inner: Blocked

    @classmethod
    def around(cls, inner: Blocked, **changes: Any) -> Self:
        """Return this wrapper around a Problem.

        Args:
            inner: The Problem, whose fields of `Objective` the wrapper copies.
            **changes: Fields with other values, and the fields of the wrapper's own.
        """
        fields_of_inner = {
            field_of_objective.name: getattr(inner, field_of_objective.name)
            for field_of_objective in fields(Objective)
        }
        return cls(**(fields_of_inner | changes), inner=inner)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`."""
        return self.inner.hessian(weights)

    @property
    def multiplied(self) -> Points:
        """See `Blocked.multiplied`."""
        return self.inner.multiplied

    @property
    def rows_per_run(self) -> int:
        """See `Blocked.rows_per_run`."""
        return self.inner.rows_per_run

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        return self.inner.rows_in(weights)

    def by_run(self, scores: Array, runs: int) -> Array:
        """See `Blocked.by_run`."""
        return self.inner.by_run(scores, runs)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`."""
        return self.inner.gradient_out(rows, runs)

    def thread_spans(self, runs: int) -> list[ThreadSpan]:
        """See `Blocked.thread_spans`."""
        return self.inner.thread_spans(runs)

    def factors(
        self, count: int, score_rows: int, thread_span: ThreadSpan, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """See `Blocked.factors`."""
        return self.inner.factors(count, score_rows, thread_span, memory)


@dataclass(frozen=True, kw_only=True)
class Folded(Wrapper):
    """A Problem of the features of x, computed by an inner Problem of other columns.

    inner: without a penalty, since that belongs to the features of x. columns: maps weights of
    these features to weights of the inner Problem's columns, and derivatives back.
    """

    columns: Columns

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        # The library's own threads would still wait for work during the pass over the points.
        with QUIET(), threads.limit_threads(0):
            folded = self.columns.fold(weights)
        return self.inner.rows_in(folded)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`."""
        gradient = self.inner.gradient_out(rows, runs)
        with threads.limit_threads(0):
            return self.columns.unfold(gradient)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`."""
        with QUIET(), threads.limit_threads(0):
            folded = self.columns.fold(weights)
        return FoldedHessian(self.inner.hessian(folded), self.columns, self.l2)


def split_span(thread_span: ThreadSpan, max_points: int) -> list[slice]:
    """Return the spans of a thread's blocks: as few as fit, of one size.

    Every other thread begins with half a block: the threads are then at their short elementwise
    calls, which take turns with Python's lock, at different times.

    Args:
        thread_span: The thread's number, and the span of its points.
        max_points: The largest number of points of a block.

    Returns:
        The spans, in the order of the points.
    """
    number, span = thread_span
    points = span.stop - span.start
    # As few blocks as fit, of equal size; both divisions are rounded up.
    size = -(-points // -(-points // max(1, max_points)))
    first = span.start - (size // 2 if number % 2 else 0)
    # The first block may begin before the span, and the last one end behind it: both are cut.
    ends = range(first + size, span.stop + size, size)
    return [slice(max(end - size, span.start), min(end, span.stop)) for end in ends]
