"""The numbers of `exercises/pca_basis`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return what the basis is and does.

    `variance_k`: eigenvalue k of the covariance. `direction_1_n`: entry n of the first direction,
    its largest entry positive. `cosine` of the two directions. `correlation` of the two coordinates
    of the points under `pca`, in its size.
    """
    schemes = sweep.of_role(names.SCHEME)
    points = sweep.arrays(schemes, "points")
    first, second = (axis / np.linalg.norm(axis) for axis in points["centre"]["axes"])
    first = first * np.sign(first[np.abs(first).argmax()])
    large, small = sweep.arrays(schemes, "spectrum")["centre"]["before"]
    return {
        "variance_1": float(large),
        "variance_2": float(small),
        "direction_1_1": float(first[0]),
        "direction_1_2": float(first[1]),
        "cosine": abs(float(first @ second)),
        "correlation": abs(float(np.corrcoef(points["pca"]["points"].T)[0, 1])),
    }
