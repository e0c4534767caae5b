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
MAX_SMALL_SCORES = 1200  # scores of a small product of weights with points, at most
MAX_NARROW_FEATURES = 80  # features: with more, to keep and sum the pieces' products takes longer
KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}  # OpenBLAS's names of those of AVX-512


class Plain(NamedTuple):
    """A block of points x `(p, N)` as an array, with the piece sizes of the two products of a step.

    scores_piece_size, slopes_piece_size: see the functions of these names; 0 for one product.
    """

    x: Array
    scores_piece_size: int
    slopes_piece_size: int

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under k rows of weights `(k, N + 1)`, bias first, to out `(k, p)`."""
        multiply_points(weights[:, 1:], self.x, out, self.scores_piece_size)
        out += weights[:, :1]

    def gradient(self, derivative: Array, out: Array, scratch: Array, has_begun: bool) -> None:
        """Write, or add, a derivative times the points [1 x].

        Args:
            derivative: The derivative by the scores, `(k, p)`.
            out: `(k, N + 1)`.
            scratch: `(k, N + 1)`, overwritten where the product is added.
            has_begun: Whether the product is added to `out`; otherwise it replaces it.
        """
        target = scratch if has_begun else out
        np.matmul(derivative, np.ones(len(self.x), self.x.dtype), out=target[:, 0])
        multiply_derivative(derivative, self.x, target[:, 1:], self.slopes_piece_size)
        if has_begun:
            out += scratch


def scores_piece_size(rows: int, features: int, itemsize: int) -> int:
    """Return the number of points of a piece for `multiply_points`; 0 where one product is quicker.

    Pieces are quicker with few rows and many features. The bounds are measured ones.

    Args:
        rows: The number of rows of weights.
        features: The number of features N.
        itemsize: The bytes of a number.
    """
    max_rows = 16 if itemsize > 4 else 32
    if not (1 < rows <= max_rows and features >= 64 and _has_small_kernels()):
        return 0  # one row is a product with a vector
    points = min(MAX_SMALL_PRODUCT // (rows * features), MAX_SMALL_SCORES // rows)
    return points if points >= 6 else 0


def slopes_piece_size(rows: int, features: int) -> int:
    """Return the number of points of a piece for `multiply_derivative`; 0 for one product.

    Pieces are quicker with few features, and where a piece has many points. The bounds are
    measured ones.

    Args:
        rows: The number of rows of the derivative.
        features: The number of features N.
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


def multiply_points(weights: Array, x: Array, out: Array, piece_size: int = 0) -> None:
    """Write to out `(rows, p)` the product of weights `(rows, N)` with points x `(p, N)`.

    piece_size: the number of points of a piece; 0 for one product. Points after the last whole
    piece are a product of their own.
    """
    covered = _count_covered_points(x, piece_size)
    if covered:
        np.matmul(
            weights,
            _split_points(x, covered, piece_size).swapaxes(1, 2),
            out=_split_scores(out, covered, piece_size),
        )
    if covered < len(x):
        np.matmul(weights, x[covered:].T, out=out[:, covered:])


def multiply_derivative(derivative: Array, x: Array, out: Array, piece_size: int = 0) -> Array:
    """Write to out `(rows, N)` the product of a derivative `(rows, p)` with x `(p, N)`; return out.

    piece_size: see `multiply_points`. The products of the pieces are summed.
    """
    covered = _count_covered_points(x, piece_size)
    if covered == 0:
        return np.matmul(derivative, x, out=out)
    piece_products = np.matmul(
        _split_scores(derivative, covered, piece_size), _split_points(x, covered, piece_size)
    )
    np.sum(piece_products, axis=0, out=out)
    if covered < len(x):
        out += derivative[:, covered:] @ x[covered:]
    return out


def _count_covered_points(x: Array, piece_size: int) -> int:
    """Return the number of points of x in whole pieces; 0 for the piece size 0, without pieces."""
    return len(x) // piece_size * piece_size if piece_size else 0


def _split_points(x: Array, covered: int, piece_size: int) -> Array:
    """Return the first `covered` of points `(p, N)` as `(pieces, piece_size, N)`, a view."""
    return x[:covered].reshape(-1, piece_size, x.shape[1])


def _split_scores(scores: Array, covered: int, piece_size: int) -> Array:
    """Return scores `(rows, p)` of the same points as `(pieces, rows, piece_size)`, a view."""
    return scores[:, :covered].reshape(len(scores), -1, piece_size).swapaxes(0, 1)


@lru_cache(maxsize=1)
def _has_small_kernels() -> bool:
    """Return whether OpenBLAS runs kernels that multiply small factors without copies."""
    from threadpoolctl import threadpool_info

    return any(pool.get("architecture") in KERNELS for pool in threadpool_info())
