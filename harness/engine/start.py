"""Where the runs of a job start."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError
from normbench.engine.scheme.probed import probe
from normbench.engine.settings import Settings
from normbench.normalizers.decomposition import compute_deviations, small_blocks

Array = NDArray[Any]
EQUAL = {"float64": 1e-10, "float32": 1e-4}  # of the largest score: beyond, it is another function


def starts(settings: Settings, shape: tuple[int, ...]) -> Array:
    """Return the weights that the runs start from, `(starts, *shape)`; shape: of one model."""
    every = (settings.starts, *shape)
    if settings.start == "zeros":
        return np.zeros(every)
    if settings.start == "normal":
        rng = np.random.default_rng([settings.seed, *settings.draws])
        return settings.start_scale * rng.standard_normal(every)
    try:
        weights = np.array(settings.start, dtype=float)
    except ValueError as error:
        raise UserError(f"start={settings.start}: its rows differ in length") from error
    if weights.size != np.prod(shape):
        width = shape[-1]
        raise UserError(
            f"start={settings.start}: has {weights.size} weights; it takes "
            f"{' x '.join(map(str, shape))} (a bias and {width - 1} features a score)"
        )
    return weights.reshape(every)


def same_function(settings: Settings, classes: int, scheme: Any, x: Array, z: Array) -> Array:
    """Return weights `(starts, C, M + 1)` that make one function of the inputs under every scheme.

    It is drawn as start_scale times a standard normal, on the features standardized:
    `s = w0 + W T^-1/2 (x - m)`. Under a map `z = A (x - m) + b` its weights are `V A T^1/2 = W`,
    of least length, and `v0 = w0 - V b`. Raises `UserError` where the scheme has none such: it is
    not affine, or maps two training points that the function tells apart to one. On test points the
    functions may differ along directions that a scheme dropped.
    """
    name = type(scheme).__name__
    remedy = "use start=zeros, or start=normal"
    found = probe(scheme, x, z)
    if found is None:
        raise UserError(
            f"start=same_function: normalizer {name} is no affine map of the features, so that no "
            f"weights make the same function under it; {remedy}"
        )
    size = compute_deviations(x, found.centre)
    size = np.where(size > len(x) * np.finfo(np.float64).eps * np.abs(found.centre), size, 0.0)
    rng = np.random.default_rng([settings.seed, *settings.draws])
    drawn = settings.start_scale * rng.standard_normal((settings.starts, classes, x.shape[1] + 1))
    back = np.linalg.pinv(found.matrix * size, rcond=1e-14)  # (N, M)
    slopes = drawn[:, :, 1:] @ back
    bias = drawn[:, :, 0] - slopes @ found.image
    weights = np.concatenate([bias[:, :, None], slopes], axis=2)
    scale, gap, largest = np.where(size > 0, size, np.inf), 0.0, 0.0
    for block in small_blocks(x):
        scaled = (x[block] - found.centre) / scale
        wanted = drawn[:, :, 1:] @ scaled.T + drawn[:, :, :1]
        made = slopes @ z[block].T.astype(np.float64) + bias[:, :, None]
        gap, largest = max(gap, np.abs(made - wanted).max()), max(largest, np.abs(wanted).max())
    if gap > EQUAL[settings.precision] * largest:
        raise UserError(
            f"start=same_function: normalizer {name} does not keep all training points apart, so "
            f"that no weights make the same function under it; {remedy}"
        )
    return weights
