"""Steps that see a batch of the points: the knee, stable steps, and what moving statistics do."""

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import is_in_memory
from normbench.engine.problem import Problem
from normbench.measures.contract import Findings, FinishedJob, OfStep, measure
from normbench.normalizers.decomposition import moment_rows
from normbench.settings import FITTED
from normbench.theory import batches as theory
from normbench.theory import sizes

MAX_BATCHES = 50  # of the first pass, whose disturbance is measured


@measure()
def batches(job: FinishedJob) -> Findings:
    """Return the knee of a batch; of least squares also limits of the step, and noise floors.

    The knee is the batch size from which larger batches gain little. `mean |x|^2 / lambda_max` of
    points `[1 x]` is that of least squares, whose curvature is the same at all points; for other
    costs it is a guide. The exact limit of the step, stable in mean square, is that of the order in
    which batches are drawn. The noise floor is the excess around which a constant step size
    settles; `theory.batches.noise_floor` knows it for draws with replacement, and so takes the
    limit of these. Nothing but for plain descent in batches of a cost of linear scores without a
    penalty, whose spectrum is known.
    """
    descent = job.descent
    linear, batch, spectrum = descent.train.linear, descent.settings.batch, descent.theory.spectrum
    has_theory = descent.optimizer.plain and linear is not None and not np.any(linear.l2)
    if batch is None or spectrum is None or linear is None or not has_theory:
        return Findings()
    # The spectrum is that of the Gram matrix times the bound of the cost's curvature, if any.
    largest = spectrum.largest / (linear.traits.curvature or 1.0)
    trace = gram_trace(linear)
    knee = theory.knee(largest, trace)
    metrics = {names.KNEE.key: knee}
    if not linear.traits.squares or linear.shape[0] > 1:
        return Findings(metrics)
    lipschitz = 2 * largest  # the Hessian of least squares is 2 times the Gram matrix
    metrics[names.BATCH_STEP.key] = theory.approximate_step(lipschitz, knee, batch)
    points, width = len(linear.targets), linear.shape[1]
    is_exact = is_in_memory(linear.points) and linear.points.dtype == np.float64
    if width > theory.MAX_MOMENT_WEIGHTS or not is_exact:
        return Findings(metrics)
    if not sizes.allows(descent.settings.theory, 0, points * width * (width + 1) // 2):
        return Findings(metrics, notes=(f"exact limits of the batch {sizes.LEFT_OUT}",))
    extended = np.column_stack([np.ones(points), linear.points])
    without_replacement, with_replacement = theory.mean_square_steps(extended, batch)
    is_replaced = descent.settings.batch_order == "replacement"
    metrics[names.BATCH_STEP_EXACT.key] = with_replacement if is_replaced else without_replacement
    # The least cost is the mean squared residual at the minimum: the variance of the noise.
    noise = descent.judging_context.minimum
    floors = [
        theory.noise_floor(step.step_size, noise, trace, batch, with_replacement)
        for step in descent.steps
    ]
    of_steps = {
        number: OfStep({names.NOISE_FLOOR.key: floor}, {})
        for number, floor in enumerate(floors)
        if np.isfinite(floor)  # infinite for a step size that is not stable
    }
    return Findings(metrics, of_steps=of_steps)


def gram_trace(linear: Problem) -> float:
    """Return the trace of the Gram matrix of points `[1 x]`: their mean squared length."""
    rows = moment_rows(linear.points)
    mean = rows.mean(axis=0, dtype=np.float64)
    return 1 + float(np.sum(rows.var(axis=0, dtype=np.float64) + mean**2))


@measure()
def disturbance(job: FinishedJob) -> Findings:
    """Return how far the statistics of a batch move its points, relative to the points' size.

    It is the mean squared distance between the points under the statistics of their batch and under
    those of all points, over the mean square of the latter. The means are over the points of the
    first batches, and over the features. No number where all points are 0, and where the statistics
    do not move with the batches.
    """
    plan = job.descent.plan
    if job.descent.settings.statistics == FITTED:
        return Findings()
    assert plan.batches is not None
    assert plan.statistics is not None
    squared_distances, squares = 0.0, 0.0
    for update in range(min(plan.batches.updates_per_pass, MAX_BATCHES)):
        fitted = job.z[plan.batches.points_of(update)]  # under the statistics of all points
        normalized = plan.statistics.of_batch(update)  # None: those of all points stay in force
        squares += float(np.sum(fitted**2))
        if normalized is not None:
            squared_distances += float(np.sum((normalized - fitted) ** 2))
    return Findings({names.DISTURBANCE.key: squared_distances / squares} if squares else {})
