"""The two matrix products of a step: weights with points, and derivatives with points.

OpenBLAS copies both factors of a product into panels before it multiplies them. Its AVX-512 kernels
leave that out for products that count as small. With few rows of weights the copy of the points
takes as long as everything else: the points are then multiplied piece by piece, and each piece is a
small product. The bounds here were measured at 10 to 4,000 features and 2 to 288 rows of weights,
in descents of points that no cache holds: beyond them pieces are slower.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALL = 800_000  # multiplications: larger products do not count as small
SCORES = 1200  # and of weights with points: scores, at most
NARROW = 80  # features: of more, it takes longer to keep and sum what the pieces give
KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}  # those of AVX-512


class Plain(NamedTuple):
    """A block of points x `(p, N)` as it lies; pieces of it for either product, see below."""

    x: Array
    scores_piece: int
    slopes_piece: int

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under weights `(k, N + 1)` to out `(k, p)`."""
        scores(weights[:, 1:], self.x, out, self.scores_piece)
        out += weights[:, :1]

    def gradient(self, derivative: Array, out: Array, scratch: Array, begun: bool) -> None:
        """Write the products of a derivative `(k, p)` with [1 x] to out `(k, N + 1)`."""
        into = scratch if begun else out
        np.matmul(derivative, np.ones(len(self.x), self.x.dtype), out=into[:, 0])
        slopes(derivative, self.x, into[:, 1:], self.slopes_piece)
        if begun:
            out += scratch


def scores_piece(rows: int, features: int, itemsize: int) -> int:
    """Return the points of a piece for `scores`, 0 where they are better multiplied all at once."""
    most = 16 if itemsize > 4 else 32
    if not (1 < rows <= most and features >= 64 and _takes_small()):
        return 0  # one row is a product with a vector
    points = min(SMALL // (rows * features), SCORES // rows)
    return points if points >= 6 else 0


def slopes_piece(rows: int, features: int) -> int:
    """Return the points of a piece for `slopes`, 0 where they are better multiplied all at once."""
    if not (rows > 1 and rows * features >= 250 and features <= NARROW and _takes_small()):
        return 0
    points = SMALL // (rows * features)
    return points if points >= max(50, rows) else 0


def scores(weights: Array, x: Array, out: Array, points: int = 0) -> None:
    """Write to out `(rows, p)` the products of weights `(rows, N)` with x `(p, N)`."""
    whole = _whole(x, points)
    if whole:
        np.matmul(
            weights, _pieces(x, whole, points).swapaxes(1, 2), out=_columns(out, whole, points)
        )
    if whole < len(x):
        np.matmul(weights, x[whole:].T, out=out[:, whole:])


def slopes(derivative: Array, x: Array, out: Array, points: int = 0) -> Array:
    """Return the products of a derivative `(rows, p)` with x `(p, N)`, in out `(rows, N)`."""
    whole = _whole(x, points)
    if whole == 0:
        return np.matmul(derivative, x, out=out)
    each = np.matmul(_columns(derivative, whole, points), _pieces(x, whole, points))
    np.sum(each, axis=0, out=out)
    if whole < len(x):
        out += derivative[:, whole:] @ x[whole:]
    return out


def _whole(x: Array, points: int) -> int:
    """Return the points that are in whole pieces."""
    return len(x) // points * points if points else 0


def _pieces(x: Array, whole: int, points: int) -> Array:
    return x[:whole].reshape(-1, points, x.shape[1])


def _columns(scores: Array, whole: int, points: int) -> Array:
    """Return scores `(rows, p)` as `(pieces, rows, points)`, a view."""
    return scores[:, :whole].reshape(len(scores), -1, points).swapaxes(0, 1)


@lru_cache(maxsize=1)
def _takes_small() -> bool:
    """Return whether OpenBLAS runs kernels that take small factors as they stand."""
    from threadpoolctl import threadpool_info

    return any(pool.get("architecture") in KERNELS for pool in threadpool_info())
