"""Schemes on sparse points: fitted on what is stored; a mean is subtracted as an offset.

A scheme that would fill the points is refused: one that mixes features or is not affine.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench.datasets.on_disk.points import Points
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError, spell_setting
from normbench.normalizers.affine import find_affine_map, find_affine_traits
from normbench.normalizers.on_columns import OnColumns, name_scheme

KEEP_ZEROS = "identity, maxabs, unit_variance, centre or standard"
SPARSE_SCHEMES = (FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler)


def check_sparse(scheme: Any, x: Points) -> None:
    """Check that a scheme can be fitted on sparse points, and leaves them sparse.

    Args:
        scheme: The normalizer, not fitted.
        x: Points (P, N); points that are not sparse always pass.

    Raises:
        UserError: The scheme would fill the points, or cannot be fitted on them.
    """
    if not isinstance(x, SparsePoints):
        return
    if isinstance(scheme, OnColumns):
        columns, setting = scheme.columns.columns, scheme.columns.setting
        raise UserError(
            f"{spell_setting(setting, columns)}: sparse points take no scheme on some columns "
            f"(normalizer {name_scheme(scheme)}); leave {spell_setting(setting)} out, and choose "
            f"{KEEP_ZEROS}"
        )
    traits = find_affine_traits(scheme)
    # Only `StandardScaler` gets the mean of sparse points, see `fit_sparse`.
    is_centring = traits is not None and traits.centres and not isinstance(scheme, StandardScaler)
    if traits is None or traits.rotates or type(scheme) not in SPARSE_SCHEMES or is_centring:
        raise UserError(
            f"normalizer {type(scheme).__name__}: would fill sparse points, or cannot be fitted on "
            f"them; choose {KEEP_ZEROS}"
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
