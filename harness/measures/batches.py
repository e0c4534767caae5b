"""The knee of a batch, and its largest stable step as theory approximates it."""

import numpy as np

from normbench import names
from normbench.engine.problem import Problem
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.normalizers.decomposition import moment_rows
from normbench.theory import batches


def take(job: FinishedJob) -> Findings:
    """Return the knee; of least squares also the approximate limit of the step.

    The knee is the batch size from which larger batches gain little. `mean |x|^2 / lambda_max` of
    points `[1 x]` is that of least squares, whose curvature is the same at all points; for other
    costs it is a guide.
    """
    linear, batch = job.descent.train.linear, job.descent.settings.batch
    assert linear is not None
    assert batch is not None
    largest = gram_largest(job)
    knee = batches.knee(largest, gram_trace(linear))
    metrics = {names.KNEE.key: knee}
    if is_least_squares(linear):
        lipschitz = 2 * largest  # the Hessian of least squares is 2 times the Gram matrix
        metrics[names.BATCH_STEP.key] = batches.approximate_step(lipschitz, knee, batch)
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


def gram_trace(linear: Problem) -> float:
    """Return the trace of the Gram matrix of points `[1 x]`: their mean squared length."""
    rows = moment_rows(linear.points)
    mean = rows.mean(axis=0, dtype=np.float64)
    return 1 + float(np.sum(rows.var(axis=0, dtype=np.float64) + mean**2))


def is_least_squares(linear: Problem) -> bool:
    """Return whether the cost is least squares of one score a point, as the theory assumes."""
    return linear.traits.squares and linear.shape[0] == 1


def has_batch_theory(job: FinishedJob) -> bool:
    """Return whether the theory of batches holds of a job.

    The job must be plain descent in batches of a cost of linear scores without a penalty, and its
    spectrum known.
    """
    descent = job.descent
    linear = descent.train.linear
    if descent.settings.batch is None or linear is None or np.any(linear.l2):
        return False
    return descent.optimizer.plain and descent.theory.spectrum is not None


MEASURE = Measure(take, applies=has_batch_theory)
