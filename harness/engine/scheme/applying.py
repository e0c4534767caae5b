"""Check the scheme of a job, fit it on the training points alone, and transform the points."""

import inspect
import warnings
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Rows, rows_per_block
from normbench.datasets.on_disk.sparse import sparse_or_none
from normbench.datasets.values import UserError, in_python, refuse_larger
from normbench.engine.scheme import probed
from normbench.engine.scheme.learned import fit_by_blocks
from normbench.engine.scheme.probed import AffineMap
from normbench.engine.scheme.sparse import check_sparse, normalize_sparse
from normbench.engine.scheme.under import Under, choose_fold
from normbench.normalizers.affine import (
    find_affine_map,
    find_affine_traits,
    learns_by_blocks,
    member_schemes,
)
from normbench.normalizers.decomposition import (
    Decompositions,
    Surrogate,
    blocks,
    compute_mean,
    surrogate_rows,
)
from normbench.normalizers.on_columns import NOT_NUMBERS, OnColumns, describe_fault, name_scheme

FEWER_FEATURES = "choose options that give fewer features"
CONVERTED_POINTS_PER_BLOCK = 256  # points that become float64 at a time: 1.6 MB at 784 features


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


def normalize(
    scheme: Any,
    x: Rows,
    x_test: Rows,
    dtype: Any,
    decompositions: Decompositions | None = None,
    fold: bool = False,
) -> tuple[Any, Any]:
    """Fit the scheme on points x; return x and x_test transformed, as dtype.

    The scheme works in float64 whatever the type of the points, a block of points at a time.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Training points (P, N).
        x_test: Test points (Q, N); Q = 0 without any.
        dtype: The type of the transformed points.
        decompositions: The decompositions of x, which other schemes share; None to make new ones.
        fold: Whether points `Under` the scheme are returned in place of a transformed copy; points
            that are read by blocks are always returned so.

    Returns:
        Points (P, M) and (Q, M), contiguous arrays or `Under`.

    Raises:
        UserError: The scheme refuses the points, returns anything but one row of finite numbers a
            point, or needs more memory than there is. The message names it.
    """
    x_view, x_test_view = _protect(x), _protect(x_test)
    try:
        # Numerical warnings (overflow, a power that did not converge) are judged by the outcome.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            sparse = sparse_or_none(x)
            if sparse is not None:
                check_sparse(scheme, sparse, fold)
                x_decompositions = decompositions or Decompositions(x)
                return normalize_sparse(scheme, sparse, x_test, dtype, x_decompositions)
            if fold or not isinstance(x, np.ndarray):
                return _normalize_on_demand(scheme, x_view, x_test_view, dtype, decompositions)
            fit_scheme(scheme, x_view, decompositions)
            z = transform_points(scheme, x_view, dtype)
            z_test = transform_points(scheme, x_test_view, dtype) if len(x_test) else z[:0]
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


def fit_scheme(scheme: Any, x: Array, decompositions: Decompositions | None) -> None:
    """Fit a scheme in float64: scikit-learn's power transform, for one, is wrong in float32.

    The project's schemes (`fits_in_float64`) convert the points themselves, and scikit-learn's
    scalers learn block by block, so that neither needs a float64 copy of all points.

    Args:
        scheme: The normalizer, which is fitted in place.
        x: Points (P, N) in memory, of either type.
        decompositions: The decompositions of x, which other schemes share; None to use none.
    """
    if decompositions is not None and hasattr(scheme, "fit_from"):
        scheme.fit_from(x, decompositions)
    elif x.dtype == np.float64 or getattr(scheme, "fits_in_float64", False):
        scheme.fit(x)
    elif learns_by_blocks(scheme):
        first, *other_blocks = blocks(len(x), CONVERTED_POINTS_PER_BLOCK)
        scheme.fit(x[first].astype(np.float64))
        for block in other_blocks:
            scheme.partial_fit(x[block].astype(np.float64))
    else:
        scheme.fit(x.astype(np.float64))


def _normalize_on_demand(
    scheme: Any, x: Rows, x_test: Rows, dtype: Any, decompositions: Decompositions | None
) -> tuple[Under, Any]:
    """Fit a scheme on x block by block; return x and x_test `Under` it.

    The arguments are those of `normalize`. Without test points the second value is an empty array.
    """
    x_decompositions = decompositions or Decompositions(x)
    fit_by_blocks(scheme, x, x_decompositions)
    name = name_scheme(scheme)

    def transform(rows: Array) -> Array:
        """Return points (p, N) under the scheme, checked."""
        output = scheme.transform(rows.astype(np.float64, copy=False))
        return _check_output(name, output, len(rows), dtype)

    # A few points, which tell the number of features and the map.
    sample = x[probed.sample_rows(len(x))].astype(np.float64)
    z = _check_output(name, scheme.transform(sample), len(sample), np.float64)
    scheme_map = _find_map(scheme, sample, z, x_decompositions, x)
    fold = None if scheme_map is None else choose_fold(scheme_map, sample, dtype)

    def surrogates() -> tuple[Surrogate, Surrogate]:
        """Return the surrogates of the training points before the scheme and under it."""
        surrogate = x_decompositions.surrogate
        if scheme_map is None:  # the points under it are read: a pass over them, or two
            mean = compute_mean(normalized)
            return surrogate, Surrogate(surrogate_rows(normalized, mean) + mean)
        # The rows of the surrogate about the centre of the map: the mean, or 0.
        centred_rows = x_decompositions.centred_rows + (x_decompositions.mean - scheme_map.centre)
        return surrogate, Surrogate(scheme_map.apply(centred_rows) + scheme_map.image)

    options = transform, z.shape[1], dtype, scheme_map, fold, surrogates
    normalized = Under(x, *options)
    if not len(x_test):
        return normalized, np.empty((0, z.shape[1]), dtype)
    return normalized, Under(x_test, *options)


def _find_map(
    scheme: Any, x: Array, z: Array, points_decompositions: Decompositions, all_points: Rows
) -> AffineMap | None:
    """Return a fitted scheme's map; None where the scheme is not affine.

    The centre of the map is 0 where the scheme does not centre, else the mean of the points.

    Args:
        scheme: The fitted normalizer.
        x: A few points before the scheme (p, N).
        z: The same points under it (p, M).
        points_decompositions: The decompositions of all points, for their mean.
        all_points: All points before the scheme (P, N). A map that the scheme does not declare is
            tried on them in one pass: a scheme may bend at a few points alone, as one that clips.
    """
    declared_map, traits = find_affine_map(scheme), find_affine_traits(scheme)
    centre = np.zeros(x.shape[1])
    # A scheme without traits may centre.
    if traits is None or traits.centres:
        scheme_mean = getattr(scheme, "mean_", None)  # saves a pass over the points
        has_mean = scheme_mean is not None and np.shape(scheme_mean) == centre.shape
        centre = np.asarray(scheme_mean) if has_mean else points_decompositions.mean
    if declared_map is None:
        scheme_map = probed.fit_map(scheme, centre, x.std(axis=0), x, z)
        if scheme_map is None:
            return None
        for block in blocks(len(all_points), rows_per_block(all_points)):
            rows = all_points[block].astype(np.float64, copy=False)
            if not probed.agrees(scheme_map, rows, scheme.transform(rows)):
                return None
        return scheme_map
    return AffineMap(declared_map.matrix, centre, scheme.transform(centre[None])[0])


def transform_points(scheme: Any, x: Array, dtype: Any) -> Array:
    """Return points under a fitted scheme, a block at a time.

    Args:
        scheme: The fitted normalizer.
        x: Points (P, N) in memory.
        dtype: The type of the result.

    Returns:
        Points (P, M), contiguous; x itself if unchanged.

    Raises:
        UserError: The scheme's output is not one row of finite numbers a point, or not of one
            width.
    """
    name = name_scheme(scheme)
    # A scheme that returns its input, such as the identity, needs no copy by blocks: one row tells.
    if x.dtype == np.dtype(dtype) == np.float64 and np.shares_memory(scheme.transform(x[:1]), x):
        return _check_output(name, scheme.transform(x), len(x), dtype)
    z = np.empty((0, 0))
    for block in blocks(len(x), CONVERTED_POINTS_PER_BLOCK):
        z_block = scheme.transform(x[block].astype(np.float64, copy=False))
        z_block = _check_output(name, z_block, block.stop - block.start, dtype)
        if not len(z):  # the first block tells the number of features
            shape = (len(x), z_block.shape[1])
            size = np.dtype(dtype).itemsize * shape[0] * shape[1]
            refuse_larger(f"normalizer {name}", size, FEWER_FEATURES)
            z = np.empty(shape, dtype=dtype)
        if z_block.shape[1] != z.shape[1]:  # numpy would repeat a single feature
            raise UserError(
                f"normalizer {name}: gives {z.shape[1]} features for some points and "
                f"{z_block.shape[1]} for others; a scheme gives every point the same ones"
            )
        z[block] = z_block
    return z


def _protect(x: Rows) -> Rows:
    """Return a read-only view of an array, because other jobs use the same points.

    Points that are read by blocks are returned as they are.
    """
    if not isinstance(x, np.ndarray):
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
