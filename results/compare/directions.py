"""Predict the excess after a descent from the curvature at the start, direction by direction."""

from collections.abc import Mapping
from typing import Any

import numpy as np

WindowArrays = Mapping[str, Any]
LAYER_CURVATURE, LAYER_SHARE = "layer_curvature", "layer_share"
EXPLANATION_TOLERANCE = 0.25  # of the excess: a prediction further off than that explains nothing


def predicted_excess(arrays: WindowArrays, step: float, iterations: float) -> float:
    """Return the share of the starting excess that the quadratic model predicts to remain.

    The excess along a direction of curvature h is multiplied by `(1 - step * h) ** 2` in each
    iteration. A direction along which it would grow keeps its starting excess.

    Args:
        arrays: The arrays of a scheme run: `LAYER_CURVATURE` `(n,)` and `LAYER_SHARE` `(n,)`.
        step: The step size.
        iterations: The number of iterations.

    Returns:
        The remaining share, at most 1; 1 where no direction has any of the starting excess.
    """
    with np.errstate(over="ignore"):
        remaining_shares = np.minimum(
            (1 - step * arrays[LAYER_CURVATURE]) ** (2.0 * iterations), 1.0
        )
    share = np.asarray(arrays[LAYER_SHARE], dtype=float)
    return float(remaining_shares @ share / share.sum()) if share.sum() > 0 else 1.0
