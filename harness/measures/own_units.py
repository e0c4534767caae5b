"""Costs and errors in the own units of targets that are under a scheme."""

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import Points, iterate_blocks, rows_per_block
from normbench.measures.contract import Array, Findings, FinishedJob, Measure, OfStep


def take(job: FinishedJob) -> Findings:
    """Return the cost and the root mean square error of each step size at its last iteration.

    Both are of the training points, and of the test points if there are any. Predictions are mapped
    back by the inverse of the scheme of the targets, and compared with the targets in their own
    units, without the penalty. Numbers are medians over the starts. A step size with a run that
    stopped being finite has none.
    """
    own_targets, descent = job.dataset.own_targets, job.descent
    assert own_targets is not None
    values = dict(zip((names.OWN_COST, names.OWN_ERROR), _evaluate(job, job.z, own_targets.y)))
    if job.z_test is not None and len(job.z_test):
        test_values = _evaluate(job, job.z_test, own_targets.y_test)
        values |= zip((names.OWN_TEST_COST, names.OWN_TEST_ERROR), test_values)
    starts = len(descent.start)
    # The runs of a step size, one for each start, are consecutive.
    medians = {
        metric.key: np.median(of_runs.reshape(-1, starts), axis=1)
        for metric, of_runs in values.items()
    }
    is_finite = (descent.histories.diverged_at < 0).reshape(-1, starts).all(axis=1)
    return Findings(
        of_steps={
            int(number): OfStep(
                {key: float(by_step[number]) for key, by_step in medians.items()}, {}
            )
            for number in np.flatnonzero(is_finite)
        }
    )


def _evaluate(job: FinishedJob, points: Points, y: Array) -> tuple[Array, Array]:
    """Return the mean cost and the root mean square error of each run, in the targets' own units.

    Args:
        job: The finished job, whose R runs are evaluated at their last weights.
        points: Points under the scheme (p, M).
        y: The targets of these points in their own units (p,).

    Returns:
        Costs `(R,)` and errors `(R,)`.
    """
    own_targets, linear = job.dataset.own_targets, job.descent.train.linear
    assert own_targets is not None
    assert linear is not None
    runs = job.descent.histories.weights
    costs, squares = np.zeros((2, len(runs)))
    # The last weights of a run that diverged are huge or not finite; `take` leaves it out.
    with np.errstate(over="ignore", invalid="ignore"):
        for block, rows in iterate_blocks(points, rows_per_block(points)):
            targets = y[block]
            for run, weights in enumerate(runs):
                predictions = own_targets.invert(linear.scores(weights, rows)[0])
                # A cost takes scores (R, C, p) and returns sums over the points, one for each run.
                costs[run] += linear.cost(predictions[None, None], targets)[0]
                squares[run] += np.sum((predictions - targets) ** 2)
    return costs / len(y), np.sqrt(squares / len(y))


def _applies(job: FinishedJob) -> bool:
    """Return whether targets were standardized, and predictions are linear."""
    return job.dataset.own_targets is not None and job.descent.train.linear is not None


MEASURE = Measure(take, applies=_applies)
