"""Cross-validation: the error on points that were held out, each point once a seed."""

import numpy as np

from normbench import names
from normbench.datasets import hold_out_fold
from normbench.measures.contract import BEST, Findings, Finished, Measure


def take(made: Finished) -> Findings:
    """Return the error and the cost of the held-out points at the last iteration, by seed.

    And the training cost there, the mean over the folds.

    At the step size that stands for the scheme. For each fold the scheme is fitted and the cost is
    descended anew, on the points outside it and noisy copies of them, where there are any; a seed's
    error is that of all points, each as the descent left it that did not see it. The folds of one
    seed share their data, so that a seed is one value. Of several starts the mean.
    """
    step_size = made.descent.best_step.step_size
    assert made.elsewhere is not None
    data = made.dataset
    wrong, cost, train = np.zeros((3, len(data.folds)))
    for seed, numbers in enumerate(data.folds):
        for number in range(numbers.max() + 1):
            there = hold_out_fold(data, seed, number)
            found = made.elsewhere(there, step_size)
            assert found.test_cost is not None
            train[seed] += found.cost[:, -1].mean() / (numbers.max() + 1)
            cost[seed] += len(there.x_test) * found.test_cost[:, -1].mean()
            if found.test_misclassifications is not None:
                wrong[seed] += found.test_misclassifications[:, -1].mean()
    points = len(data.folds[0])
    parts = {names.FOLDS_COST: cost / points, names.FOLDS_TRAIN_COST: train}
    if data.classes:
        parts[names.FOLDS_ERROR] = wrong / points
    seeds = np.arange(len(data.folds))
    return Findings(
        {metric.key: float(values.mean()) for metric, values in parts.items()},
        series={names.of_seed(metric).key: (seeds, values) for metric, values in parts.items()},
    )


def _applies(made: Finished) -> bool:
    return bool(made.dataset.folds) and made.descent.best is not None


MEASURE = Measure(take, asked=True, applies=_applies, follows=BEST)
