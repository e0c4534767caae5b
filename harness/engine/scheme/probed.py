"""Find the affine map of any fitted scheme by applying the scheme to a few points."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points, is_in_memory, take_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine.scheme.sparse import map_sparse
from normbench.normalizers.decomposition import compute_deviations, compute_mean

Array = NDArray[np.float64]
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
    deviation. The resulting map must then give z for some of the points. A scheme
    of sparse points scales each feature.

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
    if scheme_map.matrix.ndim == 1:
        scheme_map = scheme_map._replace(matrix=np.diag(scheme_map.matrix))
    largest_entry = np.abs(scheme_map.matrix).max(initial=0.0)
    is_used = np.abs(scheme_map.matrix) > MAP_TOLERANCE * largest_entry
    rotates = bool((is_used.sum(axis=1) > 1).any())  # features may stand in another order
    if rotates:
        # Without scaling, the rows of A that are not 0 are orthonormal.
        products = scheme_map.matrix @ scheme_map.matrix.T
        # A dropped direction gives zeros.
        is_kept = products.diagonal() > (MAP_TOLERANCE * largest_entry) ** 2
        scales = bool(
            np.abs(products[np.ix_(is_kept, is_kept)] - np.eye(int(is_kept.sum()))).max(initial=0.0)
            > EFFECT_TOLERANCE
        )
    else:  # one factor a coordinate, which is 1 without scaling
        factors = np.where(is_used, scheme_map.matrix, 0.0).sum(axis=1)
        scales = bool(np.abs(factors - 1).max(initial=0.0) > EFFECT_TOLERANCE)
    origin = scheme_map.image - scheme_map.matrix @ scheme_map.centre  # the image of x = 0
    # What counts as 0 is compared with the points' deviations and with the terms of `origin`.
    spread = compute_deviations(z, compute_mean(z))
    reach = np.abs(scheme_map.matrix) @ np.abs(scheme_map.centre)
    zero_bounds = EFFECT_TOLERANCE * np.maximum(spread, reach)
    # A scheme that centres has a map about the points' mean, and takes that mean to 0.
    shifts = bool(np.any(np.abs(origin) > zero_bounds))
    centres = shifts and bool(np.all(np.abs(scheme_map.image) <= zero_bounds))
    return Effects(centres, shifts, scales, rotates)
