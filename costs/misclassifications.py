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
    # In 32 bits: numpy adds them twice as fast, and counts along an axis slower than it adds.
    found = np.add.reduce(right.view(np.uint8), axis=1, dtype=np.int32)
    return np.asarray(right.shape[1] - found, dtype=np.int64)


class Own(NamedTuple):
    """Each point's own score, and the largest of the point's scores.

    flat: the block's numbers as they lie in memory. places: `(R, p)`, where the own scores stand
    there. score, largest: `(R, p)`. counts: `(R,)`, the misclassified points.
    """

    flat: Array
    places: NDArray[np.intp]
    score: Array
    largest: Array
    counts: NDArray[np.int64]


def own_scores(scores: Array, targets: Array, largest: Array | None = None) -> Own:
    """Return the scores of the points' own classes in a block `(R, C, p)`, which stays as it is.

    scores: contiguous, or the first two axes of such a block `(C, R, p)` swapped. largest: of each
    point, `(R, p)` or what it is broadcast from, where it is known.
    One comparison of the own score with the largest tells who is misclassified where no other score
    is as large. `argmax` over a short axis would take as long as the whole cost.
    """
    runs, classes, points = scores.shape
    to_run, to_class = (stride // scores.itemsize for stride in scores.strides[:2])
    within = to_class * targets + np.arange(points)
    places = np.asarray(to_run * np.arange(runs)[:, None] + within, dtype=np.intp)
    flat = (scores if scores.flags.c_contiguous else scores.swapaxes(0, 1)).reshape(-1)
    own = flat.take(places, mode="clip")  # targets are in range; mode `raise` would copy
    largest = scores.max(axis=1) if largest is None else largest
    right = own == largest
    counts = count_false(right)
    smaller = scores < largest[:, None]
    if np.count_nonzero(smaller) < runs * (classes - 1) * points:  # the first of equal ones wins
        run, point = np.nonzero(right & (np.count_nonzero(smaller, axis=1) < classes - 1))
        first = np.argmin(smaller[run, :, point], axis=1)
        counts += np.bincount(run[first != targets[point]], minlength=runs)
    return Own(flat, places, own, largest, counts)
