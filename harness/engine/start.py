"""The weights that the runs of a job start from."""

from typing import Any

import numpy as np

from normbench.costs.declaration import traits
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import iterate_blocks
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine.problem import Array
from normbench.engine.scheme import Applied, probe
from normbench.engine.settings import Settings
from normbench.models import Mlp
from normbench.normalizers.decomposition import CACHED_POINTS_PER_BLOCK, compute_deviations
from normbench.normalizers.on_columns import name_scheme

SAME_FUNCTION = "same_function"
# Two functions are equal if their scores differ by at most this share of the largest score.
SAME_SCORE_TOLERANCE = {"float64": 1e-10, "float32": 1e-4}


def default_start_name(cost: Any, model: Mlp | None = None) -> str:
    """Return the start that `start=null` means for a cost, before the scheme is consulted.

    Zero weights of a network are a stationary point, so that its weights start at random.
    """
    if model is not None:
        return "normal"
    return SAME_FUNCTION if traits(cost).positively_homogeneous else "zeros"


def starting_weights(
    settings: Settings, model: Any, scores: int, applied: Applied, data: Dataset
) -> Array:
    """Return the weights that the runs start from.

    Args:
        settings: The engine's, with the start, its scale, the seed and the number of starts.
        model: How scores follow from weights.
        scores: The number of scores of a point C.
        applied: The scheme, and the points under it.
        data: The data set, with the points before the scheme.

    Returns:
        `(starts, *shape)`, in float64.

    Raises:
        UserError: The scheme has no weights of the same function; or given weights have another
            shape than those of the model.
    """
    features = applied.z.shape[1]
    shape = model.shape(features, scores)
    rng = np.random.default_rng([settings.seed, *settings.draws])
    if settings.start == SAME_FUNCTION:
        return _same_function_weights(settings, scores, applied, data, rng)
    if settings.start == "zeros":
        return np.zeros((settings.starts, *shape))
    if settings.start == "normal":
        return model.start(settings, features, scores, rng)
    weights = np.array(settings.start, dtype=object)  # rows of other lengths would not be floats
    # The weights of one score may be a list without rows, and so may those of a network.
    if weights.squeeze().shape != tuple(length for length in shape if length > 1):
        given, wanted = (" x ".join(map(str, lengths)) for lengths in (weights.shape, shape))
        is_linear = len(shape) == 2
        parts = f" (a bias and {shape[-1] - 1} features a score)" if is_linear else ""
        raise UserError(f"start={settings.start}: has {given} weights; it takes {wanted}{parts}")
    # Given weights are one start: `Settings` refuses several starts of them.
    return weights.astype(float).reshape(settings.starts, *shape)


def _same_function_weights(
    settings: Settings, scores: int, applied: Applied, data: Dataset, rng: np.random.Generator
) -> Array:
    """Return weights of one function of the inputs, the same for every scheme.

    The function is `s = w0 + W T^-1/2 (x - m)`: m is the points' mean, T the diagonal matrix of
    the features' variances, and w0 and W are start_scale times a standard normal. Under a scheme
    `z = A (x - m) + b` the same function is `v0 + V z`: V is the shortest solution of `V A T^1/2 =
    W`, and `v0 = w0 - V b`. On test points the functions may differ along directions that a scheme
    dropped. The weights are `(starts, C, M + 1)`, bias first.

    `UserError` is raised for sparse points, and for a scheme without such weights: it is not
    affine, or maps two training points with different scores to one.
    """
    x, z = data.x, applied.z
    error = (
        f"start=same_function: normalizer {name_scheme(applied.scheme)} {{}}, so that no weights "
        "make the same function; use start=zeros, or start=normal"
    )
    scheme_map = None if isinstance(z, SparsePoints) else probe(applied.scheme, x, z)
    if scheme_map is None:
        raise UserError(error.format("is no affine map of dense features"))
    deviations = compute_deviations(x, scheme_map.centre)
    # A constant feature has the deviation 0; a smaller computed one is rounding.
    deviations = np.where(
        deviations > len(x) * np.finfo(np.float64).eps * np.abs(scheme_map.centre), deviations, 0.0
    )
    shape = settings.starts, scores, x.shape[1] + 1
    drawn_weights = settings.start_scale * rng.standard_normal(shape)
    # The shortest V with `V A T^1/2 = W`, and `v0 = w0 - V b`.
    inverse = np.linalg.pinv(scheme_map.matrix * deviations, rcond=1e-14)  # (N, M)
    slopes = drawn_weights[:, :, 1:] @ inverse
    bias = drawn_weights[:, :, 0] - slopes @ scheme_map.image
    weights = np.concatenate([bias[:, :, None], slopes], axis=2)
    # The shortest solution misses points that the scheme does not keep apart: compare all scores. A
    # constant feature has no part in them.
    wanted = drawn_weights[:, :, 1:] / np.where(deviations > 0, deviations, np.inf)
    gap = slopes @ scheme_map.matrix - wanted
    largest_gap, largest_score = 0.0, 0.0
    for _, rows in iterate_blocks(x, CACHED_POINTS_PER_BLOCK):
        centred = (rows - scheme_map.centre).T
        largest_gap = max(largest_gap, np.abs(gap @ centred).max())
        largest_score = max(largest_score, np.abs(wanted @ centred).max())
    if largest_gap > SAME_SCORE_TOLERANCE[settings.precision] * largest_score:
        raise UserError(error.format("does not keep all training points apart"))
    return weights
