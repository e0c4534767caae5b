"""The knee of a batch, and its largest stable step as theory approximates it."""

import numpy as np

from normbench import names
from normbench.engine.problem import Linear
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.theory import batches


def take(job: FinishedJob) -> Findings:
    """Return the knee; of least squares also the approximate limit of the step.

    The knee `mean |x|^2 / lambda_max` of points `[1 x]` is that of least squares, whose curvature
    is the same at all points; of other costs it is a guide.
    """
    linear, batch = job.descent.train.linear, job.descent.settings.batch
    assert linear is not None
    assert batch is not None
    largest = gram_largest(job)
    knee = batches.knee(largest, gram_trace(linear))
    metrics = {names.KNEE.key: knee}
    if is_least_squares(linear):
        metrics[names.BATCH_STEP.key] = batches.approximate_step(2 * largest, knee, batch)
    return Findings(metrics)


def gram_largest(job: FinishedJob) -> float:
    """Return the largest eigenvalue of the Gram matrix of points `[1 x]`.

    The spectrum of theory is that of the Gram matrix times the bound of the cost's curvature, where
    the cost has a bound.
    """
    linear, spectrum = job.descent.train.linear, job.descent.theory.spectrum
    assert linear is not None
    assert spectrum is not None
    return spectrum.largest / (linear.traits.curvature or 1.0)


def gram_trace(linear: Linear) -> float:
    """Return the trace of the Gram matrix of points `[1 x]`: their mean squared length."""
    surrogate = linear.surrogate
    return 1 + float(np.sum(surrogate.variances + surrogate.mean**2))


def is_least_squares(linear: Linear) -> bool:
    """Return whether the cost is that of the theory: squares of one score a point."""
    return linear.traits.squares and linear.shape[0] == 1


def applies(job: FinishedJob) -> bool:
    """Return whether a plain descent saw batches, without a penalty, and the spectrum is known."""
    descent = job.descent
    linear = descent.train.linear
    if descent.settings.batch is None or linear is None or np.any(linear.l2):
        return False
    return descent.optimizer.plain and descent.theory.spectrum is not None


MEASURE = Measure(take, applies=applies)
