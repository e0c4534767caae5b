"""Schemes on sparse points: fitted on what is stored; a mean is subtracted as an offset.

A scheme that would fill the points is refused: one that mixes features or is not affine.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench.datasets.on_disk.points import Points
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError
from normbench.normalizers.affine import find_affine_map, find_affine_traits
from normbench.normalizers.on_columns import name_scheme

SPARSE_SCHEMES = (FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler)


def check_sparse(scheme: Any, x: Points) -> None:
    """Check that a scheme can be fitted on sparse points, and leaves them sparse.

    Args:
        scheme: The normalizer, not fitted.
        x: Points (P, N); points that are not sparse always pass.

    Raises:
        UserError: The scheme would fill the points, or cannot be fitted on them.
    """
    traits = find_affine_traits(scheme)
    # Of schemes that centre, only `StandardScaler` gets the mean of sparse points: `fit_sparse`.
    is_sparse = (
        traits is not None
        and type(scheme) in SPARSE_SCHEMES
        and (not traits.centres or type(scheme) is StandardScaler)
    )
    if isinstance(x, SparsePoints) and not is_sparse:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on "
            "them; choose identity, maxabs, unit_variance, centre or standard, on all columns"
        )


def fit_sparse(scheme: Any, x: SparsePoints) -> None:
    """Fit one of `SPARSE_SCHEMES` in place, in float64.

    scikit-learn refuses to centre sparse points: a scheme that centres is fitted as one that does
    not, and gets the attributes of that fit and the mean.
    """
    csr = x.astype(np.float64).csr
    if not getattr(scheme, "with_mean", False):
        scheme.fit(csr)
        return
    uncentred = clone(scheme).set_params(with_mean=False).fit(csr)
    vars(scheme).update({**vars(uncentred), "with_mean": True, "mean_": csr.mean(axis=0)})


def transform_sparse(scheme: Any, x: SparsePoints, dtype: Any) -> SparsePoints:
    """Return sparse points under a fitted scheme: each feature scaled, and an offset subtracted.

    Args:
        scheme: One that `fit_sparse` has fitted.
        x: Points (P, N) without an offset.
        dtype: The type of the result.
    """
    affine = find_affine_map(scheme)
    assert affine is not None
    csr = x.csr.astype(np.float64)  # a copy, whose entries are scaled
    csr.data *= affine.matrix[csr.indices]
    return SparsePoints(csr.astype(dtype, copy=False), -affine.offset.astype(dtype))
