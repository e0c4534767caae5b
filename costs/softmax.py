"""The two-class softmax cost, also called logistic or cross-entropy."""

from functools import cache
from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import count_false
from normbench.costs.underflow import exp_in_place


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, 1, p)` into `-y sigma(-y s)` in place, where `sigma(t) = e^t / (1 + e^t)`.

    Targets y are `(p,)`, -1 or +1. Returns costs and misclassified points, each `(R,)`, see `fused`
    of `declare`.
    """
    scores *= -targets
    t = scores[:, 0]  # a view `(R, p)` of `-y s`
    counts = count_false(t < 0)  # a point with `y s = 0` is misclassified
    # Above the cap, log(1 + e^t) = t and sigma(t) = 1 to rounding, and e^t would overflow.
    cap = _largest_exponent(t.dtype)
    excess_over_cap: Any = 0.0
    # Only where some t exceeds the cap (or is NaN): the two extra passes are rare.
    if not np.maximum.reduce(t, axis=None, initial=0) <= cap:
        excess_over_cap = sum_points(np.maximum(t - cap, 0))
        np.minimum(t, cap, out=t)
    exp_in_place(t)  # t is e^t from here on
    scratch = np.log1p(t)
    values = sum_points(scratch) + excess_over_cap
    t /= np.add(t, 1, out=scratch)  # sigma, in the memory of the scores
    scores *= -targets
    return values, counts


@cache
def _largest_exponent(dtype: Any) -> Any:
    """Return an exponent whose power of e is finite in that type."""
    return np.log(np.finfo(dtype).max) - 1


@declare("binary", curvature=1 / 4, separable=True, fused=_fused)
def softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `log(1 + exp(-y s))`, in nats.

    `logaddexp` keeps value and derivative right where `exp` would overflow.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 6.3.
    """
    return anp.sum(anp.logaddexp(0.0, -targets * scores[:, 0]), axis=-1)
