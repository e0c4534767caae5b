"""The history of `step L(w_k) / 2` of the best step size, from the first start."""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures.contract import (
    BEST_STEP,
    STRETCH_LENGTH,
    Findings,
    FinishedJob,
    JudgedDescent,
    Measure,
    stretched_iterations,
)
from normbench.measures.inputs import has_best, scheduled_step_sizes, work_of_curvature
from normbench.theory.analysis import largest_curvature
from normbench.theory.budget import allowance

MIN_STRETCHES = 7
OWN_STEP_SIZES = "sharpness: the optimizer finds its own step sizes"
OTHER_RULE = "the sharpness is of plain gradient descent: 1 is no limit of this optimizer's steps"


def take(job: FinishedJob) -> Findings:
    """Return the sharpness at every iteration, or at stretches of three where work is limited.

    The sharpness is `step L / 2`, with L the largest curvature at the weights, and the step size of
    that iteration. Below 1 a step lowers the cost. A run whose sharpness stays near 1 is where the
    curvature just allows its step size. That holds of plain gradient descent: a note says so for
    other rules. No findings where the curvature is unknown at every such iteration, and a note in
    their place where the optimizer finds its own step sizes.
    """
    descent = job.descent
    if descent.optimizer.gridless:  # its step size is a placeholder
        return Findings(notes=(OWN_STEP_SIZES,))
    path = descent.path.at(_sampled(descent, len(job.z)))
    curvatures: dict[int, float] = {}  # the largest, by iteration
    for k, weights in zip(path.iteration.tolist(), path.weights):
        lipschitz, _ = largest_curvature(descent.train, weights)
        if lipschitz is not None:
            curvatures[k] = lipschitz
    if not curvatures:
        return Findings()
    iteration = np.array([*curvatures])
    steps = scheduled_step_sizes(descent, iteration)
    series = {names.SHARPNESS.key: (iteration, steps * np.array([*curvatures.values()]) / 2)}
    return Findings(series=series, notes=() if descent.plain else (OTHER_RULE,))


def _sampled(descent: JudgedDescent, points: int) -> NDArray[np.int64]:
    """Return the iterations at which the curvature is computed, increasing.

    They are all iterations if a budget of its own, as large as that of theory, allows that many
    curvatures; otherwise stretches of `STRETCH_LENGTH`, evenly spaced, as many as are allowed and
    `MIN_STRETCHES` at least.

    Args:
        descent: The descent, whose settings define the budget.
        points: The number of points P.
    """
    settings = descent.settings
    passes = settings.iterations * len(settings.step_sizes) * settings.starts
    allowed = allowance(settings.theory, passes, points, int(np.prod(descent.train.shape))).passes
    stretch_work = STRETCH_LENGTH * descent.train.effort.largest
    stretches = max(MIN_STRETCHES, np.floor(allowed / stretch_work))  # infinite where all may be
    return stretched_iterations(settings.records, STRETCH_LENGTH * stretches)


MEASURE = Measure(
    take,
    record="sharpness",
    budget_label="sharpness",
    work=work_of_curvature,
    applies=has_best,
    depends_on=BEST_STEP,
)
