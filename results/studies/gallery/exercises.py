"""The numbers of the studies in `conf/experiment/exercises`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import at_cost


def linear_autoencoder(sweep: Sweep) -> dict[str, float]:
    """Return what the autoencoder finds under each scheme, over its starts.

    `SCHEME_overlap`: the squared cosine of its axis and the principal one, the mean; `SCHEME_lost`:
    the share of the squares that is lost, the mean; `SCHEME_iterations`: the median to 1 percent of
    the excess. `centre_over_sphered`, `standard_over_sphered`: of these medians.
    """
    found = {}
    for label, parts in sweep.arrays(sweep.of_role(names.SCHEME), "autoencoder").items():
        found[f"{label}_overlap"] = float(parts["overlap"].mean())
        found[f"{label}_lost"] = float(parts["lost"].mean())
        found[f"{label}_iterations"] = float(np.median(parts["iterations"]))
    sphered = found["pca_sphere_iterations"]
    for label in ("centre", "standard"):
        found[f"{label}_over_sphered"] = found[f"{label}_iterations"] / sphered
    return found


def pca_basis(sweep: Sweep) -> dict[str, float]:
    """Return what the basis is and does.

    `direction_1_n`: entry n of the first direction,
    its largest entry positive. `cosine` of the two directions. `correlation` of the two coordinates
    of the points under `pca`, in its size.
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


TARGET = 0.3  # of the training cost


def standard_against_sphering(sweep: Sweep) -> dict[str, float]:
    """Return the iterations to the target cost, and the test errors there, over the splits.

    `*_fewest`, `*_most`: iterations over the splits. `more_error`: the share of the test points
    misclassified there, sphered minus standard on each split, its mean; `more_error_doubt`: the
    standard deviation of these differences (divided by 5) over the root of 6.
    """
    rows = at_cost(sweep, TARGET).pivot(
        index=names.setting("dataset.split_seed"),
        columns="normalizer",
        values=["iteration", "missed"],
    )
    more = rows["missed"]["pca_sphere"] - rows["missed"]["standard"]
    counts = rows["iteration"].astype(float)
    found = {"more_error": float(more.mean()), "more_error_doubt": float(more.sem())}
    for name, scheme in (("standard", "standard"), ("sphered", "pca_sphere")):
        found[f"{name}_fewest"] = float(counts[scheme].min(skipna=False))
        found[f"{name}_most"] = float(counts[scheme].max(skipna=False))
    return found
