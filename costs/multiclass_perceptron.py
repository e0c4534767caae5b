"""The multiclass perceptron cost."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, total
from normbench.costs.misclassifications import own_scores


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores into `[s = max s] - e_y` in place; return sums and counts. See `declare`."""
    own = own_scores(scores, targets)
    flat = own.flat
    values = total(own.largest - own.score)
    np.copyto(scores, scores == own.largest[:, None])
    sharing = np.ones(scores.shape[1], scores.dtype) @ scores
    scores *= (1 / np.maximum(sharing, 1))[:, None]  # 0 where a score is NaN
    flat[own.places] = flat.take(own.places, mode="clip") - 1
    return values, own.counts


@declare(
    "binary",
    "multiclass",
    score_per_class=True,
    shift_invariant=True,
    positively_homogeneous=True,
    pieces="linear",
    fused=_fused,
)
def multiclass_perceptron(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(s) - s_y`, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`, class indices. Where k scores share the largest value,
    the derivative of `max` is 1/k at each: a sub-gradient, autograd's own, and one that lets a
    descent leave zero weights. Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3.
    """
    own = scores[:, targets, np.arange(len(targets))]
    return anp.sum(anp.max(scores, axis=1) - own, axis=-1)
