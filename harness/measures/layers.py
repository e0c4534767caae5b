"""The excess of the start by eigendirection, and the share that each run leaves: layers of `melt`.

A layer is an eigendirection of the Hessian at the start, of curvature h. Its thickness is the
excess along it in the quadratic model, `g^2 / (2 h)`. For least squares, K iterations of plain
descent leave exactly `(1 - a h)^(2K)` of it. For other costs and optimizers the layers at given
weights are measured: `g^2 / (2 h)` with the gradient there, as shares of their sum. The
alternative, to sum the drops `-1/2 (g_k + g_k+1) (w_k+1 - w_k)` of all iterations by direction,
misses the recorded drop by 66 to 1,518 percent at large steps.
"""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, FinishedJob, JudgedDescent, Measure
from normbench.theory.budget import Work
from normbench.theory.directions import MAX_DENSE_WEIGHTS

MAX_INTERVALS = 500  # between the iterations whose layers are measured
MAX_SCORES = 10_000_000  # in memory at the same time
NO_START_CURVATURE = "the cost has no curvature at the start"
NOT_LINEAR = "layers are of linear models, and these scores are not linear in the weights"
NOT_CONVEX = "the cost curves down along some direction of the start"
NO_ITERATIONS = "no step was made"
NO_STEP_SIZES = "the optimizer finds its own step sizes"
TOO_MANY_WEIGHTS = (
    f"more than {MAX_DENSE_WEIGHTS} weights, and their Hessian is no multiple of the points' Gram "
    "matrix"
)


def take(job: FinishedJob) -> Findings:
    """Return the layers of the first start, the stiffest first; or a tag with the reason for none.

    `layer_curvature` (n,), `layer_share` (n,): the excess along each, as a cost. `layer_times` ():
    the number of directions that each layer stands for. Where plain descent on a quadratic does not
    give the later layers exactly, they are measured: `layer_ends` (S, n), the shares at the last
    weights of each step size, NaN where these are not finite; `layer_path` (k, n), the shares along
    the descent of the best step size at iterations `layer_at` (k,); and `layer_step` (), that step
    size.
    """
    descent = job.descent
    reason = reason_against(descent)
    if reason:
        return Findings(tags={names.NO_LAYERS.key: reason})
    directions = descent.at_start.directions
    assert directions is not None
    share = _measure_layers(job, descent.start[:1])[0]
    arrays = {"layer_curvature": directions.curvature, "layer_share": share}
    arrays["layer_times"] = np.array(directions.multiplicity)
    if not _is_exact(descent):
        by_start = (len(descent.steps), -1, *descent.start.shape[1:])  # (S, starts, *shape)
        last_weights = descent.histories.weights.reshape(by_start)[:, 0]  # of the first start
        arrays["layer_ends"] = _normalized(_measure_layers(job, last_weights))
        if descent.best is not None:
            walk = descent.recorded_path
            thinned = _thinned_indices(len(walk.iteration))
            path = _normalized(_measure_layers(job, walk.weights[thinned]))
            arrays |= {"layer_path": path, "layer_at": walk.iteration[thinned]}
            arrays["layer_step"] = np.array(descent.best_step.step_size)
    return Findings(arrays=arrays)


def reason_against(descent: JudgedDescent) -> str:
    """Return the reason why a descent has no layers; empty where it has layers."""
    if descent.optimizer.gridless:
        return NO_STEP_SIZES
    if not descent.settings.iterations:
        return NO_ITERATIONS
    if not descent.train.convex:
        return NOT_LINEAR if descent.train.linear is None else NOT_CONVEX
    if descent.theory.threshold is None:
        return NO_START_CURVATURE
    directions = descent.at_start.directions
    if directions is None:
        return TOO_MANY_WEIGHTS
    if not len(directions.curvature):
        return NO_START_CURVATURE
    return NOT_CONVEX if directions.indefinite else ""


def _is_exact(descent: JudgedDescent) -> bool:
    """Return whether the formula `(1 - a h)^(2K)` gives the layers exactly.

    It must be plain descent on a quadratic (`exact`), whose eigenvalues h come from the accurate
    spectrum of theory (`uniform_curvature`).
    """
    return descent.theory.exact and descent.plain and descent.at_start.uniform_curvature is not None


def _measure_layers(job: FinishedJob, weights: Array) -> Array:
    """Return the excess along each direction in the quadratic model, `g^2 / (2 h)`.

    Args:
        job: The finished job, whose Hessian at the start gives the n directions and curvatures h.
        weights: R models `(R, *shape)`; the gradient g is that at each. They are evaluated in
            chunks, which bound the memory.

    Returns:
        `(R, n)`.
    """
    train, directions = job.descent.train, job.descent.at_start.directions
    assert directions is not None
    chunk_size = max(1, MAX_SCORES // max(1, train.shape[0] * len(job.z)))
    rows = []
    for first in range(0, len(weights), chunk_size):
        gradient = train.evaluate(weights[first : first + chunk_size]).gradient
        assert gradient is not None
        rows.append(directions.squared_components(gradient) / (2 * directions.curvature))
    return np.concatenate(rows)


def _normalized(shares: Array) -> Array:
    """Return rows (R, n) divided by their sums, in float32; NaN where a sum is 0 or not finite."""
    total = shares.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(total), shares / total, np.nan).astype(np.float32)


def _thinned_indices(count: int) -> Array:
    """Return at most 501 evenly spaced indices of `count` entries, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_INTERVALS + 1)).round().astype(int))


def _work(job: FinishedJob) -> Work:
    """Return the work of the decomposition and of the measured layers.

    Those take another descent of the best step size, and gradients at the start, at each of the
    thinned iterations (one more than their intervals) and at the end of each step size.
    """
    descent = job.descent
    if descent.optimizer.gridless or descent.theory.threshold is None or not descent.train.convex:
        return Work()
    work = descent.at_start.work(len(job.z))
    if _is_exact(descent):  # the gradient at the start alone
        return Work(work.passes + 1, work.memory)
    iterations = descent.settings.iterations
    passes = iterations + min(iterations, MAX_INTERVALS) + len(descent.steps) + 2
    return Work(work.passes + passes, work.memory)


MEASURE = Measure(take, budget_label="melt", work=_work)
