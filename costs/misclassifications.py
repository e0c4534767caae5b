"""The count of misclassified points, from the same scores as the cost."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def count_misclassified(scores: Array, targets: Array) -> NDArray[np.int64]:
    """Return the number of misclassified points of each run, `(R,)`.

    scores: `(R, C, p)`; targets: `(p,)`. With one score a point (C = 1, targets -1 and +1) a point
    is misclassified when `sign(s) != y`, so that a score of exactly 0 is; with C scores (targets
    0..C-1) when `argmax(s) != y`, the first of equal scores winning. A NaN is misclassified.
    """
    if scores.shape[1] == 1:
        return count_false(scores[:, 0] * targets > 0)
    return np.count_nonzero(np.argmax(scores, axis=1) != targets, axis=1)


def count_false(right: Array) -> NDArray[np.int64]:
    """Return the number of False points `(R,)` of each run, of `(R, p)`."""
    # Row by row: numpy counts a whole array several times faster than along an axis.
    return np.array([row.size - np.count_nonzero(row) for row in right], dtype=np.int64)


class Own(NamedTuple):
    """Each point's own score, taken out of the block.

    flat: the block's numbers as they lie in memory. places: `(R, p)`, where it stood there. score:
    `(R, p)`. rival: `(R, p)`, the largest of the point's other scores. counts: `(R,)`, the
    misclassified points.
    """

    flat: Array
    places: NDArray[np.intp]
    score: Array
    rival: Array
    counts: NDArray[np.int64]


def take_own(scores: Array, targets: Array) -> Own:
    """Take the scores of the points' own classes out of `(R, C, p)`, leaving minus infinity.

    scores: contiguous, or the first two axes of such a block `(C, R, p)` swapped.
    One comparison of the own score with the largest of the others then tells who is misclassified.
    It also shows equal scores, of which the first in the row wins. `argmax` over a short axis would
    take as long as the whole cost.
    """
    runs, _, points = scores.shape
    to_run, to_class = (stride // scores.itemsize for stride in scores.strides[:2])
    within = to_class * targets + np.arange(points)
    places = np.asarray(to_run * np.arange(runs)[:, None] + within, dtype=np.intp)
    flat = (scores if scores.flags.c_contiguous else scores.swapaxes(0, 1)).reshape(-1)
    own = flat.take(places, mode="clip")  # targets are in range; mode `raise` would copy
    flat[places] = -np.inf
    rival = scores.max(axis=1)
    counts = count_false(own > rival)
    tied = own == rival
    if tied.any():
        run, point = np.nonzero(tied)
        first_rival = np.argmax(scores[run, :, point] == rival[run, point, None], axis=1)
        counts -= np.bincount(run[targets[point] < first_rival], minlength=runs)
    return Own(flat, places, own, rival, counts)
