"""The numbers of `notes/zca_images`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `zca_alike` and `pca_alike`: how much a whitened digit looks like the digit.

    The correlation, over the pixels, of an image and its coordinates under the scheme, row by row
    (of fewer coordinates, the others are 0); the mean over the 8 images that are recorded.
    """
    found = sweep.arrays(sweep.of_role(names.SCHEME), "components")
    return {
        f"{label.removesuffix('_sphere')}_alike": _alike(parts["points"], parts["under"])
        for label, parts in found.items()
    }


def _alike(images: np.ndarray, under: np.ndarray) -> float:
    whole = np.pad(under, ((0, 0), (0, images.shape[1] - under.shape[1])))
    return float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in zip(images, whole)]))
