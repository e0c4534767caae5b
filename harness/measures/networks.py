"""Networks along the best step size: gradients, values and weights of their layers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.engine.problem import Problem
from normbench.measures.contract import (
    BEST_STEP,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    gradient_at,
    measure,
    scheduled_step_sizes,
)

LAYER_METRICS = (names.LAYER_GRADIENT, names.LAYER_RANK, names.LAYER_NORM, names.LAYER_COSINE)
NO_NETWORK = "is for networks, such as model=mlp"
LAYERS_ITERATIONS = 60  # whose layers are measured
MAX_COSINE_LAYERS = 100  # each takes a gradient of all layers: the work is their number squared
NORMS_ITERATIONS = 500  # at most, whose norms are kept
NO_SUCH_WEIGHTS = "weight_norms: multiples of the weights of a layer are another function here"


@measure("by_layer", depends_on=BEST_STEP)
def by_layer(job: FinishedJob) -> Findings:
    """Return what each of L layers does at k iterations of the best step size's first run.

    `iteration` (k,), and (k, L) each: `layer_gradient_norm`, of the weights, biases, gains and
    shifts; `layer_rank`, the participation ratio of the values; `layer_norm`, their root mean
    square over units and points; `layer_cosine`, NaN at the last iteration, where a gradient is 0,
    and of more than `MAX_COSINE_LAYERS` layers. The values of a layer are those that the next one
    takes, and the scores of the last. Gradients are those of the recorded cost; the layers move
    until the next record, a step of all points or what the batches of a pass do.

    A layer's weights have one gradient before a step, and another after the *other* layers made it:
    the cosine between both says how far a layer's direction depends on the layers around it. After
    Santurkar, Tsipras, Ilyas, Madry (2018), How Does Batch Normalization Help Optimization?,
    section 2.2, where only the layers before move.
    """
    descent, network = job.descent, job.descent.train
    if network.linear is not None:
        return Findings(notes=(f"by_layer: {NO_NETWORK}",))
    measured = descent.path.spread(LAYERS_ITERATIONS)
    has_cosines = find_owners(network).max() < MAX_COSINE_LAYERS
    rows = []
    for k, weights in zip(measured.iteration, measured.weights):
        following = descent.path.weights[descent.path.iteration == k + 1]
        rows.append(measure_layers(network, weights, following[:1] if has_cosines else ()))
    columns = zip(LAYER_METRICS, np.array(rows).swapaxes(0, 1))
    arrays = {metric.key: column for metric, column in columns}
    return Findings(arrays={"iteration": measured.iteration, **arrays})


def measure_layers(network: Problem, weights: Array, following: Sequence[Array] = ()) -> Array:
    """Return the `LAYER_METRICS` of each of L layers at weights `(D,)`: `(4, L)`.

    They are the norm of the gradient, the participation ratio of the values, their root mean
    square, and the cosine of the gradients before and after the other layers moved.

    Args:
        network: The network of the training points.
        weights: The weights `(D,)`.
        following: The weights `(D,)` of the next record; empty where cosines are NaN.
    """
    # Values `(H, P)` of each layer; gradient and owners `(D,)`, one entry for each weight.
    values_by_layer = [
        values.astype(np.float64) for values in network.model.layer_outputs(network, weights)
    ]
    owners, gradient = find_owners(network), gradient_at(network, weights)
    rows = []
    for layer, values in enumerate(values_by_layer):
        is_own, cosine = owners == layer, UNKNOWN
        length = np.linalg.norm(gradient[is_own])
        for after in following:
            second = gradient_at(network, np.where(is_own, weights, after))[is_own]
            lengths = length * np.linalg.norm(second)
            cosine = gradient[is_own] @ second / lengths if lengths > 0 else UNKNOWN
        rows.append([length, participation_ratio(values), np.sqrt(np.mean(values**2)), cosine])
    return np.array(rows).T


def participation_ratio(values: Array) -> float:
    """Return `(tr M)^2 / tr M^2` of `M = h h' / P`, of a layer's values h `(H, P)`; NaN for zeros.

    The second moments M are not centred. The ratio is a rank without a threshold: from 1, where all
    points have one direction, to H. After Daneshmand et al. (2020), Batch Normalization Provably
    Avoids Rank Collapse.
    """
    units, points = values.shape
    # Both products have the same trace and the same sum of squares: the smaller one is computed.
    moments = values @ values.T if units <= points else values.T @ values
    squares = float(np.sum(moments**2))
    return float(np.trace(moments) ** 2 / squares) if squares > 0 else UNKNOWN


def find_owners(network: Problem) -> NDArray[np.int64]:
    """Return the index of the layer of each weight `(D,)`; -1 for running statistics.

    Running statistics stand after the trained weights in the flat array, and are not descended.
    """
    layout = network.model.layout(network)
    layers, counts = zip(*((group.layer, group.size) for group in layout.groups))
    owners = np.repeat(layers, counts)
    owners[layout.trained :] = -1
    return owners


@measure("weight_norms", depends_on=BEST_STEP)
def weight_norms(job: FinishedJob) -> Findings:
    """Return the norms of G sets of scale-invariant weights at k iterations, from the first start.

    Where values are normalized, `c w` is the same function for every c > 0. The gradient at `c w`
    is that at w over c, and orthogonal to w: plain steps never shrink `|w|`, and a step of size a
    turns w as a step of size `a / |w|^2` turns `w / |w|`, the *effective step*. After van Laarhoven
    (2017), L2 Regularization versus Batch and Weight Normalization; Arora, Li, Lyu (2019),
    Theoretical Analysis of Auto Rate-Tuning by Batch Normalization.

    `iteration` (k,), `layer` (G,), `weight_norm` and `effective_step` (k, G). A set is what
    `scale_invariant_weights` of the model says: a unit's weights under batch and weight
    normalization, those of a layer or a group of units where these are normalized together.
    Epsilon, which breaks the invariance, is neglected. The step size is that of the run at that
    iteration, with its schedule. A note in place of the arrays where the model has no such set.
    """
    descent, network = job.descent, job.descent.train
    if network.linear is not None:
        return Findings(notes=(f"weight_norms: {NO_NETWORK}",))
    sets = network.model.mlp.scale_invariant_weights(network.model.layout(network))
    if not sets:
        return Findings(notes=(NO_SUCH_WEIGHTS,))
    path = descent.path.spread(NORMS_ITERATIONS)
    weights = path.weights.astype(np.float64)
    lengths = np.column_stack([np.linalg.norm(weights[:, indices], axis=1) for _, indices in sets])
    with np.errstate(divide="ignore"):  # weights of norm 0 have an infinite effective step
        effective = scheduled_step_sizes(descent, path.iteration)[:, None] / lengths**2
    arrays = {names.WEIGHT_NORM.key: lengths, names.EFFECTIVE_STEP.key: effective}
    layer = np.array([layer for layer, _ in sets])
    return Findings(arrays={"iteration": path.iteration, "layer": layer, **arrays})
