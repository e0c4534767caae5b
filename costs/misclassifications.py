"""The count of misclassified points, from the same scores as the cost."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def count_misclassified(scores: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of misclassified points of each run, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`. With one score a point (C = 1, targets -1 and +1) a point
    is misclassified when `sign(s) != y`, so that a score of exactly 0 is; with C scores (targets
    0..C-1) when `argmax(s) != y`, the first of equal scores winning. A NaN is misclassified.
    """
    if scores.shape[1] == 1:
        return np.asarray(scores.shape[2] - np.count_nonzero(scores[:, 0] * targets > 0, axis=1))
    return np.count_nonzero(np.argmax(scores, axis=1) != targets, axis=1)
