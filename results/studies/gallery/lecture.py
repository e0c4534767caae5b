"""The numbers of the studies in `conf/experiment/lecture`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import arrays_of_only_scheme

KEPT_COMPONENTS = 49


def digit_three(sweep: Sweep) -> dict[str, float]:
    """Return the variance of the threes that 49 components explain.

    `explained`: the sum of the first 49 eigenvalues of the covariance over the sum of all.
    `different`: the number of distinct digits among the exemplars of the plane.
    """
    values = arrays_of_only_scheme(sweep, "spectrum")["before"]
    return {
        "explained": float(values[:KEPT_COMPONENTS].sum() / values.sum()),
        "different": float(len(np.unique(arrays_of_only_scheme(sweep, "exemplars")["place"]))),
    }


MIDDLE_ANGLE = 30.0  # degrees, the bisector of the arms at 0 and at 60 degrees


def nonorthogonal(sweep: Sweep) -> dict[str, float]:
    """Return the direction of the first principal axis, in degrees from the first feature.

    `off_middle`: its distance from the bisector of the two arms, at 30 degrees. `standard`: the
    direction for standardized points.
    """
    arrays_by_label = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    angles = {}
    for label, arrays in arrays_by_label.items():
        # An axis has no sign: its angle is from 0 to 180.
        first_axis = arrays["axes"][0]
        angles[label] = float(np.degrees(np.arctan2(first_axis[1], first_axis[0])) % 180)
    return {"off_middle": abs(angles["centre"] - MIDDLE_ANGLE), "standard": angles["standard"]}


def old_faithful(sweep: Sweep) -> dict[str, float]:
    """Return `correlation` r: two standardized features have the eigenvalues 1 + r and 1 - r."""
    spectra = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum")
    largest, smallest = spectra["standard"]["after"]
    return {"correlation": float((largest - smallest) / (largest + smallest))}
