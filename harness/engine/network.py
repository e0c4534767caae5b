"""The Problem of a model that is not linear in its weights, with derivatives by autograd."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from autograd import grad
from autograd.core import make_vjp

from normbench.costs import count_misclassified
from normbench.datasets.values import UserError
from normbench.engine.hessian import Effort, Hessian
from normbench.engine.problem import QUIET, Array, Cost, Counts, Evaluation, Workspace
from normbench.engine.settings import Settings
from normbench.optimizers import Optimizer

# The activations of a block of points and a group of runs, in bytes: they stay in a cache.
CACHED_BYTES = 1 << 20
# Of a group of runs whose scores need all points at once.
GROUP_BYTES = 1 << 28
# As large as the activations, that a gradient holds at once.
ARRAYS_PER_ACTIVATION = 12
WEIGHT = "weight"


class Layout(Protocol):
    """The groups of a model's flat weights."""

    groups: Any
    size: int

    def split(self, weights: Array) -> tuple[Array, ...]:
        """Return weights `(R, D)` as arrays `(R, *shape)`, one a group."""

    def join(self, parts: Sequence[Array]) -> Array:
        """Return arrays `(R, *shape)`, one a group, as weights `(R, D)`."""


class Model(Protocol):
    """How the scores of a point follow from weights."""

    @property
    def needs_all_points(self) -> bool:
        """Whether the scores of a point depend on the other points."""

    def start(self, layout: Any, count: int, rng: np.random.Generator) -> Array:
        """Return the weights of `count` models at the start, `(count, D)`."""

    def layout(self, features: int, scores: int) -> Layout:
        """Return the layout of the weights."""

    def scores(
        self,
        layout: Layout,
        parts: Sequence[Any],
        x: Array,
        statistics: Sequence[Any] | None = None,
        collected: list[Any] | None = None,
    ) -> Any:
        """Return the scores `(R, C, p)` of points (p, N)."""


@dataclass(frozen=True)
class Network:
    """A cost of a model's scores on points x (P, N) with targets (P,): the mean over points.

    The weights of a model are `(D,)`. classify: misclassified points are counted. classes: C, the
    scores of a point. l2: adds `l2 sum w^2` over the groups of kind `weight`. reference: points
    whose statistics normalize those of x, for points that no step follows; None for those of x.
    """

    model: Model
    cost: Cost
    x: Array
    targets: Array
    classify: bool
    classes: int
    l2: float = 0.0
    reference: Array | None = None

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

    @property
    def full_batch(self) -> bool:
        """True: every step uses all points."""
        return True

    @property
    def order(self) -> str:
        """Empty: every step uses all points."""
        return ""

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record: one for each before it."""
        return record

    def draw_start(self, settings: Settings) -> Array:
        """Return the weights that the runs start from, `(starts, D)`, as the model draws them."""
        rng = np.random.default_rng([settings.seed, *settings.draws])
        return self.model.start(self.layout, settings.starts, rng)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications at weights `(R, D)`."""
        costs = np.zeros(len(weights))
        counts = np.zeros(len(weights), dtype=np.int64)
        gradient = np.zeros_like(weights) if with_gradient else None
        with QUIET():
            for runs in self._runs(len(weights)):
                parts = self.layout.split(weights[runs])
                statistics = self._statistics(parts)
                for points in self._blocks():
                    values, slopes, misclassified = self._sums(
                        parts, points, statistics, with_gradient
                    )
                    costs[runs] += values
                    counts[runs] += misclassified
                    if gradient is not None:
                        gradient[runs] += self.layout.join(slopes)
            costs /= len(self.targets)
            if gradient is not None:
                gradient /= len(self.targets)
            self._penalize(weights, costs, gradient)
        return Evaluation(costs, gradient, counts if self.classify else None)

    def gradient(self, weights: Array, k: int, workspace: Workspace | None = None) -> Array:
        """Return the gradient at weights `(R, D)`, the same at every step k."""
        gradient = self.evaluate(weights, True, workspace).gradient
        assert gradient is not None
        return gradient

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores (C, p) of points x (p, N) under the weights of one model `(D,)`."""
        parts = self.layout.split(weights[None])
        statistics = self._statistics(parts)
        if statistics is None and self.model.needs_all_points:
            statistics = self._collect(parts, self.x)
        return np.asarray(self.model.scores(self.layout, parts, x, statistics)[0])

    @property
    def effort(self) -> Effort:
        """The work of `hessian` and of its products: a product takes two gradients."""
        small = self.layout.size <= 200
        return Effort(0, 3, 3 * self.layout.size if small else None, 8.0 * self.x.size)

    def hessian(self, weights: Array) -> "NetworkHessian":
        """Return the second derivatives at weights `(D,)`, in float64."""
        return NetworkHessian(self, weights.astype(np.float64))

    def mean_cost(self, parts: Sequence[Any]) -> Any:
        """Return the cost of one model, for autograd, with the cost's plain formula."""
        cost = getattr(self.cost, "formula", self.cost)
        scores = self.model.scores(self.layout, parts, self.x.astype(np.float64, copy=False))
        value = cost(scores, self.targets)[0] / len(self.targets)
        for group, part in zip(self.layout.groups, parts):
            if group.kind == WEIGHT and self.l2 > 0:
                value = value + self.l2 * (part**2).sum()
        return value

    def _sums(
        self, parts: Sequence[Array], points: slice, statistics: Any, with_gradient: bool
    ) -> tuple[Array, Sequence[Array], Counts | int]:
        """Return costs, gradients by group, and counts of a block of points, sums over them."""
        x, targets = self.x[points], self.targets[points]
        if not with_gradient:
            scores = self.model.scores(self.layout, parts, x, statistics)
            counts = count_misclassified(scores, targets) if self.classify else 0
            return self.cost(scores, targets), (), counts
        pull_back, scores = make_vjp(
            lambda traced: self.model.scores(self.layout, traced, x, statistics), tuple(parts)
        )
        counts = count_misclassified(scores, targets) if self.classify else 0
        fused = getattr(self.cost, "fused", None)
        if fused is not None:
            derivative = np.ascontiguousarray(scores).copy()
            values, _ = fused(derivative, targets)
        else:
            pull_cost, values = make_vjp(lambda s: self.cost(s, targets), scores)
            derivative = pull_cost(np.ones(len(scores), dtype=scores.dtype))
        return values, pull_back(derivative), counts

    def _penalize(self, weights: Array, costs: Array, gradient: Array | None) -> None:
        """Add the penalty to costs and gradient, in place."""
        if self.l2 <= 0:
            return
        slopes = [
            part if group.kind == WEIGHT else np.zeros_like(part)
            for group, part in zip(self.layout.groups, self.layout.split(weights))
        ]
        penalized = self.layout.join(slopes)
        costs += self.l2 * np.einsum("rd,rd->r", penalized, penalized)
        if gradient is not None:
            gradient += 2 * self.l2 * penalized

    def _statistics(self, parts: Sequence[Array]) -> Sequence[Any] | None:
        """Return the statistics of the reference points, None where x has its own."""
        if self.reference is None or not self.model.needs_all_points:
            return None
        return self._collect(parts, self.reference)

    def _collect(self, parts: Sequence[Array], x: Array) -> Sequence[Any]:
        """Return the statistics of points x under the weights of some runs."""
        collected: list[Any] = []
        self.model.scores(self.layout, parts, x, collected=collected)
        return collected

    def _activation_bytes(self, points: int) -> int:
        """Return the bytes that one run's gradient on so many points takes."""
        units = sum(group.shape[0] for group in self.layout.groups if group.kind == WEIGHT)
        return ARRAYS_PER_ACTIVATION * points * units * self.x.itemsize

    def _runs(self, count: int) -> Iterator[slice]:
        """Yield groups of runs whose activations fit into memory together."""
        size = GROUP_BYTES // self._activation_bytes(self._points_per_block())
        for first in range(0, count, max(1, size)):
            yield slice(first, first + max(1, size))

    def _points_per_block(self) -> int:
        """Return how many points are evaluated at once: all, where a score depends on all."""
        if self.model.needs_all_points:
            return len(self.x)
        return min(len(self.x), max(1, CACHED_BYTES // self._activation_bytes(1)))

    def _blocks(self) -> Iterator[slice]:
        """Yield the blocks of the points."""
        size = self._points_per_block()
        for first in range(0, len(self.x), size):
            yield slice(first, min(first + size, len(self.x)))


def check_model(settings: Settings, x: Any, optimizer: Optimizer, l2_in: str) -> None:
    """Raise `UserError` for what a model that is not linear does not take."""
    remedies = [
        (settings.batch is not None, f"batch={settings.batch}", "batch=null"),
        (settings.start == "same_function", "start=same_function", "start=null"),
        (settings.fold, "fold=true", "fold=false"),
        (not isinstance(x, np.ndarray), "points read from a file by blocks", "points in memory"),
        (l2_in != "transformed", f"cost.l2_in={l2_in}", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", "optimizer=gradient_descent"),
    ]
    for is_wrong, setting, remedy in remedies:
        if is_wrong:
            raise UserError(f"{setting}: is for model=linear; use {remedy}, or model=linear")


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
        slopes = grad(self.problem.mean_cost)
        pull_back, _ = make_vjp(slopes, layout.split(self.weights[None]))
        with QUIET():
            product = pull_back(layout.split(direction[None].astype(np.float64)))
        return np.asarray(layout.join(product)[0])

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`."""
        columns = np.stack([self.times(unit) for unit in np.eye(len(self.weights))])
        return np.asarray((columns + columns.T) / 2)
