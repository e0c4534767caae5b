"""Standardizing and sphering as other sources write them, for `record=[formulas]`.

They compute in the precision of the points. None of them is a scheme: two of them return numbers
that are not finite.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from normbench.normalizers.whitening import PCASphere

Array = NDArray[Any]
Formula = Callable[[Array], Array]
TEXTBOOK_RIDGE = 1e-7  # the textbook's, and ours unless it is set


def textbook_standard(x: Array) -> Array:
    """Return `(x - mean) / standard deviation` of points (P, N), without special cases."""
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def textbook_sphere(x: Array) -> Array:
    """Return `(x - mean) V (D + ridge I)^-1/2` of points (P, N), with the covariance `V D V'`.

    No special case is handled. Source: Watt, Borhani, Katsaggelos, "Machine Learning Refined",
    section 9.5.
    """
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / x.dtype.type(len(x)))
    return np.asarray(centred @ vectors / np.sqrt(values + x.dtype.type(TEXTBOOK_RIDGE)))


def scikit_sphere(x: Array) -> Array:
    """Return points (P, N) sphered by scikit-learn's `PCA(whiten=True)`."""
    from sklearn.decomposition import PCA  # a hundredth of a second, which few commands need

    return np.asarray(PCA(whiten=True).fit(x).transform(x))


FORMULAS: dict[str, Formula] = {
    "standard_textbook": textbook_standard,
    "standard_scikit": lambda x: StandardScaler().fit(x).transform(x),  # our `standard`
    "sphere_textbook": textbook_sphere,
    "sphere_scikit": scikit_sphere,
    "sphere_ours": lambda x: PCASphere(TEXTBOOK_RIDGE).fit(x).transform(x),
}
