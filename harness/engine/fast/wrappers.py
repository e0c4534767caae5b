"""Problems that wrap a Problem in blocks, each with its rule for where it pays.

From the inside out: `merge` (equal columns are multiplied once), `blocked.on_points` (a scheme is
folded into the weights), `drop_last_class` (C - 1 rows of weights a run), `pack` (points are
packed once).
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from normbench.datasets.values import ARRAY_SHARE, available_bytes
from normbench.engine.fast import packed
from normbench.engine.fast.blocked import Blocked, Factors, Folded, Part, Wrapper, spans_of
from normbench.engine.fast.columns import different
from normbench.engine.fast.packed import Packed
from normbench.engine.problem import QUIET, Array, Workspace

WORTHWHILE = 1_000_000  # numbers in the points: below, a step is too short to gain
MERGED_LEFT = 0.95  # of the columns: where more are different, merging gains nothing


def merge(problem: Blocked) -> Blocked:
    """Return the Problem that multiplies equal columns once; itself where that gains nothing.

    The points that are multiplied are a copy, which must fit the free memory.
    """
    x = problem.x
    if not isinstance(x, np.ndarray) or x.size < WORTHWHILE:
        return problem
    columns = different(x)
    width = len(columns.first)
    too_large = x.itemsize * len(x) * width > ARRAY_SHARE * available_bytes()
    if width > MERGED_LEFT * x.shape[1] or too_large:
        return problem
    inner = replace(problem, x=x.take(columns.first, axis=1), l2=0.0)
    return Folded.around(inner, x=x, l2=problem.l2, columns=columns)


class WithoutLastClass(Wrapper):
    """Rows of weights of C - 1 classes, by classes: the last class's are taken from the others'.

    Its scores are 0, and its derivative is minus the sum of the others'.
    """

    @property
    def rows_a_run(self) -> int:
        """See `Blocked.rows_a_run`."""
        return self.inner.rows_a_run - 1

    def rows_in(self, weights: Array) -> Array:
        """See `Blocked.rows_in`."""
        by_class = weights.swapaxes(0, 1)
        with QUIET():
            return self.inner.rows_in(np.subtract(by_class[:-1], by_class[-1], order="C"))

    def by_run(self, scores: Array, runs: int) -> Array:
        """See `Blocked.by_run`."""
        return scores.reshape(-1, runs, scores.shape[1]).swapaxes(0, 1)

    def gradient_out(self, rows: Array, runs: int) -> Array:
        """See `Blocked.gradient_out`."""
        others = self.inner.gradient_out(rows, runs)
        others = others.reshape(-1, runs, others.shape[-1])
        gradient = np.empty((runs, len(others) + 1, others.shape[-1]), others.dtype)
        gradient[:, :-1] = others.swapaxes(0, 1)
        np.sum(others, axis=0, out=gradient[:, -1])
        gradient[:, -1] *= -1
        return gradient


def drop_last_class(problem: Blocked) -> Blocked:
    """Return the Problem that multiplies C - 1 rows of weights a run; itself under another cost.

    That is: of a smooth cost that a number added to all scores leaves as it is.
    """
    smooth = problem.traits.shift_invariant and not problem.traits.piecewise
    if smooth and problem.own_threads and problem.classes > 1:
        return WithoutLastClass.around(problem)
    return problem


@dataclass(frozen=True, kw_only=True)
class PackedPoints(Wrapper):
    """Points in blocks that are packed for their products."""

    blocks: tuple[Packed, ...]

    def parts(self, runs: int) -> list[Part]:
        """Return the inner Problem's parts, moved to where blocks begin."""
        begins = [*(block.span.start for block in self.blocks), len(self.targets)]
        ends = (span.stop for _, span in self.inner.parts(runs))
        moved = sorted({0, *(begins[bisect_left(begins, end)] for end in ends)})
        return [(number, slice(*span)) for number, span in enumerate(pairwise(moved))]

    def factors(
        self, count: int, every: int, part: Part, memory: Workspace
    ) -> Iterator[tuple[slice, Factors]]:
        """See `Blocked.factors`."""
        span = part[1]
        for block in self.blocks:
            if span.start <= block.span.start < span.stop:
                yield block.span, block


def pack(problem: Blocked, runs: int, steps: int, with_gradient: bool = True) -> Blocked:
    """Return the Problem on points that are packed; itself where that does not pay.

    runs, steps: as many as there will be, about. with_gradient: else for costs alone.
    """
    x, rows = problem.multiplied, runs * problem.rows_a_run
    # Whoever folds a scheme wants the memory.
    ours = isinstance(problem.points, np.ndarray) and problem.own_threads
    if not (ours and x.size >= WORTHWHILE and packed.pays(x, rows, steps, with_gradient)):
        return problem
    return with_packed_points(problem, runs, with_gradient)


def with_packed_points(problem: Blocked, runs: int, with_gradient: bool = True) -> PackedPoints:
    """Return the Problem on points that are packed."""
    x = problem.multiplied
    most = packed.most(runs * problem.classes, x.shape[1], x.itemsize)
    spans = [span for part in problem.parts(runs) for span in spans_of(part, most)]
    blocks = packed.blocks(x, spans, runs * problem.rows_a_run, with_gradient)
    return PackedPoints.around(problem, blocks=blocks)
