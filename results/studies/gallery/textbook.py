"""The numbers of the studies in `conf/experiment/textbook`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery.batches import descents

TEXTBOOK_STEP = 0.1  # of section 7.8


def minibatch(sweep: Sweep) -> dict[str, float]:
    """Return how batches of 200 compare with all points, by scheme.

    `cost_SCHEME`, `missed_SCHEME`: after how many passes they have the lower cost, and fewer
    misclassified points, at the step size of the source. `best_SCHEME`: their lowest last cost of
    all step sizes over that of all points.
    """
    numbers: dict[str, float] = {}
    rows = sweep.of_role(names.SCHEME)
    arrays = sweep.arrays(rows, names.DESCENT_ARRAYS)
    by_scheme: dict[str, dict[int, tuple[np.ndarray, np.ndarray]]] = {}
    for descent in descents(sweep):
        missed = arrays[descent.job["label"]][names.TRAIN_MISCLASSIFICATIONS.key][:, 0]
        of_scheme = by_scheme.setdefault(str(descent.job["normalizer"]), {})
        of_scheme[descent.batch] = descent.costs, missed
        source = int(np.argmin(np.abs(descent.step_sizes - TEXTBOOK_STEP)))
    for scheme, of_scheme in by_scheme.items():
        batches, points = (of_scheme[batch] for batch in sorted(of_scheme))
        for name, ours, theirs in zip(("cost", "missed"), batches, points):
            numbers[f"{name}_{scheme}"] = float(np.sum(ours[source, 1:] < theirs[source, 1:]))
        lowest = [float(np.nanmin(costs[:, -1])) for costs, _ in (batches, points)]
        numbers[f"best_{scheme}"] = lowest[0] / lowest[1]
    return numbers
