"""The two-class perceptron cost, also called the ReLU cost."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import count_false


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, 1, p)` into `-y [-y s > 0]` in place.

    At `s = 0` the bracket is 1/2. Targets y are `(p,)`, -1 or +1. Returns costs and misclassified
    points, each `(R,)`, see `fused` of `declare`.
    """
    scores *= -targets
    t = scores[:, 0]  # a view `(R, p)` of `-y s`
    counts = count_false(t < 0)  # a point with `y s = 0` is misclassified
    values = sum_points(np.maximum(t, 0))
    # Twice the step function, as a sum of comparisons: `heaviside` branches, and is slower.
    np.add(t > 0, t >= 0, out=t, dtype=t.dtype)
    scores *= targets * -0.5  # 1/2 undoes the factor 2
    return values, counts


@declare("binary", positively_homogeneous=True, piecewise="linear", fused=_fused)
def perceptron(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(0, -y s)`.

    At `s = 0` the derivative is `-y / 2`, half way between the slopes of both sides: a
    sub-gradient, autograd's own, and one that lets a descent leave zero weights.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 6.4.
    """
    return anp.sum(anp.maximum(0.0, -targets * scores[:, 0]), axis=-1)
