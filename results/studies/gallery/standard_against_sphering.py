"""The numbers of `exercises/standard_against_sphering`."""

import numpy as np

from normbench import names
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

TARGET = 0.3  # of the training cost
SPLIT = names.setting("dataset.split_seed")


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the iterations to the target cost, and the test errors there, over the splits.

    A run is at its target at the first iteration whose training cost is at most 0.3; a run that
    never is has NaN.
    `*_fewest`, `*_most`: iterations over the splits. `more_error`: the share of the test points
    misclassified there, sphered minus standard on each split, its mean; `more_error_doubt`: the
    standard deviation of these differences (divided by 5) over the root of 6.
    """
    iterations: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for row in as_rows(sweep.of_role(names.SCHEME).sort_values(SPLIT)):
        history = sweep.histories(sweep.runs[sweep.runs["run_id"] == row["run_id"]])
        history = history.sort_values("iteration")
        there = history[history[names.TRAIN_COST.key] <= TARGET].iloc[:1].reset_index(drop=True)
        there = there.reindex([0])
        wrong = there[names.TEST_MISCLASSIFICATIONS.key] / row["test_points"]
        iterations.setdefault(row["normalizer"], []).append(float(there["iteration"].iloc[0]))
        errors.setdefault(row["normalizer"], []).append(float(wrong.iloc[0]))
    more = np.subtract(errors["pca_sphere"], errors["standard"])
    return {
        "standard_fewest": float(np.min(iterations["standard"])),
        "standard_most": float(np.max(iterations["standard"])),
        "sphered_fewest": float(np.min(iterations["pca_sphere"])),
        "sphered_most": float(np.max(iterations["pca_sphere"])),
        "more_error": float(more.mean()),
        "more_error_doubt": float(more.std(ddof=1) / len(more) ** 0.5),
    }
