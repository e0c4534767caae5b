"""The start's excess by eigendirection, and what each run leaves of it: the layers of `melt`.

A layer is an eigendirection of the Hessian at the start, of curvature h, as thick as what is to be
gained along it in the quadratic model there, `g^2 / (2 h)`. Of least squares under plain descent K
iterations leave `(1 - a h)^(2K)` of it, exactly. Of other costs and other rules the layers at given
weights are measured: `g^2 / (2 h)` with the gradient there, as shares of their sum. Booking each
iteration's drop `-1/2 (g_k + g_k+1) (w_k+1 - w_k)` by direction instead misses the recorded drop by
66 to 1,518 percent at large steps.
"""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Descended, Findings, Finished, Measure
from normbench.theory.budget import Work
from normbench.theory.directions import MAX_DENSE_WEIGHTS

MOST = 500  # iterations whose layers are measured
TOGETHER = 10_000_000  # scores that are held at once
NO_CURVATURE = "the cost has no curvature at the start"
NOT_CONVEX = "the cost curves down along some direction of the start"
STILL = "no step was made"
GRIDLESS = "the optimizer finds its own step sizes"
MANY = (
    f"more than {MAX_DENSE_WEIGHTS} weights, and their Hessian is no multiple of the points' Gram "
    "matrix"
)


def take(made: Finished) -> Findings:
    """Return the layers of the first start, the stiffest first; or a tag of why there are none.

    `layer_curvature` (n,), `layer_share` (n,): the excess along each, as a cost. `layer_times` ():
    how many directions each stands for. Where they are measured, too: `layer_ends` (S, n), the
    shares of each grid run's last weights, NaN where none are finite. `layer_path` (k, n), those of
    the best step's run at iterations `layer_at` (k,), and `layer_step` (), that step size.
    """
    here = made.descent
    reason = reason_against(here)
    if reason:
        return Findings(tags={names.NO_LAYERS.key: reason})
    directions = here.at_start.directions
    assert directions is not None
    share = _along(made, here.start[:1])[0]
    arrays = {"layer_curvature": directions.curvature, "layer_share": share}
    arrays["layer_times"] = np.array(directions.times)
    if not _is_exact(here):
        last = here.histories.weights.reshape(len(here.steps), -1, *here.start.shape[1:])[:, 0]
        arrays["layer_ends"] = _normalized(_along(made, last))
        if here.best is not None:
            walk = here.walk
            kept = _evenly(len(walk.iteration))
            path = _normalized(_along(made, walk.weights[kept]))
            arrays |= {"layer_path": path, "layer_at": walk.iteration[kept]}
            arrays["layer_step"] = np.array(here.best_step.step_size)
    return Findings(arrays=arrays)


def reason_against(here: Descended) -> str:
    """Return why a descent has no layers; empty where it has."""
    if here.optimizer.gridless:
        return GRIDLESS
    if not here.settings.iterations:
        return STILL
    if here.theory.threshold is None:
        return NO_CURVATURE
    if not here.train.convex:
        return NOT_CONVEX
    directions = here.at_start.directions
    if directions is None:
        return MANY
    if not len(directions.curvature):
        return NO_CURVATURE
    return NOT_CONVEX if directions.indefinite else ""


def _is_exact(here: Descended) -> bool:
    return here.theory.exact and here.plain and here.at_start.uniform_curvature is not None


def _along(made: Finished, weights: Array) -> Array:
    """Return `g^2 / (2 h)` of weights `(R, *shape)`, `(R, n)`, evaluated some at a time."""
    train, directions = made.descent.train, made.descent.at_start.directions
    assert directions is not None
    each = max(1, TOGETHER // max(1, train.shape[0] * len(made.z)))
    rows = []
    for first in range(0, len(weights), each):
        gradient = train.evaluate(weights[first : first + each]).gradient
        assert gradient is not None
        rows.append(directions.along(gradient) / (2 * directions.curvature))
    return np.concatenate(rows)


def _normalized(shares: Array) -> Array:
    """Return rows as shares of their sums, in float32; NaN where a row is not finite."""
    total = shares.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(total), shares / total, np.nan).astype(np.float32)


def _evenly(count: int) -> Array:
    """Return at most 501 of so many places, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST + 1)).round().astype(int))


def _work(made: Finished) -> Work:
    """Return the passes of the decomposition, of the best run's way, and of gradients on it."""
    here = made.descent
    if here.optimizer.gridless or here.theory.threshold is None or not here.train.convex:
        return Work()
    work = here.at_start.work(len(made.z))
    if _is_exact(here):
        return Work(work.passes + 1, work.memory)
    iterations = here.settings.iterations
    passes = iterations + min(iterations, MOST) + len(here.steps) + 2
    return Work(work.passes + passes, work.memory)


MEASURE = Measure(take, what="melt", work=_work)
