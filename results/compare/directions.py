"""What the curvature at the start predicts of a descent, direction by direction."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Parts = Mapping[str, Any]
CURVATURE, SHARE, TIMES = "window_curvature", "window_share", "window_times"
EXPLAINED = 0.25  # of the excess: a prediction further off than that explains nothing


def predicted(parts: Parts, step: float, iterations: float) -> float:
    """Return the share of the excess that the directions at the start predict to be left.

    1 at most: a direction along which the cost would grow is not predicted beyond that.
    """
    with np.errstate(over="ignore"):
        left = np.minimum((1 - step * parts[CURVATURE]) ** (2.0 * iterations), 1.0)
    share = np.asarray(parts[SHARE], dtype=float)
    return float(left @ share / share.sum()) if share.sum() > 0 else 1.0
