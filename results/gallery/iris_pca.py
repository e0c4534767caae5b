"""The numbers of `notes/iris_pca`."""

from normbench.results import names
from normbench.results.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `share_k`: eigenvalue k of the correlation over the sum of all."""
    (spectrum,) = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum").values()
    shares = spectrum["after"] / spectrum["after"].sum()
    return {f"share_{number + 1}": float(share) for number, share in enumerate(shares)}
