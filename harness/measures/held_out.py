"""Errors of prediction: on held-out folds, and in the own units of targets under a scheme."""

import numpy as np

from normbench import names
from normbench.datasets import hold_out_fold
from normbench.datasets.on_disk.points import Points, iterate_blocks, rows_per_block
from normbench.measures.contract import BEST_STEP, Array, Findings, FinishedJob, OfStep, measure


@measure(on_request=True, depends_on=BEST_STEP)
def folds(job: FinishedJob) -> Findings:
    """Return the error and the cost of held-out points at the last iteration, by seed.

    Numbers are the means over the seeds; series hold one value for each seed. The training cost of
    a seed is the mean over its folds. The step size is the one that represents the scheme. For each
    fold the scheme is fitted, and the cost is descended, on the points outside the fold and on
    their noisy copies, if any. The error of a seed is that of all points, each under the descent
    that held it out. The folds of one seed share their data, so that a seed gives one value.
    Several starts are averaged. Nothing of a data set without folds.
    """
    data = job.dataset
    if not data.folds:
        return Findings()
    assert job.descend_dataset is not None
    misclassified, cost, train_cost = np.zeros((3, len(data.folds)))  # by seed
    # `data.folds` has for each seed the fold of every point, (P,).
    for seed, fold_of_point in enumerate(data.folds):
        fold_count = fold_of_point.max() + 1
        for fold in range(fold_count):
            fold_data = hold_out_fold(data, seed, fold)
            histories = job.descend_dataset(fold_data, job.descent.best_step.step_size)
            assert histories.test_cost is not None
            train_cost[seed] += histories.cost[:, -1].mean() / fold_count
            # Weighted by the points held out, so that the sum over P is a mean over all points.
            cost[seed] += len(fold_data.x_test) * histories.test_cost[:, -1].mean()
            if histories.test_misclassifications is not None:
                misclassified[seed] += histories.test_misclassifications[:, -1].mean()
    points, seeds = len(data.folds[0]), np.arange(len(data.folds))
    values_by_metric = {names.FOLDS_COST: cost / points, names.FOLDS_TRAIN_COST: train_cost}
    if data.classes:
        values_by_metric[names.FOLDS_ERROR] = misclassified / points
    return Findings(
        {metric.key: float(values.mean()) for metric, values in values_by_metric.items()},
        series={
            names.of_seed(metric).key: (seeds, values)
            for metric, values in values_by_metric.items()
        },
    )


@measure()
def own_units(job: FinishedJob) -> Findings:
    """Return the cost and the root mean square error of each step size at its last iteration.

    Both are of the training points, and of the test points if there are any. Predictions are mapped
    back by the inverse of the scheme of the targets, and compared with the targets in their own
    units, without the penalty. Numbers are medians over the starts. A step size with a run that
    stopped being finite has none, as has a job whose targets are under no scheme, or whose scores
    are not linear.
    """
    own_targets, descent = job.dataset.own_targets, job.descent
    if own_targets is None or descent.train.linear is None:
        return Findings()
    values = dict(zip((names.OWN_COST, names.OWN_ERROR), _evaluate(job, job.z, own_targets.y)))
    if job.z_test is not None and len(job.z_test):
        test_values = _evaluate(job, job.z_test, own_targets.y_test)
        values |= zip((names.OWN_TEST_COST, names.OWN_TEST_ERROR), test_values)
    # The runs of a step size, one for each start, are consecutive.
    by_step = (-1, len(descent.start))
    medians = {key: np.median(runs.reshape(by_step), axis=1) for key, runs in values.items()}
    is_finite = (descent.histories.diverged_at < 0).reshape(by_step).all(axis=1)
    return Findings(
        of_steps={
            int(n): OfStep({metric.key: float(row[n]) for metric, row in medians.items()}, {})
            for n in np.flatnonzero(is_finite)
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
    # The last weights of a run that diverged are huge or not finite; `own_units` leaves it out.
    with np.errstate(over="ignore", invalid="ignore"):
        for block, rows in iterate_blocks(points, rows_per_block(points)):
            for run, weights in enumerate(runs):
                predictions = own_targets.invert(linear.scores(weights, rows)[0])
                # A cost takes scores (R, C, p) and returns sums over the points, one for each run.
                costs[run] += linear.cost(predictions[None, None], y[block])[0]
                squares[run] += np.sum((predictions - y[block]) ** 2)
    return costs / len(y), np.sqrt(squares / len(y))
