"""What theory says of a batch: its knee, its largest stable step, and the noise floor."""

import numpy as np

from normbench import names
from normbench.engine.problem import Linear
from normbench.measures.contract import Findings, FinishedJob, Measure, OfStep
from normbench.theory import batches
from normbench.theory.budget import Work


def take(job: FinishedJob) -> Findings:
    """Return the knee; of least squares also the limits of the step, and the noise floors.

    The knee `mean |x|^2 / lambda_max` of points `[1 x]` is that of least squares, whose curvature
    is the same at all points; of other costs it is a guide.
    """
    descent = job.descent
    linear, batch = descent.train.linear, descent.settings.batch
    assert linear is not None
    assert batch is not None
    surrogate, bound = linear.surrogate, linear.traits.curvature
    trace = 1 + float(np.sum(surrogate.variances + surrogate.mean**2))
    assert descent.theory.spectrum is not None
    largest = descent.theory.spectrum.largest / (bound or 1.0)
    metrics = {names.KNEE.key: batches.knee(largest, trace)}
    if not _is_least_squares(linear):
        return Findings(metrics)
    metrics[names.BATCH_STEP.key] = batches.approximate_step(
        2 * largest, metrics[names.KNEE.key], batch
    )
    if not _has_exact_limit(linear):
        return Findings(metrics)
    extended = np.column_stack([np.ones(len(linear.targets)), linear.points])
    limits = batches.mean_square_steps(extended, batch)
    metrics[names.BATCH_STEP_EXACT.key] = limits[descent.settings.batch_order == "replacement"]
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
    return Findings(metrics, of_steps=of_steps)


def _is_least_squares(linear: Linear) -> bool:
    """Return whether the cost is that of the theory: squares of one score a point."""
    return linear.traits.squares and linear.shape[0] == 1


def _has_exact_limit(linear: Linear) -> bool:
    """Return whether the exact limit can be computed: of few weights, on points in memory."""
    few = linear.shape[1] <= batches.MAX_MOMENT_WEIGHTS
    return few and isinstance(linear.points, np.ndarray) and linear.points.dtype == np.float64


def _applies(job: FinishedJob) -> bool:
    """Return whether a plain descent saw batches, without a penalty, and the spectrum is known."""
    descent = job.descent
    linear = descent.train.linear
    if descent.settings.batch is None or linear is None or np.any(linear.l2):
        return False
    return descent.optimizer.plain and descent.theory.spectrum is not None


def _work(job: FinishedJob) -> Work:
    """Return the work of the exact limit, in passes over the points with one row of weights."""
    linear = job.descent.train.linear
    assert linear is not None
    if not (_is_least_squares(linear) and _has_exact_limit(linear)):
        return Work()
    width, points = linear.shape[1], len(linear.targets)
    rows = width * (width + 1) / 2
    products = 2 * points * rows**2 + 4 * rows**3  # of the fourth moments, and two eigenvalues
    return Work(products / (4 * points * width), 8.0 * rows * (points + 4 * rows))


MEASURE = Measure(take, budget_label="limits of the batch", work=_work, applies=_applies)
