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
    previous: list[tuple[Array, Array]] = []  # weights and gradient of the last iteration, if any
    positions: dict[int, float] = {}
    lowest_length = 0.0  # of a gradient above rounding; known after the first one

    def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
        """Note the position of the step that led to these weights, from the gradients around it.

        No step led to the start: its gradient sets the length below which gradients are rounding.
        """
        nonlocal lowest_length
        if not len(alive):
            return
        gradient = descent.train.evaluate(weights[:1]).gradient
        assert gradient is not None
        current = weights[0].astype(np.float64).ravel(), gradient[0].astype(np.float64).ravel()
        if previous:  # all iterations but the first
            weights_before, gradient_before = previous.pop()
            step = current[0] - weights_before
            slope = gradient_before @ step
            if slope and np.linalg.norm(gradient_before) > lowest_length:
                positions[k - 1] = float(1 - current[1] @ step / slope)
        else:
            share = ROUNDED_GRADIENT[descent.start.dtype.name]
            lowest_length = share * float(np.linalg.norm(current[1]))
        previous.append(current)

    descent.descend_runs([descent.best_step.step_size], descent.start[:1], observe)
    return np.array([*positions], dtype=np.int64), np.array([*positions.values()])


def _has_directions(descent: JudgedDescent) -> bool:
    """Return whether positions `a h` exist: of plain descent on a cost of known curvature."""
    return descent.plain and descent.theory.threshold is not None


MEASURE = Measure(
    take,
    record="landing",
    applies=has_best,
    depends_on=BEST_STEP,
)
