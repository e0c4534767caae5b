"""Check the scheme of a job, fit it on the training points alone, and transform the points."""

import inspect
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import (
    Array,
    Points,
    is_in_memory,
    iterate_blocks,
    write_map,
)
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError, in_python, refuse_larger
from normbench.engine.scheme.learned import fit_by_blocks
from normbench.engine.scheme.sparse import fit_sparse, transform_sparse
from normbench.normalizers.affine import learns_by_blocks, member_schemes
from normbench.normalizers.decomposition import Decompositions
from normbench.normalizers.on_columns import NOT_NUMBERS, OnColumns, describe_fault, name_scheme

FEWER_FEATURES = "choose options that give fewer features"
CONVERTED_POINTS_PER_BLOCK = 256  # points that become float64 at a time: 1.6 MB at 784 features


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
        remedy = (
            "give an object of one, such as sklearn.preprocessing.StandardScaler()"
            if in_python()
            else "name one in normalizer._target_, such as sklearn.preprocessing.StandardScaler"
        )
        raise UserError(
            f"normalizer {name}: is not a transformer, with fit and transform; {remedy}"
        )
    if _needs_targets(scheme):
        raise UserError(
            f"normalizer {name}: learns from the targets, and a normalization scheme sees the "
            "points alone; choose a transformer that does without targets"
        )
    try:
        if _declares_options(scheme):
            scheme._validate_params()
    except ValueError as error:
        raise UserError(f"normalizer {name}: {' '.join(str(error).split())}") from error


def _declares_options(scheme: Any) -> bool:
    """Return whether a scheme can check its options before it is fitted, as scikit-learn's do.

    A user's own class inherits scikit-learn's check, but not the list that the check reads.
    """
    from sklearn.base import BaseEstimator

    check = getattr(type(scheme), "_validate_params", None)
    inherited = check is getattr(BaseEstimator, "_validate_params", None)
    return check is not None and (not inherited or hasattr(scheme, "_parameter_constraints"))


def _needs_targets(scheme: Any) -> bool:
    """Return whether the fit of a transformer, or of one of its members, requires targets.

    A transformer says so by its scikit-learn tag, or by a parameter `y` of `fit` without a default.
    """
    from sklearn.utils import get_tags

    if hasattr(scheme, "__sklearn_tags__") and get_tags(scheme).target_tags.required:
        return True
    y = inspect.signature(scheme.fit).parameters.get("y") if hasattr(scheme, "fit") else None
    needed = y is not None and y.default is inspect.Parameter.empty
    return needed or any(_needs_targets(member) for member in member_schemes(scheme))


def apply_scheme(
    scheme: Any, data: Dataset, dtype: Any, decompositions: Decompositions | None = None
) -> Applied:
    """Fit a scheme on the points of a data set that `fit_on` names; return all points under it.

    Args:
        scheme: The normalizer, which is fitted in place.
        data: The data set.
        dtype: The type of the transformed points.
        decompositions: Those of the training points, which other schemes share; None for none.
    """
    tick, saved_before = time.perf_counter(), decompositions.saved if decompositions else 0.0
    if data.fit_on == "all" and len(data.x_test):
        both = np.concatenate([data.x, data.x_test])
        z, _ = normalize(scheme, both, both[:0], dtype)
        z, z_test = z[: len(data.x)], z[len(data.x) :]
    else:
        z, z_test = normalize(scheme, data.x, data.x_test, dtype, decompositions)
    # The seconds of this job alone: those of decompositions that an earlier job cached count, too.
    saved = decompositions.saved - saved_before if decompositions else 0.0
    return Applied(scheme, z, z_test, time.perf_counter() - tick + saved)


def normalize(
    scheme: Any,
    x: Points,
    x_test: Points,
    dtype: Any,
    decompositions: Decompositions | None = None,
) -> tuple[Points, Points]:
    """Fit the scheme on points x; return x and x_test transformed, as dtype.

    The scheme works in float64 whatever the type of the points, a block of points at a time.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Training points (P, N).
        x_test: Test points (Q, N); Q = 0 without any.
        dtype: The type of the transformed points.
        decompositions: The decompositions of x, which other schemes share; None to make new ones.

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
            fit_scheme(scheme, x, decompositions)
            z = transform_points(scheme, x, dtype)
            z_test = transform_points(scheme, x_test, dtype) if len(x_test) else z[:0]
    except UserError:  # a ValueError whose message is complete already
        raise
    except MemoryError as error:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: needs more memory than there is ({error}); "
            f"{FEWER_FEATURES}"
        ) from error
    except ValueError as error:
        name = name_scheme(scheme)
        raise UserError(f"normalizer {name}: {' '.join(str(error).split())}") from error
    if z_test.shape[1] != z.shape[1]:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: gives {z.shape[1]} features for the training "
            f"points and {z_test.shape[1]} for the test points; they must be the same ones"
        )
    return z, z_test


def fit_scheme(scheme: Any, x: Points, decompositions: Decompositions | None) -> None:
    """Fit a scheme in float64: scikit-learn's power transform, for one, is wrong in float32.

    The project's schemes (`fits_in_float64`) convert the points themselves, and scikit-learn's
    scalers learn block by block, so that neither needs a float64 copy of all points.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Points (P, N), of either type.
        decompositions: The decompositions of x, which other schemes share; None to use none.
    """
    if isinstance(x, SparsePoints):
        fit_sparse(scheme, x)
    elif isinstance(x, np.memmap):
        fit_by_blocks(scheme, x, decompositions or Decompositions(x))
    elif decompositions is not None and hasattr(scheme, "fit_from"):
        scheme.fit_from(x, decompositions)
    elif x.dtype == np.float64 or getattr(scheme, "fits_in_float64", False):
        scheme.fit(x)
    elif learns_by_blocks(scheme):
        for block, rows in iterate_blocks(x, CONVERTED_POINTS_PER_BLOCK):
            (scheme.partial_fit if block.start else scheme.fit)(rows.astype(np.float64))
    else:
        scheme.fit(x.astype(np.float64))


def transform_points(scheme: Any, x: Points, dtype: Any) -> Points:
    """Return points under a fitted scheme, a block at a time.

    Args:
        scheme: The fitted scheme.
        x: Points (P, N).
        dtype: The type of the result.

    Returns:
        Points (P, M): contiguous in memory; of a memory map another one; of sparse points sparse
        ones. x itself if unchanged.

    Raises:
        UserError: The scheme's output is not one row of finite numbers a point, or not of one
            width; or memory or the disk does not hold it.
    """
    if isinstance(x, SparsePoints):
        return transform_sparse(scheme, x, dtype)
    name = name_scheme(scheme)
    # A scheme that returns its input, such as the identity, needs no copy by blocks: one row tells.
    if x.dtype == np.dtype(dtype) == np.float64 and np.shares_memory(scheme.transform(x[:1]), x):
        is_mapped = isinstance(x, np.memmap)
        return x if is_mapped else _check_output(name, scheme.transform(x), len(x), dtype)
    z_blocks = _transform_blocks(scheme, x, dtype)
    first = next(z_blocks)  # tells the number of features
    shape, z_blocks = (len(x), first.shape[1]), chain([first], z_blocks)
    if isinstance(x, np.memmap):
        return write_map(z_blocks, shape, dtype)
    size = np.dtype(dtype).itemsize * shape[0] * shape[1]
    refuse_larger(f"normalizer {name}", size, FEWER_FEATURES)
    z, end = np.empty(shape, dtype=dtype), 0
    for z_block in z_blocks:
        end += len(z_block)
        z[end - len(z_block) : end] = z_block
    return z


def _transform_blocks(scheme: Any, x: Array, dtype: Any) -> Iterator[Array]:
    """Yield points x (P, N) under a fitted scheme, checked, block after block."""
    name, width = name_scheme(scheme), 0
    for _, rows in iterate_blocks(x, CONVERTED_POINTS_PER_BLOCK if is_in_memory(x) else None):
        output = scheme.transform(rows.astype(np.float64, copy=False))
        z_block = _check_output(name, output, len(rows), dtype)
        width = width or z_block.shape[1]
        if z_block.shape[1] != width:  # numpy would repeat a single feature
            raise UserError(
                f"normalizer {name}: gives {width} features for some points and "
                f"{z_block.shape[1]} for others; a scheme gives every point the same ones"
            )
        yield z_block


def _protect(x: Points) -> Points:
    """Return a read-only view of an array, because other jobs use the same points."""
    if not is_in_memory(x):
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def _check_output(name: str, output: Any, count: int, dtype: Any) -> Array:
    """Return a scheme's output as contiguous points (p, M), checked.

    Args:
        name: The name of the scheme, for the messages.
        output: What the scheme returned for p points.
        count: The number of these points p.
        dtype: The type of the result.

    Raises:
        UserError: The output is sparse, not p rows of one number or more, not of numbers, or not
            finite in this type.
    """
    if fault := describe_fault(output, count):
        raise UserError(f"normalizer {name}: {fault}")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.ascontiguousarray(output, dtype=dtype)
            # The sum, which needs no other array, is finite unless an entry is not or it overflows.
            finite = np.isfinite(z.sum()) or np.isfinite(z).all()
    except (TypeError, ValueError) as error:
        raise UserError(f"normalizer {name}: {NOT_NUMBERS}") from error
    if not finite:
        raise UserError(
            f"normalizer {name}: gives points that are not finite under "
            f"precision={np.dtype(dtype).name}: choose another scheme, drop the features that it "
            "cannot take, or use precision=float64"
        )
    return z
