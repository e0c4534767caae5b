"""The largest step of a batch that is stable in mean square, exactly, and the noise floors."""

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import is_in_memory
from normbench.engine.problem import Problem
from normbench.measures import batches as approximate_limits
from normbench.measures.contract import Findings, FinishedJob, Measure, OfStep
from normbench.theory import batches, sizes


def take(job: FinishedJob) -> Findings:
    """Return the exact limit of the step, and the noise floor of each stable step size.

    The limit is that of the order in which batches are drawn. The noise floor is the excess around
    which a constant step size settles; `theory.batches.noise_floor` knows it for draws with
    replacement, and so takes the limit of these.
    """
    descent = job.descent
    linear, batch = descent.train.linear, descent.settings.batch
    assert linear is not None
    assert batch is not None
    width, points = linear.shape[1], len(linear.targets)
    products = points * width * (width + 1) // 2
    if not sizes.allows(descent.settings.theory, 0, products):
        return Findings(notes=(f"exact limits of the batch {sizes.LEFT_OUT}",))
    extended = np.column_stack([np.ones(points), linear.points])
    limits = batches.mean_square_steps(extended, batch)
    limit_without_replacement, limit_with_replacement = limits
    with_replacement = descent.settings.batch_order == "replacement"
    limit = limit_with_replacement if with_replacement else limit_without_replacement
    trace = approximate_limits.gram_trace(linear)
    # The least cost is the mean squared residual at the minimum: the variance of the noise.
    floors = {
        number: batches.noise_floor(
            step.step_size, descent.judging_context.minimum, trace, batch, limit_with_replacement
        )
        for number, step in enumerate(descent.steps)
    }
    of_steps = {
        number: OfStep({names.NOISE_FLOOR.key: floor}, {})
        for number, floor in floors.items()
        if np.isfinite(floor)  # infinite for a step size that is not stable
    }
    return Findings({names.BATCH_STEP_EXACT.key: limit}, of_steps=of_steps)


def _has_exact_limit(linear: Problem) -> bool:
    """Return whether the exact limit can be computed: few weights, float64 points in memory."""
    few = linear.shape[1] <= batches.MAX_MOMENT_WEIGHTS
    return few and is_in_memory(linear.points) and linear.points.dtype == np.float64


def _applies(job: FinishedJob) -> bool:
    """Return whether the job is least squares in batches, and its exact limit is computable."""
    linear = job.descent.train.linear
    return (
        approximate_limits.has_batch_theory(job)
        and linear is not None
        and approximate_limits.is_least_squares(linear)
        and _has_exact_limit(linear)
    )


MEASURE = Measure(take, applies=_applies)
