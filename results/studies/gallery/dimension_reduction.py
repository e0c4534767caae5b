"""The numbers of `notes/dimension_reduction`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `eigenvalue_k` of the covariance, and `kept`: 1 minus the share that is lost.

    The share is measured on the points: of their squared distances from the mean, what is missing
    after they went to one component and back.
    """
    schemes = sweep.of_role(names.SCHEME)
    (spectrum,) = sweep.arrays(schemes, "spectrum").values()
    first, second = spectrum["before"]
    kept = 1 - float(schemes[names.VARIANCE_LOST.column].iloc[0])
    return {"eigenvalue_1": float(first), "eigenvalue_2": float(second), "kept": kept}
