"""The path of `step L(w_k) / 2` of the best step size, from its first start."""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures.contract import BEST, Array, Descended, Findings, Finished, Measure
from normbench.measures.inputs import has_best, work_of_curvature
from normbench.theory.analysis import largest_curvature
from normbench.theory.budget import allowance

TOGETHER = 3  # consecutive iterations: of a run that jumps to and fro, every second is one side
STRETCHES = 7  # of so many iterations, at least
OTHER_RULE = "the sharpness is of plain gradient descent: 1 is no limit of this optimizer's steps"


def take(made: Finished) -> Findings:
    """Return the path: at every iteration, or, where that is too much work, at stretches of three.

    Below 1 a step lowers the cost. A path that stays near 1 has come to where the curvature just
    allows its step size. That holds of plain gradient descent: a note says so under other rules.
    """
    here = made.descent
    step_size = here.best_step.step_size
    wanted = set(_sampled(here, len(made.z)).tolist())
    path: dict[int, float] = {}

    def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
        if k in wanted and len(alive):
            curved, _ = largest_curvature(here.train, weights[0])
            if curved is not None:
                path[k] = step_size * curved / 2

    here.again([step_size], here.start[:1], observe)
    if not path:
        return Findings()
    series = {names.SHARPNESS.key: (np.array([*path]), np.array([*path.values()]))}
    return Findings(series=series, notes=() if here.plain else (OTHER_RULE,))


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


MEASURE = Measure(
    take,
    record="sharpness",
    what="sharpness",
    work=work_of_curvature,
    applies=has_best,
    follows=BEST,
)
