"""Networks: sums over points and their derivatives, by autograd; their steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from autograd import grad
from autograd.core import VJPNode, add_outgrads, make_vjp
from autograd.tracer import getval, new_box, toposort

from normbench.engine import threads
from normbench.engine.hessian import Hessian
from normbench.engine.problem import QUIET, Array, Evaluation, Problem, Share, differentiate
from normbench.engine.settings import Settings
from normbench.models import Mlp
from normbench.models.network import (
    AFFINE_KINDS,
    BATCH,
    RUNNING_KINDS,
    WEIGHT,
    Forward,
    Key,
    Layout,
)
from normbench.optimizers import Optimizer, State, Update

CACHED_BYTES = 1 << 24  # of the activations of the runs and points that a thread evaluates at once
# Arrays as large as the activations that a gradient holds at once.
ARRAYS_PER_ACTIVATION = 12
# The share of a batch's statistics in the running ones after an update.
RUNNING_SHARE = 0.1
# Numbers in the activations of a layer of all runs from which a second thread pays.
PARALLEL_ACTIVATIONS = 300_000


@dataclass(frozen=True)
class Network:
    """The scores of an `Mlp` with weights `(D,)`, see its layout.

    Running statistics are among the weights. In the gradient of a step their entries are their
    differences from the statistics of the points that the step sees.
    """

    mlp: Mlp
    is_linear = False

    def layout(self, problem: Problem) -> Layout:
        """Return the layout of the weights."""
        return _layout(self.mlp, problem.points.shape[1], problem.classes)

    def shape(self, features: int, scores: int) -> tuple[int, ...]:
        """Return the shape of one model's weights, `(D,)`."""
        return (_layout(self.mlp, features, scores).size,)

    def start(self, settings: Settings, features: int, scores: int, rng: Any) -> Array:
        """See `Linear.start`: the network has a scale of its own."""
        return self.mlp.start(_layout(self.mlp, features, scores), settings.starts, rng)

    def shares(self, problem: Problem, runs: int, points: int, is_step: bool) -> list[Share]:
        """See `Linear.shares`: threads share the points, or the runs where points are coupled."""
        layout = self.layout(problem)
        units = [shape[0] for (_, kind), shape in layout.shapes.items() if kind == WEIGHT]
        count = problem.count_threads(runs * points * max(units) / PARALLEL_ACTIVATIONS)
        # Of so many pairs of a run and a point the activations stay in a cache.
        pairs = CACHED_BYTES // (ARRAYS_PER_ACTIVATION * sum(units) * problem.points.itemsize)
        if not self.mlp.needs_all_points:
            spans = threads.split(slice(0, points), count)
            size = max(1, pairs // runs)
            return [[(slice(0, runs), threads.blocks(span, size))] for span in spans]
        has_batches = not is_step and self.mlp.statistics == BATCH and problem.batch
        size = min(problem.batch or points, points) if has_batches else points
        blocks = threads.blocks(slice(0, points), size)
        if len(blocks) > 1 and points % size == 1:  # a point alone has no deviation
            blocks[-2:] = [slice(blocks[-2].start, points)]
        if problem.training is not None:  # its points are evaluated at once, for their moments
            size = max(size, len(problem.training.targets))
        return [
            [(some, blocks) for some in threads.blocks(span, max(1, pairs // size))]
            for span in threads.split(slice(0, runs), count)
        ]

    def prepare(self, problem: Problem, weights: Array, is_step: bool) -> Any:
        """See `Linear.prepare`: the weights, and the moments that points are normalized by.

        Those of a record are running ones or the training's; None for the points' own.
        """
        return weights, None if is_step else self._given_moments(problem, weights)

    def sums(self, problem: Problem, prepared: Any, x: Any, y: Array, with_gradient: bool) -> Any:
        """See `Linear.sums`."""
        layout, (weights, given) = self.layout(problem), prepared
        arrays = layout.split(weights)
        # Unlike `make_vjp`, such roots change no state that threads share; the calling thread must
        # not be inside another trace. Each array is traced by itself: of one array of all, the
        # derivative by each part would have zeros for the others.
        roots = {VJPNode.new_root(): key for key in arrays} if with_gradient else {}
        traced = {key: new_box(arrays[key], 0, root) for root, key in roots.items()}
        passed = self.mlp.forward(traced or arrays, x, given, y)
        scores = np.array(getval(passed.scores), order="C")  # a copy: it becomes the derivative
        costs, counts = differentiate(problem, scores, y, with_gradient)
        if not with_gradient:
            return Evaluation(costs, None, counts)
        slopes = _pull_back(passed.scores, scores, roots, arrays)
        # A step moves running statistics towards those of its points; a record has them as moments.
        if self.mlp.has_running_statistics and given is None:
            slopes |= {key: arrays[key] - getval(seen) for key, seen in passed.moments.items()}
        return Evaluation(costs, layout.join(slopes), counts)

    def descended(self, problem: Problem) -> slice:
        """See `Linear.descended`: all weights but running statistics, which are the last."""
        return slice(0, self.layout(problem).trained)

    def penalty(self, problem: Problem, weights: Array) -> tuple[Array, Array]:
        """See `Linear.penalty`: `l2 sum w^2` over the groups of kind `weight`."""
        penalized = np.where(self.layout(problem).mark(WEIGHT), weights, 0)
        squares = np.einsum("rd,rd->r", penalized, penalized)
        return problem.l2 * squares, 2 * problem.l2 * penalized

    def scores(self, problem: Problem, weights: Array, x: Array) -> Array:
        """See `Linear.scores`; points are normalized by the moments of the problem's points."""
        given = self._given_moments(problem, weights[None])
        if given is None and self.mlp.needs_all_points:
            given = self._forward(problem, weights[None]).moments
        passed = self.mlp.forward(self.layout(problem).split(weights[None]), x, given)
        return np.asarray(passed.scores[0])

    def hessian(self, problem: Problem, weights: Array) -> "NetworkHessian":
        """See `Linear.hessian`."""
        return NetworkHessian(problem, weights.astype(np.float64))

    def layer_outputs(self, problem: Problem, weights: Array) -> list[Array]:
        """Return the values `(H, P)` of each layer on all points, of one model's weights `(D,)`."""
        with QUIET():
            given = self._given_moments(problem, weights[None])
            passed = self._forward(problem, weights[None], given)
        return [np.asarray(values[0]) for values in passed.outputs]

    def _given_moments(self, problem: Problem, weights: Array) -> dict[Key, Any] | None:
        """Return the moments that recorded points are normalized by, under weights `(R, D)`.

        They are the running moments or those of the training's points; None for the moments of the
        recorded points themselves, or of a model that normalizes over no points.
        """
        if self.mlp.has_running_statistics:
            arrays = self.layout(problem).split(weights)
            return {key: array for key, array in arrays.items() if key[1] in RUNNING_KINDS}
        is_own = not self.mlp.needs_all_points or self.mlp.statistics == BATCH
        source = None if is_own else problem.training
        return self._forward(source, weights).moments if source else None

    def _forward(self, problem: Problem, weights: Array, given: Any = None) -> Forward:
        """Return what the layers make of all points of a problem under weights `(R, D)`."""
        arrays = self.layout(problem).split(weights)
        return self.mlp.forward(arrays, problem.points, given, problem.targets)


@lru_cache(maxsize=64)
def _layout(mlp: Mlp, features: int, scores: int) -> Layout:
    """Return the layout of the weights of a network; each step asks for it."""
    return mlp.layout(features, scores)


def _pull_back(
    traced: Any, slopes: Array, roots: Mapping[VJPNode, Key], arrays: Mapping[Key, Array]
) -> dict[Key, Array]:
    """Return derivatives by arrays from those by a traced value; zeros for arrays not in it."""
    # By node: the derivative, and autograd's flag of whether it may be changed in place.
    derivatives = {traced._node: (slopes, False)}
    by_array = {key: np.zeros_like(array) for key, array in arrays.items()}
    # From the value back to the arrays, as autograd's own backward pass does.
    for node in toposort(traced._node):
        derivative = derivatives.pop(node)
        if node in roots:
            by_array[roots[node]] = derivative[0]
        for parent, share in zip(node.parents, node.vjp(derivative[0])):
            derivatives[parent] = add_outgrads(derivatives.get(parent), share)
    return by_array


class NetworkHessian(Hessian):
    """The second derivatives of a network's mean cost at one model's weights, by autograd.

    They are of the mean cost plus the penalty, of the cost's plain formula and under the moments of
    all points, in float64; the gradient is traced once.
    """

    def __init__(self, problem: Problem, weights: Array) -> None:
        self.shape = weights.shape
        layout, cost = problem.model.layout(problem), getattr(problem.cost, "formula", problem.cost)
        x, is_penalized = problem.points.astype(np.float64, copy=False), layout.mark(WEIGHT)

        def mean_cost(flat: Any) -> Any:
            arrays = layout.split(flat.reshape((1, -1)))
            passed = problem.model.mlp.forward(arrays, x, None, problem.targets)
            value = cost(passed.scores, problem.targets)[0] / len(problem.targets)
            return value + problem.l2 * ((is_penalized * flat) ** 2).sum()

        with QUIET():
            self._pull_back: Any = make_vjp(grad(mean_cost), weights)[0]

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(D,)`, by a derivative of the gradient."""
        with QUIET():
            return np.asarray(self._pull_back(direction.astype(np.float64)))


def with_affine_and_running_steps(optimizer: Optimizer, train: Problem) -> Optimizer:
    """Return a step rule that steps gains, shifts and running statistics of a network separately.

    Gains and shifts have the model's `affine_step` as their step size, where it has one. Running
    statistics r become `r - share (r - s)`, with the statistics s of the batch and the share
    `RUNNING_SHARE`.

    Args:
        optimizer: The step rule of the weights.
        train: The problem, of any kind.

    Returns:
        The step rule; the given one for linear scores, and where gains and shifts have the run's
        step size and there are no running statistics.
    """
    if train.linear is not None:
        return optimizer
    layout, affine_step = train.model.layout(train), train.model.mlp.affine_step
    trained = layout.trained
    if trained == layout.size and affine_step is None:
        return optimizer
    is_affine = layout.mark(*AFFINE_KINDS)[:trained]

    def init(weights: Array) -> State:
        return optimizer.init(weights[:, :trained])

    # It takes no problem: `checks` refuses rules that use one.
    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        sizes = step_size
        if affine_step is not None:
            sizes = np.where(is_affine, np.asarray(affine_step, weights.dtype), step_size)
        stepped, state = optimizer.step(weights[:, :trained], gradient[:, :trained], state, sizes)
        running = weights[:, trained:] - RUNNING_SHARE * gradient[:, trained:]
        return np.concatenate([stepped, running.astype(weights.dtype)], axis=1), state

    # Weights have steps of several kinds, so that neither trait of the rule holds for all of them.
    return optimizer._replace(init=init, step=step, plain=False, rotation_equivariant=False)
