"""The numbers of `exercises/spam`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return how many `points` and `features` the file has."""
    schemes = sweep.of_role(names.SCHEME)
    return {name: float(schemes[key].iloc[0]) for name, key in KEYS.items()}


KEYS = {"points": "train_points", "features": "features"}
