"""Check the scheme of a job, fit it on the training points alone, and transform the points.

Of a memory map one block is in memory at a time, unless a scheme needs all points at once. Sparse
points stay sparse: each feature is scaled, and a mean is subtracted as an offset.
"""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, RobustScaler
from sklearn.utils import get_tags

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import Points, is_in_memory, iterate_blocks, transform_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import FLOAT64_BYTES, UserError, available_bytes, refuse_larger
from normbench.normalizers.decomposition import PointsCache
from normbench.normalizers.on_columns import (
    OnColumns,
    describe_fault,
    learns_by_blocks,
    member_schemes,
    name_scheme,
)

CONVERTED_POINTS_PER_BLOCK = 256  # points that become float64 at a time: 1.6 MB at 784 features
COLUMNS_SHARE = 1 / 8  # of the free memory, for some columns of all points


class Applied(NamedTuple):
    """A fitted scheme, and the points of a data set under it.

    z: the training points (P, M). z_test: the test points (Q, M). seconds: those of the fit.
    """

    scheme: Any
    z: Points
    z_test: Points
    seconds: float


def check_scheme(scheme: Any) -> None:
    """Check that a scheme is a transformer that learns from points alone, with valid options.

    Raises:
        UserError: It is a class, has no `fit` or `transform`, takes targets or refuses its options.
    """
    # A scheme on some columns is checked without its selection.
    scheme = scheme.scheme if isinstance(scheme, OnColumns) else scheme
    name = getattr(scheme, "__name__", type(scheme).__name__)
    if isinstance(scheme, type) or not (hasattr(scheme, "fit") and hasattr(scheme, "transform")):
        raise UserError(
            f"normalizer {name}: is not a transformer, with fit and transform; name one, or give "
            "an object of one, such as sklearn.preprocessing.StandardScaler()"
        )
    if _needs_targets(scheme):
        raise UserError(
            f"normalizer {name}: learns from the targets, and a normalization scheme sees the "
            "points alone; choose a transformer that does without targets"
        )
    if hasattr(scheme, "_parameter_constraints"):  # scikit-learn can check them before the fit
        with named_errors(f"normalizer {name}"):
            scheme._validate_params()


def _needs_targets(scheme: Any) -> bool:
    """Return whether the fit of a transformer, or of one of its members, requires targets.

    A transformer says so by its scikit-learn tag, or by a parameter `y` of `fit` without a default.
    """
    if hasattr(scheme, "__sklearn_tags__") and get_tags(scheme).target_tags.required:
        return True
    y = inspect.signature(scheme.fit).parameters.get("y") if hasattr(scheme, "fit") else None
    needed = y is not None and y.default is inspect.Parameter.empty
    return needed or any(map(_needs_targets, member_schemes(scheme)))


@contextmanager
def named_errors(setting: str, remedy: str = "") -> Iterator[None]:
    """Raise what a scheme raises as a `UserError` that names the setting and a remedy.

    Numerical warnings (overflow, a power that did not converge) are off: the outcome is judged.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    except UserError:  # a ValueError whose message is complete already
        raise
    except (MemoryError, ValueError) as error:
        raise UserError(f"{setting}: {' '.join(str(error).split())}{remedy}") from error


def apply_scheme(
    scheme: Any, data: Dataset, dtype: Any, moments: PointsCache | None = None
) -> Applied:
    """Fit a scheme on the points of a data set that `fit_on` names; return all points under it.

    Args:
        scheme: The normalizer, which is fitted in place.
        data: The data set.
        dtype: The type of the transformed points.
        moments: Those of the training points, which other schemes share; None for none.
    """
    tick, saved_before = time.perf_counter(), moments.saved if moments else 0.0
    if data.fit_on == "all" and len(data.x_test):
        both = np.concatenate([data.x, data.x_test])
        z, _ = normalize(scheme, both, both[:0], dtype)
        z, z_test = z[: len(data.x)], z[len(data.x) :]
    else:
        z, z_test = normalize(scheme, data.x, data.x_test, dtype, moments)
    # The seconds of this job alone: those of moments that an earlier job cached count, too.
    saved = moments.saved - saved_before if moments else 0.0
    return Applied(scheme, z, z_test, time.perf_counter() - tick + saved)


def normalize(
    scheme: Any, x: Points, x_test: Points, dtype: Any, moments: PointsCache | None = None
) -> tuple[Points, Points]:
    """Fit the scheme on points x; return x and x_test transformed, as dtype.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Training points (P, N), which stay as they are: other jobs use them.
        x_test: Test points (Q, N); Q = 0 without any.
        dtype: The type of the transformed points.
        moments: The moments of x, which other schemes share; None to use none.

    Returns:
        Points (P, M) and (Q, M) of the kind of x: contiguous arrays, memory maps or sparse points.

    Raises:
        UserError: The scheme refuses the points, returns anything but one row of finite numbers a
            point, or needs more memory or disk than there is. The message names it.
    """
    with named_errors(f"normalizer {name_scheme(scheme)}"):
        x, x_test = map(_protect, (x, x_test))
        fit_scheme(scheme, x, moments)
        z = transform_points(scheme, x, dtype)
        z_test = transform_points(scheme, x_test, dtype, z.shape[1]) if len(x_test) else z[:0]
        return z, z_test


def _protect(x: Points) -> Points:
    """Return a read-only view of an array, because other jobs use the same points."""
    if is_in_memory(x):
        x = x.view()
        x.flags.writeable = False
    return x


def fit_scheme(scheme: Any, x: Points, moments: PointsCache | None = None) -> None:
    """Fit a scheme in float64: scikit-learn's power transform, for one, is wrong in float32.

    The project's schemes (`fits_in_float64`) convert the points themselves, and scikit-learn's
    scalers learn block by block, so that neither needs a float64 copy of all points.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Points (P, N), of either type.
        moments: The moments of x, which other schemes share; None to use none.

    Raises:
        UserError: The scheme needs more points at once than fit in memory.
    """
    if isinstance(x, SparsePoints):
        _fit_sparse(scheme, x)
    elif hasattr(scheme, "learn") and (moments or not is_in_memory(x)):
        scheme.learn(moments or PointsCache(x))
    elif not is_in_memory(x):
        _fit_on_disk(scheme, x)
    elif x.dtype == np.float64 or getattr(scheme, "fits_in_float64", False):
        scheme.fit(x)
    elif learns_by_blocks(scheme):
        _fit_by_blocks(scheme, x, CONVERTED_POINTS_PER_BLOCK)
    else:
        scheme.fit(_as_float64(x))


def _fit_sparse(scheme: Any, x: SparsePoints) -> None:
    """Fit a scheme that keeps points sparse in place, in float64.

    scikit-learn refuses to centre sparse points: a scheme that centres is fitted as one that does
    not, and gets the attributes of that fit and the mean.
    """
    csr = x.astype(np.float64).csr
    if not getattr(scheme, "with_mean", False):
        scheme.fit(csr)
        return
    uncentred = clone(scheme).set_params(with_mean=False).fit(csr)
    vars(scheme).update({**vars(uncentred), "with_mean": True, "mean_": csr.mean(axis=0)})


def _fit_on_disk(scheme: Any, x: Points) -> None:
    """Fit a scheme on a memory map (P, N), in as few passes as its statistics need."""
    if isinstance(scheme, Pipeline):
        *before, last = member_schemes(scheme)
        for link in before:
            fit_scheme(link, x)
            x = _write_float64(x, link.transform)
        fit_scheme(last, x)
    elif isinstance(scheme, OnColumns):
        scheme.select(x[:1])
        fit_scheme(scheme.scheme, _write_float64(x, lambda rows: rows[:, scheme.positions_]))
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


def _fit_by_blocks(scheme: Any, x: Points, size: int | None = None) -> None:
    """Fit a scheme on one block of rows after another, see `iterate_blocks`."""
    for block, rows in iterate_blocks(x, size):
        # `fit` forgets what a fitted scheme has learned, such as the points of another fold.
        (scheme.partial_fit if block.start else scheme.fit)(_as_float64(rows))


def _fit_by_columns(scheme: RobustScaler, x: Points) -> None:
    """Fit a scheme of quantiles, which needs whole columns, on points x (P, N).

    Each pass over the points takes as many columns as fit in `COLUMNS_SHARE` of the memory. A copy
    of the scheme is fitted on these columns; the scheme gets the centres and scales of all copies.
    """
    # Three times: the columns, their blocks, and the scheme's copy of them.
    per_pass = max(1, int(COLUMNS_SHARE * available_bytes() / (3 * FLOAT64_BYTES * len(x))))
    copies = []
    for first in range(0, x.shape[1], per_pass):
        columns = [rows[:, first : first + per_pass].copy() for _, rows in iterate_blocks(x)]
        copies.append(clone(scheme).fit(_as_float64(np.concatenate(columns))))
    for name in ("center_", "scale_"):  # None in all schemes where the option is off
        parts = [getattr(copy, name) for copy in copies]
        setattr(scheme, name, None if parts[0] is None else np.concatenate(parts))
    scheme.n_features_in_ = x.shape[1]


def _write_float64(x: Points, transform: Callable[[Points], Points]) -> Points:
    """Return a memory map, in float64, of what a function makes of rows of points x (P, N)."""
    width = transform(_as_float64(x[:1])).shape[1]
    return transform_rows(x, lambda rows: transform(_as_float64(rows)), width)


def _as_float64(rows: Points) -> Points:
    """Return rows as float64."""
    return np.asarray(rows, dtype=np.float64)


def transform_points(scheme: Any, x: Points, dtype: Any, features: int = 0) -> Points:
    """Return points under a fitted scheme, which works in float64, a block at a time.

    Args:
        scheme: The fitted scheme.
        x: Points (P, N).
        dtype: The type of the result.
        features: The number of features M that the scheme has to give; 0 where it is unknown.

    Returns:
        Points (P, M): contiguous in memory; of a memory map another one; of sparse points sparse
        ones. x itself under the identity, where the type is the same.

    Raises:
        UserError: The scheme's output is not one row of finite numbers a point, or not of one
            width; or memory or the disk does not hold it.
    """
    if isinstance(x, SparsePoints):
        factors, offset = map_sparse(scheme, x.shape[1])
        csr = x.csr.astype(np.float64)  # a copy, whose entries are scaled
        csr.data *= factors[csr.indices]
        return SparsePoints(csr.astype(dtype, copy=False), -offset.astype(dtype))
    if type(scheme) is FunctionTransformer and scheme.func is None and x.dtype == np.dtype(dtype):
        return x
    name = name_scheme(scheme)

    def transform(rows: Points) -> Points:
        """Return rows (p, M), checked, of rows (p, N)."""
        output = scheme.transform(_as_float64(rows))
        fault = describe_fault(output, len(rows))
        if not fault and features and output.shape[1] != features:
            fault = f"gives {features} features for some points and {output.shape[1]} for others"
        if fault:
            raise UserError(f"normalizer {name}: {fault}")
        z = np.ascontiguousarray(output, dtype)
        if not np.isfinite(z).all():
            raise UserError(
                f"normalizer {name}: gives points that are not finite under "
                f"precision={np.dtype(dtype).name}: choose another scheme, drop the features that "
                "it cannot take, or use precision=float64"
            )
        return z

    features = features or transform(x[:CONVERTED_POINTS_PER_BLOCK]).shape[1]
    if is_in_memory(x):
        size = np.dtype(dtype).itemsize * len(x) * features
        refuse_larger(f"normalizer {name}", size, "choose options that give fewer features")
    return transform_rows(x, transform, features, dtype, CONVERTED_POINTS_PER_BLOCK)


def map_sparse(scheme: Any, features: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the factor and the offset of each feature `(N,)` under a scheme of sparse points."""
    scale = getattr(scheme, "scale_", None)
    offset = np.asarray(scheme.transform(np.zeros((1, features)))[0])
    return np.ones(features) if scale is None else 1 / scale, offset
