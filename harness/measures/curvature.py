"""The extreme eigenvalues of the Hessian, and its condition number, along the best step size."""

import numpy as np

from normbench import names
from normbench.engine.hessian import LANCZOS_PRODUCTS, Hessian
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.measures.inputs import has_best, spread_iterations
from normbench.theory import spectra
from normbench.theory.analysis import extreme_curvatures
from normbench.theory.budget import Work

CURVATURE_ITERATIONS = 25  # whose curvature is measured
MAX_DENSE_CURVATURE = 600  # the Hessian of a network of that size takes about a second
ALL_EIGENVALUES = (
    f"the condition number of the curvature, which takes every eigenvalue, is of "
    f"{MAX_DENSE_CURVATURE} weights at most; its largest and smallest eigenvalue are recorded"
)


def take(job: FinishedJob) -> Findings:
    """Return the extreme eigenvalues at k iterations of the best step size, from the first start.

    `iteration` (k,), `largest` and `smallest` (k,), which is negative where the cost curves down;
    `condition` (k,), the largest over the smallest of the eigenvalues that are positive and above
    rounding, from the Hessian as a matrix; NaN for many weights, whose extreme eigenvalues are
    found by Lanczos, and where no eigenvalue is positive. The same numbers are series by iteration.
    A matrix takes as many products as there are weights; Lanczos finds the ends of the spectrum
    alone, and the smallest positive eigenvalue lies among those near 0. A note in place of all of
    them where the cost has no second derivative.
    """
    descent = job.descent
    path = descent.path.at(spread_iterations(descent.settings.records, CURVATURE_ITERATIONS))
    try:
        rows = [measure_curvature(descent.train.hessian(weights)) for weights in path.weights]
    except (ValueError, TypeError, NotImplementedError) as error:  # autograd's, see engine.hessian
        note = f"curvature: autograd has no second derivative of the cost ({error})"
        return Findings(notes=(note,))
    iteration, values = path.iteration, np.array(rows)
    largest, smallest, condition = values.T
    metrics = (names.CURVATURE_LARGEST, names.CURVATURE_SMALLEST, names.CURVATURE_CONDITION)
    # A series holds finite numbers alone: the condition number may be NaN at all iterations.
    series = {
        metric.key: (iteration[np.isfinite(row)], row[np.isfinite(row)])
        for metric, row in zip(metrics, values.T)
        if np.isfinite(row).any()
    }
    arrays = {"iteration": iteration, "largest": largest, "smallest": smallest}
    is_dense = int(np.prod(descent.train.shape)) <= MAX_DENSE_CURVATURE
    return Findings(
        series=series,
        arrays={**arrays, "condition": condition},
        notes=() if is_dense else (ALL_EIGENVALUES,),
    )


def measure_curvature(hessian: Hessian) -> tuple[float, float, float]:
    """Return the largest and the smallest eigenvalue of a Hessian, and its condition number.

    The condition number is that of the eigenvalues that are positive and above rounding; NaN where
    there are none, and for Hessians that are too large for a matrix. All three are NaN where a
    second derivative overflows.
    """
    if hessian.size > MAX_DENSE_CURVATURE:
        return *extreme_curvatures(hessian), float("nan")
    matrix = hessian.matrix()
    if not np.isfinite(matrix).all():
        return float("nan"), float("nan"), float("nan")
    values = np.linalg.eigvalsh(matrix).astype(np.float64)
    live = spectra.eigenvalues_above_rounding(values, len(values))
    condition = float(live[0] / live[-1]) if len(live) else float("nan")
    return float(values[-1]), float(values[0]), condition


def _work(job: FinishedJob) -> Work:
    """Return the work of a descent, and of the eigenvalues at each measured iteration."""
    descent = job.descent
    effort, size = descent.train.effort, int(np.prod(descent.train.shape))
    products = size if size <= MAX_DENSE_CURVATURE else LANCZOS_PRODUCTS
    measured = min(descent.settings.records + 1, CURVATURE_ITERATIONS)
    passes = descent.settings.iterations + measured * (effort.setup + products * effort.product)
    matrix_bytes = 24.0 * min(size, MAX_DENSE_CURVATURE) ** 2  # three matrices in float64
    return Work(passes, effort.memory + matrix_bytes)


MEASURE = Measure(
    take,
    record="curvature",
    budget_label="curvature along the path",
    work=_work,
    applies=has_best,
    depends_on=BEST_STEP,
)
