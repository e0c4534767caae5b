"""Few points of many features in coordinates of their own: a step costs P^2 instead of P N.

The gradient is a sum of points, so a rule that turns with the axes never leaves the span of the
points and of the starts. With Q of orthonormal columns that span it, the scores of `x w` are those
of `(x Q) (Q'w)`, and lengths are the same.
"""

from dataclasses import dataclass, replace

import numpy as np

from normbench.engine.problem import Array, Objective
from normbench.optimizers import Optimizer

NARROWER = 2  # times as many features as coordinates, at least
FACTOR = 3.0  # how much longer an operation of a decomposition takes than one of a product


@dataclass(frozen=True)
class Span:
    """Coordinates of weights; axes: `(N, K)`, orthonormal columns."""

    axes: Array

    def problem(self, whole: Objective) -> Objective:
        """Return the problem on points in these coordinates; the same costs of the same weights."""
        return replace(whole, x=whole.x @ self.axes)

    def inward(self, weights: Array) -> Array:
        """Return weights `(R, C, N + 1)` in these coordinates, `(R, C, K + 1)`."""
        return np.concatenate([weights[:, :, :1], weights[:, :, 1:] @ self.axes], axis=2)

    def outward(self, weights: Array) -> Array:
        """Return weights of these coordinates as those of the features, `(R, C, N + 1)`."""
        return np.concatenate([weights[:, :, :1], weights[:, :, 1:] @ self.axes.T], axis=2)


def pays(whole: Objective, optimizer: Optimizer, start: Array, runs: int, iterations: int) -> bool:
    """Return whether coordinates of their own are the same descent and take less.

    start: `(A, C, N + 1)`. The same: under a rule that turns with the axes and asks for nothing but
    gradients, with a penalty that does not tell features apart, in float64. Less: there are at
    least twice as many features, and what is made once, some `4 N K^2 + 2 P N K` operations, is
    fewer than what is saved of `4 P N R C` a step.
    """
    turns = optimizer.rotation_equivariant and not optimizer.uses_objective
    if not turns or np.ndim(whole.l2) or whole.x.dtype != np.float64:
        return False
    points, features = whole.x.shape
    count = points + len(_rows(start))
    made = FACTOR * 4 * features * count**2 + 2 * points * features * count
    saved = 4.0 * points * (features - count) * runs * whole.classes * iterations
    return NARROWER * count <= features and made < saved


def span(x: Array, start: Array) -> Span:
    """Return coordinates of the span of points (P, N) and of the starts `(A, C, N + 1)`."""
    return Span(np.linalg.qr(np.vstack([x, _rows(start)]).T)[0])


def _rows(start: Array) -> Array:
    """Return the starts' weights without biases, one row a score, without those that are zero."""
    rows = start[:, :, 1:].reshape(-1, start.shape[2] - 1)
    return rows[rows.any(axis=1)]
