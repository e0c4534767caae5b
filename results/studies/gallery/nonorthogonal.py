"""The numbers of `lecture/nonorthogonal`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep

MIDDLE = 30.0  # of arms at 0 and at 60 degrees


def numbers(sweep: Sweep) -> dict[str, float]:
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
