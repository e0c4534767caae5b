"""The two matrix products of a step: weights with points, and derivatives with points.

OpenBLAS copies both factors of a product into panels before it multiplies them. Its AVX-512 kernels
do not copy for products that count as small. With few rows of weights the copy of the points takes
as long as all other work: the points are then multiplied piece by piece, each piece a small
product. The bounds here were measured at 10 to 4,000 features and 2 to 288 rows of weights, in
descents of points that exceed every cache: beyond these bounds pieces are slower.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MAX_SMALL_PRODUCT = 800_000  # multiplications: larger products do not count as small
MAX_SMALL_SCORES = 1200  # and of weights with points: scores, at most
MAX_NARROW_FEATURES = 80  # features: of more, it takes longer to keep and sum what the pieces give
KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}  # those of AVX-512


class Plain(NamedTuple):
    """A block of points x `(p, N)`, unpacked, and the points of a piece for either product."""

    x: Array
    scores_piece_size: int
    slopes_piece_size: int

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under weights `(k, N + 1)` to out `(k, p)`."""
        scores(weights[:, 1:], self.x, out, self.scores_piece_size)
        out += weights[:, :1]

    def gradient(self, derivative: Array, out: Array, scratch: Array, has_begun: bool) -> None:
        """Write a derivative `(k, p)` times [1 x] to out `(k, N + 1)`, or add it."""
        target = scratch if has_begun else out
        np.matmul(derivative, np.ones(len(self.x), self.x.dtype), out=target[:, 0])
        slopes(derivative, self.x, target[:, 1:], self.slopes_piece_size)
        if has_begun:
            out += scratch


def scores_piece_size(rows: int, features: int, itemsize: int) -> int:
    """Return the number of points of a piece for `scores`; 0 where one product is quicker.

    rows: of weights. features: N. itemsize: the bytes of a number. The bounds are measured ones.
    """
    max_rows = 16 if itemsize > 4 else 32
    if not (1 < rows <= max_rows and features >= 64 and _has_small_kernels()):
        return 0  # one row is a product with a vector
    points = min(MAX_SMALL_PRODUCT // (rows * features), MAX_SMALL_SCORES // rows)
    return points if points >= 6 else 0


def slopes_piece_size(rows: int, features: int) -> int:
    """Return the number of points of a piece for `slopes`; 0 where one product is quicker.

    rows: of derivatives. features: N. The bounds are measured ones.
    """
    if not (
        rows > 1
        and rows * features >= 250
        and features <= MAX_NARROW_FEATURES
        and _has_small_kernels()
    ):
        return 0
    points = MAX_SMALL_PRODUCT // (rows * features)
    return points if points >= max(50, rows) else 0


def scores(weights: Array, x: Array, out: Array, points: int = 0) -> None:
    """Write to out `(rows, p)` the products of weights `(rows, N)` with x `(p, N)`.

    points: how many a piece has; 0 for one product. Those behind the last whole piece are
    multiplied by themselves.
    """
    piece_points = _points_in_pieces(x, points)
    if piece_points:
        np.matmul(
            weights,
            _split_points(x, piece_points, points).swapaxes(1, 2),
            out=_split_scores(out, piece_points, points),
        )
    if piece_points < len(x):
        np.matmul(weights, x[piece_points:].T, out=out[:, piece_points:])


def slopes(derivative: Array, x: Array, out: Array, points: int = 0) -> Array:
    """Write to out `(rows, N)` the products of a derivative `(rows, p)` with x `(p, N)`; return it.

    points: see `scores`.
    """
    piece_points = _points_in_pieces(x, points)
    if piece_points == 0:
        return np.matmul(derivative, x, out=out)
    piece_products = np.matmul(
        _split_scores(derivative, piece_points, points), _split_points(x, piece_points, points)
    )
    np.sum(piece_products, axis=0, out=out)
    if piece_points < len(x):
        out += derivative[:, piece_points:] @ x[piece_points:]
    return out


def _points_in_pieces(x: Array, points: int) -> int:
    """Return how many points of x whole pieces hold together; points: of one piece, 0 for none."""
    return len(x) // points * points if points else 0


def _split_points(x: Array, piece_points: int, points: int) -> Array:
    """Return the first `piece_points` of points `(p, N)` as `(pieces, points, N)`, a view."""
    return x[:piece_points].reshape(-1, points, x.shape[1])


def _split_scores(scores: Array, piece_points: int, points: int) -> Array:
    """Return scores `(rows, p)` of the same points as `(pieces, rows, points)`, a view."""
    return scores[:, :piece_points].reshape(len(scores), -1, points).swapaxes(0, 1)


@lru_cache(maxsize=1)
def _has_small_kernels() -> bool:
    """Return whether OpenBLAS runs kernels that multiply small factors without copies."""
    from threadpoolctl import threadpool_info

    return any(pool.get("architecture") in KERNELS for pool in threadpool_info())
