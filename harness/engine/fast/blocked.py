"""The linear model's Problem in blocks of points: quicker, and the same to rounding.

The points go through the cache block by block, on several threads, and the cost's fused derivative
takes the place of the scores; equal columns of the points are multiplied once.
"""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from autograd.core import make_vjp

from normbench.costs import count_misclassified
from normbench.datasets.on_disk.points import Rows, rows_a_block
from normbench.datasets.values import SHARE, available
from normbench.engine.fast import packed, products, threads
from normbench.engine.fast.columns import different
from normbench.engine.fast.hessian import Folded, FoldedHessian, ReadHessian, read_effort
from normbench.engine.fast.packed import Packed
from normbench.engine.fast.reading import reading
from normbench.engine.hessian import Effort, Hessian
from normbench.engine.problem import (
    QUIET,
    Array,
    Counts,
    Evaluation,
    Objective,
    Workspace,
    cast_targets,
    linear_hessian,
)
from normbench.engine.scheme.under import Centred, Fold, Under
from normbench.normalizers.decomposition import Surrogate

# The points and scores of a block, in bytes. Measured at 784 features: smaller blocks slow the
# products down by more than a second trip to memory takes; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
# Scores times (features and what a score costs elementwise) from which a second thread pays.
PARALLEL_WORK = 20_000_000
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
ARRAYS = 8  # as large as a run's weights, that a pass over the points works in, threads counted
SMALL_STACK = 1 << 26  # bytes of them: more are compared with the memory that is free
MERGED_FROM = 1_000_000  # numbers in the points: below, a step is too short to gain
MERGED_LEFT = 0.95  # of the columns: where more are different, merging gains nothing


Part = tuple[int, slice]  # of the points: its number, and where they are


class _Sums(NamedTuple):
    """Sums over some of the points: costs `(R,)`, gradient `(k, N + 1)`, counts `(R,)`.

    The gradient is that of the k rows of weights that are multiplied.
    """

    costs: Array
    gradient: Array
    counts: Counts


class Factors(Protocol):
    """A block of points, as the two products of a step take it."""

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under weights `(k, N + 1)` to out `(k, p)`."""

    def gradient(self, derivative: Array, out: Array, scratch: Array, begun: bool) -> None:
        """Write a derivative `(k, p)` times `[1 x]` to out `(k, N + 1)`; begun: add it."""


@dataclass(frozen=True)
class Blocked(Objective):
    """An `Objective`, see there, evaluated in blocks of points.

    x: an array, or points that are read by blocks. columns: what the features are folded to in x:
    their different columns, see `merged`, or points before an affine scheme, see `folded`. fewer:
    the last class is not multiplied, see `with_fewer_rows`. under: the points whose features the
    weights are of, where they are not x. packed: the blocks of x, where they are packed.
    """

    columns: Folded | None = None
    fewer: bool = False
    under: Under | None = None
    packed: tuple[Packed, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of one model's weights, `(C, N + 1)`."""
        features = self.x.shape[1] if self.columns is None else self.columns.features
        return self.classes, features + 1

    @property
    def surrogate(self) -> Surrogate:
        """The points' mean and covariance: those of x, or of few rows where there are more."""
        return super().surrogate if self.under is None else self.under.surrogate

    @property
    def effort(self) -> Effort:
        """What `hessian` and what is asked of it take."""
        if isinstance(self.x, np.ndarray):
            return super().effort
        return read_effort(len(self.x), rows_a_block(self.x), *self.shape)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications at weights `(R, C, N + 1)`."""
        memory: Workspace = {} if workspace is None else workspace
        most = self._at_once(len(weights))
        if most < len(weights):
            return self._in_turns(weights, most, with_gradient, memory)
        folded = self._folded(weights)
        rows = self._rows(folded)
        sums = threads.over(
            lambda part: self._sum(rows, len(weights), part, with_gradient, memory),
            self._parts(len(weights)),
        )
        with QUIET():
            costs = np.sum([part.costs for part in sums], axis=0)
            counts = np.sum([part.counts for part in sums], axis=0) if self.classify else None
            gradient = self._gradient(weights, sums) if with_gradient else None
            return self.mean(weights, costs, gradient, counts)

    def _at_once(self, runs: int) -> int:
        """Return how many runs a pass over the points takes: all, where they fit in memory."""
        size = ARRAYS * self.x.itemsize * int(np.prod(self.shape))
        if runs * size <= SMALL_STACK:
            return runs
        return max(1, min(runs, int(SHARE * available()) // size))

    def _in_turns(
        self, weights: Array, most: int, with_gradient: bool, memory: Workspace
    ) -> Evaluation:
        """Return costs, gradient and counts of some runs after others, a pass for each."""
        parts = [
            self.evaluate(weights[first : first + most], with_gradient, memory)
            for first in range(0, len(weights), most)
        ]
        gradients = [part.gradient for part in parts if part.gradient is not None]
        counts = [part.misclassifications for part in parts if part.misclassifications is not None]
        return Evaluation(
            np.concatenate([part.costs for part in parts]),
            np.concatenate(gradients) if gradients else None,
            np.concatenate(counts) if counts else None,
        )

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`, as `Objective.hessian` does."""
        folded = self._folded(weights[None])[0]
        l2 = self.l2 if self.columns is None else 0.0
        made = linear_hessian if isinstance(self.x, np.ndarray) else ReadHessian
        inner: Hessian = made(self.cost, self.x, self.targets, folded, l2)
        return inner if self.columns is None else FoldedHessian(inner, self.columns, self.l2)

    @property
    def points(self) -> Rows:
        """The points (P, N) whose features the weights are of: x, or what x is folded from."""
        return self.x if self.under is None else self.under

    def on(self, points: Rows, l2: float | Array) -> "Blocked":
        """Return the same cost on other points, of no merged columns, with another penalty."""
        targets = cast_targets(self.targets, points.dtype)
        return replace(self, l2=l2, targets=targets, packed=(), **folded(points))

    @contextmanager
    def merged(self, own: bool) -> Iterator["Blocked"]:
        """Yield the same problem, to rounding, that multiplies equal columns of x once.

        It takes the weights of all features and gives their derivatives. Where few columns are
        equal it is this problem itself. own: nobody else uses x, so it is packed in its own memory:
        x must not be read until this context ends, and then it is as it was.
        """
        merges = isinstance(self.x, np.ndarray) and self.columns is None
        columns = different(self.x) if merges and self.x.size >= MERGED_FROM else None
        if columns is None or len(columns.first) > MERGED_LEFT * self.x.shape[1]:
            yield self
            return
        size = len(self.x) * len(columns.first)
        room = self.x.reshape(-1) if own else np.empty(size, self.x.dtype)
        merged = columns.pack(self.x, room)
        try:
            yield replace(self, x=merged, columns=columns)
        finally:
            if own:
                columns.unpack(merged, self.x)

    def _folded(self, weights: Array) -> Array:
        """Return the weights of the columns of x, from those of the features."""
        if self.columns is None:
            return weights
        with QUIET(), threads.few(0):  # the library's own would still wait for work in the pass
            return self.columns.fold(weights)

    def with_fewer_rows(self) -> "Blocked":
        """Return the same problem, to rounding, that multiplies C - 1 rows of weights a run.

        Of a smooth cost that a number added to all scores leaves as it is: the last class's weights
        are taken from the others', its scores are 0, and its derivative is minus the others' sum.
        The problem itself where the cost is another.
        """
        smooth = self.traits.shift_invariant and not self.traits.pieces
        return replace(self, fewer=smooth and hasattr(self.cost, "fused") and self.classes > 1)

    def with_packed_points(self, runs: int, steps: int, with_gradient: bool = True) -> "Blocked":
        """Return the same problem, to rounding, on points that are packed where that pays.

        runs, steps: as many as there will be, about. with_gradient: else for costs alone.
        """
        rows = runs * (self.classes - self.fewer)
        ours = isinstance(self.x, np.ndarray) and self.under is None and self._own_threads
        if not (ours and self.x.size >= MERGED_FROM):
            return self
        if not packed.pays(self.x, rows, steps, with_gradient):
            return self
        most = packed.most(runs * self.classes, self.x.shape[1], self.x.itemsize)
        spans = [span for part in self._parts(runs) for span in _spans(part, most)]
        return replace(self, packed=packed.blocks(self.x, spans, rows, with_gradient))

    def _rows(self, weights: Array) -> Array:
        """Return the rows of weights that are multiplied, `(k, N + 1)`; of fewer, by classes."""
        if self.fewer:
            by_class = weights.swapaxes(0, 1)
            with QUIET():
                weights = np.subtract(by_class[:-1], by_class[-1], order="C")
        return np.ascontiguousarray(weights, self.x.dtype).reshape(-1, weights.shape[2])

    def _gradient(self, weights: Array, sums: list[_Sums]) -> Array:
        """Return the gradient's sum over the points, from those of all parts."""
        _, classes, size = weights.shape
        rows = sums[0].gradient
        for part in sums[1:]:
            rows += part.gradient
        gradient = np.empty(weights.shape, weights.dtype)
        own = gradient[:, : classes - 1].swapaxes(0, 1) if self.fewer else gradient
        if self.columns is None:
            own[...] = rows.reshape(own.shape)
        else:
            with threads.few(0):
                slopes = self.columns.unfold(rows[:, 1:], rows[:, 0])
            own[..., 0] = rows[:, 0].reshape(own.shape[:2])
            own[..., 1:] = slopes.reshape(*own.shape[:2], size - 1)
        if self.fewer:
            np.sum(own, axis=0, out=gradient[:, -1])
            gradient[:, -1] *= -1
        return gradient

    def _sum(
        self,
        rows: Array,
        runs: int,
        part: Part,
        with_gradient: bool,
        memory: Workspace,
    ) -> _Sums:
        """Return the sums of costs, gradients and counts over a part of the points."""
        costs, counts = np.zeros(runs), np.zeros(runs, dtype=np.int64)
        buffer = self._buffer(memory, ("gradient", part[0]), 2 * rows.size)
        gradient, scratch = buffer[: 2 * rows.size].reshape(2, *rows.shape)
        begun = False
        with QUIET():  # a thread does not inherit the caller's setting
            for span, block, scores in self._scores(rows, runs, part, memory):
                values, wrong = self._derive(
                    self._by_run(scores, runs), self.targets[span], with_gradient
                )
                costs += values
                counts += wrong
                if with_gradient:
                    block.gradient(scores[: len(rows)], gradient, scratch, begun)
                    begun = True
        return _Sums(costs, gradient, counts)

    def _scores(
        self, rows: Array, runs: int, part: Part, memory: Workspace
    ) -> Iterator[tuple[slice, Factors, Array]]:
        """Yield each block of a part of the points: its span, factors, and scores `(R C, p)`.

        Both may be in buffers, which the next block takes.
        """
        count = len(rows)
        every = count + runs * self.fewer  # the last class's
        for span, block in self._factors(count, every, part, memory):
            size = every * (span.stop - span.start)
            scores = self._buffer(memory, ("scores", part[0]), size)[:size].reshape(every, -1)
            block.scores(rows, scores[:count])
            scores[count:] = 0
            yield span, block, scores

    def _factors(
        self, count: int, every: int, part: Part, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """Yield the blocks of a part of the points, for so many rows of weights and of scores."""
        number, span = part
        if self.packed:
            yield from (
                (block.span, block)
                for block in self.packed
                if span.start <= block.span.start < span.stop
            )
            return
        pieces = 0, 0
        if self._own_threads:
            scores = products.scores_piece(count, self.x.shape[1], self.x.itemsize)
            pieces = scores, products.slopes_piece(count, self.x.shape[1])
        most = BLOCK_BYTES // (self.x.itemsize * (every + self.x.shape[1]))
        for block, x in reading(self.x, _spans(part, most), memory, number):
            yield block, products.Plain(x, *pieces)

    def _by_run(self, scores: Array, runs: int) -> Array:
        """Return a block of scores `(R C, p)` as `(R, C, p)`, a view."""
        if self.fewer:
            return scores.reshape(-1, runs, scores.shape[1]).swapaxes(0, 1)
        return scores.reshape(runs, -1, scores.shape[1])

    def _parts(self, runs: int) -> list[Part]:
        """Return spans of the points, one a thread, numbered; one span where the work is small."""
        points = len(self.x)
        rows, features = runs * self.classes, self.x.shape[1] + 1
        pays = rows * points * (features + ELEMENTWISE) >= PARALLEL_WORK and self._own_threads
        count = min(threads.available(), points) if pays else 1
        ends = [points * number // count for number in range(count + 1)]
        if self.packed:  # whole blocks
            begins = [*(block.span.start for block in self.packed), points]
            ends = sorted({begins[bisect_left(begins, end)] for end in ends})
        return [(number, slice(*span)) for number, span in enumerate(pairwise(ends))]

    @property
    def _own_threads(self) -> bool:
        """Whether parts of the points go on threads of our own.

        Autograd traces in one place: a cost of the user's own keeps to one thread, but its products
        do not.
        """
        return hasattr(self.cost, "fused")

    def _buffer(self, memory: Workspace, key: tuple[str, int], size: int) -> Array:
        """Return memory of at least this size, kept from block to block and step to step."""
        found = memory.get(key)
        if found is None or len(found) < size or found.dtype != self.x.dtype:
            found = memory[key] = np.empty(size, dtype=self.x.dtype)
        return found

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


def _spans(part: Part, most: int) -> list[slice]:
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


def folded(points: Rows) -> dict[str, Any]:
    """Return what a problem on these points is made of: its x, columns and under.

    Points under a scheme whose map can be folded are read before it.
    """
    if not isinstance(points, Under):
        return {"x": points, "columns": None, "under": None}
    if points.fold is None:
        return {"x": points, "columns": None, "under": points}
    x, centre = points.x, points.fold.centre
    if np.any(centre) or x.dtype != points.dtype:
        x = Centred(x, centre, points.dtype)
    return {"x": x, "columns": Fold(points.fold), "under": points}
