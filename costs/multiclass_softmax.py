"""The multiclass softmax cost, also called multinomial logistic or cross-entropy."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from costs.declaration import declare


@declare("binary", "multiclass", score_per_class=True)
def multiclass_softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `logsumexp(s) - s_y`, in nats, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`, class indices. Shifted by the largest score, so that
    no score overflows. Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3.
    """
    largest = anp.max(scores, axis=1, keepdims=True)
    log_sum = anp.log(anp.sum(anp.exp(scores - largest), axis=1)) + largest[:, 0]
    return anp.sum(log_sum - scores[:, targets, np.arange(len(targets))], axis=-1)
