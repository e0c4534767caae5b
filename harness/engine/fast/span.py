"""Few points of many features in coordinates of their own: a step costs P^2 instead of P N.

The gradient is a sum of points, so a rule that turns with the axes never leaves the span of the
points and of the starts. With Q of orthonormal columns that span it, the scores of `x w` are those
of `(x Q) (Q'w)`, and lengths are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from normbench.engine.fast.reflections import Reflections, reflections
from normbench.engine.fast.triangle import FACTOR, moderate
from normbench.engine.problem import Array, Linear
from normbench.optimizers import Optimizer

NARROWER = 2  # times as many features as coordinates, at least
SLOWER = 400  # rows that add 1 to FACTOR; in all, measured: 3 at 200, 4 at 1,000, 8 at 2,000


@dataclass(frozen=True)
class Span:
    """Coordinates of weights: what orthonormal columns Q `(N, K)` say of them; points `(P, K)`."""

    axes: Reflections
    points: Array

    def train(self, whole: Linear) -> Linear:
        """Return the problem of the points that span this; the same costs of the same weights."""
        return whole.on(self.points, whole.l2)

    def test(self, whole: Linear) -> Linear:
        """Return the problem of other points; what of them lies beside Q meets no weights."""
        return whole.on(self.axes.of(whole.points), whole.l2)

    def inward(self, weights: Array) -> Array:
        """Return weights `(R, C, N + 1)` in these coordinates, `(R, C, K + 1)`."""
        return _turned(weights, self.axes.of, self.points.shape[1])

    def outward(self, weights: Array) -> Array:
        """Return weights of these coordinates as those of the features, `(R, C, N + 1)`."""
        return _turned(weights, self.axes.back, self.axes.features)


def pays(whole: Linear, optimizer: Optimizer, start: Array, runs: int, iterations: int) -> bool:
    """Return whether coordinates of their own are the same descent and take less.

    start: `(A, C, N + 1)`. The same: under a rule that turns with the axes and asks for nothing but
    gradients, with a penalty that does not tell features apart, in float64. Less: there are at
    least twice as many features, and what is made once, some `2 N K^2` operations, is fewer than
    what is saved of `4 P N R C` a step.
    """
    turns = optimizer.rotation_equivariant and not optimizer.uses_objective
    if not turns or np.ndim(whole.l2) or whole.points.dtype != np.float64:
        return False
    points, features = whole.points.shape
    count = points + len(_rows(start))
    made = (FACTOR + count / SLOWER) * 2 * features * count**2
    saved = 4.0 * points * (features - count) * runs * whole.shape[0] * iterations
    return NARROWER * count <= features and made < saved and moderate(whole.points, start)


def span(x: Array, start: Array) -> Span:
    """Return coordinates of the span of points (P, N) and of the starts `(A, C, N + 1)`."""
    axes, rows = reflections(x, _rows(start))
    return Span(axes, rows[: len(x)])


def _rows(start: Array) -> Array:
    """Return the starts' weights without biases, one row a score, without those that are zero."""
    rows = start[:, :, 1:].reshape(-1, start.shape[2] - 1)
    return rows[rows.any(axis=1)]


def _turned(weights: Array, turn: Callable[[Array], Array], size: int) -> Array:
    """Return weights, the biases as they are, the others turned to rows of this size.

    Rows of zeros stay zeros.
    """
    rows = weights.reshape(-1, weights.shape[2])
    made = np.zeros((len(rows), 1 + size))
    made[:, 0] = rows[:, 0]
    some = rows[:, 1:].any(axis=1)
    if some.any():
        made[some, 1:] = turn(rows[some, 1:])
    return made.reshape(*weights.shape[:2], -1)
