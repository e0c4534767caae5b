"""The path of `step L(w_k) / 2` of the best step size, from its first start."""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures.contract import BEST, Array, Descended, Findings, Finished, Measure
from normbench.theory.analysis import curvature_work, largest_curvature
from normbench.theory.budget import Work, allowance

TOGETHER = 3  # consecutive iterations: of a run that jumps to and fro, every second is one side
STRETCHES = 7  # of so many iterations, at least


def take(made: Finished) -> Findings:
    """Return the path: at every iteration, or, where that is too much work, at stretches of three.

    Below 1 a step lowers the cost. A path that stays near 1 has come to where the curvature just
    allows its step size.
    """
    here = made.descended
    assert here is not None
    best = here.best_step
    assert best is not None
    wanted = set(_sampled(here, len(made.z)).tolist())
    path: dict[int, float] = {}

    def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
        if k in wanted and len(alive):
            curved, _ = largest_curvature(here.train, weights[0])
            if curved is not None:
                path[k] = best.step_size * curved / 2

    here.again([best.step_size], here.start[:1], observe)
    if not path:
        return Findings()
    return Findings(series={names.SHARPNESS.key: (np.array([*path]), np.array([*path.values()]))})


def _sampled(here: Descended, points: int) -> NDArray[np.int64]:
    """Return the iterations at which the curvature is found: as many as theory may take."""
    settings = here.settings
    passes = settings.iterations * len(settings.step_sizes) * settings.starts
    allowed = allowance(settings.theory, passes, points, int(np.prod(here.train.shape))).passes
    each = TOGETHER * here.train.effort.largest
    every = settings.iterations + 1
    if every <= TOGETHER * max(STRETCHES, allowed // each):
        return np.arange(every)
    first = np.linspace(0, every - TOGETHER, max(STRETCHES, int(allowed // each)))
    return np.unique(first.round().astype(int)[:, None] + np.arange(TOGETHER))


def _applies(made: Finished) -> bool:
    return made.descended is not None and made.descended.best is not None


def _work(made: Finished) -> Work:
    assert made.descended is not None
    return curvature_work(made.descended.train)


MEASURE = Measure(
    take, record="sharpness", what="sharpness", work=_work, applies=_applies, follows=BEST
)
