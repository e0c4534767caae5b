"""Where the runs of a job start."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError
from normbench.engine.settings import Settings

Array = NDArray[Any]


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
