"""The eigendecomposition that the whitening family shares."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]
BLOCK = 4096  # points centred at a time: 25 MB of float64 at 784 features


def mean_and_covariance(x: NDArray[Any]) -> tuple[Array, Array]:
    """Return the mean `(N,)` and the covariance `Xc'Xc / P` `(N, N)`, in float64.

    From centred points: the one-pass formula loses directions of small variance.
    """
    mean = x.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((x.shape[1], x.shape[1]))
    for first in range(0, len(x), BLOCK):
        centred = x[first : first + BLOCK] - mean
        covariance += centred.T @ centred
    return mean, covariance / len(x)


def eigendecomposition(covariance: Array) -> tuple[Array, Array]:
    """Return eigenvalues `(N,)`, decreasing and not negative, and eigenvectors `(N, N)` as rows.

    Each eigenvector's largest-magnitude entry is positive, so that the result does not depend on
    the linear-algebra library.
    """
    values, vectors = linalg.eigh(covariance, driver="evd")
    rows = vectors.T[::-1]
    largest = rows[np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)]
    return np.maximum(values[::-1], 0.0), rows * np.where(largest < 0, -1.0, 1.0)[:, None]
