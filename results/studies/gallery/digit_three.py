"""The numbers of `lecture/digit_three`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep

KEPT = 49


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return how many threes there are, and what is explained of them.

    `points`: how many. `explained`: the first 49 eigenvalues of the covariance over the sum of all;
    `built`: the variance of the 49 coordinates over that of the pixels, which is the same.
    `different`: how many of the threes that stand for the plane are different ones.
    """
    schemes = sweep.of_role(names.SCHEME)
    (spectrum,) = sweep.arrays(schemes, "spectrum").values()
    (components,) = sweep.arrays(schemes, "components").values()
    (exemplars,) = sweep.arrays(schemes, "exemplars").values()
    values = spectrum["before"]
    return {
        "points": float(schemes["train_points"].iloc[0]),
        "explained": float(values[:KEPT].sum() / values.sum()),
        "built": float(components["share"][-1]),
        "different": float(len(np.unique(exemplars["place"]))),
    }
