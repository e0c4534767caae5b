"""The numbers of `lecture/old_faithful`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `correlation` r: two standardized features have the eigenvalues 1 + r and 1 - r."""
    spectra = sweep.arrays(sweep.of_role(names.SCHEME), "spectrum")
    first, second = spectra["standard"]["after"]
    return {"correlation": float((first - second) / (first + second))}
