"""Thin long histories for MLflow, so that a chart looks the same."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_POINTS = 1001  # of a history in MLflow: all points of 1,000 iterations
# All of the first points, two extremes of each span, and the last point: 100 + 2 * 449 + 1.
FIRST, SPANS = 100, 449


def thinned_indices(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the increasing indices (k,) of at most `MAX_POINTS` points of a history.

    A short history keeps all points. A longer one keeps its first `FIRST` points, its last point,
    and the lowest and the highest point of each of at most `SPANS` spans, which are equally long on
    a logarithmic axis.

    Args:
        values: The history (K + 1,), all finite.
    """
    count = len(values)
    if count <= MAX_POINTS:
        return np.arange(count)
    ends = np.unique(np.geomspace(FIRST, count, SPANS + 1).round().astype(int))
    spans = [slice(first, last) for first, last in pairwise(ends)]
    lows = [span.start + int(np.argmin(values[span])) for span in spans]
    highs = [span.start + int(np.argmax(values[span])) for span in spans]
    return np.unique(np.r_[:FIRST, lows, highs, count - 1])
