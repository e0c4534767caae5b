"""The two-class softmax cost, also called logistic or cross-entropy."""

from typing import Any

import autograd.numpy as anp

from costs.declaration import declare


@declare("binary")
def softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `log(1 + exp(-y s))`, in nats, `(R,)`.

    scores: `(R, 1, p)`; targets: `(p,)`, -1 or +1. `logaddexp` keeps value and derivative right
    where `exp` would overflow. Watt, Borhani, Katsaggelos, Machine Learning Refined, section 6.3.
    """
    return anp.sum(anp.logaddexp(0.0, -targets * scores[:, 0]), axis=-1)
