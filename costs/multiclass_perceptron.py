"""The multiclass perceptron cost."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import find_target_scores


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, C, p)` into their derivative in place.

    The derivative is `[s = max s] / k - e_y`, where k scores share the largest value, for class
    indices y `(p,)`. Returns costs and misclassified points, each `(R,)`, see `fused` of `declare`.
    """
    target_scores = find_target_scores(scores, targets)
    flat = target_scores.flat
    values = sum_points(target_scores.largest - target_scores.score)
    np.copyto(scores, scores == target_scores.largest[:, None])  # 1 at the largest scores, else 0
    # k, by a product with ones: half the time of a sum over the short axis.
    tie_counts = np.ones(scores.shape[1], scores.dtype) @ scores
    # k is 0 where a score is NaN: no score equals the largest one then, which is NaN.
    scores *= (1 / np.maximum(tie_counts, 1))[:, None]
    # mode `clip`, since `raise` would copy; the indices are in range.
    flat[target_scores.indices] = flat.take(target_scores.indices, mode="clip") - 1
    return values, target_scores.counts


@declare(
    "binary",
    "multiclass",
    score_per_class=True,
    shift_invariant=True,
    positively_homogeneous=True,
    piecewise="linear",
    fused=_fused,
)
def multiclass_perceptron(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(s) - s_y`.

    Where k scores share the largest value, the derivative of `max` is 1/k at each: a sub-gradient,
    autograd's own, and one that lets a descent leave zero weights.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, class indices.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3.
    """
    target_scores = scores[:, targets, np.arange(len(targets))]
    return anp.sum(anp.max(scores, axis=1) - target_scores, axis=-1)
