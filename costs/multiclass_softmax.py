"""The multiclass softmax cost, also called multinomial logistic or cross-entropy."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from normbench.costs.declaration import Sums, declare, total
from normbench.costs.misclassifications import own_scores
from normbench.costs.underflow import exp_in_place


def _fused(scores: Any, targets: Any) -> Sums:
    """Turn scores into `softmax(s) - e_y` in place; return sums and counts. See `declare`."""
    scores -= scores.max(axis=1)[:, None]
    own = own_scores(scores, targets, largest=np.zeros((1, 1), scores.dtype))
    exp_in_place(scores)
    # A product with ones: half the time of a sum over the short axis.
    sums = np.ones(scores.shape[1], scores.dtype) @ scores
    values = total(np.log(sums) - own.score)
    scores *= (1 / sums)[:, None]
    scores -= np.arange(scores.shape[1])[:, None] == targets
    return values, own.counts


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
    """Return the sum over points of `logsumexp(s) - s_y`, in nats, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`, class indices. Shifted by the largest score, so that
    no score overflows. Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3.
    Its curvature is bounded in Boehning, Annals of the Institute of Statistical Mathematics 44.
    """
    largest = anp.max(scores, axis=1, keepdims=True)
    log_sum = anp.log(anp.sum(anp.exp(scores - largest), axis=1)) + largest[:, 0]
    return anp.sum(log_sum - scores[:, targets, np.arange(len(targets))], axis=-1)
