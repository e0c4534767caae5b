"""Schemes on sparse points: fitted on what is stored; a mean is subtracted as an offset.

A scheme that would fill the points is refused: one that mixes features or is not affine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench.datasets.on_disk.points import Points
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError
from normbench.normalizers.on_columns import name_scheme


def check_sparse(scheme: Any, x: Points) -> None:
    """Check that a scheme can be fitted on sparse points, and leaves them sparse.

    Args:
        scheme: The normalizer, not fitted.
        x: Points (P, N); points that are not sparse always pass.

    Raises:
        UserError: The scheme would fill the points, or cannot be fitted on them.
    """
    options, scheme_type = vars(scheme), type(scheme)
    is_sparse = (
        # Of schemes that centre, it alone gets the mean of sparse points: `fit_sparse`.
        scheme_type is StandardScaler
        or (scheme_type is RobustScaler and not options["with_centering"])
        or (scheme_type is MaxAbsScaler and not options.get("clip"))
        or (scheme_type is FunctionTransformer and options["func"] is None)
    )
    if isinstance(x, SparsePoints) and not is_sparse:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on "
            "them; choose identity, maxabs, unit_variance, centre or standard, on all columns"
        )


def fit_sparse(scheme: Any, x: SparsePoints) -> None:
    """Fit a scheme that `check_sparse` takes in place, in float64.

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
    factors, offset = map_sparse(scheme, x.shape[1])
    csr = x.csr.astype(np.float64)  # a copy, whose entries are scaled
    csr.data *= factors[csr.indices]
    return SparsePoints(csr.astype(dtype, copy=False), -offset.astype(dtype))


def map_sparse(scheme: Any, features: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the factor and the offset of each feature `(N,)` under a scheme of `fit_sparse`."""
    scale = getattr(scheme, "scale_", None)
    offset = np.asarray(scheme.transform(np.zeros((1, features)))[0])
    return np.ones(features) if scale is None else 1 / scale, offset
