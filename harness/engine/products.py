"""The two products of linear scores with points, which are an array or sparse."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points
from normbench.datasets.on_disk.sparse import SparsePoints

Array = NDArray[Any]


def multiply(weights: Array, x: Points, out: Array) -> None:
    """Write the scores of points under k rows of weights.

    Args:
        weights: `(k, N + 1)`, bias first.
        x: Points (p, N).
        out: `(k, p)`.
    """
    slopes = weights[:, 1:]
    if isinstance(x, SparsePoints):  # the left factor, so that the product is transposed
        out[...] = (x.csr @ slopes.T).T
        out -= (slopes @ x.offset)[:, None]
    else:
        np.matmul(slopes, x.T, out=out)
    out += weights[:, :1]


def multiply_back(derivative: Array, x: Points, out: Array) -> None:
    """Write derivatives by scores times the points `[1 x]`.

    Args:
        derivative: `(k, p)`.
        x: Points (p, N).
        out: `(k, N + 1)`.
    """
    derivative.sum(axis=1, out=out[:, 0])
    if isinstance(x, SparsePoints):
        out[:, 1:] = (x.csr.T @ derivative.T).T
        out[:, 1:] -= out[:, :1] * x.offset
    else:
        np.matmul(derivative, x, out=out[:, 1:])


def in_float64(x: Points) -> Any:
    """Return points in float64: themselves where they are of that type."""
    return x if x.dtype == np.float64 else x.astype(np.float64)
