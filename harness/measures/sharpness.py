"""The path of `step L(w_k) / 2` of the best step size, from its first start."""

import numpy as np
from numpy.typing import NDArray

from normbench.measures.contract import BEST, Array, Findings, Finished, Measure
from normbench.results import names
from normbench.theory.analysis import curvature_work, largest_curvature
from normbench.theory.budget import Work

SAMPLES = 20  # of the path, by Lanczos or from the matrix


def take(made: Finished) -> Findings:
    """Return the path.

    Below 1 a step lowers the cost. A path that stays near 1 has come to where the curvature just
    allows its step size.
    """
    here = made.descended
    assert here is not None
    best = here.best_step
    assert best is not None
    every = max(1, here.settings.iterations // SAMPLES)
    path: dict[int, float] = {}

    def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
        if k % every == 0 and len(alive):
            curved, _ = largest_curvature(here.train, weights[0])
            if curved is not None:
                path[k] = best.step_size * curved / 2

    here.again([best.step_size], here.start[:1], observe)
    if not path:
        return Findings()
    return Findings(series={names.SHARPNESS.key: (np.array([*path]), np.array([*path.values()]))})


def _applies(made: Finished) -> bool:
    return made.descended is not None and made.descended.best is not None


def _work(made: Finished) -> Work:
    assert made.descended is not None
    return curvature_work(made.descended.train)


MEASURE = Measure(
    take, record="sharpness", what="sharpness", work=_work, applies=_applies, follows=BEST
)
