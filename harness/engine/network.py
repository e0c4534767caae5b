"""Scores of a network: their sums over points and their derivatives, by autograd."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from autograd import grad
from autograd.core import VJPNode, add_outgrads, make_vjp
from autograd.tracer import getval, new_box, toposort

from normbench.engine import threads
from normbench.engine.hessian import Hessian
from normbench.engine.problem import QUIET, Array, Problem, Share, Sums, differentiate
from normbench.models import Mlp
from normbench.models.formulas import Fused
from normbench.models.layout import WEIGHT, Layout
from normbench.models.network import BATCH, RUNNING

# The activations, in bytes, of a block of points; and of the runs that a thread evaluates at once
# where points that are normalized together are one block.
CACHED_BYTES = 1 << 24
GROUP_BYTES = 1 << 24
# Arrays as large as the activations that a gradient holds at once.
ARRAYS_PER_ACTIVATION = 12
# Numbers in the activations of a layer of all runs from which a second thread pays.
PARALLEL_ACTIVATIONS = 300_000


# Of some runs, the weights `(R, D)` and what points are normalized by: None for their own moments.
Prepared = tuple[Array, Sequence[Any] | None]


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

    def shares(self, problem: Problem, runs: int, points: int, is_step: bool) -> list[Share]:
        """See `Model.shares`: threads share the points, or the runs where points are coupled.

        A last block of a single point joins the one before: by itself it has no variance to be
        normalized by.
        """
        groups = self.layout(problem).groups
        units = max(group.shape[0] for group in groups)
        count = problem.count_threads(runs * points * units / PARALLEL_ACTIVATIONS)
        row = sum(group.shape[0] for group in groups if group.kind == WEIGHT)
        point_bytes = ARRAYS_PER_ACTIVATION * row * problem.points.itemsize
        if not self.mlp.needs_all_points:
            size = max(1, CACHED_BYTES // (runs * point_bytes))
            spans = threads.split(slice(0, points), count)
            return [[(slice(0, runs), threads.blocks(span, size))] for span in spans]
        has_batches = not is_step and self.mlp.statistics == BATCH and problem.together
        size = min(problem.together or points, points) if has_batches else points
        blocks = threads.blocks(slice(0, points), size)
        if len(blocks) > 1 and points % size == 1:
            blocks[-2:] = [slice(blocks[-2].start, points)]
        if problem.training is not None:  # its points are evaluated at once, for their moments
            size = max(size, len(problem.training.targets))
        at_once = max(1, GROUP_BYTES // (size * point_bytes))
        return [
            [(some, blocks) for some in threads.blocks(span, at_once)]
            for span in threads.split(slice(0, runs), count)
        ]

    def prepare(self, problem: Problem, weights: Array, is_step: bool) -> Prepared:
        """See `Model.prepare`: the moments of a record are running ones or the training's."""
        arrays = self.layout(problem).split(weights)
        return weights, None if is_step else self._given_moments(problem, arrays)

    def sums(
        self, problem: Problem, prepared: Prepared, x: Any, targets: Array, with_gradient: bool
    ) -> Sums:
        """See `Model.sums`."""
        layout, formulas = self.layout(problem), Fused(threads.scratch)
        weights, moments = prepared
        arrays = layout.split(weights)
        # A step moves running statistics towards those of its points; a record has them as moments.
        is_running = moments is None and layout.trained < layout.size
        collected: list[Any] | None = [] if is_running else None

        def compute_scores(arrays: Sequence[Any]) -> Any:
            return self.mlp.scores(layout, arrays, x, moments, collected, formulas, targets)

        if not with_gradient:
            scores = np.ascontiguousarray(compute_scores(arrays))
            costs, counts = differentiate(problem.cost, scores, targets, problem.classify, False)
            return Sums(costs, counts, None)
        pull_back, scores = _trace(compute_scores, arrays)
        derivative = np.ascontiguousarray(scores).copy()
        costs, counts = differentiate(problem.cost, derivative, targets, problem.classify, True)
        gradient = layout.join(pull_back(derivative))
        if collected:
            seen = layout.join([getval(array) for pair in collected for array in pair])
            gradient[:, layout.trained :] = weights[:, layout.trained :] - seen
        return Sums(costs, counts, gradient)

    def descended(self, problem: Problem) -> slice:
        """See `Model.descended`: all weights but running statistics, which are the last."""
        return slice(0, self.layout(problem).trained)

    def penalty(self, problem: Problem, weights: Array) -> tuple[Array, Array]:
        """See `Model.penalty`: `l2 sum w^2` over the groups of kind `weight`."""
        penalized = np.where(self.layout(problem).mark(WEIGHT), weights, 0)
        squares = np.einsum("rd,rd->r", penalized, penalized)
        return problem.l2 * squares, 2 * problem.l2 * penalized

    def scores(self, problem: Problem, weights: Array, x: Array) -> Array:
        """See `Model.scores`; points are normalized by the moments of the problem's points."""
        layout = self.layout(problem)
        arrays = layout.split(weights[None])
        moments = self._given_moments(problem, arrays)
        if moments is None and self.mlp.needs_all_points:
            moments = self._moments(problem, arrays)
        return np.asarray(self.mlp.scores(layout, arrays, x, moments)[0])

    def hessian(self, problem: Problem, weights: Array) -> "NetworkHessian":
        """See `Model.hessian`."""
        return NetworkHessian(problem, weights.astype(np.float64))

    def layer_outputs(self, problem: Problem, weights: Array) -> list[Array]:
        """Return the values `(H, P)` of each layer on all points, of one model's weights `(D,)`."""
        layout, x, targets = self.layout(problem), problem.points, problem.targets
        arrays = layout.split(weights[None])
        moments, outputs = self._given_moments(problem, arrays), list[Any]()
        with QUIET():
            self.mlp.scores(layout, arrays, x, moments, targets=targets, outputs=outputs)
        return [np.asarray(values[0]) for values in outputs]

    def _given_moments(self, problem: Problem, arrays: Sequence[Array]) -> Sequence[Any] | None:
        """Return the moments that recorded points are normalized by.

        They are the running moments or those of the training's points; None for the moments of the
        recorded points themselves, or of a model that normalizes over no points.
        """
        if not self.mlp.needs_all_points or self.mlp.statistics == BATCH:
            return None
        if self.mlp.statistics == RUNNING:
            return self.mlp.running_moments(self.layout(problem), arrays)
        return self._moments(problem.training, arrays) if problem.training else None

    def _moments(self, problem: Problem, arrays: Sequence[Array]) -> Sequence[Any]:
        """Return the moments of all points of a problem under weights, layer by layer."""
        collected: list[Any] = []
        layout, x, targets = self.layout(problem), problem.points, problem.targets
        self.mlp.scores(layout, arrays, x, collected=collected, targets=targets)
        return collected


@lru_cache(maxsize=64)
def _layout(mlp: Mlp, features: int, scores: int) -> Layout:
    """Return the layout of the weights of a network; each step asks for it."""
    return mlp.layout(features, scores)


def _trace(
    function: Callable[[Any], Any], arrays: Sequence[Array]
) -> tuple[Callable[[Array], list[Array]], Array]:
    """Return a function that computes derivatives, as `make_vjp` does, and the value of `function`.

    Unlike `make_vjp`, it changes no state that threads share; the calling thread must not be inside
    another trace. Each array is traced by itself: if a tuple were traced, the derivative of each
    entry would have zeros for all the others, and the work would grow with their number squared.

    Args:
        function: A function of a list of arrays.
        arrays: The arrays at which it is evaluated.

    Returns:
        A function that maps the derivative by the value to the derivatives by each array; and the
        value.
    """
    roots = [VJPNode.new_root() for _ in arrays]
    traced = function([new_box(array, 0, root) for array, root in zip(arrays, roots)])

    def pull_back(slopes: Array) -> list[Array]:
        """Return the derivatives by each array; zeros for one that the value does not use."""
        # By node: the derivative, and autograd's flag of whether it may be changed in place.
        derivatives = {traced._node: (slopes, False)}
        root_derivatives = dict.fromkeys(roots)
        # From the value back to the arrays, as autograd's own backward pass does.
        for node in toposort(traced._node):
            derivative = derivatives.pop(node)
            if node in root_derivatives:
                root_derivatives[node] = derivative[0]
            for parent, share in zip(node.parents, node.vjp(derivative[0])):
                derivatives[parent] = add_outgrads(derivatives.get(parent), share)
        return [
            np.zeros_like(array) if derivative is None else derivative
            for array, derivative in zip(arrays, root_derivatives.values())
        ]

    return pull_back, traced._value


class NetworkHessian(Hessian):
    """The second derivatives of a network's mean cost at one model's weights, by autograd."""

    def __init__(self, problem: Problem, weights: Array) -> None:
        self.problem, self.weights = problem, weights
        self.layout: Layout = problem.model.layout(problem)

    @property
    def shape(self) -> tuple[int]:
        """The shape of the weights."""
        return (len(self.weights),)

    @property
    def is_zero(self) -> bool:
        """False: scores curve in the weights, whatever the cost."""
        return False

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(D,)`, by a derivative of the gradient."""
        with QUIET():
            product = self._pull_back(self.layout.split(direction[None].astype(np.float64)))
        return np.asarray(self.layout.join(product)[0])

    def _mean_cost(self, arrays: Sequence[Any]) -> Any:
        """Return the mean cost plus the penalty, as autograd can differentiate it twice.

        It uses the cost's plain formula and the moments of all points, in float64.

        arrays: one `(1, *shape)` for each group of the layout, which autograd may trace.
        """
        problem, cost = self.problem, getattr(self.problem.cost, "formula", self.problem.cost)
        x = problem.points.astype(np.float64, copy=False)
        scores = problem.model.mlp.scores(self.layout, arrays, x, targets=problem.targets)
        value = cost(scores, problem.targets)[0] / len(problem.targets)
        for group, array in zip(self.layout.groups, arrays):
            if group.kind == WEIGHT and problem.is_penalized:
                value = value + problem.l2 * (array**2).sum()
        return value

    @cached_property
    def _pull_back(self) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """A function from a direction to the Hessian times it, at the weights.

        It is traced once: every product uses it. Direction and product are one array `(1, *shape)`
        for each group of the layout.
        """
        with QUIET():
            pull_back, _ = make_vjp(grad(self._mean_cost), self.layout.split(self.weights[None]))
        return pull_back

    def largest_by_lanczos(self) -> float:
        """Return the largest eigenvalue; NaN where a product overflows.

        See `Hessian.largest_by_lanczos`. ARPACK is not called with products that are not finite; a
        product with ones tells.
        """
        is_finite = np.isfinite(self.times(np.ones_like(self.weights))).all()
        return super().largest_by_lanczos() if is_finite else float("nan")

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`, from one product a column.

        It is averaged with its transpose, from which rounding alone makes it differ.
        """
        columns = np.stack([self.times(unit) for unit in np.eye(len(self.weights))])
        return np.asarray((columns + columns.T) / 2)
