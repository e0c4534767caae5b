"""Schemes on sparse points: fitted on what is stored, and folded into the weights.

A scheme that would fill the points is refused: one that mixes features or is not affine always, one
that subtracts a constant unless `fold=true` puts that constant into the bias of the weights.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench.datasets.on_disk.points import Array, Rows
from normbench.datasets.on_disk.sparse import SparsePoints, sparse_or_none
from normbench.datasets.values import UserError, spell_setting
from normbench.engine.scheme.probed import AffineMap
from normbench.engine.scheme.under import Under
from normbench.normalizers.affine import find_affine_map, find_affine_traits
from normbench.normalizers.decomposition import Decompositions, Surrogate
from normbench.normalizers.on_columns import OnColumns, name_scheme

KEEP_ZEROS = "identity, maxabs or unit_variance"
SPARSE_SCHEMES = (FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler)


def check_sparse(scheme: Any, x: Rows, fold: bool) -> None:
    """Check that a scheme keeps the zeros of sparse points.

    Args:
        scheme: The normalizer, not fitted.
        x: Points (P, N); points that are not sparse always pass.
        fold: Whether a centre may go to the bias of the weights.

    Raises:
        UserError: The scheme would fill the points, or cannot be fitted on them.
    """
    if sparse_or_none(x) is None:
        return
    folds = f"standard with {spell_setting('fold', True)}"
    if isinstance(scheme, OnColumns):
        columns, setting = scheme.columns.columns, scheme.columns.setting
        raise UserError(
            f"{spell_setting(setting, columns)}: sparse points take no scheme on some columns "
            f"(normalizer {name_scheme(scheme)}); leave {spell_setting(setting)} out, and choose "
            f"{KEEP_ZEROS}, or {folds}"
        )
    name, traits = type(scheme).__name__, find_affine_traits(scheme)
    if traits is None or traits.rotates or type(scheme) not in SPARSE_SCHEMES:
        raise UserError(
            f"normalizer {name}: would fill sparse points, or cannot be fitted on them; choose "
            f"{KEEP_ZEROS}, or {folds}"
        )
    # `fold` centres by the mean of `StandardScaler` alone, see `_fit_sparse`.
    if traits.centres and not isinstance(scheme, StandardScaler):
        raise UserError(
            f"normalizer {name}: centres, which would fill sparse points; choose {KEEP_ZEROS}, "
            f"or {folds}"
        )
    if traits.centres and not fold:
        raise UserError(
            f"normalizer {name}: centres, which would fill sparse points; add "
            f"{spell_setting('fold', True)}, which centres in the weights, or choose {KEEP_ZEROS}"
        )


def normalize_sparse(
    scheme: Any, x: SparsePoints, x_test: Rows, dtype: Any, decompositions: Decompositions
) -> tuple[Under, Any]:
    """Fit a scheme on sparse points; return them, and test points, `Under` it.

    Args:
        scheme: One that `check_sparse` lets pass; it is fitted in place.
        x: Sparse training points (P, N).
        x_test: Test points (Q, N); Q = 0 without any.
        dtype: The type of the transformed points.
        decompositions: The decompositions of x, which other schemes share.

    Returns:
        Points (P, N) and (Q, N); without test points an empty array for the second.
    """
    _fit_sparse(scheme, x)
    affine = find_affine_map(scheme)
    assert affine is not None
    # About 0, so that folding it moves no point: moved points would not be sparse.
    scheme_map = AffineMap(affine.matrix, np.zeros(x.shape[1]), affine.offset)

    def transform(rows: Array) -> Array:
        """Return dense points (p, N) under the scheme."""
        return np.ascontiguousarray(affine(rows), dtype=dtype)

    def surrogates() -> tuple[Surrogate, Surrogate]:
        """Return the surrogates of the training points before the scheme and under it."""
        before = decompositions.surrogate
        return before, Surrogate(affine(before.moment_rows))

    # The map of the scheme, and the form in which it is folded into weights, are the same.
    options = transform, x.shape[1], dtype, scheme_map, scheme_map, surrogates
    normalized = Under(x, *options)
    if not len(x_test):
        return normalized, np.empty((0, x.shape[1]), dtype)
    return normalized, Under(x_test, *options)


def _fit_sparse(scheme: Any, x: SparsePoints) -> None:
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
