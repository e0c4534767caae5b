"""Few points of many features in coordinates of their own: a step costs P^2 instead of P N.

The gradient is a sum of points, so a rule that turns with the axes never leaves the span of the
points and of the starts. With Q of orthonormal columns that span it, the scores of `x w` are those
of `(x Q) (Q'w)`, and lengths are the same. Q is not formed: of independent rows B, with
`B B' = T T'` by Cholesky, `Q' = T^-1 B`. That squares the rows' condition number, so rows must be
well apart or, as of centred points, depend on one another to rounding. Others are not turned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg

from normbench.engine.fast import threads
from normbench.engine.fast.triangle import moderate
from normbench.engine.problem import Array, Linear
from normbench.optimizers import Optimizer

NARROWER = 2  # times as many features as coordinates, at least
MADE = 1.5  # products of all rows with all: the coordinates, measured: 0.9 at 200 and 1,000 rows
APART = 1e-6  # of its squared length: what of an independent row lies beside the others, at least
ROUNDING = 1e-12  # of its length: what of a dependent row may lie beside the others


@dataclass(frozen=True)
class Span:
    """Coordinates of weights: what orthonormal columns Q `(N, K)` say of them.

    rows `(K, N)`, triangle `(K, K)`: B and T. points: `(P, K)`, the points in these coordinates.
    """

    rows: Array
    triangle: Array
    points: Array

    def train(self, whole: Linear) -> Linear:
        """Return the problem of the points that span this; the same costs of the same weights."""
        return whole.on(self.points, whole.l2)

    def test(self, whole: Linear) -> Linear:
        """Return the problem of other points; what of them lies beside Q meets no weights."""
        return whole.on(self._of(whole.points), whole.l2)

    def inward(self, weights: Array) -> Array:
        """Return weights `(R, C, N + 1)` in these coordinates, `(R, C, K + 1)`."""
        return _turned(weights, self._of, len(self.rows))

    def outward(self, weights: Array) -> Array:
        """Return weights of these coordinates as those of the features, `(R, C, N + 1)`."""
        return _turned(weights, self._back, self.rows.shape[1])

    def _of(self, rows: Array) -> Array:
        """Return `rows Q`, `(r, K)`, of rows `(r, N)`."""
        return np.ascontiguousarray(self._solve(self.rows @ rows.T, "N").T)

    def _back(self, rows: Array) -> Array:
        """Return `rows Q'`, `(r, N)`, of rows `(r, K)`."""
        return self._solve(rows.T, "T").T @ self.rows

    def _solve(self, right: Array, trans: str) -> Array:
        with threads.few(self.triangle.size):
            return np.asarray(
                linalg.solve_triangular(self.triangle, right, lower=True, trans=trans)
            )


def pays(whole: Linear, optimizer: Optimizer, start: Array, runs: int, iterations: int) -> bool:
    """Return whether coordinates of their own are the same descent and take less.

    start: `(A, C, N + 1)`. The same: under a rule that turns with the axes and asks for nothing but
    gradients, with a penalty that does not tell features apart, in float64. Less: there are at
    least twice as many features, and what is made once, some `3 N K^2` operations, is fewer than
    what is saved of `4 P N R C` a step.
    """
    turns = optimizer.rotation_equivariant and not optimizer.uses_objective
    if not turns or np.ndim(whole.l2) or whole.points.dtype != np.float64:
        return False
    points, features = whole.points.shape
    count = points + len(_rows(start))
    made = MADE * 2 * features * count**2
    saved = 4.0 * points * (features - count) * runs * whole.shape[0] * iterations
    return NARROWER * count <= features and made < saved and moderate(whole.points, start)


def span(x: Array, start: Array) -> Span | None:
    """Return coordinates of the span of points (P, N) and of the starts `(A, C, N + 1)`.

    None where some rows nearly depend on one another.
    """
    rows = np.concatenate([x, _rows(start)])
    # The library's own threads wait for one another at length where others use the cores.
    count = threads.available()
    ends = [rows.shape[1] * part // count for part in range(count + 1)]
    parts = [rows[:, slice(*both)] for both in pairwise(ends)]
    products = np.sum(threads.over(lambda part: part @ part.T, parts), axis=0)
    lengths = np.sqrt(products.diagonal())
    scale = np.where(lengths > 0, lengths, 1.0)
    products /= scale * scale[:, None]
    with threads.few(products.size):
        factor, order, rank, _ = linalg.lapack.dpstrf(products, lower=1, tol=APART)
    order = order - 1  # Fortran counts from 1
    coordinates = np.empty((len(rows), rank))
    coordinates[order] = np.tril(factor)[:, :rank]
    coordinates *= scale[:, None]
    independent, others = order[:rank], order[rank:]
    found = Span(rows[independent], coordinates[independent], coordinates[: len(x)])
    beside = np.linalg.norm(rows[others] - found._back(coordinates[others]), axis=1)
    return found if np.all(beside <= ROUNDING * lengths[others]) else None


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
