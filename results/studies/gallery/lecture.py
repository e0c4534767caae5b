"""The numbers of the studies in `conf/experiment/lecture`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import of_only

KEPT = 49


def digit_three(sweep: Sweep) -> dict[str, float]:
    """Return what is explained of the threes.

    `explained`: the first 49 eigenvalues of the covariance over the sum of all. `different`: how
    many of the threes that stand for the plane are different ones.
    """
    values = of_only(sweep, "spectrum")["before"]
    return {
        "explained": float(values[:KEPT].sum() / values.sum()),
        "different": float(len(np.unique(of_only(sweep, "exemplars")["place"]))),
    }


MIDDLE = 30.0  # of arms at 0 and at 60 degrees


def nonorthogonal(sweep: Sweep) -> dict[str, float]:
    """Return the direction of the first principal axis, in degrees from the first feature.

    `off_middle`: how far it is from the middle of the two arms, at 30 degrees; `standard`: where
    it is once the points are standardized.
    """
    found = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    angles = {}
    for label, parts in found.items():
        first = parts["axes"][0]
        angles[label] = float(np.degrees(np.arctan2(first[1], first[0])) % 180)
    return {"off_middle": abs(angles["centre"] - MIDDLE), "standard": angles["standard"]}


def old_faithful(sweep: Sweep) -> dict[str, float]:
    """Return `correlation` r: two standardized features have the eigenvalues 1 + r and 1 - r."""
    spectra = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum")
    first, second = spectra["standard"]["after"]
    return {"correlation": float((first - second) / (first + second))}
