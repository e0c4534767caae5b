"""How far the statistics of a batch move its points from where those of all points put them."""

import numpy as np

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.settings import FITTED

MAX_BATCHES = 50  # of the first pass


def take(job: FinishedJob) -> Findings:
    """Return how far the statistics of a batch move its points, relative to the points' size.

    It is the mean squared distance between the points under the statistics of their batch and under
    those of all points, over the mean square of the latter. The means are over the points of the
    first batches, and over the features. No number where all points are 0.
    """
    plan = job.descent.plan
    assert plan.batches is not None
    assert plan.statistics is not None
    squared_distances, squares = 0.0, 0.0
    for update in range(min(plan.batches.updates_per_pass, MAX_BATCHES)):
        fitted = job.z[plan.batches.points_of(update)]  # under the statistics of all points
        normalized = plan.statistics.of_batch(update)  # None: those of all points stay in force
        squares += float(np.sum(fitted**2))
        if normalized is not None:
            squared_distances += float(np.sum((normalized - fitted) ** 2))
    return Findings({names.DISTURBANCE.key: squared_distances / squares} if squares else {})


def _applies(job: FinishedJob) -> bool:
    """Return whether the statistics move with the batches."""
    return job.descent.settings.statistics != FITTED


MEASURE = Measure(take, applies=_applies)
