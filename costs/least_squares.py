"""The least-squares cost, for regression and for classes."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, sum_points
from normbench.costs.misclassifications import count_misclassified, find_target_scores


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores `(R, C, p)` into `2 (s - y)` in place.

    Class indices y stand for one-hot columns. Returns costs and misclassified points, each `(R,)`,
    see `fused` of `declare`; the latter mean nothing where the targets are real numbers.
    """
    if scores.shape[1] == 1:  # targets are real or -1/+1, otherwise class indices
        counts = count_misclassified(scores, targets)
        scores -= targets
    else:
        target_scores = find_target_scores(scores, targets)
        counts = target_scores.counts
        # `s - e_y`: only the scores of the own classes change.
        target_scores.flat[target_scores.indices] = target_scores.score - 1
    flat = scores.reshape(len(scores), -1)  # (R, C p)
    # `vecdot` adds up in the scores' type, `sum_points` always in float64.
    values = np.vecdot(flat, flat) if flat.dtype == np.float64 else sum_points(flat * flat)
    scores *= 2
    return values, counts


@declare(
    "binary",
    "multiclass",
    "regression",
    curvature=2.0,
    quadratic=True,
    squares=True,
    fused=_fused,
)
def least_squares(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `(s - y)^2`, without a factor 1/2.

    With class indices the sum also runs over C one-hot columns: `|s - e_y|^2 = |s|^2 - 2 s_y + 1`.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`: real or -1/+1 where C = 1, class indices otherwise.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 5.2.
    """
    if scores.shape[1] == 1:
        return anp.sum((scores[:, 0] - targets) ** 2, axis=-1)
    one_hot = (np.arange(scores.shape[1])[:, None] == targets).astype(float)
    return anp.sum((scores - one_hot) ** 2, axis=(1, 2))
