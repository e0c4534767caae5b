"""The two products of linear scores with points, which are an array or sparse."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def is_sparse(x: Any) -> bool:
    """Return whether points are sparse: stored entries `csr` minus an `offset`."""
    return hasattr(x, "csr")


def multiply(weights: Array, x: Any, out: Array) -> None:
    """Write the scores of points under k rows of weights.

    Args:
        weights: `(k, N + 1)`, bias first.
        x: Points (p, N).
        out: `(k, p)`.
    """
    slopes = weights[:, 1:]
    if is_sparse(x):  # the left factor, so that the product is transposed
        out[...] = (x.csr @ slopes.T).T
        out -= (slopes @ x.offset)[:, None]
    else:
        np.matmul(slopes, x.T, out=out)
    out += weights[:, :1]


def multiply_back(derivative: Array, x: Any, out: Array) -> None:
    """Write derivatives by scores times the points `[1 x]`.

    Args:
        derivative: `(k, p)`.
        x: Points (p, N).
        out: `(k, N + 1)`.
    """
    derivative.sum(axis=1, out=out[:, 0])
    if is_sparse(x):
        out[:, 1:] = (x.csr.T @ derivative.T).T
        out[:, 1:] -= out[:, :1] * x.offset
    else:
        np.matmul(derivative, x, out=out[:, 1:])


def dense(x: Any) -> NDArray[np.float64]:
    """Return points (p, N), an array or sparse, as an array in float64."""
    x = x.toarray() if is_sparse(x) else x
    return np.asarray(x).astype(np.float64, copy=False)
