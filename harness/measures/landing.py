"""Where each step of the best step size lands: its position on the local parabola.

A step from w to v = w + d lands at position `(g(w) - g(v))'d / g(w)'d` of the parabola that has the
slopes of the cost at both ends of the step: 0 is its start, 1 its minimum, 2 as high as the start.
That is the parabola of the cost itself for least squares. A plain step of size a lands at `a h`
along an eigendirection of curvature h. After *alpha* of Schneider, Dangel, Hennig (2021), Cockpit,
section 3.2, which counts from -1 and fits noisy slopes.
"""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures.contract import (
    BEST_STEP,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    Measure,
)
from normbench.measures.inputs import has_best
from normbench.theory.budget import Work

SOFT_POSITION = 0.1  # a direction is soft where a step goes less than a tenth of the way
# A gradient that shrank to this share of the first is rounding in half of its digits.
ROUNDED_GRADIENT = {"float64": 1e-8, "float32": 1e-3}


def take(job: FinishedJob) -> Findings:
    """Return the positions of the steps of the best step size, from the first start.

    `iteration` (k,) and `position` (k,): the iteration from which each step starts, and where the
    step lands along itself. Of plain descent also `direction` (n,), the positions `a h` along the
    eigendirections of the Hessian at the start, the stiffest first, and `times` (), the number of
    directions that each entry stands for; neither where the Hessian is too large to decompose.
    Numbers: the median position, and the share of soft directions, those of a position below 0.1.
    """
    descent = job.descent
    iteration, position = _positions(descent)
    arrays = {"iteration": iteration, "position": position}
    metrics = {}
    if len(position):
        metrics[names.LANDING.key] = float(np.median(position))
    directions = descent.at_start.directions if _has_directions(descent) else None
    if directions is not None and len(directions.curvature):
        arrays["direction"] = descent.best_step.step_size * directions.curvature
        arrays["times"] = np.array(directions.multiplicity)
        metrics[names.LANDING_SOFT.key] = float(np.mean(arrays["direction"] < SOFT_POSITION))
    return Findings(metrics, arrays=arrays)


def _positions(descent: JudgedDescent) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the iterations `(k,)` from which steps start, and the positions of these steps `(k,)`.

    Steps whose gradient is rounding, or whose slope along the step is 0, are left out.
    """
    path = descent.path
    gradient = _gradient(descent, path.weights[0])
    # A gradient of less than this length is rounding.
    lowest_length = ROUNDED_GRADIENT[descent.start.dtype.name] * np.linalg.norm(gradient)
    positions: dict[int, float] = {}
    for row in range(1, len(path.iteration)):
        gradient_before, gradient = gradient, _gradient(descent, path.weights[row])
        step = (path.weights[row].astype(np.float64) - path.weights[row - 1]).ravel()
        slope = gradient_before @ step
        follows = path.iteration[row] == path.iteration[row - 1] + 1
        if follows and slope and np.linalg.norm(gradient_before) > lowest_length:
            positions[int(path.iteration[row - 1])] = float(1 - gradient @ step / slope)
    return np.array([*positions], dtype=np.int64), np.array([*positions.values()])


def _gradient(descent: JudgedDescent, weights: Array) -> Array:
    """Return the gradient of the cost at one model's weights, flat and in float64."""
    gradient = descent.train.evaluate(weights[None]).gradient
    assert gradient is not None
    return gradient[0].astype(np.float64).ravel()


def _has_directions(descent: JudgedDescent) -> bool:
    """Return whether positions `a h` exist: of plain descent on a cost of known curvature."""
    return descent.plain and descent.theory.threshold is not None


def _work(job: FinishedJob) -> Work:
    """Return the work of a descent, of a second gradient an iteration, and of the directions."""
    descent = job.descent
    directions_work = descent.at_start.work(len(job.z)) if _has_directions(descent) else Work()
    passes = directions_work.passes + 2 * descent.settings.iterations
    return Work(passes, directions_work.memory)


MEASURE = Measure(
    take,
    record="landing",
    budget_label="landing",
    work=_work,
    applies=has_best,
    depends_on=BEST_STEP,
)
