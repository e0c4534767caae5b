"""The numbers of `notes/aligned_perturbation`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the spread of the colours, and how much of noise is no grey.

    `deviation_k`: the root of eigenvalue k of the covariance. `grey`: the cosine of the first axis
    and g, the direction in which red, green and blue are equal. `off_aligned`: of noise that has
    along each axis v_k the variance l_k, the expected share of its square off g,
    `sum l_k (1 - (v_k . g)^2) / sum l_k`; `off_round`: the same of noise alike in all directions.
    """
    (parts,) = sweep.arrays(sweep.of_role(names.SCHEME), "biplot").values()
    axes, deviations = parts["entries"], parts["deviations"]
    along = axes.sum(axis=0) / len(axes) ** 0.5  # of each axis on g
    found = {f"deviation_{n + 1}": float(one) for n, one in enumerate(deviations)}
    found["grey"] = abs(float(along[0]))
    off = 1 - along**2
    found["off_aligned"] = float(np.average(off, weights=deviations**2))
    found["off_round"] = float(np.mean(off))
    return found
