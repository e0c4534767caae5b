"""The numbers of `notes/augmented_copies`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep

KIND = names.setting("dataset.augment")


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the shape of the training points with and without copies, and the test error.

    `none`, `round`: the largest eigenvalue of the covariance over the smallest, the median over
    the splits; `aligned_over_none`: that of aligned copies over that of none. `more_error`: the
    share of the test points misclassified at the end, with round copies less without, the mean
    over the splits.
    """
    schemes = sweep.of_role(names.SCHEME)
    spectra = sweep.arrays(schemes, "spectrum")
    condition: dict[str, float] = {}
    error: dict[str, float] = {}
    for kind, rows in schemes.groupby(schemes[KIND].astype(str)):
        values = [spectra[label]["before"] for label in rows["label"]]
        condition[str(kind)] = float(np.median([one[0] / one[-1] for one in values]))
        wrong = rows[names.FINAL_TEST_MISCLASSIFICATIONS.column] / rows["test_points"]
        error[str(kind)] = float(wrong.mean())
    return {
        "none": condition["None"],
        "round": condition["round"],
        "aligned_over_none": condition["aligned"] / condition["None"],
        "more_error": error["round"] - error["None"],
    }
