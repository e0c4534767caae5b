"""Fit schemes in float64, on memory maps by blocks: means, extremes, quantiles, moments."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, RobustScaler
from sklearn.utils import get_tags

from normbench.datasets.on_disk.points import Array, Points, iterate_blocks, transform_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import FLOAT64_BYTES, available_bytes, refuse_larger
from normbench.engine.scheme.sparse import fit_sparse
from normbench.normalizers.decomposition import Moments
from normbench.normalizers.on_columns import OnColumns, learns_by_blocks, member_schemes

CONVERTED_POINTS_PER_BLOCK = 256  # points that become float64 at a time: 1.6 MB at 784 features
COLUMNS_SHARE = 1 / 8  # of the free memory, for some columns of all points


def fit_scheme(scheme: Any, x: Points, moments: Moments | None = None) -> None:
    """Fit a scheme in float64: scikit-learn's power transform, for one, is wrong in float32.

    The project's schemes (`fits_in_float64`) convert the points themselves, and scikit-learn's
    scalers learn block by block, so that neither needs a float64 copy of all points. Of a memory
    map one block is in memory at a time, unless a scheme needs all points at once.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Points (P, N), of either type.
        moments: The moments of x, which other schemes share; None to use none.

    Raises:
        UserError: The scheme needs more points at once than fit in memory.
    """
    if isinstance(x, SparsePoints):
        fit_sparse(scheme, x)
    elif isinstance(x, np.memmap):
        _fit_on_disk(scheme, x, moments)
    elif moments is not None and hasattr(scheme, "learn"):
        scheme.learn(moments)
    elif x.dtype == np.float64 or getattr(scheme, "fits_in_float64", False):
        scheme.fit(x)
    elif learns_by_blocks(scheme):
        _fit_by_blocks(scheme, x, CONVERTED_POINTS_PER_BLOCK)
    else:
        scheme.fit(_as_float64(x))


def _fit_on_disk(scheme: Any, x: Array, moments: Moments | None) -> None:
    """Fit a scheme on a memory map (P, N), in as few passes as its statistics need."""
    if isinstance(scheme, Pipeline):
        links = member_schemes(scheme)
        for link in links:
            fit_scheme(link, x)
            x = x if link is links[-1] else _write_float64(x, link.transform)
    elif isinstance(scheme, OnColumns):
        scheme.select(x[:1])
        fit_scheme(scheme.scheme, _write_float64(x, lambda rows: rows[:, scheme.positions_]))
    elif hasattr(scheme, "learn"):
        scheme.learn(moments or Moments(x))
    elif hasattr(scheme, "partial_fit"):
        _fit_by_blocks(scheme, x)
    elif hasattr(scheme, "__sklearn_tags__") and not get_tags(scheme).requires_fit:
        scheme.fit(_as_float64(x[:2]))  # it learns the number of features alone
    elif type(scheme) is RobustScaler:  # a subclass may need whole points
        _fit_by_columns(scheme, x)
    elif isinstance(scheme, QuantileTransformer) and (scheme.subsample or len(x)) < len(x):
        scheme.fit(x)  # it takes a sample of the rows
    else:
        refuse_larger(
            f"normalizer {type(scheme).__name__}, which learns from all points at once",
            2 * FLOAT64_BYTES * x.size,  # the points, and what the scheme computes of them
            "choose a scheme that learns by blocks, such as standard, robust or pca_sphere, or "
            "fewer points (dataset.points)",
        )
        scheme.fit(_as_float64(x))


def _fit_by_blocks(scheme: Any, x: Array, size: int | None = None) -> None:
    """Fit a scheme on one block of rows after another, see `iterate_blocks`."""
    for block, rows in iterate_blocks(x, size):
        # `fit` forgets what a fitted scheme has learned, such as the points of another fold.
        (scheme.partial_fit if block.start else scheme.fit)(_as_float64(rows))


def _fit_by_columns(scheme: RobustScaler, x: Array) -> None:
    """Fit a scheme of quantiles, which needs whole columns, on points x (P, N).

    Each pass over the points takes as many columns as fit in `COLUMNS_SHARE` of the memory. A copy
    of the scheme is fitted on these columns; the scheme gets the centres and scales of all copies.
    """
    # Twice: the columns, and the scheme's copy of them.
    per_pass = max(1, int(COLUMNS_SHARE * available_bytes() / (2 * FLOAT64_BYTES * len(x))))
    column_schemes = []
    for first in range(0, x.shape[1], per_pass):
        columns = np.empty((len(x), min(per_pass, x.shape[1] - first)))
        for block, rows in iterate_blocks(x):
            columns[block] = rows[:, first : first + per_pass]
        column_schemes.append(clone(scheme).fit(columns))
    for name in ("center_", "scale_"):  # None in all schemes where the option is off
        attributes = [getattr(column_scheme, name) for column_scheme in column_schemes]
        setattr(scheme, name, None if attributes[0] is None else np.concatenate(attributes))
    scheme.n_features_in_ = x.shape[1]


def _write_float64(x: Array, transform: Callable[[Array], Array]) -> Array:
    """Return a memory map, in float64, of what a function makes of rows of points x (P, N)."""
    width = transform(_as_float64(x[:1])).shape[1]
    return transform_rows(x, lambda rows: transform(_as_float64(rows)), width)


def _as_float64(rows: Array) -> Array:
    """Return rows as float64."""
    return np.asarray(rows, dtype=np.float64)
