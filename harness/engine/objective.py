"""The cost of stacked linear models on one set of points: value, derivatives, errors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.costs import count_misclassified
from normbench.engine.fast import products, threads
from normbench.engine.fast.columns import Columns, different

Array = NDArray[Any]
Counts = NDArray[np.int64]
Cost = Callable[[Any, Any], Any]
# Of points and their scores in a block. Measured on 784 features: smaller blocks cost the products
# more than a second trip to memory does; larger ones gain nothing.
BLOCK_BYTES = 1 << 23
# Scores times (features and what a score costs elementwise) from which a second thread pays.
PARALLEL_WORK = 2_000_000
QUIET = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")  # diverging runs
ELEMENTWISE = 50  # a score's elementwise work, in multiplications of its product
MERGED_FROM = 1_000_000  # numbers in the points: below, a step is too short to gain
MERGED_LEFT = 0.95  # of the columns: where more are different, merging gains nothing


class Evaluation(NamedTuple):
    """What one pass over the points gives, for each of R runs.

    costs: `(R,)`, mean over points. gradient: `(R, C, N + 1)`, bias first, or None.
    misclassifications: `(R,)`, or None for real targets.
    """

    costs: NDArray[np.float64]
    gradient: Array | None
    misclassifications: Counts | None


class _Sums(NamedTuple):
    """Sums over some of the points: costs `(R,)`, bias `(R C,)`, slopes `(R C, N)`, counts `(R,)`.

    bias and slopes are the gradient's.
    """

    costs: Array
    bias: Array
    slopes: Array
    counts: Counts


@dataclass(frozen=True)
class Objective:
    """A cost on points x (P, N) with targets (P,): scores `s = w0 + x w`, the mean over points.

    `classify` says whether misclassified points are counted. `l2` adds `l2 |w|^2`, not on the
    bias. `columns`: x holds only the different ones of the features' columns, see `merged`.
    """

    cost: Cost
    x: Array
    targets: Array
    classify: bool
    l2: float = 0.0
    columns: Columns | None = None
    _buffers: dict[int, Array] = field(default_factory=dict, repr=False, compare=False)

    def evaluate(self, weights: Array, with_gradient: bool = True) -> Evaluation:
        """Return costs, gradient and misclassifications at weights `(R, C, N + 1)`."""
        folded = self._folded(weights)
        sums = threads.over(
            lambda part: self._sum(folded, part, with_gradient), self._parts(folded)
        )
        with QUIET():
            return self._mean(weights, sums, with_gradient)

    @contextmanager
    def merged(self, own: bool) -> Iterator["Objective"]:
        """Yield the same objective, to rounding, that multiplies equal columns of x once.

        It takes the weights of all features and gives their derivatives; it is this one where
        few columns are equal. own: x is nobody else's, and is packed in its own memory; while
        this is open x is then not to be read, and afterwards it is as it was.
        """
        columns = different(self.x) if self.x.size >= MERGED_FROM else None
        if columns is None or len(columns.first) > MERGED_LEFT * self.x.shape[1]:
            yield self
            return
        size = len(self.x) * len(columns.first)
        packed = columns.pack(self.x, self.x.reshape(-1) if own else np.empty(size, self.x.dtype))
        try:
            yield replace(self, x=packed, columns=columns)
        finally:
            if own:
                columns.unpack(packed, self.x)

    def _folded(self, weights: Array) -> Array:
        """Return the weights of the columns of x, from those of the features."""
        if self.columns is None:
            return weights
        with QUIET():
            return self.columns.fold(weights)

    def _mean(self, weights: Array, sums: list["_Sums"], with_gradient: bool) -> Evaluation:
        """Return the mean over points of the sums of all parts, and the penalty added."""
        slopes, points = weights[:, :, 1:], len(self.x)
        costs = np.sum([part.costs for part in sums], axis=0) / points
        if self.l2:  # zero times a square that overflows is no number
            costs += self.l2 * np.einsum("rcn,rcn->r", slopes, slopes)
        counts = np.sum([part.counts for part in sums], axis=0) if self.classify else None
        if not with_gradient:
            return Evaluation(costs, None, counts)
        gradient = np.empty(weights.shape, weights.dtype)
        rows = gradient.reshape(-1, weights.shape[2])
        rows[:, 0] = np.sum([part.bias for part in sums], axis=0)
        slopes_sum = np.sum([part.slopes for part in sums], axis=0)
        rows[:, 1:] = slopes_sum if self.columns is None else self.columns.unfold(slopes_sum)
        gradient /= points
        if self.l2:
            gradient[:, :, 1:] += 2 * self.l2 * slopes
        return Evaluation(costs, gradient, counts)

    def costs(self, weights: Array) -> NDArray[np.float64]:
        """Return the costs `(R,)` at weights `(R, C, N + 1)`."""
        return self.evaluate(weights, with_gradient=False).costs

    def hessian(self, weights: Array) -> NDArray[np.float64]:
        """Return the second derivatives `(R, D, D)` at weights `(R, C, N + 1)`, D = C (N + 1).

        Rows and columns run over classes, and within a class over the bias and the N features.
        A cost is a sum over points, so that C products of its second derivative with the scores
        of a whole block give all `(R, C, C, p)` entries `h`, and the Hessian is the mean over
        points of `h_cd [1 x][1 x]'`, and `2 l2` on the diagonal, not on the biases.
        """
        runs, classes, size = weights.shape
        sums = np.zeros((runs, classes, size, classes, size))
        for block, scores in self._scores(self._folded(weights)):
            second = _second_derivatives(self.cost, scores, self.targets[block])
            x = self.x[block] if self.columns is None else self.columns.unfold(self.x[block])
            x = np.insert(x, 0, 1, axis=1)
            for r, c, d in np.ndindex(runs, classes, classes):
                sums[r, c, :, d] += (x * second[r, c, d][:, None]).T @ x
        hessian = (sums / len(self.x)).reshape(runs, classes * size, classes * size)
        penalty = np.full((classes, size), 2 * self.l2)
        penalty[:, 0] = 0
        diagonal = np.arange(classes * size)
        hessian[:, diagonal, diagonal] += penalty.reshape(-1)
        return hessian

    def _sum(self, weights: Array, part: tuple[int, slice], with_gradient: bool) -> "_Sums":
        """Return the sums of costs, gradients and counts over a part of the points."""
        runs, classes, size = weights.shape
        costs, counts = np.zeros(runs), np.zeros(runs, dtype=np.int64)
        bias = np.zeros(runs * classes)
        slopes, product = np.zeros((2, runs * classes, size - 1), dtype=self.x.dtype)
        ones = np.ones(part[1].stop - part[1].start, dtype=self.x.dtype)
        with QUIET():  # a thread does not inherit the caller's setting
            for block, scores in self._scores(weights, part):
                values, wrong = self._derive(scores, self.targets[block], with_gradient)
                costs += values
                counts += wrong
                if with_gradient:
                    slope = scores.reshape(runs * classes, -1)
                    bias += slope @ ones[: slope.shape[1]]  # half the time of a sum
                    slopes += products.slopes(
                        slope, self.x[block], product, self._piece(len(slope))
                    )
        return _Sums(costs, bias, slopes, counts)

    def _scores(
        self, weights: Array, part: tuple[int, slice] | None = None
    ) -> Iterator[tuple[slice, Array]]:
        """Yield each block of a part of the points, with its scores `(R, C, p)` in one buffer.

        Every other part begins with half a block: the threads are then at their short elementwise
        calls, which take turns with Python's lock, at different times.
        """
        number, span = part or (0, slice(0, len(self.x)))
        runs, classes, _ = weights.shape
        rows = runs * classes
        bias = weights[:, :, 0].reshape(-1, 1)
        slopes = np.ascontiguousarray(weights[:, :, 1:]).reshape(rows, -1)
        size = self._block_size(rows, span.stop - span.start)
        buffer = self._buffer(number, rows * size)
        first = span.start - (size // 2 if number % 2 else 0)
        for end in range(first + size, span.stop + size, size):
            block = slice(max(end - size, span.start), min(end, span.stop))
            scores = buffer[: rows * (block.stop - block.start)].reshape(rows, -1)
            products.scores(slopes, self.x[block], scores, self._piece(rows))
            scores += bias
            yield block, scores.reshape(runs, classes, -1)

    def _parts(self, weights: Array) -> list[tuple[int, slice]]:
        """Return spans of the points, one a thread, numbered; one span where the work is small."""
        points = len(self.x)
        work = weights.shape[0] * weights.shape[1] * points * (weights.shape[2] + ELEMENTWISE)
        # Autograd traces in one place: a cost of the user's own keeps to one thread.
        pays = work >= PARALLEL_WORK and hasattr(self.cost, "fused")
        count = min(threads.available(), points) if pays else 1
        ends = [points * number // count for number in range(count + 1)]
        return [(number, slice(ends[number], ends[number + 1])) for number in range(count)]

    def _piece(self, rows: int) -> int:
        """Return the points that are multiplied at a time; 0 for all of a block.

        A cost of the user's own keeps to one thread, but its products do not.
        """
        return products.piece(rows, self.x.shape[1]) if hasattr(self.cost, "fused") else 0

    def _buffer(self, number: int, size: int) -> Array:
        """Return the memory of a part's scores, kept from block to block and step to step."""
        found = self._buffers.get(number)
        if found is None or len(found) < size:
            found = self._buffers[number] = np.empty(size, dtype=self.x.dtype)
        return found

    def _block_size(self, rows: int, points: int) -> int:
        """Return the points of a block: as many blocks as there must be, of one size."""
        most = max(1, BLOCK_BYTES // (self.x.itemsize * (rows + self.x.shape[1])))
        return -(-points // -(-points // most))

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


def _second_derivatives(cost: Cost, scores: Array, targets: Array) -> Array:
    """Return `d2 cost / ds_c ds_d` of every run and point, `(R, C, C, p)`."""
    once = np.ones(len(scores), dtype=scores.dtype)

    def derivative(s: Any) -> Any:
        # The zero keeps a derivative that is constant a function of s: autograd warns otherwise.
        return make_vjp(lambda t: cost(t, targets), s)[0](once) + 0 * s

    pull_back, _ = make_vjp(derivative, scores)
    rows = np.eye(scores.shape[1], dtype=scores.dtype)
    return np.stack(
        [pull_back(np.broadcast_to(row[:, None], scores.shape)) for row in rows], axis=1
    )
