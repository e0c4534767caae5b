"""The `Problem` protocol and its reference implementation, the linear model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.costs import count_misclassified
from normbench.costs.declaration import Traits, traits
from normbench.datasets.on_disk.points import Points, as_array
from normbench.engine.hessian import (
    Effort,
    Hessian,
    LinearHessian,
    linear_effort,
    score_curvatures,
    times_l2,
)

Array = NDArray[Any]
Counts = NDArray[np.int64]
Cost = Callable[[Any, Any], Any]
Workspace = dict[Any, Array]
QUIET = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")  # diverging runs
# A score of 0 by rounding, as a share of what `bound_rounding` multiplies. Measured in float64: up
# to 3e-12 where 1,600 points are sphered together, in coordinates of their span.
ZERO_SCORE = {"float64": 1e-10, "float32": 1e-6}
SAMPLE_POINTS = 1000  # whose sizes stand for all points'


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
        gradient, counts = self.gradient, self.misclassifications
        return Evaluation(
            self.costs[mask],
            None if gradient is None else gradient[mask],
            None if counts is None else counts[mask],
        )


class Problem(Protocol):
    """A cost of a model's weights on points, with traits that callers may rely on.

    convex: the cost is convex in the weights. linear: this problem as a `Linear`, where scores are
    linear in the weights, else None. full_batch: each step sees all points and follows the gradient
    that `evaluate` returns; otherwise it follows the one that `gradient` returns. order: which
    points each update sees, as a text that a checkpoint holds; empty where each sees all points.
    """

    @property
    def classify(self) -> bool:
        """Whether misclassified points are counted."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one model's weights; those of R models are `(R, *shape)`."""

    @property
    def convex(self) -> bool:
        """Whether the cost is convex in the weights."""

    @property
    def linear(self) -> "Linear | None":
        """The same problem as a `Linear`, None where it is not linear."""

    @property
    def full_batch(self) -> bool:
        """Whether a step follows the gradient of the recorded cost."""

    @property
    def order(self) -> str:
        """Which points each update sees, as a text; empty where each sees all points."""

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record: `record` itself in full batches.

        Record 0 is the start.
        """

    def at(self, updates: int) -> "Problem":
        """Return the problem that is recorded after so many updates; in full batches itself."""

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradients and counts at weights `(R, *shape)`, for the record.

        Args:
            weights: Of R models, `(R, *shape)`.
            with_gradient: Whether the gradient is computed.
            workspace: Memory to work in; a caller that evaluates often passes the same dictionary
                again.

        Returns:
            Costs `(R,)`, means over the points plus the penalty; gradient `(R, *shape)` or None;
            misclassifications `(R,)`, counts of points, or None for real targets.
        """

    def evaluate_parts(
        self,
        test: "Problem",
        weights: Array,
        with_gradient: bool,
        workspace: Workspace,
        test_workspace: Workspace,
    ) -> tuple[Evaluation, Evaluation | None]:
        """Return evaluations of the training and the test points, where they are read together.

        Args:
            test: The problem of the test points.
            weights: Of R models, `(R, *shape)`.
            with_gradient: Whether the gradient of the training points is computed.
            workspace: Memory to work in, see `evaluate`.
            test_workspace: Memory for the test points.

        Returns:
            The evaluation of this problem, and that of the test points without a gradient; None in
            place of the second where nothing is gained by both at once.
        """

    def gradient(self, weights: Array, k: int, workspace: Workspace | None = None) -> Array:
        """Return the gradient that an update follows, such as that of a minibatch.

        Args:
            weights: Of R models, `(R, *shape)`.
            k: The number of the update, from 0.
            workspace: Memory to work in, see `evaluate`.

        Returns:
            `(R, *shape)`, of the mean over the points plus the penalty.
        """

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at the weights of one model, of the shape `shape`."""

    @property
    def effort(self) -> Effort:
        """The work of `hessian` and of its products."""

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores of points under the weights of one model.

        Args:
            weights: The weights of one model, of the shape `shape`.
            x: Points (p, N).

        Returns:
            `(C, p)`.
        """


class Linear(Problem, Protocol):
    """A Problem of scores `s = w0 + x w`, with the attributes that theory and measures rely on."""

    @property
    def cost(self) -> Cost:
        """The cost, a function of scores and targets."""

    @property
    def traits(self) -> Traits:
        """The traits that the cost declares."""

    @property
    def points(self) -> Points:
        """The points (P, N), in memory or read by blocks, whose features the weights belong to."""

    @property
    def targets(self) -> Array:
        """The targets (P,)."""

    @property
    def l2(self) -> float | Array:
        """The penalty: one number, one for each feature `(N,)`, or a matrix `(N, N)`."""

    def on(self, points: Points, l2: float | Array) -> "Linear":
        """Return the same cost on other points with the same targets, with another penalty.

        Args:
            points: (P, M), in memory or read by blocks.
            l2: The penalty on the slopes: one number, one for each feature `(M,)`, or a matrix `(M,
                M)`; without 1/2.

        Returns:
            The problem, of weights `(C, M + 1)`.
        """


class PartsApart:
    """Methods of a `Problem` that gains nothing by evaluating its test points together with it."""

    def evaluate_parts(
        self: "Problem",
        test: "Problem",
        weights: Array,
        with_gradient: bool,
        workspace: Workspace,
        test_workspace: Workspace,
    ) -> tuple[Evaluation, Evaluation | None]:
        """Return this problem's evaluation alone; see `Problem.evaluate_parts`."""
        return self.evaluate(weights, with_gradient, workspace), None


class FullBatch(PartsApart):
    """Attributes and methods of a `Problem` whose every step uses all points."""

    full_batch = True
    order = ""

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record: one for each before it."""
        return record

    def at(self, updates: int) -> Self:
        """Return this problem, which no update changes."""
        return self

    def gradient(
        self: "Problem", weights: Array, k: int, workspace: Workspace | None = None
    ) -> Array:
        """Return the gradient of the recorded cost, the same at every update.

        Args:
            weights: Of R models, `(R, *shape)`.
            k: The number of the update, which changes nothing.
            workspace: Memory to work in, see `Problem.evaluate`.

        Returns:
            `(R, *shape)`.
        """
        gradient = self.evaluate(weights, True, workspace).gradient
        assert gradient is not None
        return gradient


@dataclass(frozen=True)
class Objective(FullBatch):
    """A cost on points x (P, N) with targets (P,): scores `s = w0 + x w`, the mean over points.

    The weights of a model are `(C, N + 1)`, bias first. `classify`: misclassified points are
    counted. `l2` adds `sum l2 w^2`, not on the bias: one number, or one for each feature `(N,)`; a
    matrix `(N, N)` adds `w l2 w'`. `classes`: C, the number of scores of a point. `held_out`: no
    step follows these points, and scores that are 0 but for rounding count as 0, see
    `zero_rounded_scores`. This is the reference implementation, on all points at once;
    `engine.fast` has quicker ones.
    """

    cost: Cost
    x: Array
    targets: Array
    classify: bool
    l2: float | Array = 0.0
    classes: int = 1
    held_out: bool = False

    @property
    def traits(self) -> Traits:
        """The traits that the cost declares."""
        return traits(self.cost)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of one model's weights, `(C, N + 1)`."""
        return self.classes, self.x.shape[1] + 1

    @property
    def convex(self) -> bool:
        """Whether the cost is convex: with linear scores, whether it is convex in the scores."""
        return self.traits.convex

    @property
    def linear(self) -> "Objective":
        """This problem."""
        return self

    @property
    def points(self) -> Points:
        """The points (P, N) whose features the weights belong to."""
        return self.x

    def on(self, points: Points, l2: float | Array) -> "Objective":
        """Return the same cost on other points, with another penalty; see `Linear.on`.

        Args:
            points: (P, M), with the same targets, which are cast to their type.
            l2: One number, one for each feature `(M,)`, or a matrix `(M, M)`.

        Returns:
            The problem, of weights `(C, M + 1)`.
        """
        return replace(self, x=points, targets=cast_targets(self.targets, points.dtype), l2=l2)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications; see `Problem.evaluate`.

        Args:
            weights: Of R models, `(R, C, N + 1)`, bias first.
            with_gradient: Whether the gradient is computed, by autograd.
            workspace: Not used.

        Returns:
            Costs `(R,)`, gradient `(R, C, N + 1)` or None, and counts `(R,)` or None.
        """
        with QUIET():
            scores = weights[:, :, 1:] @ self.x.T + weights[:, :, :1]
            if self.held_out and self.classify:
                # Rounding must not choose the class of a point whose scores are 0.
                zero_rounded_scores(scores, bound_rounding(weights, measure_sizes(self.x)))
            counts = count_misclassified(scores, self.targets) if self.classify else None
            if not with_gradient:
                values = self.cost(scores, self.targets)
                return self.average_sums(weights, values, None, counts)
            # A run's cost depends on its own scores alone: one backward pass serves all runs.
            pull_back, values = make_vjp(lambda s: self.cost(s, self.targets), scores)
            derivative = pull_back(np.ones(len(scores), dtype=scores.dtype))
            gradient = np.empty(weights.shape, weights.dtype)
            gradient[:, :, 0] = derivative.sum(axis=2)
            gradient[:, :, 1:] = derivative @ self.x
            return self.average_sums(weights, values, gradient, counts)

    def average_sums(
        self, weights: Array, costs: Array, gradient: Array | None, counts: Counts | None
    ) -> Evaluation:
        """Return sums over the points as means over them, plus the penalty.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            costs: Sums `(R,)`.
            gradient: Sums `(R, C, N + 1)`, or None.
            counts: Misclassified points `(R,)`, or None.

        Returns:
            The sums divided by P, plus `sum l2 w^2` and its gradient `2 l2 w`, 0 for the bias. The
            gradient has the type of the weights. Counts stay counts.
        """
        slopes, points = weights[:, :, 1:], len(self.targets)
        costs = costs / points
        penalized = isinstance(self.l2, np.ndarray) or self.l2 > 0
        if penalized:  # a penalty of 0 is left out: 0 times a square that overflows is NaN
            costs += penalty(self.l2, slopes)
        if gradient is not None:
            gradient = np.divide(gradient, points, dtype=weights.dtype)
            if penalized:
                gradient[:, :, 1:] += 2 * times_l2(self.l2, slopes)
        return Evaluation(costs, gradient, counts)

    @property
    def effort(self) -> Effort:
        """The work of `hessian` and of its products."""
        return linear_effort(len(self.targets), *self.shape)

    def hessian(self, weights: Array) -> Hessian:
        """Return the second derivatives at weights `(C, N + 1)`, in float64.

        Raises ValueError, TypeError or NotImplementedError where autograd has no second
        derivative of the cost.
        """
        return linear_hessian(self.cost, self.x, self.targets, weights, self.l2)

    def scores(self, weights: Array, x: Array) -> Array:
        """Return the scores of points under the weights of one model.

        Args:
            weights: `(C, N + 1)`, bias first.
            x: Points (p, N).

        Returns:
            `s = w0 + x w`, `(C, p)`.
        """
        return np.asarray(weights[:, 1:] @ x.T + weights[:, :1])


def measure_sizes(x: Points) -> NDArray[np.float64]:
    """Return the root mean square of each entry of `[1 x]` `(N + 1,)`, over the first points.

    These are `SAMPLE_POINTS` points of x (P, N).
    """
    sample = as_array(x[:SAMPLE_POINTS])
    squares = np.einsum("pn,pn->n", sample, sample, dtype=np.float64)
    return np.sqrt(np.concatenate([[1.0], squares / len(sample)]))


def bound_rounding(weights: Array, sizes: Array) -> Array:
    """Return the size below which a run's scores are 0 but for rounding.

    Args:
        weights: `(R, C, N + 1)`.
        sizes: The sizes of the entries of a point `[1 x]` `(N + 1,)`, see `measure_sizes`.

    Returns:
        A bound for each run `(R,)`: `ZERO_SCORE * sqrt(D)` of the largest score whose terms do not
        cancel, `max_c sum |w_c| sizes`, with D = C (N + 1). Each feature's size meets its own
        weight, so that units of the features do not matter.
    """
    factor = ZERO_SCORE[weights.dtype.name] * weights[0].size ** 0.5
    return np.asarray((np.abs(weights) @ (factor * sizes)).max(axis=1))


def zero_rounded_scores(scores: Array, bounds: Array) -> None:
    """Set to 0 the scores that are 0 but for rounding: those below their run's bound.

    Points that are sphered together with the training points can be orthogonal to all of these.
    Weights that descend from zero give them the score 0, and rounding must not choose their class.

    Args:
        scores: `(R, C, p)`, changed in place.
        bounds: One for each run, `(R,)`, see `bound_rounding`.
    """
    rounded = np.abs(scores) < bounds[:, None, None]
    if rounded.any():  # else the assignment would take as long as the comparison
        scores[rounded] = 0


def penalty(l2: float | Array, slopes: Array) -> Array:
    """Return the l2 penalty of slopes: `sum l2 w^2`, or `sum w l2 w'` of a matrix; without 1/2.

    Args:
        l2: One number, one for each feature `(N,)`, or a matrix `(N, N)`.
        slopes: The weights without their bias, `(R, C, N)`.

    Returns:
        `(R,)`, the sum over the scores C of each run.
    """
    if np.ndim(l2) == 2:
        return np.asarray(np.einsum("rcn,rcn->r", times_l2(l2, slopes), slopes))
    if isinstance(l2, np.ndarray):
        return np.asarray(np.einsum("rcn,rcn,n->r", slopes, slopes, l2))
    return np.asarray(l2 * np.einsum("rcn,rcn->r", slopes, slopes))


def linear_hessian(
    cost: Cost, x: Array, targets: Array, weights: Array, l2: float | Array
) -> LinearHessian:
    """Return the second derivatives of a cost of linear scores, in float64.

    Args:
        cost: A function of scores and targets, a sum over points.
        x: Points (P, N).
        targets: (P,).
        weights: The weights of one model, `(C, N + 1)`, bias first.
        l2: One number, one for each feature `(N,)`, or a matrix `(N, N)`.

    Returns:
        The Hessian of the mean over the points plus the penalty.

    Raises:
        ValueError, TypeError, NotImplementedError: Autograd has no second derivative of the cost.
    """
    x, weights = x.astype(np.float64, copy=False), weights.astype(np.float64, copy=False)
    scores = weights[:, 1:] @ x.T + weights[:, :1]
    return LinearHessian(x, score_curvatures(cost, scores, targets), l2)


def cast_targets(targets: Array, dtype: Any) -> Array:
    """Return targets in the type of the points; class indices stay unchanged.

    Args:
        targets: (P,): real numbers, -1 and +1, or class indices.
        dtype: The type of the points.

    Returns:
        (P,).
    """
    return targets.astype(dtype, copy=False) if targets.dtype.kind == "f" else targets
