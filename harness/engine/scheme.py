"""The schemes of a job: their columns, their fit on points, and their map, found by probing.

A scheme is checked, fitted on the training points alone, and transforms the points. Of a memory map
one block is in memory at a time, unless a scheme needs all points at once. Sparse points stay
sparse: each feature is scaled, and a mean is subtracted as an offset.

The affine map of any fitted scheme is found by applying the scheme to a few points. It tells the
effects of the scheme, the penalty on the weights of the features, and the steps of a
preconditioner.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, RobustScaler
from sklearn.utils import get_tags

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import (
    Points,
    is_in_memory,
    iterate_blocks,
    take_rows,
    transform_rows,
)
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.tables import find_features
from normbench.datasets.values import (
    FLOAT64_BYTES,
    UserError,
    available_bytes,
    refuse_larger,
    spell_setting,
)
from normbench.normalizers.decomposition import PointsCache, compute_deviations, compute_mean
from normbench.normalizers.on_columns import (
    FeatureSelection,
    OnColumns,
    describe_fault,
    learns_by_blocks,
    member_schemes,
    name_scheme,
)
from normbench.optimizers import Optimizer, State, Update
from normbench.settings import L2_IN

CONVERTED_POINTS_PER_BLOCK = 256  # points that become float64 at a time: 1.6 MB at 784 features
COLUMNS_SHARE = 1 / 8  # of the free memory, for some columns of all points
TRANSFORMERS_SETTING = "normalizer.transformers"  # of a `ColumnTransformer`
Array = NDArray[np.float64]
TRANSFORMED, FEATURES = L2_IN
MAP_SAMPLE_SIZE = 256  # points that the map is tried on
MAP_TOLERANCE = 1e-9  # the error that the map may have, as a share of a coordinate's size
EFFECT_TOLERANCE = 1e-6  # a smaller scaling or shift is rounding


class Applied(NamedTuple):
    """A fitted scheme, and the points of a data set under it.

    z: the training points (P, M). z_test: the test points (Q, M). seconds: those of the fit.
    """

    scheme: Any
    z: Points
    z_test: Points
    seconds: float


def check_scheme(scheme: Any) -> None:
    """Check that a scheme is a transformer with valid options.

    Raises:
        UserError: It is a class, has no `fit` or `transform`, or refuses its options.
    """
    # A scheme on some columns is checked without its selection.
    scheme = scheme.scheme if isinstance(scheme, OnColumns) else scheme
    name = getattr(scheme, "__name__", type(scheme).__name__)
    if isinstance(scheme, type) or not (hasattr(scheme, "fit") and hasattr(scheme, "transform")):
        raise UserError(
            f"normalizer {name}: is not a transformer, with fit and transform; name one, or give "
            "an object of one, such as sklearn.preprocessing.StandardScaler()"
        )
    if hasattr(scheme, "_parameter_constraints"):  # scikit-learn can check them before the fit
        with named_errors(f"normalizer {name}"):
            scheme._validate_params()


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
    except (MemoryError, TypeError, ValueError) as error:  # a TypeError if it asks for targets
        raise UserError(f"{setting}: {' '.join(str(error).split())}{remedy}") from error


def apply_scheme(
    scheme: Any, data: Dataset, dtype: Any, moments: PointsCache | None = None
) -> Applied:
    """Fit a scheme on the points of a data set that `fit_on` names; return all points under it.

    Args:
        scheme: The normalizer, which is fitted in place.
        data: The data set, whose points stay as they are: other jobs use them.
        dtype: The type of the transformed points.
        moments: Those of the training points, which other schemes share; None for none.

    Returns:
        Points (P, M) and (Q, M) of the kind of the data's: contiguous arrays, memory maps or sparse
        points.

    Raises:
        UserError: The scheme refuses the points, returns anything but one row of finite numbers a
            point, or needs more memory or disk than there is. The message names it.
    """
    tick, saved_before = time.perf_counter(), moments.saved if moments else 0.0
    with named_errors(f"normalizer {name_scheme(scheme)}"):
        x, x_test = map(_protect, (data.x, data.x_test))
        if data.fit_on == "all" and len(x_test):
            fit_scheme(scheme, np.concatenate([x, x_test]))
        else:
            fit_scheme(scheme, x, moments)
        z = transform_points(scheme, x, dtype)
        z_test = transform_points(scheme, x_test, dtype, z.shape[1]) if len(x_test) else z[:0]
    # The seconds of this job alone: those of moments that an earlier job cached count, too.
    saved = moments.saved - saved_before if moments else 0.0
    return Applied(scheme, z, z_test, time.perf_counter() - tick + saved)


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
    size = CONVERTED_POINTS_PER_BLOCK if is_in_memory(x) else None
    if isinstance(x, SparsePoints):
        _fit_sparse(scheme, x)
    elif hasattr(scheme, "learn") and (moments or not is_in_memory(x)):
        scheme.learn(moments or PointsCache(x))
    elif is_in_memory(x) and (x.dtype == np.float64 or getattr(scheme, "fits_in_float64", False)):
        scheme.fit(x)
    elif learns_by_blocks(scheme) or (hasattr(scheme, "partial_fit") and not is_in_memory(x)):
        for block, rows in iterate_blocks(x, size):
            # `fit` forgets what a fitted scheme has learned, such as the points of another fold.
            (scheme.partial_fit if block.start else scheme.fit)(np.asarray(rows, np.float64))
    elif is_in_memory(x):
        scheme.fit(np.asarray(x, np.float64))
    else:
        _fit_on_disk(scheme, x)


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
    """Fit a scheme that does not learn by blocks on a memory map (P, N)."""
    if isinstance(scheme, Pipeline):
        *before, last = member_schemes(scheme)
        for link in before:
            fit_scheme(link, x)
            x = _write_float64(x, link.transform)
        fit_scheme(last, x)
    elif isinstance(scheme, OnColumns):
        scheme.select(x[:1])
        fit_scheme(scheme.scheme, _write_float64(x, lambda rows: rows[:, scheme.positions_]))
    elif hasattr(scheme, "__sklearn_tags__") and not get_tags(scheme).requires_fit:
        scheme.fit(np.asarray(x[:2], np.float64))  # it learns the number of features alone
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
        scheme.fit(np.asarray(x, np.float64))


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
        copies.append(clone(scheme).fit(np.concatenate(columns).astype(np.float64)))
    for name in ("center_", "scale_"):  # None in all schemes where the option is off
        parts = [getattr(copy, name) for copy in copies]
        setattr(scheme, name, None if parts[0] is None else np.concatenate(parts))
    scheme.n_features_in_ = x.shape[1]


def _write_float64(x: Points, transform: Callable[[Points], Points]) -> Points:
    """Return a memory map, in float64, of what a function makes of rows of points x (P, N)."""
    width = transform(np.asarray(x[:1], np.float64)).shape[1]
    return transform_rows(x, lambda rows: transform(np.asarray(rows, np.float64)), width)


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
        output = scheme.transform(np.asarray(rows, np.float64))
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


def with_columns(scheme: Any, data: Dataset) -> Any:
    """Return a copy of a scheme, each part of which is on features of a data set.

    A selection that was made on another part of the same data, where categories gave other
    features, is made again.

    Args:
        scheme: The normalizer, or None, which stays None.
        data: The data set.
    """
    scheme = deepcopy(scheme)
    for selection in _find_selections(scheme):
        # Nothing was selected yet, or among other features.
        if selection.feature_names != data.feature_names:
            positions = find_features(data, selection.columns, selection.setting)
            selection.select(positions, data.feature_names)
    return scheme


def _find_selections(scheme: Any) -> Iterator[FeatureSelection]:
    """Yield the selections of a scheme and of its parts.

    A `ColumnTransformer` may name its columns: such names are replaced by selections, in place.
    """
    if isinstance(scheme, OnColumns):
        yield scheme.columns
        yield from _find_selections(scheme.scheme)
    if isinstance(scheme, ColumnTransformer):
        scheme.transformers = list(scheme.transformers)
        for number, (name, member, columns) in enumerate(scheme.transformers):
            # Names, and no indices, mask, slice or function.
            listed = [columns] if isinstance(columns, str) else columns
            if isinstance(listed, (list, tuple)) and any(isinstance(each, str) for each in listed):
                columns = FeatureSelection(columns, TRANSFORMERS_SETTING)
                scheme.transformers[number] = name, member, columns
            if isinstance(columns, FeatureSelection):
                yield columns
    for member in member_schemes(scheme):
        yield from _find_selections(member)


class AffineMap(NamedTuple):
    """The affine map `z = A (x - centre) + image` of a fitted scheme.

    matrix: A `(M, N)`, or `(N,)`, one factor for each feature, where A is diagonal. centre: `(N,)`,
    the points' mean where an offset would otherwise cost digits, else any point, such as 0. image:
    `(M,)`, the centre under the scheme.
    """

    matrix: Array
    centre: Array
    image: Array


class Effects(NamedTuple):
    """The effects of an affine map `z = A x + b` on given points.

    centres: z has the mean 0, and b is not. shifts: b is not 0. scales: A changes lengths along
    some direction that it keeps. rotates: A mixes features.
    """

    centres: bool
    shifts: bool
    scales: bool
    rotates: bool


def sample_rows(count: int) -> NDArray[np.intp]:
    """Return the indices of at most `MAP_SAMPLE_SIZE` points, evenly spaced among `count`."""
    return np.unique(np.linspace(0, count - 1, MAP_SAMPLE_SIZE).astype(int))


def probe(scheme: Any, x: Points, z: Points) -> AffineMap | None:
    """Return a fitted scheme's map, found by a few transformed points.

    The scheme transforms the mean, and the mean moved along each feature by that feature's standard
    deviation. The resulting map must then give z for some of the points. A scheme of sparse points
    scales each feature.

    Args:
        scheme: The fitted normalizer.
        x: Points before the scheme (P, N).
        z: The same points under it (P, M).

    Returns:
        The map, about the points' mean; None where the scheme is not affine.
    """
    if isinstance(x, SparsePoints):
        (factors, offset), centre = map_sparse(scheme, x.shape[1]), x.csr.mean(axis=0)
        return AffineMap(factors, centre, factors * centre + offset)
    centre, rows = compute_mean(x), sample_rows(len(x))
    steps, some_x, some_z = compute_deviations(x, centre), take_rows(x, rows), take_rows(z, rows)
    # The deviation of a constant feature is rounding.
    varies = steps > MAP_TOLERANCE * np.abs(centre)
    steps = np.where(varies, steps, np.maximum(np.abs(centre), 1.0))
    with np.errstate(all="ignore"):
        try:
            probes = np.vstack([centre, centre + np.diag(steps)])
            images = np.asarray(scheme.transform(probes), dtype=np.float64)
        except ValueError:  # a scheme may refuse points that it has not seen
            return None
        if images.shape != (len(probes), some_z.shape[1]) or not np.isfinite(images).all():
            return None
        moves = (probes[1:] - centre).diagonal()  # the steps, as rounding left them
        matrix = (images[1:] - images[0]).T / moves
        centred = some_x - centre
        error = np.abs(centred @ matrix.T + images[0] - some_z).max(axis=0)
        # float32 rounds more.
        tolerance = max(MAP_TOLERANCE, 100 * float(np.finfo(some_z.dtype).eps))
        # Of each coordinate, whose terms may cancel.
        scale = np.abs(some_z).max(axis=0) + np.abs(centred).max(axis=0) @ np.abs(matrix).T
        is_affine = bool(np.all(error <= tolerance * scale))
        return AffineMap(matrix, centre, images[0]) if is_affine else None


def find_effects(scheme_map: AffineMap, z: Points) -> Effects:
    """Return the effects of a map, up to rounding.

    Args:
        scheme_map: The map of a fitted scheme.
        z: The points under the scheme (P, M), of which some are read.

    Returns:
        Whether it centres, shifts, scales and rotates. A permutation of features does not rotate.
    """
    z = z if is_in_memory(z) else take_rows(z, sample_rows(len(z)))
    matrix, centre, image = scheme_map
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    is_used = np.abs(matrix) > MAP_TOLERANCE * np.abs(matrix).max(initial=0.0)
    rotates = bool((is_used.sum(axis=1) > 1).any())  # features may stand in another order
    # Without scaling, the rows of A that are not 0 are orthonormal: a dropped direction gives 0.
    rows = np.where(is_used, matrix, 0.0)[is_used.any(axis=1)]
    gaps = rows @ rows.T - np.eye(len(rows)) if rotates else rows.sum(axis=1) - 1
    scales = bool(np.abs(gaps).max(initial=0.0) > EFFECT_TOLERANCE)
    origin = image - matrix @ centre  # the image of x = 0
    # What counts as 0 is compared with the points' deviations and with the terms of `origin`.
    spread = compute_deviations(z, compute_mean(z))
    zero_bounds = EFFECT_TOLERANCE * np.maximum(spread, np.abs(matrix) @ np.abs(centre))
    # A scheme that centres has a map about the points' mean, and takes that mean to 0.
    shifts = bool(np.any(np.abs(origin) > zero_bounds))
    centres = shifts and bool(np.all(np.abs(image) <= zero_bounds))
    return Effects(centres, shifts, scales, rotates)


def penalty_of(
    l2: float, l2_in: str, applied: Applied, x: Points, dtype: Any
) -> float | NDArray[Any]:
    """Return the l2 of the transformed weights that equals the chosen penalty.

    On the transformed weights w every scheme minimizes another function. A scheme `z = A x + b` has
    the feature weights `A' w`, so that a penalty on them is `l2 w A A' w'`, and all affine schemes
    that keep every direction minimize the same function.

    Args:
        l2: The penalty's factor in `l2 sum w^2`, without 1/2.
        l2_in: `transformed` or `features`.
        applied: The fitted normalizer, from N features to M, and the points under it.
        x: The training points (P, N) before it.
        dtype: The type of an array that is returned.

    Returns:
        `l2` itself for transformed weights, or if it is 0. For features `l2 A A'`, `(M, M)`, or its
        diagonal `(M,)` where it is diagonal.

    Raises:
        UserError: The penalty is on the features, and the scheme is not affine.
    """
    if not l2 or l2_in == TRANSFORMED:
        return l2
    scheme_map = probe(applied.scheme, x, applied.z)
    if scheme_map is None:
        setting, remedy = (spell_setting("cost.l2_in", place) for place in (l2_in, TRANSFORMED))
        rule = f"normalizer {name_scheme(applied.scheme)} is no affine map of the features"
        raise UserError(f"{setting}: {rule}, and has no weights of theirs; use {remedy}")
    matrix = scheme_map.matrix
    if matrix.ndim == 1:
        return np.asarray(l2 * matrix**2, dtype)
    square = matrix @ matrix.T
    is_diagonal = np.count_nonzero(square) == np.count_nonzero(square.diagonal())
    return np.asarray(l2 * (square.diagonal() if is_diagonal else square)).astype(dtype)


def with_fitted_scheme(optimizer: Optimizer, *points: Array) -> Optimizer:
    """Return an optimizer whose scheme is fitted on points; its steps are then under its map.

    Args:
        optimizer: The step rule, whose scheme is fitted in place; one without is returned.
        *points: Arrays (P, N), which are stacked for the fit.

    Returns:
        The step rule with the map T `(N + 1, M + 1)`, `[1 z] = [1 x] T`.

    Raises:
        UserError: The scheme is not affine.
    """
    scheme = optimizer.scheme
    if scheme is None:
        return optimizer
    setting = f"optimizer.scheme={name_scheme(scheme)}"
    x = np.concatenate(points).astype(np.float64, copy=False)
    with named_errors(setting):
        fit_scheme(scheme, x)
        z = transform_points(scheme, x, np.float64)
    scheme_map = probe(scheme, x, z)
    if scheme_map is None:
        raise UserError(
            f"{setting}: is not affine, so it has no preconditioner; take one that centres, scales "
            "or rotates, such as pca_sphere"
        )
    bias = np.eye(x.shape[1] + 1, 1)  # 1 above zeros, (N + 1, 1)
    offset = scheme_map.image - scheme_map.matrix @ scheme_map.centre
    matrix = np.hstack([bias, np.vstack([offset, scheme_map.matrix.T])])

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        # T T' is symmetric: multiplied from the right it acts on the last axis, of N + 1.
        direction = gradient.astype(np.float64, copy=False) @ matrix @ matrix.T
        stepped, state = optimizer.step(weights, direction, state, step_size)
        return stepped.astype(weights.dtype, copy=False), state

    # Neither plain nor rotation-equivariant: T favours some directions of the weights. The scheme
    # stays, since its map has the size of the points' features.
    return optimizer._replace(step=step, plain=False, rotation_equivariant=False)
