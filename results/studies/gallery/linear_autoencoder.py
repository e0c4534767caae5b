"""The numbers of `exercises/linear_autoencoder`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
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
