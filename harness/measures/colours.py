"""A picture, and noisy copies of it: each has one shift of colour for all of its pixels."""

import numpy as np

from normbench.datasets import Dataset
from normbench.datasets.augment import NOISE_SHAPES, factor_noise
from normbench.measures.contract import Findings, Finished, Measure

COPIES = 12
NOISE = 0.2  # times the root of the eigenvalue
LONGEST = 160  # pixels of a side that is kept


def _unfit(dataset: Dataset) -> str:
    if dataset.picture is not None and len(dataset.x) == np.prod(dataset.picture):
        return ""
    picture = "is of all pixels of a picture, as dataset=china"
    return f"{picture}; {dataset.name} has {len(dataset.x)} points"


def take(made: Finished) -> Findings:
    """Return the picture, and 12 draws of each kind of noise, by seed 0.

    `picture` (h, w, 3): every so many of its pixels, from 0 to 255. `aligned`, `round` (12, 3): the
    shift of a copy: 0.2 times a standard normal, along each principal axis of the colours times the
    root of its eigenvalue, or of the same size, alike in all directions.
    """
    assert made.dataset.picture is not None
    x = made.dataset.x.astype(np.float64)
    every = -(-max(made.dataset.picture) // LONGEST)
    picture = x.reshape(*made.dataset.picture, -1)[::every, ::every].astype(np.uint8)
    drawn = NOISE * np.random.default_rng(0).standard_normal((COPIES, x.shape[1]))
    shifts = {kind: drawn @ factor_noise(x, kind) for kind in NOISE_SHAPES}
    return Findings(arrays={"picture": picture, **shifts})


MEASURE = Measure(take, record="colours", of_descent=False, unfit=_unfit)
