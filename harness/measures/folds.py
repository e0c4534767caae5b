"""Cross-validation: the error on held-out points, each point held out once for each seed."""

import numpy as np

from normbench import names
from normbench.datasets import hold_out_fold
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure


def take(job: FinishedJob) -> Findings:
    """Return the error and the cost of held-out points at the last iteration, by seed.

    Numbers are the means over the seeds; series hold one value for each seed. The training cost of
    a seed is the mean over its folds. The step size is the one that represents the scheme. For each
    fold the scheme is fitted, and the cost is descended, on the points outside the fold and on
    their noisy copies, if any. The error of a seed is that of all points, each under the descent
    that held it out. The folds of one seed share their data, so that a seed gives one value.
    Several starts are averaged.
    """
    step_size = job.descent.best_step.step_size
    assert job.descend_dataset is not None
    data = job.dataset
    misclassified, cost, train_cost = np.zeros((3, len(data.folds)))  # by seed
    # `data.folds` has for each seed the fold of every point, (P,).
    for seed, fold_of_point in enumerate(data.folds):
        fold_count = fold_of_point.max() + 1
        for fold in range(fold_count):
            fold_data = hold_out_fold(data, seed, fold)
            histories = job.descend_dataset(fold_data, step_size)
            assert histories.test_cost is not None
            train_cost[seed] += histories.cost[:, -1].mean() / fold_count
            # Weighted by the points held out, so that the sum over P is a mean over all points.
            cost[seed] += len(fold_data.x_test) * histories.test_cost[:, -1].mean()
            if histories.test_misclassifications is not None:
                misclassified[seed] += histories.test_misclassifications[:, -1].mean()
    points = len(data.folds[0])
    values_by_metric = {names.FOLDS_COST: cost / points, names.FOLDS_TRAIN_COST: train_cost}
    if data.classes:
        values_by_metric[names.FOLDS_ERROR] = misclassified / points
    seeds = np.arange(len(data.folds))
    return Findings(
        {metric.key: float(values.mean()) for metric, values in values_by_metric.items()},
        series={
            names.of_seed(metric).key: (seeds, values)
            for metric, values in values_by_metric.items()
        },
    )


def _applies(job: FinishedJob) -> bool:
    """Return whether the data set has folds, and a step size represents the scheme."""
    return bool(job.dataset.folds) and job.descent.best is not None


MEASURE = Measure(take, has_setting=True, applies=_applies, depends_on=BEST_STEP)
