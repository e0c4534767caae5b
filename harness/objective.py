"""The cost of stacked linear models on one set of points: value, gradient, misclassifications."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from costs import count_misclassified

Array = NDArray[Any]
Cost = Callable[[Any, Any], Any]
BLOCK_BYTES = 1 << 20  # of points in a block: it is still in the cache for its second product


class Evaluation(NamedTuple):
    """What one pass over the points gives, for each of R runs.

    costs: `(R,)`, mean over points. gradient: `(R, C, N + 1)`, bias first, or None.
    misclassifications: `(R,)`, or None for real targets.
    """

    costs: NDArray[np.float64]
    gradient: Array | None
    misclassifications: NDArray[np.int64] | None


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
        bias = weights[:, :, 0].reshape(-1, 1)
        slopes = weights[:, :, 1:].reshape(runs * classes, -1)
        costs = np.zeros(runs)
        counts = np.zeros(runs, dtype=np.int64)
        gradient = np.zeros((runs * classes, weights.shape[2])) if with_gradient else None
        for block in self._blocks():
            scores = (slopes @ self.x[block].T + bias).reshape(runs, classes, -1)
            targets = self.targets[block]
            if self.classify:
                counts += count_misclassified(scores, targets)
            if gradient is None:
                costs += self.cost(scores, targets)
                continue
            pull_back, values = make_vjp(lambda s, y=targets: self.cost(s, y), scores)
            costs += values
            slope = pull_back(np.ones(runs, dtype=scores.dtype)).reshape(runs * classes, -1)
            gradient[:, 0] += slope.sum(axis=1)
            gradient[:, 1:] += slope @ self.x[block]
        costs /= len(self.x)
        costs += self.l2 * np.einsum("rcn,rcn->r", weights[:, :, 1:], weights[:, :, 1:])
        if gradient is not None:
            gradient = (gradient / len(self.x)).reshape(weights.shape)
            gradient[:, :, 1:] += 2 * self.l2 * weights[:, :, 1:]
            gradient = gradient.astype(weights.dtype, copy=False)
        return Evaluation(costs, gradient, counts if self.classify else None)

    def _blocks(self) -> Iterator[slice]:
        size = max(1, BLOCK_BYTES // (self.x.itemsize * self.x.shape[1]))
        for first in range(0, len(self.x), size):
            yield slice(first, first + size)
