"""Points that several threads read at once."""

import threading

import numpy as np


def wrong_spans(points, expected, threads=8, looks=50):
    """Return the spans of rows that some thread read otherwise than they are, (first, last)."""
    wrong = []

    def look(seed):
        rng = np.random.default_rng(seed)
        for first, last in np.sort(rng.integers(0, len(expected) + 1, (looks, 2)), axis=1):
            if not np.array_equal(points.read(first, last), expected[first:last]):
                wrong.append((first, last))

    started = [threading.Thread(target=look, args=(seed,)) for seed in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return wrong
