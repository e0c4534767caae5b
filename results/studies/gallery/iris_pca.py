"""The numbers of `notes/iris_pca`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the shares of the components, and what the angles between arrows tell.

    `share_k`: eigenvalue k of the correlation over the sum of all. An arrow is a feature's entries
    in the components, each times the root of its eigenvalue. `gap`: the largest difference between
    the cosine of two arrows and the correlation of their features; `gap_of_two`: of arrows in two
    components.
    """
    schemes = sweep.of_role(names.SCHEME)
    (spectrum,) = sweep.arrays(schemes, "spectrum").values()
    (biplot,) = sweep.arrays(schemes, "biplot").values()
    shares = spectrum["after"] / spectrum["after"].sum()
    arrows = biplot["entries"] * biplot["deviations"]
    found = {f"share_{number + 1}": float(share) for number, share in enumerate(shares)}
    for name, some in (("gap", arrows), ("gap_of_two", arrows[:, :2])):
        units = some / np.linalg.norm(some, axis=1, keepdims=True)
        found[name] = float(np.abs(units @ units.T - biplot["correlation"]).max())
    return found
