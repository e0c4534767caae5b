"""Gradients and values of each layer of a network, along the best step size.

A layer's weights have one gradient before a step, and another after the *other* layers made it: the
cosine between both says how far a layer's direction depends on the layers around it. After
Santurkar, Tsipras, Ilyas, Madry (2018), How Does Batch Normalization Help Optimization?, section
2.2, where only the layers before move. The participation ratio `(tr M)^2 / tr M^2` of the second
moments `M = h h' / P` of a layer's values h `(H, P)`, which are not centred, is a rank without a
threshold: from 1, where all points have one direction, to H. After Daneshmand et al. (2020), Batch
Normalization Provably Avoids Rank Collapse.
"""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.engine.network import Network
from normbench.engine.network_steps import network_of
from normbench.engine.problem import QUIET
from normbench.measures.contract import BEST_STEP, NETWORK, Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import has_best, spread_iterations
from normbench.theory.budget import Work

LAYERS_ITERATIONS = 60  # whose layers are measured
MAX_COSINE_LAYERS = 100  # each takes a gradient of all layers: the work is their number squared
NO_COSINES = (
    f"the cosines of layers, which take a gradient each, are of {MAX_COSINE_LAYERS} layers at "
    "most; the other quantities of by_layer are recorded"
)


def take(job: FinishedJob) -> Findings:
    """Return what each of L layers does at k iterations of the best step size's first run.

    `iteration` (k,), and (k, L) each: `layer_gradient_norm`, of the weights, biases, gains and
    shifts; `layer_rank`, the participation ratio of the values; `layer_norm`, their root mean
    square over units and points; `layer_cosine`, NaN at the last iteration, where a gradient is 0,
    and of more than `MAX_COSINE_LAYERS` layers. The values of a layer are those that the next one
    takes, and the scores of the last. Gradients are those of the recorded cost; the layers move
    until the next record, a step of all points or what the batches of a pass do.
    """
    descent = job.descent
    network = network_of(descent.train)
    assert network is not None
    path, has_cosines = descent.path, _has_cosines(network)
    measured = path.at(spread_iterations(descent.settings.records, LAYERS_ITERATIONS))
    rows = []
    for k, weights in zip(measured.iteration, measured.weights):
        row = measure_layers(network, weights)
        following = path.weights[path.iteration == k + 1]
        if has_cosines and len(following):
            row[names.LAYER_COSINE.key] = measure_cosines(network, weights, following[0])
        rows.append(row)
    arrays = {
        metric.key: np.array([row[metric.key] for row in rows])
        for metric in (names.LAYER_GRADIENT, names.LAYER_RANK, names.LAYER_NORM, names.LAYER_COSINE)
    }
    return Findings(
        arrays={"iteration": measured.iteration, **arrays},
        notes=() if has_cosines else (NO_COSINES,),
    )


def measure_layers(network: Network, weights: Array) -> dict[str, Array]:
    """Return four quantities of each of L layers at weights `(D,)`, `(L,)` each, by their keys.

    They are the norm of the gradient, the participation ratio of the values, their root mean
    square, and NaN in place of the cosine, which needs the weights of the next record.
    """
    # Values `(H, P)` of each layer; gradient and owners `(D,)`, one entry for each weight.
    values_by_layer = [values.astype(np.float64) for values in network.layer_outputs(weights)]
    owners, gradient = find_owners(network), _gradient(network, weights)
    norms = [np.linalg.norm(gradient[owners == layer]) for layer in range(len(values_by_layer))]
    ranks = [participation_ratio(values) for values in values_by_layer]
    root_mean_squares = [np.sqrt(np.mean(values**2)) for values in values_by_layer]
    return {
        names.LAYER_GRADIENT.key: np.array(norms),
        names.LAYER_RANK.key: np.array(ranks),
        names.LAYER_NORM.key: np.array(root_mean_squares),
        names.LAYER_COSINE.key: np.full(len(norms), np.nan),
    }


def participation_ratio(values: Array) -> float:
    """Return `(tr M)^2 / tr M^2` of the second moments of values `(H, P)`; NaN where all are 0."""
    units, points = values.shape
    # Both products have the same trace and the same sum of squares: the smaller one is computed.
    moments = values @ values.T if units <= points else values.T @ values
    squares = float(np.sum(moments**2))
    return float(np.trace(moments) ** 2 / squares) if squares > 0 else float("nan")


def measure_cosines(network: Network, before: Array, after: Array) -> Array:
    """Return for each layer the cosine of its gradients, before and after the other layers moved.

    Args:
        network: The network of the training points.
        before: Weights `(D,)` at which the first gradient is taken.
        after: Weights `(D,)` that the other layers have for the second gradient, while the layer
            keeps those of `before`.

    Returns:
        `(L,)`, NaN where a gradient is 0.
    """
    owners, gradient = find_owners(network), _gradient(network, before)
    cosines = []
    for layer in range(owners.max() + 1):
        is_own = owners == layer
        first = gradient[is_own]
        second = _gradient(network, np.where(is_own, before, after))[is_own]
        lengths = np.linalg.norm(first) * np.linalg.norm(second)
        cosines.append(first @ second / lengths if lengths > 0 else np.nan)
    return np.array(cosines)


def _count_layers(network: Network) -> int:
    """Return the number of layers L, the one that gives the scores included."""
    return int(find_owners(network).max()) + 1


def _has_cosines(network: Network) -> bool:
    """Return whether the cosines of the layers are measured."""
    return _count_layers(network) <= MAX_COSINE_LAYERS


def find_owners(network: Network) -> NDArray[np.int64]:
    """Return the index of the layer of each weight `(D,)`; -1 for running statistics.

    Running statistics stand after the trained weights in the flat array, and are not descended.
    """
    layout = network.layout
    owners = np.repeat(
        [group.layer for group in layout.groups], [group.size for group in layout.groups]
    )
    owners[layout.trained :] = -1
    return owners


def _gradient(network: Network, weights: Array) -> Array:
    """Return the gradient `(D,)` of the recorded cost at weights `(D,)`, in float64."""
    with QUIET():
        gradient = network.evaluate(weights[None]).gradient
    assert gradient is not None
    return np.asarray(gradient[0], dtype=np.float64)


def _work(job: FinishedJob) -> Work:
    """Return the passes of a descent, and of the measured iterations.

    Each measured iteration takes a gradient a layer for the cosines, and four passes for the rest.
    """
    settings, network = job.descent.settings, network_of(job.descent.train)
    gradients = 0 if network is None or not _has_cosines(network) else _count_layers(network)
    measured = min(settings.records + 1, LAYERS_ITERATIONS)
    return Work(settings.iterations + measured * (gradients + 4))


MEASURE = Measure(
    take,
    record="by_layer",
    budget_label="by_layer",
    work=_work,
    model_kind=NETWORK,
    applies=has_best,
    depends_on=BEST_STEP,
)
