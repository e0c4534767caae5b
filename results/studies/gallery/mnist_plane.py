"""The numbers of `lecture/mnist_plane`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `share_k`: eigenvalue k of the covariance over the sum of all 784; k = 1, 2."""
    (spectrum,) = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum").values()
    shares = spectrum["before"] / spectrum["before"].sum()
    return {"share_1": float(shares[0]), "share_2": float(shares[1])}
