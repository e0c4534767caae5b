"""The multiclass softmax cost, also called multinomial logistic or cross-entropy."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import find_target_scores
from normbench.costs.underflow import exp_in_place


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, C, p)` into `softmax(s) - e_y` in place, for class indices y `(p,)`.

    Returns costs and misclassified points, each `(R,)`, see `fused` of `declare`.
    """
    # The cost and its derivative stay the same, and no exponential overflows: the largest is 0.
    scores -= scores.max(axis=1)[:, None]
    target_scores = find_target_scores(scores, targets, largest=np.zeros((1, 1), scores.dtype))
    exp_in_place(scores)
    # A product with ones: half the time of a sum over the short axis.
    sums = np.ones(scores.shape[1], scores.dtype) @ scores
    values = sum_points(np.log(sums) - target_scores.score)
    scores *= (1 / sums)[:, None]
    scores -= np.arange(scores.shape[1])[:, None] == targets  # the one-hot columns e_y, (C, p)
    return values, target_scores.counts


@declare(
    "binary",
    "multiclass",
    score_per_class=True,
    curvature=1 / 2,
    shift_invariant=True,
    separable=True,
    fused=_fused,
)
def multiclass_softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `logsumexp(s) - s_y`, in nats.

    The scores are shifted by the largest, so that none overflows.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, class indices.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3. The bound of its
        curvature: Boehning, Annals of the Institute of Statistical Mathematics 44.
    """
    largest = anp.max(scores, axis=1, keepdims=True)
    log_sum = anp.log(anp.sum(anp.exp(scores - largest), axis=1)) + largest[:, 0]
    return anp.sum(log_sum - scores[:, targets, np.arange(len(targets))], axis=-1)
