"""The cost of stacked linear models on one set of points: value, derivatives, errors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from costs import count_misclassified

Array = NDArray[Any]
Counts = NDArray[np.int64]
Cost = Callable[[Any, Any], Any]
BLOCK_BYTES = 1 << 20  # of points and their scores in a block: still in the cache when used again


class Evaluation(NamedTuple):
    """What one pass over the points gives, for each of R runs.

    costs: `(R,)`, mean over points. gradient: `(R, C, N + 1)`, bias first, or None.
    misclassifications: `(R,)`, or None for real targets.
    """

    costs: NDArray[np.float64]
    gradient: Array | None
    misclassifications: Counts | None


@dataclass(frozen=True)
class Objective:
    """A cost on points x (P, N) with targets (P,): scores `s = w0 + x w`, the mean over points.

    `classify` says whether misclassified points are counted. `l2` adds `l2 |w|^2`, not on the
    bias.
    """

    cost: Cost
    x: Array
    targets: Array
    classify: bool
    l2: float = 0.0

    def evaluate(self, weights: Array, with_gradient: bool = True) -> Evaluation:
        """Return costs, gradient and misclassifications at weights `(R, C, N + 1)`."""
        runs, classes, _ = weights.shape
        costs = np.zeros(runs)
        counts = np.zeros(runs, dtype=np.int64)
        gradient = np.zeros((runs * classes, weights.shape[2])) if with_gradient else None
        product = np.empty((runs * classes, self.x.shape[1]), dtype=self.x.dtype)
        for block, scores in self._scores(weights):
            values, wrong = self._derive(scores, self.targets[block], with_gradient)
            costs += values
            counts += wrong
            if gradient is None:
                continue
            slope = scores.reshape(runs * classes, -1)
            gradient[:, 0] += slope.sum(axis=1)
            gradient[:, 1:] += np.matmul(slope, self.x[block], out=product)
        costs /= len(self.x)
        costs += self.l2 * np.einsum("rcn,rcn->r", weights[:, :, 1:], weights[:, :, 1:])
        if gradient is not None:
            gradient = (gradient / len(self.x)).reshape(weights.shape)
            gradient[:, :, 1:] += 2 * self.l2 * weights[:, :, 1:]
            gradient = gradient.astype(weights.dtype, copy=False)
        return Evaluation(costs, gradient, counts if self.classify else None)

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
        for block, scores in self._scores(weights):
            second = _second_derivatives(self.cost, scores, self.targets[block])
            x = np.insert(self.x[block], 0, 1, axis=1)
            for r, c, d in np.ndindex(runs, classes, classes):
                sums[r, c, :, d] += (x * second[r, c, d][:, None]).T @ x
        hessian = (sums / len(self.x)).reshape(runs, classes * size, classes * size)
        penalty = np.full((classes, size), 2 * self.l2)
        penalty[:, 0] = 0
        diagonal = np.arange(classes * size)
        hessian[:, diagonal, diagonal] += penalty.reshape(-1)
        return hessian

    def _scores(self, weights: Array) -> Iterator[tuple[slice, Array]]:
        """Yield each block of points with its scores `(R, C, p)`, in one buffer for all."""
        runs, classes, _ = weights.shape
        bias = weights[:, :, 0].reshape(-1, 1)
        slopes = np.ascontiguousarray(weights[:, :, 1:]).reshape(runs * classes, -1)
        size = self._block_size(runs * classes)
        buffer = np.empty(runs * classes * size, dtype=self.x.dtype)
        for first in range(0, len(self.x), size):
            block = slice(first, min(first + size, len(self.x)))
            scores = buffer[: runs * classes * (block.stop - first)].reshape(runs * classes, -1)
            np.matmul(slopes, self.x[block].T, out=scores)
            scores += bias
            yield block, scores.reshape(runs, classes, -1)

    def _block_size(self, rows: int) -> int:
        width = rows + self.x.shape[1]
        return min(len(self.x), max(1, BLOCK_BYTES // (self.x.itemsize * width)))

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
