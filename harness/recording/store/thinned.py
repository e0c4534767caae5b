"""Thin long histories for MLflow, so that a chart looks the same."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_POINTS = 1001  # of a history in MLflow: all points of 1,000 iterations
FIRST, SPANS = 100, 449  # all of the first points, the extremes of each span, and the last point


def thinned_indices(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the increasing indices (k,) of at most `MAX_POINTS` points of a history.

    After the first hundred, spans are even on a log axis.
    """
    count = len(values)
    if count <= MAX_POINTS:
        return np.arange(count)
    ends = np.unique(np.geomspace(FIRST, count, SPANS + 1).round().astype(int))
    spans = [slice(first, last) for first, last in pairwise(ends)]
    lows = [span.start + int(np.argmin(values[span])) for span in spans]
    highs = [span.start + int(np.argmax(values[span])) for span in spans]
    return np.unique(np.r_[:FIRST, lows, highs, count - 1])
