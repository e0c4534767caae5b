"""The largest step of a batch that is stable in mean square, exactly, and the noise floors."""

import numpy as np

from normbench import names
from normbench.engine.problem import Linear
from normbench.measures.batches import applies, gram_trace, is_least_squares
from normbench.measures.contract import Findings, FinishedJob, Measure, OfStep
from normbench.theory import batches
from normbench.theory.budget import Work


def take(job: FinishedJob) -> Findings:
    """Return the exact limit of the step, and the noise floor of each step size below it."""
    descent = job.descent
    linear, batch = descent.train.linear, descent.settings.batch
    assert linear is not None
    assert batch is not None
    extended = np.column_stack([np.ones(len(linear.targets)), linear.points])
    limits = batches.mean_square_steps(extended, batch)
    # The first limit is that of draws without replacement, the second (True) of draws with it.
    limit = limits[descent.settings.batch_order == "replacement"]
    trace = gram_trace(linear)
    floors = {
        number: batches.noise_floor(
            step.step_size, descent.bench.minimum, trace, batch, limits[True]
        )
        for number, step in enumerate(descent.steps)
    }
    of_steps = {
        number: OfStep({names.NOISE_FLOOR.key: floor}, {})
        for number, floor in floors.items()
        if np.isfinite(floor)
    }
    return Findings({names.BATCH_STEP_EXACT.key: limit}, of_steps=of_steps)


def _has_exact_limit(linear: Linear) -> bool:
    """Return whether the exact limit can be computed: of few weights, on points in memory."""
    few = linear.shape[1] <= batches.MAX_MOMENT_WEIGHTS
    return few and isinstance(linear.points, np.ndarray) and linear.points.dtype == np.float64


def _applies(job: FinishedJob) -> bool:
    """Return whether the job is of least squares, in batches, and its exact limit is computable."""
    linear = job.descent.train.linear
    return (
        applies(job)
        and linear is not None
        and is_least_squares(linear)
        and _has_exact_limit(linear)
    )


def _work(job: FinishedJob) -> Work:
    """Return the work of the exact limit, in passes over the points with one row of weights."""
    linear = job.descent.train.linear
    assert linear is not None
    width, points = linear.shape[1], len(linear.targets)
    rows = width * (width + 1) / 2
    products = 2 * points * rows**2 + 4 * rows**3  # of the fourth moments, and two eigenvalues
    return Work(products / (4 * points * width), 8.0 * rows * (points + 4 * rows))


MEASURE = Measure(take, budget_label="exact limits of the batch", work=_work, applies=_applies)
