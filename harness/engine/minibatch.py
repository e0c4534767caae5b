"""The Problem whose steps see a batch of the points, and whose record is of all points."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from autograd.core import make_vjp

from normbench.datasets.on_disk.points import Points, is_in_memory, take_rows
from normbench.engine.batches import Batches, Indices
from normbench.engine.hessian import Effort, Hessian, times_l2
from normbench.engine.problem import (
    QUIET,
    Array,
    Cost,
    Evaluation,
    Linear,
    PartsApart,
    Problem,
    Workspace,
)
from normbench.engine.statistics import Statistics

STRETCH_BYTES = 1 << 20  # of points that are copied together: they stay in a processor's cache
Read = Callable[[slice], Array]  # the points of a span of a batch (p, N)


@dataclass(frozen=True)
class Minibatch(PartsApart):
    """A linear Problem that is stepped by batches of its points and evaluated on all of them.

    The gradient of a batch is the sum of its points' gradients divided by the size m of a full
    batch, plus the penalty's gradient. A last batch of m' < m points is divided by m too, so that
    all points of a pass count alike, and its penalty's gradient is multiplied by m'/m.

    inner: the Problem of all points. batches: which points each update sees. statistics: those of
    the scheme where they move with the batches, else None. raw: the points `(P, N)` before the
    scheme where there are such statistics, else None.
    """

    inner: Linear
    batches: Batches
    statistics: Statistics | None = None
    raw: Array | None = None

    @classmethod
    def around(cls, inner: Linear, batches: Batches) -> Self:
        """Return the Problem, with the number of batches that are copied together chosen for it.

        Args:
            inner: The Problem of all points (P, N).
            batches: The batches of these points; their `stretch` is replaced.

        Returns:
            The Problem. Batches are copied together up to `STRETCH_BYTES`, and a larger batch by
            itself.
        """
        x = inner.points
        copied_points = STRETCH_BYTES // (x.dtype.itemsize * x.shape[1])
        return cls(inner, replace(batches, stretch=max(1, copied_points // batches.size)))

    @property
    def classify(self) -> bool:
        """See `Problem.classify`."""
        return self.inner.classify

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Problem.shape`."""
        return self.inner.shape

    @property
    def convex(self) -> bool:
        """See `Problem.convex`."""
        return self.inner.convex

    @property
    def linear(self) -> Linear:
        """The Problem of all points, which theory is about."""
        return self.inner

    @property
    def full_batch(self) -> bool:
        """False: a step sees a batch of the points."""
        return False

    @property
    def order(self) -> str:
        """See `Problem.order`."""
        description = self.batches.description
        return f"{description} {self.statistics.description}" if self.statistics else description

    @property
    def effort(self) -> Effort:
        """See `Problem.effort`."""
        return self.inner.effort

    def updates_before(self, record: int) -> int:
        """See `Problem.updates_before`."""
        return self.batches.updates_before(record)

    def at(self, updates: int) -> Problem:
        """Return the problem of all points under the scheme of the latest update.

        It is `inner` itself where that scheme is the one fitted on all points.
        """
        scheme = self.statistics.scheme_after(updates) if self.statistics else None
        if scheme is None:
            return self.inner
        assert self.statistics is not None
        assert self.raw is not None
        return self.inner.on(self.statistics.transform(scheme, self.raw), self.inner.l2)

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications on all points; see `Problem.evaluate`.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            with_gradient: Whether the gradient of all points is computed.
            workspace: Memory to work in.

        Returns:
            Costs `(R,)`, gradient `(R, C, N + 1)` or None, and counts `(R,)` or None.
        """
        return self.inner.evaluate(weights, with_gradient, workspace)

    def gradient(self, weights: Array, k: int, workspace: Workspace | None = None) -> Array:
        """Return the gradient of a batch: the sum over its points divided by a full batch's size.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            k: The number of the update, whose batch is taken.
            workspace: Memory to work in, which holds the stretch of points that was copied last.

        Returns:
            `(R, C, N + 1)`, with the penalty's gradient `2 l2 w`. A last batch of m' < m points has
            the share m'/m of the penalty's gradient.
        """
        read, targets = self._prepare_batch(k, {} if workspace is None else workspace)
        gradient = self.batch_gradient(weights, read, targets)
        l2 = self.inner.l2
        if isinstance(l2, np.ndarray) or l2 > 0:  # 0 times weights that overflow is NaN
            share = len(targets) / self.batches.size
            with QUIET():
                gradient[:, :, 1:] += 2 * share * times_l2(l2, weights[:, :, 1:])
        return gradient

    def batch_gradient(
        self, weights: Array, read: Read, targets: Array, span: slice = slice(None)
    ) -> Array:
        """Return the sum of the gradients of some points, divided by the size of a full batch.

        The penalty's gradient is not included.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            read: A function that returns the points `(p, N)` of a span of the batch.
            targets: The targets of the batch, (m,).
            span: The span of the batch whose points are summed; all of them by default.

        Returns:
            `(R, C, N + 1)`.
        """
        # The rows of weights of all runs and scores, `(R C, N + 1)`, are multiplied at once.
        rows, points = weights.reshape(-1, weights.shape[-1]), read(span)
        gradient = np.empty(rows.shape, rows.dtype)
        with QUIET():
            scores = rows[:, 1:] @ points.T
            scores += rows[:, :1]
            by_run = scores.reshape(*weights.shape[:2], -1)
            derivative = _differentiate_cost(self.inner.cost, by_run, targets[span])
            # Dividing the derivative takes fewer divisions than dividing the gradient. `by_run` is
            # a view of `scores`, which from here on holds the derivative by the scores.
            np.divide(derivative, self.batches.size, out=by_run)
            np.add.reduce(scores, axis=1, out=gradient[:, 0])
            np.matmul(scores, points, out=gradient[:, 1:])
        return gradient.reshape(weights.shape)

    def hessian(self, weights: Array) -> Hessian:
        """See `Problem.hessian`."""
        return self.inner.hessian(weights)

    def scores(self, weights: Array, x: Array) -> Array:
        """See `Problem.scores`."""
        return self.inner.scores(weights, x)

    def _prepare_batch(self, update: int, memory: Workspace) -> tuple[Read, Array]:
        """Return a function that reads the points of an update, and their targets (m,).

        Args:
            update: The number of the update.
            memory: Holds the stretch that was copied last, for the following updates in it.

        Returns:
            The function, which takes a span of the batch; and the targets.
        """
        x = self.inner.points
        if is_in_memory(x) and self.batches.stretch == 1 and not self.statistics:
            # A stretch of 1 is a large batch: it is copied span by span, so that each thread copies
            # its own points. Moving statistics need all points of the batch at once.
            indices = self.batches.points_of(update)
            return _make_reader(x, indices, memory), self.inner.targets[indices]
        # The updates whose points are in memory; (0, 0) holds none.
        first, end = memory["stretch"].tolist() if "stretch" in memory else (0, 0)
        if not first <= update < end:
            first = self._copy_stretch(update, memory)
        size = self.batches.size
        begin = (update - first) * size
        span = slice(begin, begin + size)
        points, targets = memory["stretch/points"][span], memory["stretch/targets"][span]
        # None: the scheme of this update is that of all points, under which x already is.
        z = self.statistics.of_batch(update) if self.statistics else None
        return (points if z is None else z).__getitem__, targets

    def _copy_stretch(self, update: int, memory: Workspace) -> int:
        """Copy the stretch of an update to the workspace; return the stretch's first update."""
        x, stretch = self.inner.points, self.batches.stretch_of(update)
        end = stretch.first + -(-len(stretch.points) // self.batches.size)  # rounded up
        memory["stretch"] = np.array([stretch.first, end])
        memory["stretch/points"] = _take_points(x, stretch.points, memory)
        memory["stretch/targets"] = self.inner.targets[stretch.points]
        return stretch.first


def _make_reader(x: Array, points: Indices, memory: Workspace) -> Read:
    """Return a function that copies a span of chosen points to the workspace and returns it.

    Threads may copy different spans at the same time.

    Args:
        x: All points, (P, N).
        points: The indices of the chosen points; a span is a slice of these.
        memory: The workspace.

    Returns:
        A function from a slice of `points` to the rows (p, N) of these, valid until the next batch.
    """
    rows = memory.get("stretch/rows")  # reused: new memory at each batch would take time
    if rows is None or len(rows) < len(points):
        memory["stretch/rows"] = rows = np.empty((len(points), x.shape[1]), x.dtype)
    rows = rows[: len(points)]
    # With mode="clip" numpy writes to `out` without a buffer in between.
    return lambda span: np.take(x, points[span], axis=0, out=rows[span], mode="clip")


def _take_points(x: Points, points: Indices, memory: Workspace) -> Array:
    """Return points (m, N) of x by their indices (m,), as an array."""
    if is_in_memory(x):
        return _make_reader(x, points, memory)(slice(None))
    return take_rows(x, points)


def _differentiate_cost(cost: Cost, scores: Array, targets: Array) -> Array:
    """Return the derivatives of a cost by its scores, both `(R, C, p)`.

    Where the cost declares `differentiate`, the scores are overwritten and returned; otherwise
    autograd computes the derivatives.
    """
    in_place = getattr(cost, "differentiate", None)
    if in_place is not None:
        in_place(scores, targets)
        return scores
    pull_back, _ = make_vjp(lambda s: cost(s, targets), scores)
    return np.asarray(pull_back(np.ones(len(scores), dtype=scores.dtype)))
