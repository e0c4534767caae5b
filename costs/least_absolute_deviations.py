"""The least-absolute-deviations cost, for regression."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, 1, p)` into `sign(s - y)` in place.

    Returns costs `(R,)`, and None for misclassified points; see `fused` of `declare`. Targets y
    are `(p,)`, real.
    """
    scores -= targets
    values = sum_points(np.abs(scores[:, 0]))
    # The sign, as a difference of comparisons: `sign` branches, and is slower.
    np.subtract(scores > 0, scores < 0, out=scores, dtype=scores.dtype)
    return values, None


@declare("regression", piecewise="linear", fused=_fused)
def least_absolute_deviations(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `|s - y|`.

    At `s = y` the derivative is 0: a sub-gradient, autograd's own.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, real.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 5.3.
    """
    residual = scores[:, 0] - targets
    # Not `abs`: its second derivative is 0, and autograd gives rounding instead.
    return anp.sum(anp.maximum(residual, -residual), axis=-1)
