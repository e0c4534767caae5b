"""A picture and noisy copies of it: each copy shifts the colour of all pixels alike."""

import numpy as np

from normbench.datasets import Dataset
from normbench.datasets.sampling import NOISE_SHAPES, factor_noise
from normbench.measures.contract import Findings, FinishedJob, Measure

NOISY_COPIES = 12
NOISE = 0.2  # times the root of the eigenvalue
MAX_SIDE = 160  # pixels of the longer side


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why a data set has no colours; empty where it has.

    Its points must be all pixels of a picture, of which `dataset.picture` is height and width.
    """
    if dataset.picture is not None and len(dataset.x) == np.prod(dataset.picture):
        return ""
    picture = "is of all pixels of a picture, as dataset=china"
    return f"{picture}; {dataset.name} has {len(dataset.x)} points"


def take(job: FinishedJob) -> Findings:
    """Return the picture, and 12 draws of each kind of noise, by seed 0.

    `picture` (h, w, 3): a regular sample of its pixels, from 0 to 255. `aligned`, `round` (12, 3):
    the colour shift of each copy, normally distributed. `aligned`: along each principal axis of the
    colours, with 0.2 times the standard deviation of the colours there. `round`: of the same total
    size, alike in all directions.
    """
    assert job.dataset.picture is not None
    x = job.dataset.x.astype(np.float64)
    stride = -(-max(job.dataset.picture) // MAX_SIDE)  # rounded up
    picture = x.reshape(*job.dataset.picture, -1)[::stride, ::stride].astype(np.uint8)
    drawn = NOISE * np.random.default_rng(0).standard_normal((NOISY_COPIES, x.shape[1]))
    # The same draws for both kinds, each with its own covariance.
    shifts = {shape: drawn @ factor_noise(x, shape) for shape in NOISE_SHAPES}
    return Findings(arrays={"picture": picture, **shifts})


MEASURE = Measure(take, record="colours", of_descent=False, reason_against=_reason_against)
