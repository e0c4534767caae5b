"""A cost of a model's weights on points: one `Problem` for all models, points and batches."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.costs import count_misclassified
from normbench.costs.declaration import Traits, traits
from normbench.engine import threads
from normbench.engine.hessian import Hessian
from normbench.normalizers.decomposition import Surrogate

Array = NDArray[Any]
Counts = NDArray[np.int64]
Cost = Callable[[Any, Any], Any]
QUIET = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")  # diverging runs


class Evaluation(NamedTuple):
    """The result of one pass over the points, for each of R runs.

    costs: `(R,)`, mean over points. gradient: `(R, *shape)`, or None. misclassifications: `(R,)`,
    or None for real targets.
    """

    costs: NDArray[np.float64]
    gradient: Array | None
    misclassifications: Counts | None

    def of(self, mask: NDArray[np.bool_]) -> "Evaluation":
        """Return the evaluation of those runs whose mask `(R,)` is true."""
        return Evaluation(*(None if values is None else values[mask] for values in self))


class Sums(NamedTuple):
    """Sums over some points: costs `(R,)`, counts `(R,)`, gradient `(R, *shape)` if asked for."""

    costs: Array
    counts: Counts | int
    gradient: Array | None


class Model(Protocol):
    """How the scores of points follow from weights.

    is_linear: scores are linear in the weights, `(C, N + 1)`. couples_points: the scores of a point
    depend on the points that are evaluated with it, so that threads share the runs and not the
    points.
    """

    is_linear: bool
    couples_points: bool

    def shape(self, features: int, scores: int) -> tuple[int, ...]:
        """Return the shape of one model's weights, for N features and C scores of a point."""

    def work(self, problem: "Problem", runs: int, points: int) -> float:
        """Return the work of a gradient, in multiples of that from which a second thread pays."""

    def runs_at_once(self, problem: "Problem", points: int) -> int:
        """Return how many runs fit the memory of a thread that evaluates so many points."""

    def prepare(self, problem: "Problem", weights: Array, is_step: bool) -> Any:
        """Return what the sums over all blocks of points need of weights `(R, *shape)`.

        is_step: whether the points are those that a step sees, and not those of a record.
        """

    def blocks(self, problem: "Problem", prepared: Any, span: slice) -> list[slice]:
        """Return the spans of points that are evaluated at once, which make up a span."""

    def sums(
        self, problem: "Problem", prepared: Any, x: Any, targets: Array, with_gradient: bool
    ) -> Sums:
        """Return the sums over points x (p, N) with targets (p,), without the penalty."""

    def descended(self, problem: "Problem") -> slice:
        """Return which of the last axis of the weights are descended."""

    def penalty(self, problem: "Problem", weights: Array) -> tuple[Array, Array]:
        """Return the penalty `(R,)` at weights `(R, *shape)` and its gradient `(R, *shape)`."""

    def scores(self, problem: "Problem", weights: Array, x: Array) -> Array:
        """Return the scores `(C, p)` of points (p, N) under the weights of one model."""

    def hessian(self, problem: "Problem", weights: Array) -> Hessian:
        """Return the second derivatives at the weights of one model."""


@dataclass(frozen=True)
class Problem:
    """The mean cost of a model's scores on points, a function of the model's weights.

    model: how scores follow from weights. cost: a function of scores and targets. points: (P, N),
    an array, a memory map or sparse points: anything whose rows can be sliced. targets: (P,).
    classify: whether misclassified points are counted. classes: C, the number of scores of a point.
    l2: adds `l2 sum w^2` over the weights that the model penalizes; of a linear model also one
    number for each feature `(N,)`, or a matrix `(N, N)`. training: of held-out points, the
    problem of the training points; None for the latter. together: how many points of a record are
    normalized together; None for all.
    """

    model: Model
    cost: Cost
    points: Any
    targets: Array
    classify: bool
    classes: int = 1
    l2: float | Array = 0.0
    training: "Problem | None" = None
    together: int | None = None

    @property
    def traits(self) -> Traits:
        """The traits that the cost declares."""
        return traits(self.cost)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of one model's weights; those of R models are `(R, *shape)`."""
        shape: tuple[int, ...] = self.model.shape(self.points.shape[1], self.classes)
        return shape

    @property
    def convex(self) -> bool:
        """Whether the cost is convex in the weights."""
        return self.linear is not None and self.traits.convex

    @property
    def linear(self) -> "Problem | None":
        """This problem where its scores are linear in the weights, else None."""
        return self if self.model.is_linear else None

    @property
    def is_penalized(self) -> bool:
        """Whether there is a penalty: one of 0 times a square that overflows would be NaN."""
        return isinstance(self.l2, np.ndarray) or self.l2 > 0

    @property
    def effort(self) -> Any:  # TODO
        from normbench.engine.hessian import Effort, linear_effort

        if self.linear:
            return linear_effort(len(self.targets), *self.shape)
        return Effort(0, 3, None, 8.0)

    @property
    def surrogate(self) -> Surrogate:
        """The points' mean and covariance, as rows that second-order statistics read."""
        if isinstance(self.points, np.ndarray):
            return Surrogate(self.points, holds_all_points=True)
        surrogate: Surrogate = self.points.surrogate
        return surrogate

    def on(self, points: Any, l2: float | Array) -> "Problem":
        """Return the same cost and targets on other points (P, M), with another penalty."""
        targets = self.targets
        if targets.dtype.kind == "f":  # class indices stay as they are
            targets = targets.astype(points.dtype, copy=False)
        return replace(self, points=points, targets=targets, l2=l2)

    def held_out(self, points: Any, targets: Array) -> "Problem":
        """Return the problem of held-out points (Q, N) with targets (Q,)."""
        return replace(self, points=points, targets=targets, training=self)

    def evaluate(
        self,
        weights: Array,
        rows: Any = None,
        with_gradient: bool = True,
        size: int | None = None,
    ) -> Evaluation:
        """Return costs, gradients and counts at weights.

        Args:
            weights: Of R models, `(R, *shape)`.
            rows: The points that a step sees, as indices (m,) or a slice; None for the record of
                all points.
            with_gradient: Whether the gradient is computed.
            size: What sums are divided by in place of the number of points; the penalty then has
                the share of the points in it.

        Returns:
            Costs `(R,)`, means over the points plus the penalty; gradient `(R, *shape)` or None;
            misclassifications `(R,)`, counts of points, or None for real targets.
        """
        chosen = slice(0, len(self.targets)) if rows is None else rows
        count = chosen.stop - chosen.start if isinstance(chosen, slice) else len(chosen)

        def sum_share(share: tuple[slice, slice]) -> list[tuple[slice, Sums]]:
            return self._sum(weights, chosen, share, with_gradient, rows is not None)

        shares = self._shares(len(weights), count)
        costs, counts = np.zeros(len(weights)), np.zeros(len(weights), dtype=np.int64)
        gradient = np.zeros_like(weights) if with_gradient else None
        with QUIET():
            for sums_of_share in threads.map_parallel(sum_share, shares):
                for runs, sums in sums_of_share:
                    costs[runs] += sums.costs
                    counts[runs] += sums.counts
                    if gradient is not None:
                        gradient[runs] += sums.gradient
            self._average(weights, costs, gradient, count, size or count)
        return Evaluation(costs, gradient, counts if self.classify else None)

    def _shares(self, runs: int, points: int) -> list[tuple[slice, slice]]:
        """Return the runs and the points of each thread."""
        # Autograd traces in one thread: a cost of the user's own stays on one.
        is_shared = hasattr(self.cost, "fused")
        work = self.model.work(self, runs, points)
        count = threads.count_worthwhile(work) if is_shared else 1
        if self.model.couples_points:
            return [(span, slice(0, points)) for span in threads.split(runs, count)]
        return [(slice(0, runs), span) for span in threads.split(points, count)]

    def _sum(
        self,
        weights: Array,
        chosen: Any,
        share: tuple[slice, slice],
        with_gradient: bool,
        is_step: bool,
    ) -> list[tuple[slice, Sums]]:
        """Return the sums over a thread's points, for each group of its runs."""
        (first_run, last_run), span = (share[0].start, share[0].stop), share[1]
        size = self.model.runs_at_once(self, span.stop - span.start)
        sums_of_groups = []
        with QUIET():  # a thread does not inherit the caller's setting
            for first in range(first_run, last_run, size):
                runs = slice(first, min(first + size, last_run))
                prepared = self.model.prepare(self, weights[runs], is_step)
                total: Sums | None = None
                for block in self.model.blocks(self, prepared, span):
                    rows = _rows_of(chosen, block)
                    sums = self.model.sums(
                        self, prepared, self.points[rows], self.targets[rows], with_gradient
                    )
                    total = sums if total is None else _add(total, sums)
                assert total is not None
                sums_of_groups.append((runs, total))
        return sums_of_groups

    def _average(
        self, weights: Array, costs: Array, gradient: Array | None, count: int, size: int
    ) -> None:
        """Turn sums over `count` points into means, and add the penalty, in place."""
        costs /= size
        if gradient is not None:
            gradient[..., self.model.descended(self)] /= size
        if self.is_penalized:
            penalty, slopes = self.model.penalty(self, weights)
            costs += count / size * penalty
            if gradient is not None:
                gradient += count / size * slopes

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores `(C, p)` of points (p, N) under the weights of one model."""
        scores: Array = self.model.scores(self, weights, x)
        return scores

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at the weights of one model, in float64.

        Raises ValueError, TypeError or NotImplementedError where autograd has no second
        derivative of the cost.
        """
        hessian: Hessian = self.model.hessian(self, weights)
        return hessian


def _rows_of(chosen: Any, block: slice) -> Any:
    """Return a block of chosen points, which are a slice or indices."""
    if isinstance(chosen, slice):
        return slice(chosen.start + block.start, chosen.start + block.stop)
    return chosen[block]


def _add(total: Sums, sums: Sums) -> Sums:
    """Return sums added to a total, whose arrays are changed."""
    costs, gradient = total.costs, total.gradient
    costs += sums.costs
    if gradient is not None:
        gradient += sums.gradient
    return Sums(costs, total.counts + sums.counts, gradient)


def differentiate(
    cost: Cost, scores: Array, targets: Array, classify: bool, with_derivative: bool
) -> tuple[Array, Counts | int]:
    """Return costs and misclassified points, sums over points; scores become the derivative.

    Args:
        cost: A function of scores and targets.
        scores: `(R, C, p)`. The derivative of the cost by them is written in their place; without
            a derivative they are undefined afterwards.
        targets: (p,).
        classify: Whether misclassified points are counted.
        with_derivative: Whether the derivative is needed.

    Returns:
        Costs `(R,)`, and counts `(R,)`, or 0 where they are not counted.
    """
    fused = getattr(cost, "fused", None)
    if fused is not None:
        costs, fused_counts = fused(scores, targets)
        return costs, 0 if fused_counts is None else fused_counts
    counts = count_misclassified(scores, targets) if classify else 0
    if not with_derivative:
        return cost(scores, targets), counts
    pull_back, costs = make_vjp(lambda s: cost(s, targets), scores)
    scores[...] = pull_back(np.ones(len(scores), dtype=scores.dtype))
    return costs, counts


Linear = Problem  # TODO
