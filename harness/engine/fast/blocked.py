"""The linear model's Problem in blocks of points: quicker, and the same to rounding.

The points go through the cache block by block, on several threads, and the cost's fused derivative
takes the place of the scores. This is the one loop over blocks. A `Wrapper` is a Problem that wraps
such a Problem: it changes how the points are read or how rows of weights are laid out, by methods
that the loop calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from autograd.core import make_vjp

from normbench.costs import count_misclassified
from normbench.datasets.on_disk.points import Rows, rows_per_block
from normbench.datasets.values import ARRAY_SHARE, available_bytes
from normbench.engine.fast import products, threads
from normbench.engine.fast.hessian import FoldedHessian, ReadHessian, WeightMap, read_effort
from normbench.engine.fast.packed import Packed
from normbench.engine.fast.reading import buffer_of, reading
from normbench.engine.hessian import Effort, Hessian, linear_effort
from normbench.engine.problem import (
    QUIET,
    Array,
    Cost,
    Counts,
    Evaluation,
    Objective,
    Workspace,
    cast_targets,
    linear_hessian,
)
from normbench.engine.scheme.under import Centred, Under
from normbench.normalizers.decomposition import Surrogate

# The points and scores of a block, in bytes. Measured at 784 features: smaller blocks slow the
# products down by more than a second trip to memory takes; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
# Scores times (features and what a score costs elementwise) from which a second thread pays.
PARALLEL_WORK = 20_000_000
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
ARRAYS = 8  # as large as a run's weights, that a pass over the points works in, threads counted
SMALL_STACK = 1 << 26  # bytes of them: more are compared with the memory that is free

Part = tuple[int, slice]  # of the points: its number, and where they are
Factors = products.Plain | Packed  # a block of points, as the two products of a step take it


class _Sums(NamedTuple):
    """Sums over some of the points: costs `(R,)`, gradient `(k, N + 1)`, counts `(R,)`.

    The gradient is that of the k rows of weights that are multiplied.
    """

    costs: Array
    gradient: Array
    counts: Counts


@dataclass(frozen=True)
class Blocked(Objective):
    """An `Objective`, see there, evaluated in blocks of points.

    x: an array, or points that are read by blocks.
    """

    @property
    def surrogate(self) -> Surrogate:
        """The points' mean and covariance: those of x, or of few rows where it is read."""
        return super().surrogate if isinstance(self.x, np.ndarray) else self.x.surrogate

    @property
    def effort(self) -> Effort:
        """The work of `hessian` and of what it returns."""
        x = self.multiplied
        if isinstance(x, np.ndarray):
            return linear_effort(len(x), *self.shape)
        return read_effort(len(x), rows_per_block(x), *self.shape)

    def on(self, points: Rows, l2: float | Array) -> "Blocked":
        """Return the same cost on other points, with another penalty, and without wrappers."""
        targets = cast_targets(self.targets, points.dtype)
        return on_points(self.cost, points, targets, self.classify, l2, self.classes)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`, as `Objective.hessian` does."""
        made = linear_hessian if isinstance(self.x, np.ndarray) else ReadHessian
        return made(self.cost, self.x, self.targets, weights, self.l2)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications at weights `(R, C, N + 1)`."""
        memory: Workspace = {} if workspace is None else workspace
        runs = len(weights)
        most = self._at_once(runs)
        if most < runs:
            return self._in_turns(weights, most, with_gradient, memory)
        rows = self.rows_in(weights)
        sums = threads.over(
            lambda part: self._sum(rows, weights.shape[:2], part, with_gradient, memory),
            self.parts(runs),
        )
        with QUIET():
            costs, total, counts = sums[0]
            for part in sums[1:]:
                costs += part.costs
                counts += part.counts
                if with_gradient:
                    total += part.gradient
            gradient = None
            if with_gradient:
                gradient = self.gradient_out(total, runs).reshape(weights.shape)
            return self.mean(weights, costs, gradient, counts if self.classify else None)

    # What a wrapper may change.

    @property
    def multiplied(self) -> Rows:
        """The points (P, M) that are multiplied."""
        return self.x

    @property
    def rows_a_run(self) -> int:
        """How many rows of weights are multiplied for each run."""
        return self.classes

    def rows_in(self, weights: Array) -> Array:
        """Return the rows that are multiplied, `(k, M + 1)`, of weights `(.., N + 1)`."""
        return np.ascontiguousarray(weights, self.x.dtype).reshape(-1, weights.shape[-1])

    def by_run(self, scores: Array, runs: int) -> Array:
        """Return a block of scores `(R C, p)` as `(R, C, p)`, a view; those of no row are 0."""
        return scores.reshape(runs, -1, scores.shape[1])

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """Return the gradient of all weights from that of the rows `(k, M + 1)`, maybe itself."""
        return rows

    def parts(self, runs: int) -> list[Part]:
        """Return spans of the points, one a thread, numbered; one span where the work is small."""
        points = len(self.x)
        rows, features = runs * self.classes, self.x.shape[1] + 1
        pays = rows * points * (features + ELEMENTWISE) >= PARALLEL_WORK and self.own_threads
        count = min(threads.available(), points) if pays else 1
        ends = [points * number // count for number in range(count + 1)]
        return [(number, slice(*span)) for number, span in enumerate(pairwise(ends))]

    def factors(
        self, count: int, every: int, part: Part, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """Yield the blocks of a part of the points, for so many rows of weights and of scores."""
        number, _ = part
        pieces = 0, 0
        if self.own_threads:
            scores = products.scores_piece(count, self.x.shape[1], self.x.itemsize)
            pieces = scores, products.slopes_piece(count, self.x.shape[1])
        most = BLOCK_BYTES // (self.x.itemsize * (every + self.x.shape[1]))
        for block, x in reading(self.x, spans_of(part, most), memory, number):
            yield block, products.Plain(x, *pieces)

    # The loop.

    def _at_once(self, runs: int) -> int:
        """Return how many runs a pass over the points takes: all, where they fit in memory."""
        size = ARRAYS * self.x.itemsize * prod(self.shape)
        if runs * size <= SMALL_STACK:
            return runs
        return max(1, min(runs, int(ARRAY_SHARE * available_bytes()) // size))

    def _in_turns(
        self, weights: Array, most: int, with_gradient: bool, memory: Workspace
    ) -> Evaluation:
        """Return costs, gradient and counts of some runs after others, a pass for each."""
        parts = [
            self.evaluate(weights[first : first + most], with_gradient, memory)
            for first in range(0, len(weights), most)
        ]
        fields: Any = zip(*parts)
        stacks: list[Any] = [
            None if field[0] is None else np.concatenate(field) for field in fields
        ]
        return Evaluation(*stacks)

    def _sum(
        self,
        rows: Array,
        models: tuple[int, int],
        part: Part,
        with_gradient: bool,
        memory: Workspace,
    ) -> _Sums:
        """Return sums over a part of the points; models: runs and classes."""
        runs, count, every = models[0], len(rows), models[0] * models[1]
        costs, counts = np.zeros(runs), np.zeros(runs, dtype=np.int64)
        buffer = buffer_of(memory, ("gradient", part[0]), 2 * rows.size, rows.dtype)
        gradient, scratch = buffer.reshape(2, *rows.shape)
        begun = False
        with QUIET():  # a thread does not inherit the caller's setting
            for span, block in self.factors(count, every, part, memory):
                size = every * (span.stop - span.start)
                scores = buffer_of(memory, ("scores", part[0]), size, rows.dtype)
                scores = scores.reshape(every, -1)
                block.scores(rows, scores[:count])
                scores[count:] = 0
                values, wrong = self._derive(
                    self.by_run(scores, runs), self.targets[span], with_gradient
                )
                costs += values
                counts += wrong
                if with_gradient:
                    block.gradient(scores[:count], gradient, scratch, begun)
                    begun = True
        return _Sums(costs, gradient, counts)

    @property
    def own_threads(self) -> bool:
        """Whether parts of the points go on threads of our own.

        Autograd traces in one place: a cost of the user's own keeps to one thread, but its products
        do not.
        """
        return hasattr(self.cost, "fused")

    def _derive(
        self, scores: Array, targets: Array, with_gradient: bool
    ) -> tuple[Array, Counts | int]:
        """Turn scores into the cost's derivative in place; return sums and counts, each `(R,)`.

        Without a gradient, scores may keep any value.
        """
        fused = getattr(self.cost, "fused", None)
        if fused is not None:
            values, wrong = fused(scores, targets)
            return values, 0 if wrong is None else wrong
        counts = count_misclassified(scores, targets) if self.classify else 0
        if not with_gradient:
            return self.cost(scores, targets), counts
        pull_back, values = make_vjp(lambda s: self.cost(s, targets), scores)
        scores[...] = pull_back(np.ones(len(scores), dtype=scores.dtype))
        return values, counts


@dataclass(frozen=True, kw_only=True)
class Wrapper(Blocked):
    """A Problem that gives the numbers of another, to rounding, which its loop reads otherwise.

    inner: the Problem that it wraps, of which it knows no more than `Blocked`.
    """

    inner: Blocked

    @classmethod
    def around(cls, inner: Blocked, **changes: Any) -> Self:
        """Return this wrapper around a Problem, whose parts are its own but for the changes."""
        parts = {part.name: getattr(inner, part.name) for part in fields(Objective)}
        return cls(**(parts | changes), inner=inner)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`."""
        return self.inner.hessian(weights)

    @property
    def multiplied(self) -> Rows:
        """See `Blocked.multiplied`."""
        return self.inner.multiplied

    @property
    def rows_a_run(self) -> int:
        """See `Blocked.rows_a_run`."""
        return self.inner.rows_a_run

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        return self.inner.rows_in(weights)

    def by_run(self, scores: Array, runs: int) -> Array:
        """See `Blocked.by_run`."""
        return self.inner.by_run(scores, runs)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`."""
        return self.inner.gradient_out(rows, runs)

    def parts(self, runs: int) -> list[Part]:
        """See `Blocked.parts`."""
        return self.inner.parts(runs)

    def factors(
        self, count: int, every: int, part: Part, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """See `Blocked.factors`."""
        return self.inner.factors(count, every, part, memory)


@dataclass(frozen=True, kw_only=True)
class Folded(Wrapper):
    """Weights of the features of x as weights of the inner Problem's columns.

    inner: without a penalty, for that belongs to the features of x.
    """

    columns: WeightMap

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        with QUIET(), threads.few(0):  # the library's own would still wait for work in the pass
            folded = self.columns.fold(weights)
        return self.inner.rows_in(folded)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`."""
        gradient = self.inner.gradient_out(rows, runs)
        with threads.few(0):
            return self.columns.unfold(gradient)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`."""
        with QUIET(), threads.few(0):
            folded = self.columns.fold(weights)
        return FoldedHessian(self.inner.hessian(folded), self.columns, self.l2)


def on_points(cost: Cost, points: Rows, *parts: Any) -> Blocked:
    """Return the Problem on points; those under a scheme that can be folded are read before it.

    parts: targets and what follows them, as of `Objective`.
    """
    problem = Blocked(cost, points, *parts)
    if not isinstance(points, Under) or points.fold is None:
        return problem
    x, centre = points.x, points.fold.centre
    if np.any(centre) or x.dtype != points.dtype:
        x = Centred(x, centre, points.dtype)
    inner = replace(problem, x=x, l2=0.0)
    return Folded.around(inner, x=points, l2=problem.l2, columns=points.fold)


def spans_of(part: Part, most: int) -> list[slice]:
    """Return the spans of a part's blocks: as few as fit, of one size, at most so many points.

    Every other part begins with half a block: the threads are then at their short elementwise
    calls, which take turns with Python's lock, at different times.
    """
    number, span = part
    points = span.stop - span.start
    size = -(-points // -(-points // max(1, most)))
    first = span.start - (size // 2 if number % 2 else 0)
    ends = range(first + size, span.stop + size, size)
    return [slice(max(end - size, span.start), min(end, span.stop)) for end in ends]
