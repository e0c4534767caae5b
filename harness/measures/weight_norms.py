"""Norms of scale-invariant weights, and their effective step, along the best step size.

Where values are normalized, `c w` is the same function for every c > 0. The gradient at `c w` is
that at w over c, and orthogonal to w: plain steps never shrink `|w|`, and a step of size a turns w
as a step of size `a / |w|^2` turns `w / |w|`, the *effective step*. After van Laarhoven (2017), L2
Regularization versus Batch and Weight Normalization; Arora, Li, Lyu (2019), Theoretical Analysis of
Auto Rate-Tuning by Batch Normalization.
"""

import numpy as np

from normbench import names
from normbench.engine.network_steps import network_of
from normbench.measures.contract import BEST_STEP, NETWORK, Findings, FinishedJob, Measure
from normbench.measures.inputs import has_best, scheduled_step_sizes, spread_iterations
from normbench.theory.budget import Work

MAX_NORMS = 200_000  # norms that are kept, over all iterations
NORMS_ITERATIONS = 500  # at most, whose norms are kept
NO_SUCH_WEIGHTS = "weight_norms: multiples of the weights of a layer are another function here"


def take(job: FinishedJob) -> Findings:
    """Return the norms of G sets of scale-invariant weights at k iterations, from the first start.

    `iteration` (k,), `layer` (G,), `weight_norm` and `effective_step` (k, G). A set is what
    `scale_invariant_weights` of the model says: a unit's weights under batch and weight
    normalization, those of a layer or a group of units where these are normalized together.
    Epsilon, which breaks the invariance, is neglected. The step size is that of the run at that
    iteration, with its schedule. A note in place of the arrays where the model has no such set.
    """
    descent = job.descent
    network = network_of(descent.train)
    assert network is not None
    sets = network.model.scale_invariant_weights(network.layout)
    if not sets:
        return Findings(notes=(NO_SUCH_WEIGHTS,))
    max_iterations = int(np.clip(MAX_NORMS // len(sets), 2, NORMS_ITERATIONS))
    path = descent.path.at(spread_iterations(descent.settings.records, max_iterations))
    weights = path.weights.astype(np.float64)
    lengths = np.column_stack([np.linalg.norm(weights[:, indices], axis=1) for _, indices in sets])
    with np.errstate(divide="ignore"):  # weights of norm 0 have an infinite effective step
        effective = scheduled_step_sizes(descent, path.iteration)[:, None] / lengths**2
    arrays = {names.WEIGHT_NORM.key: lengths, names.EFFECTIVE_STEP.key: effective}
    layer = np.array([layer for layer, _ in sets])
    return Findings(arrays={"iteration": path.iteration, "layer": layer, **arrays})


def _work(job: FinishedJob) -> Work:
    """Return the passes of a descent."""
    return Work(job.descent.settings.iterations)


MEASURE = Measure(
    take,
    record="weight_norms",
    budget_label="weight norms",
    work=_work,
    model_kind=NETWORK,
    applies=has_best,
    depends_on=BEST_STEP,
)
