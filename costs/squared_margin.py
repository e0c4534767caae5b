"""The two-class squared-margin cost: the squared hinge of support vector machines."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import count_false


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, 1, p)` into `-2 y max(0, 1 - y s)` in place.

    Targets y are `(p,)`, -1 or +1. Returns costs and misclassified points, each `(R,)`, see `fused`
    of `declare`.
    """
    scores *= -targets
    t = scores[:, 0]  # a view `(R, p)` of `-y s`
    counts = count_false(t < 0)  # a point with `y s = 0` is misclassified
    t += 1
    np.maximum(t, 0, out=t)  # `max(0, 1 - y s)`, in the memory of the scores
    values = sum_points(t * t)
    scores *= -2 * targets
    return values, counts


@declare("binary", curvature=2.0, piecewise="quadratic", fused=_fused)
def squared_margin(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(0, 1 - y s)^2`, without a factor 1/2.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, sections 6.4 and 6.5.
    """
    return anp.sum(anp.maximum(0.0, 1.0 - targets * scores[:, 0]) ** 2, axis=-1)
