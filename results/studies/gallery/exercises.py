"""The numbers of the studies in `conf/experiment/exercises`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import at_cost


def linear_autoencoder(sweep: Sweep) -> dict[str, float]:
    """Return the solution of the autoencoder under each scheme, over its starts.

    `SCHEME_overlap`: the mean squared cosine of its axis and the first principal axis.
    `SCHEME_lost`: the mean share of the squares that is lost. `SCHEME_iterations`: the median
    iterations to 1 percent of the excess. `centre_over_sphered`, `standard_over_sphered`: the ratio
    of these medians.
    """
    numbers = {}
    for label, arrays in sweep.arrays(sweep.of_role(names.SCHEME), "autoencoder").items():
        numbers[f"{label}_overlap"] = float(arrays["overlap"].mean())
        numbers[f"{label}_lost"] = float(arrays["lost"].mean())
        numbers[f"{label}_iterations"] = float(np.median(arrays["iterations"]))
    sphered = numbers["pca_sphere_iterations"]
    for label in ("centre", "standard"):
        numbers[f"{label}_over_sphered"] = numbers[f"{label}_iterations"] / sphered
    return numbers


def pca_basis(sweep: Sweep) -> dict[str, float]:
    """Return the basis of principal directions, and its effect on the points.

    `direction_1_n`: entry n of the first direction, whose largest entry is positive. `cosine`: the
    absolute cosine of the two directions. `correlation`: the absolute correlation of the two
    coordinates of the points under `pca`.
    """
    points = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    first, second = (axis / np.linalg.norm(axis) for axis in points["centre"]["axes"])
    first = first * np.sign(first[np.abs(first).argmax()])
    return {
        "direction_1_1": float(first[0]),
        "direction_1_2": float(first[1]),
        "cosine": abs(float(first @ second)),
        "correlation": abs(float(np.corrcoef(points["pca"]["points"].T)[0, 1])),
    }


TARGET_COST = 0.3  # of the training cost


def standard_against_sphering(sweep: Sweep) -> dict[str, float]:
    """Return the iterations to the target cost, and the test errors at it, over the splits.

    `*_fewest`, `*_most`: the range of the iterations over the splits. `more_error`: the mean over
    the splits of the difference sphered minus standard in the share of misclassified test points.
    `more_error_doubt`: the standard error of that mean, over 6 splits with the divisor 5.
    """
    rows = at_cost(sweep, TARGET_COST).pivot(
        index=names.setting("dataset.split_seed"),
        columns="normalizer",
        values=["iteration", "missed"],
    )
    error_differences = rows["missed"]["pca_sphere"] - rows["missed"]["standard"]
    counts = rows["iteration"].astype(float)
    numbers = {
        "more_error": float(error_differences.mean()),
        "more_error_doubt": float(error_differences.sem()),
    }
    for name, scheme in (("standard", "standard"), ("sphered", "pca_sphere")):
        numbers[f"{name}_fewest"] = float(counts[scheme].min(skipna=False))
        numbers[f"{name}_most"] = float(counts[scheme].max(skipna=False))
    return numbers
