"""A cost of a model's weights on points: one `Problem` for all models, points and batches."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.costs import count_misclassified
from normbench.costs.declaration import Traits, traits
from normbench.datasets.on_disk.points import Points, as_array, give_back, take_rows
from normbench.engine import threads
from normbench.engine.hessian import Hessian

Array = NDArray[Any]
Counts = NDArray[np.int64]
SAMPLE_POINTS = 1000  # whose sizes stand for all points'
Cost = Callable[[Any, Any], Any]
QUIET = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")  # diverging runs


class Evaluation(NamedTuple):
    """The result of one pass over the points, for each of R runs.

    costs: `(R,)`, mean over points. gradient: `(R, *shape)`, or None. misclassifications: `(R,)`,
    or None for real targets. Of some of the points the entries are sums.
    """

    costs: NDArray[np.float64]
    gradient: Array | None
    misclassifications: Any

    def of(self, mask: NDArray[np.bool_]) -> "Evaluation":
        """Return the evaluation of those runs whose mask `(R,)` is true."""
        parts: Any = (None if part is None else part[mask] for part in self)
        return Evaluation(*parts)


# What a thread sums, one after another: some runs, and the blocks of their points.
Share = list[tuple[slice, list[slice]]]
Parts = Iterable[tuple[slice, Evaluation]]  # the sums of some runs, over some points


@dataclass(frozen=True)
class Problem:
    """The mean cost of a model's scores on points, a function of the model's weights.

    model: how scores follow from weights, `linear.Linear` or `network.Network`. cost: a function of
    scores and targets. points: (P, N), an array, a memory map or sparse points: anything whose rows
    can be sliced. targets: (P,). classify: whether misclassified points are counted. classes: C,
    the number of scores of a point. l2: adds `l2 sum w^2` over the weights that the model
    penalizes; of a linear model also one number for each feature `(N,)`, or a matrix `(N, N)`.
    training: of held-out points, the problem of the training points; None for the latter. batch:
    how many points a step sees, by whose statistics a record may normalize them; None for all.
    """

    model: Any
    cost: Cost
    points: Points
    targets: Array
    classify: bool
    classes: int = 1
    l2: float | Array = 0.0
    training: "Problem | None" = None
    batch: int | None = None

    @property
    def traits(self) -> Traits:
        """The traits that the cost declares."""
        return traits(self.cost)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of one model's weights; those of R models are `(R, *shape)`."""
        return tuple(self.model.shape(self.points.shape[1], self.classes))

    @cached_property
    def entry_sizes(self) -> Array:
        """The root mean square of each entry of `[1 x]` `(N + 1,)`, over the first points."""
        sample = as_array(self.points[:SAMPLE_POINTS])
        squares = np.einsum("pn,pn->n", sample, sample, dtype=np.float64) / len(sample)
        return np.asarray(np.sqrt(np.concatenate([[1.0], squares])))

    @property
    def convex(self) -> bool:
        """Whether the cost is convex in the weights."""
        return self.linear is not None and self.traits.convex

    @property
    def linear(self) -> "Problem | None":
        """This problem where its scores are linear in the weights, else None."""
        return self if self.model.is_linear else None

    def on(self, points: Points, l2: float | Array) -> "Problem":
        """Return the same cost and targets on other points (P, M), with another penalty."""
        targets = self.targets
        if targets.dtype.kind == "f":  # class indices stay as they are
            targets = targets.astype(points.dtype, copy=False)
        return replace(self, points=points, targets=targets, l2=l2)

    def held_out(self, points: Points, targets: Array) -> "Problem":
        """Return the problem of held-out points (Q, N) with targets (Q,)."""
        return replace(self, points=points, targets=targets, training=self)

    def evaluate(
        self,
        weights: Array,
        rows: Array | None = None,
        with_gradient: bool = True,
        size: int | None = None,
    ) -> Evaluation:
        """Return costs, gradients and counts at weights.

        Args:
            weights: Of R models, `(R, *shape)`.
            rows: The indices of the points that a step sees (m,); None for the record of all.
            with_gradient: Whether the gradient is computed.
            size: What sums are divided by in place of the number of points; the penalty then has
                the share of the points in it.

        Returns:
            Costs `(R,)`, means over the points plus the penalty; gradient `(R, *shape)` or None;
            misclassifications `(R,)`, counts of points, or None for real targets.
        """
        is_step, count = rows is not None, len(self.targets) if rows is None else len(rows)
        is_drawn = is_step and isinstance(self.points, np.memmap)

        def sum_block(prepared: Any, block: slice) -> Evaluation:
            some: Any = block if rows is None else rows[block]
            x = take_rows(self.points, some) if is_drawn else self.points[some]
            sums: Evaluation = self.model.sums(self, prepared, x, self.targets[some], with_gradient)
            give_back(x)
            return sums

        def sum_share(share: Share) -> list[tuple[slice, Evaluation]]:
            parts = []
            with QUIET():  # a thread does not inherit the caller's setting
                for runs, blocks in share:
                    prepared = self.model.prepare(self, weights[runs], is_step)
                    of_blocks = ((slice(None), sum_block(prepared, block)) for block in blocks)
                    parts.append((runs, _total(of_blocks, weights[runs], with_gradient)))
            return parts

        shares = self.model.shares(self, len(weights), count, is_step)
        parts = list(chain(*threads.map_parallel(sum_share, shares)))
        is_one = len(parts) == 1  # of all runs and points
        costs, gradient, counts = parts[0][1] if is_one else _total(parts, weights, with_gradient)
        with QUIET():
            size = size or count
            costs /= size
            if gradient is not None:
                gradient[..., self.model.descended(self)] /= size
            if np.ndim(self.l2) or self.l2:  # 0 times a square that overflows would be NaN
                penalty, slopes = self.model.penalty(self, weights)
                costs += count / size * penalty
                if gradient is not None:
                    gradient += count / size * slopes
        return Evaluation(costs, gradient, counts if self.classify else None)

    def count_threads(self, work: float) -> int:
        """Return how many threads share work, in multiples of that from which a second pays.

        Autograd traces in one thread: a cost of the user's own stays on one.
        """
        return threads.count_worthwhile(work) if hasattr(self.cost, "fused") else 1

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores `(C, p)` of points (p, N) under the weights of one model."""
        return np.asarray(self.model.scores(self, weights, x))

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at the weights of one model, in float64.

        Raises ValueError, TypeError or NotImplementedError where autograd has no second
        derivative of the cost.
        """
        hessian: Hessian = self.model.hessian(self, weights)
        return hessian


def _total(parts: Parts, weights: Array, with_gradient: bool) -> Evaluation:
    """Return the sums of all runs from parts, each of some runs and some points."""
    costs, counts = np.zeros(len(weights)), np.zeros(len(weights), dtype=np.int64)
    gradient = np.zeros_like(weights) if with_gradient else None
    for runs, sums in parts:
        costs[runs] += sums.costs
        counts[runs] += sums.misclassifications
        if gradient is not None:
            gradient[runs] += sums.gradient
    return Evaluation(costs, gradient, counts)


def differentiate(
    problem: Problem, scores: Array, targets: Array, with_derivative: bool
) -> tuple[Array, Counts | int]:
    """Return costs and misclassified points, sums over points; scores become the derivative.

    Args:
        problem: The cost, and whether misclassified points are counted.
        scores: `(R, C, p)`. The derivative of the cost by them is written in their place; without
            a derivative they are undefined afterwards.
        targets: (p,).
        with_derivative: Whether the derivative is needed.

    Returns:
        Costs `(R,)`, and counts `(R,)`, or 0 where they are not counted.
    """
    cost: Any = problem.cost
    if hasattr(cost, "fused"):
        costs, fused_counts = cost.fused(scores, targets)
        return costs, 0 if fused_counts is None else fused_counts
    counts = count_misclassified(scores, targets) if problem.classify else 0
    if not with_derivative:
        return cost(scores, targets), counts
    pull_back, costs = make_vjp(lambda s: cost(s, targets), scores)
    scores[...] = pull_back(np.ones(len(scores), dtype=scores.dtype))
    return np.asarray(costs), counts
