"""The Problem of a model that is not linear in its weights, with derivatives by autograd."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from autograd import grad
from autograd.core import VJPNode, add_outgrads, make_vjp
from autograd.tracer import getval, new_box, toposort

from normbench.costs import count_misclassified
from normbench.costs.declaration import Traits, traits
from normbench.engine.hessian import Hessian
from normbench.engine.problem import (
    QUIET,
    Array,
    Cost,
    Counts,
    Evaluation,
    FullBatch,
    Workspace,
)
from normbench.models.formulas import AUTOGRAD, Formulas, Fused
from normbench.models.layout import WEIGHT, Layout
from normbench.models.network import BATCH, RUNNING

# The activations of one run and a block of points, in bytes: they stay in a cache.
CACHED_BYTES = 1 << 22
# The activations of a group of runs that are evaluated together, in bytes.
GROUP_BYTES = 1 << 24
# Arrays as large as the activations that a gradient holds at once.
ARRAYS_PER_ACTIVATION = 12


class Model(Protocol):
    """How the scores of a point follow from weights; see `normbench.models.Mlp`."""

    def __hash__(self) -> int:
        """Return equal numbers for equal models, whose compiled functions are shared."""

    @property
    def needs_all_points(self) -> bool:
        """Whether the scores of a point depend on the other points of its batch."""

    @property
    def statistics(self) -> str:
        """Whose statistics normalize evaluated points: `all`, `batch` or `running`; see `Mlp`."""

    @property
    def solves_scores(self) -> bool:
        """Whether gain and shift of the scores are solved for."""

    @property
    def normalize(self) -> str:
        """What is normalized: a choice of `model.normalize`, such as `batch`; see `Mlp`."""

    @property
    def affine_step(self) -> float | None:
        """The step size of gains and shifts; None for the run's."""

    def start(self, layout: Layout, count: int, rng: np.random.Generator) -> Array:
        """Return the weights of `count` models at the start, `(count, D)`.

        Args:
            layout: The layout of the weights, of D numbers.
            count: The number of models.
            rng: The generator that draws them.
        """

    def layout(self, features: int, scores: int) -> Layout:
        """Return the layout of the weights for N features and C scores of a point."""

    def running_moments(self, layout: Layout, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the running moments that are among the weights.

        Args:
            layout: The layout of the weights.
            arrays: One array `(R, *shape)` for each group of the layout.

        Returns:
            A mean and a variance, or covariance, for each normalized layer; empty where none are
            kept.
        """

    def layer_outputs(
        self,
        layout: Layout,
        arrays: Sequence[Any],
        x: Array,
        moments: Sequence[Any] | None = None,
        collected: list[Any] | None = None,
        formulas: Formulas = AUTOGRAD,
    ) -> Iterator[Any]:
        """Yield the values `(R, H, p)` of each layer, the scores last.

        The arguments are those of `scores`.
        """

    def scale_invariant_weights(self, layout: Layout) -> list[tuple[int, Array]]:
        """Return sets of weights that can be multiplied by c > 0 without changing the scores.

        Args:
            layout: The layout of the weights.

        Returns:
            For each set, its layer and the indices of its weights in the flat array.
        """

    def scores(
        self,
        layout: Layout,
        arrays: Sequence[Any],
        x: Array,
        moments: Sequence[Any] | None = None,
        collected: list[Any] | None = None,
        formulas: Formulas = AUTOGRAD,
        targets: Array | None = None,
    ) -> Any:
        """Return the scores `(R, C, p)` of points.

        Args:
            layout: The layout of the weights.
            arrays: One array `(R, *shape)` for each group of the layout; autograd may trace them.
            x: Points (p, N).
            moments: For each normalized layer, what its values are normalized by; None for the
                moments of x.
            collected: A list to which the moments of each normalized layer are appended; None for
                none.
            formulas: The implementation of the layers: autograd's, JAX's or fused ones.
            targets: The targets of x, (p,), for models that solve for gain and shift.
        """


@dataclass(frozen=True)
class Network(FullBatch):
    """A cost of a model's scores on points x (P, N) with targets (P,): the mean over points.

    The weights of a model are `(D,)`. classify: misclassified points are counted. classes: C, the
    scores of a point. l2: adds `l2 sum w^2` over the groups of kind `weight`. reference: the
    problem of the training points, whose statistics normalize those of x; None for x itself. batch:
    how many points are normalized together where a model takes the statistics of a batch.
    """

    model: Model
    cost: Cost
    x: Array
    targets: Array
    classify: bool
    classes: int
    l2: float = 0.0
    reference: "Network | None" = None
    batch: int | None = None

    @classmethod
    def around(cls, network: "Network") -> Self:
        """Return the same problem, and its reference, as problems of this class."""
        values = {field.name: getattr(network, field.name) for field in fields(Network)}
        if network.reference is not None:
            values["reference"] = cls.around(network.reference)
        return cls(**values)

    @property
    def traits(self) -> Traits:
        """The traits that the cost declares."""
        return traits(self.cost)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the weights."""
        return self.model.layout(self.x.shape[1], self.classes)

    @property
    def shape(self) -> tuple[int]:
        """The shape of one model's weights, `(D,)`."""
        return (self.layout.size,)

    @property
    def convex(self) -> bool:
        """False."""
        return False

    @property
    def linear(self) -> None:
        """None: scores are not linear in the weights."""
        return

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications; see `Problem.evaluate`.

        Args:
            weights: `(R, D)`.
            with_gradient: Whether the gradient is computed.
            workspace: Memory for the layers' values.

        Returns:
            Costs `(R,)`, gradient `(R, D)` or None, and counts `(R,)` or None.
        """
        costs = np.zeros(len(weights))
        counts = np.zeros(len(weights), dtype=np.int64)
        gradient = np.zeros_like(weights) if with_gradient else None
        formulas = Fused(workspace)
        with QUIET():
            for runs in self._group_runs(len(weights)):
                # With given moments no score depends on other points: blocks may then be small.
                moments = self._given_moments(self.layout.split(weights[runs]))
                for block in self._point_blocks(moments is not None):
                    points = self.take_points(block)
                    sums = self.sum_up(weights[runs], *points, formulas, moments, with_gradient)
                    costs[runs] += sums.costs
                    counts[runs] += sums.counts
                    if gradient is not None:
                        gradient[runs] += sums.gradient
            costs /= len(self.targets)
            if gradient is not None:
                gradient /= len(self.targets)
            self._penalize(weights, costs, gradient)
        return Evaluation(costs, gradient, counts if self.classify else None)

    def sum_gradients(
        self, weights: Array, points: Array, is_running: bool, workspace: Workspace | None
    ) -> Array:
        """Return the sum of the gradients of a batch of points, without the penalty's.

        Args:
            weights: `(R, D)`.
            points: The indices of the points of the batch, (m,).
            is_running: Whether running statistics are kept. Their entries of the gradient are then
                their differences from the batch's statistics, see `with_running_differences`.
            workspace: Memory for the layers' values.

        Returns:
            `(R, D)`, not divided by the number of points.
        """
        gradient, formulas = np.empty_like(weights), Fused(workspace)
        for runs in self._group_runs(len(weights), len(points)):
            collected: list[Any] | None = [] if is_running else None
            # Points that are normalized together stay together.
            blocks = [points] if self.model.needs_all_points else self._split_indices(points)
            for number, block in enumerate(blocks):
                arguments = *self.take_points(block), formulas, None, True, collected
                slopes = self.sum_up(weights[runs], *arguments).gradient
                gradient[runs] = slopes if number == 0 else gradient[runs] + slopes
        return gradient

    def take_points(self, block: slice | Array) -> tuple[Any, Any]:
        """Return the points (p, N) and targets (p,) of a slice or of indices."""
        return self.x[block], self.targets[block]

    def layer_outputs(self, weights: Array) -> Iterator[Array]:
        """Yield the values `(H, P)` of each layer on all points, of one model's weights `(D,)`."""
        arrays = self.layout.split(weights[None])
        arguments = self.layout, arrays, self.x, self._given_moments(arrays)
        with QUIET():
            for values in self.model.layer_outputs(*arguments):
                yield np.asarray(values[0])

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores (C, p) of points x (p, N) under the weights of one model `(D,)`.

        A model that normalizes over points normalizes x by the moments of this problem's points,
        not of x, unless other moments are given.
        """
        arrays = self.layout.split(weights[None])
        moments = self._given_moments(arrays)
        if moments is None and self.model.needs_all_points:
            moments = self.collect(arrays)
        return np.asarray(self.model.scores(self.layout, arrays, x, moments)[0])

    def hessian(self, weights: Array) -> "NetworkHessian":
        """Return the second derivatives of `mean_cost` at weights `(D,)`, in float64."""
        return NetworkHessian(self, weights.astype(np.float64))

    def mean_cost(self, arrays: Sequence[Any]) -> Any:
        """Return the cost of one model, as a function that autograd can differentiate twice.

        It uses the cost's plain formula and the moments of all points x, in float64.

        Args:
            arrays: One array `(1, *shape)` for each group of the layout, which autograd may trace.

        Returns:
            The mean over the points plus the penalty.
        """
        cost = getattr(self.cost, "formula", self.cost)
        x = self.x.astype(np.float64, copy=False)
        scores = self.model.scores(self.layout, arrays, x, targets=self.targets)
        value = cost(scores, self.targets)[0] / len(self.targets)
        for group, array in zip(self.layout.groups, arrays):
            if group.kind == WEIGHT and self.l2 > 0:
                value = value + self.l2 * (array**2).sum()
        return value

    def sum_up(
        self,
        weights: Array,
        x: Any,
        targets: Any,
        formulas: Fused,
        moments: Any,
        with_gradient: bool,
        collected: list[Any] | None = None,
    ) -> "Sums":
        """Return costs, counts and gradient of points x, sums over them.

        Args:
            weights: `(R, D)`.
            x: Points (p, N).
            targets: (p,).
            formulas: The implementation of the layers, whose memory is used from its beginning.
            moments: What the model normalizes by; None for the moments of x.
            with_gradient: Whether the gradient is computed.
            collected: A list to which the moments of x are appended; None for none. With a list,
                the gradient's entries of running statistics are their differences from these
                moments.

        Returns:
            Costs `(R,)` without the penalty; counts `(R,)`, or 0 where points are not classified;
            gradient `(R, D)` or None.
        """
        formulas.begin()
        arrays = self.layout.split(weights)

        def compute_scores(traced: Sequence[Any]) -> Any:
            arguments = moments, collected, formulas, targets
            return self.model.scores(self.layout, traced, x, *arguments)

        if with_gradient:
            pull_back, scores = _trace(compute_scores, arrays)
        else:
            scores = compute_scores(arrays)
        counts = count_misclassified(scores, targets) if self.classify else 0
        if not with_gradient:
            return Sums(self.cost(scores, targets), counts)
        costs, derivative = differentiate_scores(self.cost, scores, targets)
        slopes = self.layout.join(pull_back(derivative))
        return Sums(costs, counts, self.with_running_differences(weights, slopes, collected))

    def with_running_differences(
        self, weights: Array, gradient: Array, collected: list[Any] | None
    ) -> Array:
        """Return a gradient with the differences of running statistics from a batch's.

        These replace the entries of the running statistics, which are the last ones: a step along
        them moves the running statistics towards the batch's.

        Args:
            weights: `(R, D)`.
            gradient: `(R, D)`.
            collected: The moments of the batch, two arrays for each normalized layer. Without them,
                or without running statistics, the gradient is returned unchanged.
        """
        trained = self.layout.trained
        if not collected or trained == self.layout.size:
            return gradient
        moments = [getval(array).reshape(len(weights), -1) for pair in collected for array in pair]
        differences = weights[:, trained:] - np.concatenate(moments, axis=1)
        return np.concatenate([gradient[:, :trained], differences], axis=1)

    def penalized(self, weights: Array) -> Array:
        """Return weights `(R, D)` with 0 in place of those without a penalty."""
        return np.where(self.layout.mark(WEIGHT), weights, 0)

    def _penalize(self, weights: Array, costs: Array, gradient: Array | None) -> None:
        """Add the penalty at weights `(R, D)` to costs `(R,)` and gradient `(R, D)`, in place."""
        if self.l2 <= 0:
            return
        penalized = self.penalized(weights)
        costs += self.l2 * np.einsum("rd,rd->r", penalized, penalized)
        if gradient is not None:
            gradient += 2 * self.l2 * penalized

    def _given_moments(self, arrays: Sequence[Array]) -> Sequence[Any] | None:
        """Return the moments that normalize evaluated points.

        These are the running moments or those of the reference's points; None for the moments of
        the evaluated points themselves, or of a model that normalizes over no points.
        """
        if not self.model.needs_all_points:
            return None
        if self.model.statistics == RUNNING:
            return self.model.running_moments(self.layout, arrays)
        if not self._has_reference_moments:
            return None
        assert self.reference is not None
        return self.reference.collect(arrays)

    @property
    def _has_reference_moments(self) -> bool:
        """Whether the moments of the reference's points normalize evaluated points."""
        # Running moments are among the weights, and a batch has moments of its own.
        is_coupled = self.model.needs_all_points and self.model.statistics not in (RUNNING, BATCH)
        return is_coupled and self.reference is not None

    def collect(self, arrays: Sequence[Array]) -> Sequence[Any]:
        """Return the moments of all points x under the weights of some runs, layer by layer.

        arrays: one array `(R, *shape)` for each group of the layout.
        """
        collected: list[Any] = []
        arguments = None, collected, AUTOGRAD, self.targets
        self.model.scores(self.layout, arrays, self.x, *arguments)
        return collected

    def _activation_bytes(self, points: int) -> int:
        """Return the bytes that one run's gradient on so many points takes.

        A layer has as many units as its weights have rows.
        """
        units = sum(group.shape[0] for group in self.layout.groups if group.kind == WEIGHT)
        return ARRAYS_PER_ACTIVATION * points * units * self.x.itemsize

    @property
    def block_bytes(self) -> int:
        """The activations of one run and a block of points, in bytes."""
        return CACHED_BYTES

    @property
    def group_bytes(self) -> int:
        """The activations of a group of runs and a block of points, in bytes."""
        return GROUP_BYTES

    def _group_runs(self, count: int, points: int | None = None) -> Iterator[slice]:
        """Yield groups of runs whose activations together fit into `group_bytes`.

        count: the number of runs. points: how many points a batch has; None for all of the problem.
        """
        # Points are evaluated at once: those normalized together, or else a block.
        at_once = points if points and self.model.needs_all_points else self._points_per_block()
        if points is None and self._has_reference_moments:
            # The moments of the reference are computed on all its points at once.
            assert self.reference is not None
            at_once = max(at_once, len(self.reference.x))
        size = max(1, self.group_bytes // self._activation_bytes(at_once))
        for first in range(0, count, size):
            yield slice(first, first + size)

    def _points_per_block(self, has_given_moments: bool = False) -> int:
        """Return how many points are evaluated at once.

        Points that are normalized together are evaluated together: a batch, or all points.

        has_given_moments: the moments are given, so that no score depends on other points.
        """
        if self.model.needs_all_points and not has_given_moments:
            if self.batch and self.model.statistics == BATCH:
                return min(len(self.x), self.batch)
            return len(self.x)
        return min(len(self.x), max(1, self.block_bytes // self._activation_bytes(1)))

    def _point_blocks(self, has_given_moments: bool) -> Iterator[slice]:
        """Yield the blocks of the points; a last one of a single point joins the one before.

        A point by itself has no variance to be normalized by.

        has_given_moments: see `_points_per_block`.
        """
        size, count = self._points_per_block(has_given_moments), len(self.x)
        # No block begins at `last` or later: the last block extends to the end.
        last = count - 1 if count % size == 1 and count > size else count
        for first in range(0, last, size):
            yield slice(first, count if first + size >= last else first + size)

    def _split_indices(self, points: Array) -> list[Array]:
        """Return indices of points `(m,)` split into blocks that are evaluated at once."""
        size = self._points_per_block()
        return [points[first : first + size] for first in range(0, len(points), size)]


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


class Sums(NamedTuple):
    """Sums over points: costs `(R,)`, counts `(R,)`, and the gradient `(R, D)` if asked for."""

    costs: Array
    counts: Counts | int
    gradient: Array | None = None


def differentiate_scores(cost: Cost, scores: Array, targets: Array) -> tuple[Array, Array]:
    """Return the costs of scores, sums over points, and their derivatives by the scores.

    Args:
        cost: A function of scores and targets.
        scores: `(R, C, p)`, which are not changed.
        targets: (p,).

    Returns:
        Costs `(R,)` and derivatives `(R, C, p)`.
    """
    fused = getattr(cost, "fused", None)
    if fused is not None:
        derivatives = np.ascontiguousarray(scores).copy()
        costs, _ = fused(derivatives, targets)  # in place of the scores
        return costs, derivatives
    pull_cost, costs = make_vjp(lambda s: cost(s, targets), scores)
    return costs, np.asarray(pull_cost(np.ones(len(scores), dtype=scores.dtype)))


class NetworkHessian(Hessian):
    """The second derivatives of a network's mean cost at one model's weights, by autograd."""

    def __init__(self, problem: Network, weights: Array) -> None:
        self.problem, self.weights = problem, weights

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
        layout = self.problem.layout
        with QUIET():
            product = self._pull_back(layout.split(direction[None].astype(np.float64)))
        return np.asarray(layout.join(product)[0])

    @cached_property
    def _pull_back(self) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """A function from a direction to the Hessian times it, at the weights.

        It is traced once: every product uses it. Direction and product are one array `(1, *shape)`
        for each group of the layout.
        """
        slopes = grad(self.problem.mean_cost)
        with QUIET():
            pull_back, _ = make_vjp(slopes, self.problem.layout.split(self.weights[None]))
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
