"""Check the scheme of a job, fit it on the training points alone, and transform the points."""

import inspect
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import Array, Points, is_in_memory, transform_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError, refuse_larger
from normbench.engine.scheme.learned import CONVERTED_POINTS_PER_BLOCK, fit_scheme
from normbench.engine.scheme.sparse import transform_sparse
from normbench.normalizers.decomposition import Moments
from normbench.normalizers.on_columns import OnColumns, describe_fault, member_schemes, name_scheme


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
        try:
            scheme._validate_params()
        except ValueError as error:
            raise UserError(f"normalizer {name}: {' '.join(str(error).split())}") from error


def _needs_targets(scheme: Any) -> bool:
    """Return whether the fit of a transformer, or of one of its members, requires targets.

    A transformer says so by its scikit-learn tag, or by a parameter `y` of `fit` without a default.
    """
    if hasattr(scheme, "__sklearn_tags__") and get_tags(scheme).target_tags.required:
        return True
    y = inspect.signature(scheme.fit).parameters.get("y") if hasattr(scheme, "fit") else None
    needed = y is not None and y.default is inspect.Parameter.empty
    return needed or any(_needs_targets(member) for member in member_schemes(scheme))


def apply_scheme(scheme: Any, data: Dataset, dtype: Any, moments: Moments | None = None) -> Applied:
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
    scheme: Any,
    x: Points,
    x_test: Points,
    dtype: Any,
    moments: Moments | None = None,
) -> tuple[Points, Points]:
    """Fit the scheme on points x; return x and x_test transformed, as dtype.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Training points (P, N).
        x_test: Test points (Q, N); Q = 0 without any.
        dtype: The type of the transformed points.
        moments: The moments of x, which other schemes share; None to use none.

    Returns:
        Points (P, M) and (Q, M) of the kind of x: contiguous arrays, memory maps or sparse points.

    Raises:
        UserError: The scheme refuses the points, returns anything but one row of finite numbers a
            point, or needs more memory or disk than there is. The message names it.
    """
    try:
        # Numerical warnings (overflow, a power that did not converge) are judged by the outcome.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            x, x_test = map(_protect, (x, x_test))
            fit_scheme(scheme, x, moments)
            z = transform_points(scheme, x, dtype)
            features = z.shape[1]
            z_test = transform_points(scheme, x_test, dtype, features) if len(x_test) else z[:0]
    except UserError:  # a ValueError whose message is complete already
        raise
    except (MemoryError, ValueError) as error:
        name = name_scheme(scheme)
        raise UserError(f"normalizer {name}: {' '.join(str(error).split())}") from error
    return z, z_test


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
        return transform_sparse(scheme, x, dtype)
    if type(scheme) is FunctionTransformer and scheme.func is None and x.dtype == np.dtype(dtype):
        return x
    name = name_scheme(scheme)

    def transform(rows: Array) -> Array:
        """Return rows (p, M), checked, of rows (p, N)."""
        output = scheme.transform(np.asarray(rows, np.float64))
        if fault := describe_fault(output, len(rows)):
            raise UserError(f"normalizer {name}: {fault}")
        z = np.ascontiguousarray(output, dtype)
        if features and z.shape[1] != features:
            raise UserError(
                f"normalizer {name}: gives {features} features for some points and {z.shape[1]} "
                "for others; a scheme gives every point the same ones"
            )
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


def _protect(x: Points) -> Points:
    """Return a read-only view of an array, because other jobs use the same points."""
    if is_in_memory(x):
        x = x.view()
        x.flags.writeable = False
    return x
