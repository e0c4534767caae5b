"""Count misclassified points, from the same scores as the cost."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def count_misclassified(scores: Array, targets: Array) -> NDArray[np.int64]:
    """Return the number of misclassified points of each run.

    With one score a point (C = 1, targets -1 and +1) a point is misclassified when `sign(s) != y`,
    so that a score of exactly 0 is; with C scores (targets 0..C-1) when `argmax(s) != y`, the first
    of equal scores winning. A NaN is misclassified.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, -1/+1 or class indices.

    Returns:
        Counts `(R,)`.
    """
    if scores.shape[1] == 1:  # targets are -1 and +1, otherwise class indices
        return count_false(scores[:, 0] * targets > 0)
    # `argmax` returns the index of a NaN, which may be the point's own class.
    own_scores = scores[:, targets, np.arange(len(targets))]
    return count_false((np.argmax(scores, axis=1) == targets) & ~np.isnan(own_scores))


def count_false(is_correct: Array) -> NDArray[np.int64]:
    """Return the number of False entries `(R,)` in each row of a mask `(R, p)`."""
    # The True entries are added up as bytes. A sum in 32 bits takes half the time of one in 64;
    # `count_nonzero` along an axis is slower.
    correct_counts = np.add.reduce(is_correct.view(np.uint8), axis=1, dtype=np.int32)
    return np.asarray(is_correct.shape[1] - correct_counts, dtype=np.int64)


class TargetScores(NamedTuple):
    """The score of each point's own class, and the largest of the point's scores.

    Attributes:
        flat: The block's entries as they lie in memory: a view, so that writing to it changes the
            scores.
        indices: Where the scores of the own classes lie in `flat`, `(R, p)`.
        score: The scores of the own classes, `(R, p)`.
        largest: The largest score of each point, `(R, p)` or an array that broadcasts to it.
        counts: The number of misclassified points of each run, `(R,)`.
    """

    flat: Array
    indices: NDArray[np.intp]
    score: Array
    largest: Array
    counts: NDArray[np.int64]


def find_target_scores(scores: Array, targets: Array, largest: Array | None = None) -> TargetScores:
    """Return the scores of the points' own classes in a block, and count misclassified points.

    A point is misclassified if its own score is not the largest, or if a class of a lower index
    has the same largest score. The comparison replaces `argmax`, which over a short axis takes as
    long as the whole cost.

    Args:
        scores: `(R, C, p)`, which stay unchanged: contiguous, or a contiguous block `(C, R, p)`
            with its first two axes swapped (a transposed view, of shape `(R, C, p)`).
        targets: `(p,)`, class indices.
        largest: The largest score of each point if it is known, `(R, p)` or an array that
            broadcasts to it; None computes it.

    Returns:
        The scores, where they lie in memory, and the counts of `count_misclassified`.
    """
    runs, classes, points = scores.shape
    # In entries, not in bytes: how far apart neighbours along an axis lie in memory.
    run_stride, class_stride = (stride // scores.itemsize for stride in scores.strides[:2])
    point_offsets = class_stride * targets + np.arange(points)
    indices = np.asarray(run_stride * np.arange(runs)[:, None] + point_offsets, dtype=np.intp)
    # Either layout as a view of its memory, (R C p,).
    flat = (scores if scores.flags.c_contiguous else scores.swapaxes(0, 1)).reshape(-1)
    target_scores = flat.take(indices, mode="clip")  # targets are in range; mode `raise` would copy
    largest = scores.max(axis=1) if largest is None else largest
    is_correct = target_scores == largest
    counts = count_false(is_correct)
    smaller = scores < largest[:, None]
    # A point without a tie has C - 1 smaller scores. Where several scores are the largest, the
    # point belongs to the first of their classes.
    if np.count_nonzero(smaller) < runs * (classes - 1) * points:
        run, point = np.nonzero(is_correct & (np.count_nonzero(smaller, axis=1) < classes - 1))
        first = np.argmin(smaller[run, :, point], axis=1)  # the first class of largest score
        counts += np.bincount(run[first != targets[point]], minlength=runs)
    return TargetScores(flat, indices, target_scores, largest, counts)
