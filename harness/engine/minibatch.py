"""The Problem whose steps see a batch of the points, and whose record is of all points."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from autograd.core import make_vjp

from normbench.datasets.on_disk.points import Rows, rows_per_block
from normbench.engine.batches import Batches
from normbench.engine.hessian import Effort, Hessian, weighted
from normbench.engine.problem import (
    QUIET,
    Array,
    Cost,
    Evaluation,
    Linear,
    Problem,
    Workspace,
)
from normbench.engine.scheme.under import Under
from normbench.engine.statistics import Statistics

STRETCH_BYTES = 1 << 20  # of points that are copied together: they stay in a processor's cache


@dataclass(frozen=True)
class Minibatch:
    """A linear Problem that is stepped by batches of its points and evaluated on all of them.

    The gradient of a batch of m points is their sum over m, plus the penalty's; of a smaller last
    batch it is the sum over m as well, so that all points of a pass count alike, and the penalty's
    is m'/m of it. inner: the Problem of all points. statistics: those of the scheme where they
    move with the batches; raw: the points before the scheme `(P, N)` then.
    """

    inner: Linear
    batches: Batches
    statistics: Statistics | None = None
    raw: Array | None = None

    @classmethod
    def around(cls, inner: Linear, batches: Batches) -> Self:
        """Return the Problem with stretches of its points that suit where they are read from.

        Args:
            inner: The Problem of all points (P, N).
            batches: Of these points; their stretch is chosen here.

        Returns:
            The Problem. Points in memory are copied about a megabyte at a time, points of a file
            block by block.
        """
        x = inner.points
        count = rows_per_block(x) if reads_blocks(x) else STRETCH_BYTES // (x.itemsize * x.shape[1])
        stretch = max(1, count // batches.size)
        return cls(inner, replace(batches, stretch=stretch, in_blocks=reads_blocks(x)))

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
        """Return the problem of all points under the scheme of the latest update."""
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
            `(R, C, N + 1)`, with the penalty's `2 l2 w`; of m' points in a batch of m, m'/m of
            that.
        """
        extended, targets = self._batch(k, {} if workspace is None else workspace)
        gradient = self.sum_gradients(weights, extended, targets)
        with QUIET():
            gradient /= self.batches.size
            l2 = self.inner.l2
            if isinstance(l2, np.ndarray) or l2 > 0:
                share = len(targets) / self.batches.size
                gradient[:, :, 1:] += 2 * share * weighted(l2, weights[:, :, 1:])
        return gradient

    def sum_gradients(self, weights: Array, extended: Array, targets: Array) -> Array:
        """Return the sum of the gradients of some points, without the penalty's.

        Args:
            weights: `(R, C, N + 1)`, bias first.
            extended: Points `[1 x]` (m, N + 1).
            targets: (m,).

        Returns:
            `(R, C, N + 1)`, a sum and not a mean.
        """
        rows = weights.reshape(-1, weights.shape[-1])
        with QUIET():
            scores = (rows @ extended.T).reshape(*weights.shape[:2], -1)
            derivative = _differentiate(self.inner.cost, scores, targets)
            gradient = derivative.reshape(len(rows), -1) @ extended
        return np.asarray(gradient.reshape(weights.shape))

    def hessian(self, weights: Array) -> Hessian:
        """See `Problem.hessian`."""
        return self.inner.hessian(weights)

    def scores(self, weights: Array, x: Array) -> Array:
        """See `Problem.scores`."""
        return self.inner.scores(weights, x)

    def _batch(self, update: int, memory: Workspace) -> tuple[Array, Array]:
        """Return `[1 x]` (m, N + 1) and the targets (m,) of the points of an update."""
        if "stretch" not in memory or not _holds(memory["stretch"], update):
            self._read(update, memory)
        size = self.batches.size
        begin = (update - int(memory["stretch"][0])) * size
        span = slice(begin, begin + size)
        extended, targets = memory["stretch/points"][span], memory["stretch/targets"][span]
        z = self.statistics.of_batch(update) if self.statistics else None
        if z is not None:
            extended[:, 1:] = z
        return extended, targets

    def _read(self, update: int, memory: Workspace) -> None:
        """Copy the stretch of an update to the workspace."""
        x, stretch = self.inner.points, self.batches.stretch_of(update)
        last = stretch.first + -(-len(stretch.points) // self.batches.size)
        extended = _reuse(memory, "stretch/extended", len(stretch.points), x.shape[1] + 1, x.dtype)
        extended[:, 0] = 1
        extended[:, 1:] = _take(x, stretch.points, memory)
        memory["stretch"] = np.array([stretch.first, last])
        memory["stretch/points"] = extended
        memory["stretch/targets"] = self.inner.targets[stretch.points]


def _holds(updates: Array, update: int) -> bool:
    """Return whether a stretch from one update to before another has an update."""
    return bool(updates[0] <= update < updates[1])


def reads_blocks(x: Rows) -> bool:
    """Return whether points are read from a file, so that single rows cost as much as blocks."""
    return not isinstance(x.x if isinstance(x, Under) else x, np.ndarray)


def _reuse(memory: Workspace, name: str, rows: int, columns: int, dtype: Any) -> Array:
    """Return an array of a workspace, whose pages are not asked of the system at each batch."""
    array = memory.get(name)
    if array is None or len(array) < rows:
        memory[name] = array = np.empty((rows, columns), dtype)
    return array[:rows]


def _take(x: Rows, points: Any, memory: Workspace) -> Array:
    """Return points of x by their indices; those of a block of a file by one read."""
    if isinstance(x, np.ndarray):
        taken = _reuse(memory, "stretch/taken", len(points), x.shape[1], x.dtype)
        return np.take(x, points, axis=0, out=taken, mode="clip")  # without a copy of its own
    if isinstance(x, Under) and isinstance(x.x, np.ndarray):
        return x.transform(x.x[points])
    first, last = int(points.min()), int(points.max()) + 1
    return np.asarray(x.read(first, last)[points - first])


def _differentiate(cost: Cost, scores: Array, targets: Array) -> Array:
    """Return the derivatives of a cost by its scores `(R, C, p)`, which may be overwritten."""
    fused = getattr(cost, "fused", None)
    if fused is not None:
        fused(scores, targets)
        return scores
    pull_back, _ = make_vjp(lambda s: cost(s, targets), scores)
    return np.asarray(pull_back(np.ones(len(scores), dtype=scores.dtype)))
