"""The number of `lecture/ferris_wheel`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `share_1`: the covariance's first eigenvalue over the sum of both."""
    (spectrum,) = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum").values()
    return {"share_1": float(spectrum["before"][0] / spectrum["before"].sum())}
