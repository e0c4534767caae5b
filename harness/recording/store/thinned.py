"""Long histories for MLflow: some of their points, so that a chart looks the same."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 1001  # points that MLflow gets: of 1,000 iterations all
FIRST, SPANS = 100, 449  # all of the first, then the lowest and highest of each span, and the last


def places(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return which points (k,) of a history stay, at most `MOST`, in order.

    After the first hundred, spans are even on a log axis.
    """
    count = len(values)
    if count <= MOST:
        return np.arange(count)
    ends = np.unique(np.geomspace(FIRST, count, SPANS + 1).round().astype(int))
    spans = [slice(first, last) for first, last in pairwise(ends)]
    lows = [span.start + int(np.argmin(values[span])) for span in spans]
    highs = [span.start + int(np.argmax(values[span])) for span in spans]
    return np.unique(np.r_[:FIRST, lows, highs, count - 1])
