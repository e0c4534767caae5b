"""Find the affine map of any fitted scheme by applying the scheme to a few points; its effects.

The map also makes the penalty on the weights of the features, and the steps of a preconditioner.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points, is_in_memory, take_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError, spell_setting
from normbench.engine.scheme.applying import Applied, map_sparse, normalize
from normbench.normalizers.decomposition import compute_deviations, compute_mean
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer, State, Update
from normbench.settings import L2_IN

Array = NDArray[np.float64]
TRANSFORMED, FEATURES = L2_IN
MAP_SAMPLE_SIZE = 256  # points that the map is tried on
MAP_TOLERANCE = 1e-9  # the error that the map may have, as a share of a coordinate's size
EFFECT_TOLERANCE = 1e-6  # a smaller scaling or shift is rounding


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
    square = np.diag(matrix**2) if matrix.ndim == 1 else matrix @ matrix.T
    is_diagonal = np.count_nonzero(square) == np.count_nonzero(square.diagonal())
    return np.asarray(l2 * (square.diagonal() if is_diagonal else square)).astype(dtype)


def with_fitted_scheme(optimizer: Optimizer, *points: Points) -> Optimizer:
    """Return an optimizer whose scheme is fitted on points; its steps are then under its map.

    Args:
        optimizer: The step rule, whose scheme is fitted in place; one without is returned.
        *points: Points (P, N), which are stacked for the fit.

    Returns:
        The step rule with the map T `(N + 1, M + 1)`, `[1 z] = [1 x] T`.

    Raises:
        UserError: The scheme is not affine, or the points are not in memory.
    """
    scheme = optimizer.scheme
    if scheme is None:
        return optimizer
    setting = f"optimizer.scheme={name_scheme(scheme)}"
    if not all(map(is_in_memory, points)):
        raise UserError(
            f"{setting}: is fitted on points in memory, under the scheme of normalizer; take "
            "normalizer= in place of preconditioned"
        )
    x = np.concatenate(points).astype(np.float64, copy=False)
    z, _ = normalize(scheme, x, x[:0], "float64")  # without test points
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
