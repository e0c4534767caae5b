"""Costs and errors in the own units of targets that are under a scheme."""

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import Rows, rows_per_block
from normbench.measures.contract import Array, Findings, FinishedJob, Measure, OfStep
from normbench.normalizers.decomposition import blocks


def take(job: FinishedJob) -> Findings:
    """Return the cost and the root mean square error of each step size at its last iteration.

    Predictions are mapped back by the inverse of the scheme of the targets, and compared with the
    targets in their own units, without the penalty: medians over the starts. A step size with a run
    that stopped being finite has none.
    """
    own_targets, descent = job.dataset.own_targets, job.descent
    assert own_targets is not None
    starts = len(descent.start)
    weights = descent.histories.weights.reshape(-1, starts, *descent.train.shape)
    is_finite = (descent.histories.diverged_at < 0).reshape(-1, starts).all(axis=1)

    def measure(number: int) -> dict[str, float]:
        values = [*zip(*(_evaluate(job, run, job.z, own_targets.y) for run in weights[number]))]
        metrics = [names.OWN_COST, names.OWN_ERROR]
        if job.z_test is not None and len(job.z_test):
            test = (_evaluate(job, run, job.z_test, own_targets.y_test) for run in weights[number])
            values += zip(*test)
            metrics += [names.OWN_TEST_COST, names.OWN_TEST_ERROR]
        return {metric.key: float(np.median(of_runs)) for metric, of_runs in zip(metrics, values)}

    numbers = map(int, np.flatnonzero(is_finite))
    return Findings(of_steps={number: OfStep(measure(number), {}) for number in numbers})


def _evaluate(job: FinishedJob, weights: Array, points: Rows, y: Array) -> tuple[float, float]:
    """Return cost and error in own units of the weights (1, M + 1) of one run on points (p, M)."""
    own_targets, linear = job.dataset.own_targets, job.descent.train.linear
    assert own_targets is not None
    assert linear is not None
    cost = squares = 0.0
    for block in blocks(len(points), rows_per_block(points)):
        predictions = own_targets.invert(linear.scores(weights, points[block])[0])
        cost += float(linear.cost(predictions[None, None], y[block])[0])
        squares += float(np.sum((predictions - y[block]) ** 2))
    return cost / len(y), (squares / len(y)) ** 0.5


def _applies(job: FinishedJob) -> bool:
    return job.dataset.own_targets is not None and job.descent.train.linear is not None


MEASURE = Measure(take, applies=_applies)
