"""The least-squares cost, for regression and for classes."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from costs.declaration import declare


@declare("binary", "multiclass", "regression")
def least_squares(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `(s - y)^2`, without a factor 1/2, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`: real or -1/+1 where C = 1; class indices otherwise, and
    then the sum runs over C one-hot columns: `|s - e_y|^2 = |s|^2 - 2 s_y + 1`.
    Watt, Borhani, Katsaggelos, Machine Learning Refined, section 5.2.
    """
    if scores.shape[1] == 1:
        return anp.sum((scores[:, 0] - targets) ** 2, axis=-1)
    one_hot = (np.arange(scores.shape[1])[:, None] == targets).astype(float)
    return anp.sum((scores - one_hot) ** 2, axis=(1, 2))
