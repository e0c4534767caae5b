"""Networks: sums over points and their derivatives, by autograd; their steps; their checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from autograd import grad
from autograd.core import VJPNode, add_outgrads, make_vjp
from autograd.tracer import getval, new_box, toposort

from normbench.costs.declaration import Traits
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.values import UserError
from normbench.engine import threads
from normbench.engine.batches import Batches, join_single_point
from normbench.engine.hessian import Hessian
from normbench.engine.problem import QUIET, Array, Problem, Share, Sums, differentiate
from normbench.engine.settings import FITTED, Settings
from normbench.models import Mlp
from normbench.models.network import AFFINE_KINDS, BATCH, SOLVED, WEIGHT, Forward, Layout, Moments
from normbench.optimizers import Optimizer, State, Update
from normbench.settings import default

# The activations, in bytes, of a block of points; and of the runs that a thread evaluates at once
# where points that are normalized together are one block.
CACHED_BYTES = 1 << 24
GROUP_BYTES = 1 << 24
# Arrays as large as the activations that a gradient holds at once.
ARRAYS_PER_ACTIVATION = 12
# The share of a batch's statistics in the running ones after an update.
RUNNING_SHARE = 0.1
# Numbers in the activations of a layer of all runs from which a second thread pays.
PARALLEL_ACTIVATIONS = 300_000
# Of some runs, the weights `(R, D)` and what points are normalized by: None for their own moments.
Prepared = tuple[Array, Sequence[Moments] | None]


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

    def start(
        self, features: int, scores: int, count: int, scale: float, rng: np.random.Generator
    ) -> Array:
        """See `Linear.start`: the network has a scale of its own."""
        return self.mlp.start(_layout(self.mlp, features, scores), count, rng)

    def shares(self, problem: Problem, runs: int, points: int, is_step: bool) -> list[Share]:
        """See `Linear.shares`: threads share the points, or the runs where points are coupled.

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
        """See `Linear.prepare`: the moments of a record are running ones or the training's."""
        return weights, None if is_step else self._given_moments(problem, weights)

    def sums(
        self, problem: Problem, prepared: Prepared, x: Any, targets: Array, with_gradient: bool
    ) -> Sums:
        """See `Linear.sums`."""
        layout, (weights, given) = self.layout(problem), prepared
        arrays = layout.split(weights)
        boxes, roots = _boxes(arrays) if with_gradient else (arrays, [])
        passed = self.mlp.forward(layout, boxes, x, given, targets)
        scores = np.array(getval(passed.scores), order="C")  # a copy: it becomes the derivative
        costs, counts = differentiate(
            problem.cost, scores, targets, problem.classify, with_gradient
        )
        if not with_gradient:
            return Sums(costs, counts, None)
        gradient = layout.join(_pull_back(passed.scores, scores, roots, arrays))
        # A step moves running statistics towards those of its points; a record has them as moments.
        if given is None and layout.trained < layout.size:
            seen = layout.join([getval(array) for pair in passed.moments for array in pair])
            gradient[:, layout.trained :] = weights[:, layout.trained :] - seen
        return Sums(costs, counts, gradient)

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
        layout = self.layout(problem)
        passed = self.mlp.forward(layout, layout.split(weights[None]), x, given)
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

    def _given_moments(self, problem: Problem, weights: Array) -> Sequence[Moments] | None:
        """Return the moments that recorded points are normalized by, under weights `(R, D)`.

        They are the running moments or those of the training's points; None for the moments of the
        recorded points themselves, or of a model that normalizes over no points.
        """
        if not self.mlp.needs_all_points or self.mlp.statistics == BATCH:
            return None
        if self.mlp.has_running_statistics:
            layout = self.layout(problem)
            return self.mlp.running_moments(layout, layout.split(weights))
        return self._forward(problem.training, weights).moments if problem.training else None

    def _forward(
        self, problem: Problem, weights: Array, given: Sequence[Moments] | None = None
    ) -> Forward:
        """Return what the layers make of all points of a problem under weights `(R, D)`."""
        layout = self.layout(problem)
        arrays = layout.split(weights)
        return self.mlp.forward(layout, arrays, problem.points, given, problem.targets)


@lru_cache(maxsize=64)
def _layout(mlp: Mlp, features: int, scores: int) -> Layout:
    """Return the layout of the weights of a network; each step asks for it."""
    return mlp.layout(features, scores)


def _boxes(arrays: Sequence[Array]) -> tuple[list[Any], list[VJPNode]]:
    """Return arrays as autograd traces them, and their nodes.

    Unlike `make_vjp`, this changes no state that threads share; the calling thread must not be
    inside another trace. Each array is traced by itself: if a tuple were traced, the derivative of
    each entry would have zeros for all the others, and the work would grow with their number
    squared.
    """
    roots = [VJPNode.new_root() for _ in arrays]
    return [new_box(array, 0, root) for array, root in zip(arrays, roots)], roots


def _pull_back(
    traced: Any, slopes: Array, roots: Sequence[VJPNode], arrays: Sequence[Array]
) -> list[Array]:
    """Return derivatives by arrays from those by a traced value; zeros for arrays not in it."""
    # By node: the derivative, and autograd's flag of whether it may be changed in place.
    derivatives = {traced._node: (slopes, False)}
    root_derivatives = {root: np.zeros_like(array) for root, array in zip(roots, arrays)}
    # From the value back to the arrays, as autograd's own backward pass does.
    for node in toposort(traced._node):
        derivative = derivatives.pop(node)
        if node in root_derivatives:
            root_derivatives[node] = derivative[0]
        for parent, share in zip(node.parents, node.vjp(derivative[0])):
            derivatives[parent] = add_outgrads(derivatives.get(parent), share)
    return list(root_derivatives.values())


class NetworkHessian(Hessian):
    """The second derivatives of a network's mean cost at one model's weights, by autograd."""

    def __init__(self, problem: Problem, weights: Array) -> None:
        self.problem, self.weights, self.shape = problem, weights, weights.shape
        self.layout: Layout = problem.model.layout(problem)

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
        passed = problem.model.mlp.forward(self.layout, arrays, x, targets=problem.targets)
        value = cost(passed.scores, problem.targets)[0] / len(problem.targets)
        for group, array in zip(self.layout.groups, arrays):
            if group.kind == WEIGHT and problem.is_penalized:
                value = value + problem.l2 * (array**2).sum()
        return value

    @cached_property
    def _pull_back(self) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """A function from a direction to the Hessian times it, which is traced once.

        Direction and product are one array `(1, *shape)` for each group of the layout.
        """
        with QUIET():
            pull_back, _ = make_vjp(grad(self._mean_cost), self.layout.split(self.weights[None]))
        return pull_back


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

    # It takes no objective: `check_model` refuses rules that use one.
    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        sizes = step_size
        if affine_step is not None:
            sizes = np.where(is_affine, np.asarray(affine_step, weights.dtype), step_size)
        stepped, state = optimizer.step(weights[:, :trained], gradient[:, :trained], state, sizes)
        running = weights[:, trained:] - RUNNING_SHARE * gradient[:, trained:]
        return np.concatenate([stepped, running.astype(weights.dtype)], axis=1), state

    # Weights have steps of several kinds, so that neither trait of the rule holds for all of them.
    return optimizer._replace(init=init, step=step, plain=False, rotation_equivariant=False)


def check_model(
    model: Mlp | None,
    settings: Settings,
    points: tuple[Any, Any],
    optimizer: Optimizer,
    l2_in: str,
    cost_traits: Traits,
) -> None:
    """Check a model that is not linear against the settings, the points and the cost.

    Args:
        model: The model; None for the linear one, which always passes.
        settings: The engine's.
        points: The training points (P, N) and the held-out points (Q, N).
        optimizer: The step rule.
        l2_in: The weights that the penalty is on, `transformed` or `features`.
        cost_traits: The traits that the cost declares.

    Raises:
        UserError: A setting is for the linear model alone, the optimizer does not take the model,
            or a batch or part has one point, which would be normalized by itself.
    """
    if model is None:
        return
    scale, default_scale = settings.start_scale, default("start_scale")
    # Whether the setting has a value that networks refuse, the setting, and the remedy.
    remedies = [
        (settings.start == "same_function", "start=same_function", "start=null"),
        (
            scale != default_scale,
            f"start_scale={scale:g}",
            f"start_scale={default_scale:g} and model.start_scale={scale:g}",
        ),
        (
            settings.statistics != FITTED,
            f"normalizer.statistics={settings.statistics}",
            f"normalizer.statistics={FITTED}",
        ),
        (not is_in_memory(points[0]), "points that are not in memory", "dense points"),
        (l2_in != "transformed", f"cost.l2_in={l2_in}", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", "optimizer=gradient_descent"),
    ]
    for is_wrong, setting, remedy in remedies:
        if is_wrong:
            raise UserError(f"{setting}: is for model=linear; use {remedy}, or model=linear")
    if settings.start == "zeros":
        raise UserError(
            "start=zeros: zero weights of a network are a stationary point; use start=null, which "
            "draws the weights"
        )
    # Under these two settings a step does not follow the gradient of the cost alone.
    if optimizer.uses_objective:
        own_steps = "model.statistics=running" if model.has_running_statistics else ""
        if model.affine_step is not None:
            own_steps = f"model.affine_step={model.affine_step}"
        if own_steps:
            raise UserError(
                f"{own_steps}: the optimizer chooses its steps by the cost, as line_search, newton "
                "and lbfgs do; use optimizer=gradient_descent"
            )
    if model.affine == SOLVED and not cost_traits.squares:
        raise UserError(
            "model.affine=solved: gain and shift are solved for cost=least_squares; use "
            "model.affine=true, or that cost"
        )
    if not model.needs_all_points:
        return
    # A point by itself has no deviation to be normalized by. Held-out points are normalized by
    # themselves only under the statistics of a batch.
    train, test = map(len, points)
    counts = [(settings.batch, f"batch={settings.batch}", "batch=2 or more")]
    counts.append((train, "the data have 1 training point", "more points"))
    if model.statistics == BATCH:
        counts.append((test, "the data have 1 held-out point", "more of them"))
    for count, setting, remedy in counts:  # a batch of None is all points
        if count == 1:
            raise UserError(
                f"{setting}: model.normalize={model.normalize} needs two points or more, whose "
                f"values have a deviation; use {remedy}, or model.normalize=layer"
            )
    # A pass has one update fewer where a last point joins the batch before, see `check_batch`.
    batches = Batches(train, min(settings.batch or 1, train))
    updates = join_single_point(batches).updates_per_pass
    if settings.batch and settings.records_per_pass > updates:
        raise UserError(
            f"records_per_pass={settings.records_per_pass}: a pass over {train} points with "
            f"batch={settings.batch} has {updates} updates, since the last point joins the batch "
            f"before under model.normalize={model.normalize}; choose at most {updates}"
        )
