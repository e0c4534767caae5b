"""The plan of a descent: the points that each update sees, their statistics, records, schedule."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import settings as words
from normbench.datasets import Dataset
from normbench.engine.problem import Array, Problem
from normbench.engine.scheme import fit_scheme, named_errors, transform_points
from normbench.engine.settings import Settings
from normbench.models.network import ALL, RUNNING
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer, State, Update, zero_per_run

Indices = NDArray[np.intp]
STATISTICS_NOTES = {
    RUNNING: "recorded costs are under running statistics, and steps under those of their points",
    ALL: "recorded costs are under statistics of all points, and steps under those of a batch",
}


@dataclass(frozen=True)
class Batches:
    """The batches of all passes over P points, equal for all runs, step sizes and schemes.

    An update sees `size` points; the last update of a pass sees those that are left. points: P.
    order: `shuffled` draws a permutation for each pass, `once` one for all passes; `cyclic` is the
    points' own order; `replacement` draws P points for each pass. The order of pass n is drawn by
    `numpy.random.default_rng([seed, n])`, so that it does not depend on the passes before. records:
    the records of a pass, at equal numbers of updates to within one.
    """

    points: int
    size: int
    order: str = words.SHUFFLED
    seed: int = 0
    records: int = 1

    @property
    def updates_per_pass(self) -> int:
        """The number of updates of a pass."""
        return -(-self.points // self.size)  # the division is rounded up

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record; record 0 is the start."""
        passes, part = divmod(record, self.records)  # whole passes, and records of the next one
        return passes * self.updates_per_pass + part * self.updates_per_pass // self.records

    def points_of(self, update: int) -> Indices:
        """Return the indices of the points of an update, counted from 0 over all passes."""
        number, position = divmod(update, self.updates_per_pass)  # of the pass, and in the pass
        drawn = _draw_order(self.points, self.order, self.seed, number)
        return drawn[position * self.size : (position + 1) * self.size]


@lru_cache(maxsize=2)
def _draw_order(count: int, order: str, seed: int, number: int) -> Indices:
    """Return the order of `count` points in a pass: indices `(count,)`, which must not be changed.

    See `Batches`. Under `once` the number of the pass does not count.
    """

    def draw(pass_number: int) -> np.random.Generator:
        return np.random.default_rng([seed, pass_number])

    return np.asarray(words.BATCH_ORDERS[order](draw, count, number), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The scheme of each update, fitted on points that its kind selects.

    The points that an update sees are under the scheme of that update. Where statistics move
    between two records, so does the function that the weights make, without a step: its costs are
    those of all points under the scheme of the latest update. Before the first update that is the
    scheme of the first batch.

    kind: `batch`: the points of the update; `running`: all points seen so far, each once; `window`:
    the last `window` points of the order. Once every point has been seen, `running` has the
    statistics of all points. Records under `batch` always use the statistics of all points.

    scheme: copies of it are fitted. data: the points before the scheme. batches: which points each
    update sees. z: the training points under the scheme of all points.
    """

    kind: str
    window: int | None
    scheme: Any
    data: Dataset
    batches: Batches
    z: Array

    @cached_property
    def first_seen(self) -> Indices:
        """The update that sees each of the points first, `(P,)`."""
        first, update = np.full(self.batches.points, -1), 0
        while (first < 0).any():
            rows = self.batches.points_of(update)
            first[rows] = np.where(first[rows] < 0, update, first[rows])
            update += 1
        return first

    def of_batch(self, update: int) -> Array | None:
        """Return the points (p, M) of an update under its scheme.

        None where that is the scheme of all points, under which the caller has them already.

        Raises:
            UserError: The scheme refuses the points, or gives another number of features than on
                all points.
        """
        return self._transform(update, self.data.x[self.batches.points_of(update)])

    def of_record(self, updates: int, is_test: bool) -> Array | None:
        """Return all training or test points under the scheme of a record after so many updates.

        That is the scheme of the latest update; before the first update, that of the first one.
        None and errors as of `of_batch`.
        """
        if self.kind == words.BATCH_STATISTICS:
            return None
        return self._transform(max(updates - 1, 0), self.data.x_test if is_test else self.data.x)

    def _transform(self, update: int, x: Array) -> Array | None:
        """Return points x (p, N) under the scheme of an update; None where it is of all points."""
        setting = f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)}"
        remedy = "; choose a larger batch or window, or statistics=fitted"
        with named_errors(f"{setting} refuses the points of an update", remedy):
            rows = self._rows_of(update)
            if self.kind == words.RUNNING_STATISTICS and len(rows) == len(self.data.x):
                return None
            scheme = deepcopy(self.scheme)
            fit_scheme(scheme, self.data.x[rows])
            z: Array = transform_points(scheme, x, self.z.dtype, self.z.shape[1])
            return z

    def _rows_of(self, update: int) -> Array:
        """Return the indices of the points whose statistics an update has.

        Of a window these are fewer points than it has where fewer have been seen.
        """
        if self.kind == words.RUNNING_STATISTICS:
            return np.flatnonzero(self.first_seen <= update)
        rows = self.batches.points_of(update)
        while len(rows) < (self.window or 0) and update > 0:
            update -= 1
            rows = np.concatenate([self.batches.points_of(update), rows])
        return np.asarray(rows[-(self.window or len(rows)) :])


@dataclass(frozen=True)
class Plan:
    """Which points each update sees, and the updates before each record.

    records: the number K of the last record; record 0 is the start. batches: None where each step
    follows the gradient of the recorded cost, so that a record is an update. statistics: those of a
    scheme that move with the batches, else None. note: how steps or records differ from what their
    names say.
    """

    records: int
    batches: Batches | None = None
    statistics: Statistics | None = None
    note: str = ""

    @property
    def sees_all_points(self) -> bool:
        """Whether each update sees all points."""
        return self.batches is None or self.batches.size == self.batches.points

    def updates_before(self, record: int) -> int:
        """Return the number of updates before a record."""
        return record if self.batches is None else self.batches.updates_before(record)

    def gradient(self, train: Problem, weights: Array, update: int) -> Array:
        """Return the gradient `(R, *shape)` that an update between two records follows.

        It is the sum of the gradients of the points of a batch, divided by the size m of a full
        one, so that all points of a pass count alike; a last batch of m' points has the share m'/m
        of the penalty's gradient.
        """
        assert self.batches is not None
        rows = self.batches.points_of(update)
        moved = self.statistics.of_batch(update) if self.statistics else None
        if moved is not None:
            train = replace(train, points=moved, targets=train.targets[rows])
            rows = np.arange(len(rows))
        gradient = train.evaluate(weights, rows, size=self.batches.size).gradient
        assert gradient is not None
        return gradient

    def recorded(self, problem: Problem, updates: int) -> Problem:
        """Return the problem of all training or test points as it is recorded after updates.

        It is the problem itself, unless the statistics of a scheme move: the points are then under
        the scheme of the latest update.
        """
        if self.statistics is None:
            return problem
        moved = self.statistics.of_record(updates, is_test=problem.training is not None)
        return problem if moved is None else problem.on(moved, problem.l2)


def plan_of(settings: Settings, train: Problem, scheme: Any, data: Dataset) -> Plan:
    """Return the plan of a job's descent.

    Args:
        settings: The engine's.
        train: The problem of the training points.
        scheme: The scheme, which learns from other points at each step where the settings say so.
        data: The data set, with the points before the scheme.
    """
    count, note = len(train.targets), ""
    batches: Batches | None = None
    if settings.batch is not None:
        # A fold of cross-validation may have fewer points than a batch: all of them are then one.
        order = settings.batch_order, settings.batch_seed, settings.records_per_pass
        batches = Batches(count, min(settings.batch, count), *order)
    mlp = None if train.linear else train.model.mlp
    if mlp and mlp.has_running_statistics and batches is None:
        # One batch of all points: its statistics move the running ones at each step.
        batches = Batches(count, count, words.CYCLIC)
    if mlp and mlp.needs_all_points and batches:
        note = STATISTICS_NOTES.get(mlp.statistics, "")
    statistics: Statistics | None = None
    if batches and settings.statistics != words.FITTED:
        kind = settings.statistics, settings.window
        statistics = Statistics(*kind, scheme, data, batches, train.points)
    return Plan(settings.records, batches, statistics, note)


def with_schedule(optimizer: Optimizer, settings: Settings, plan: Plan) -> Optimizer:
    """Return a step rule whose step size at pass k = 0, 1, ... is `a factor^floor(k / n)`.

    a is the run's step size; n, in passes, and the factor are `step_schedule`. In full batches an
    iteration is a pass. The rule's state gets one more entry, the number of updates. Without a
    schedule the given rule is returned.
    """
    if settings.step_schedule is None:
        return optimizer
    passes, factor = settings.step_schedule
    period = plan.updates_before(int(passes) * settings.records_per_pass)  # n, in updates

    def init(weights: Array) -> State:
        return (*optimizer.init(weights), zero_per_run(weights))

    def step(weights: Array, gradient: Array, state: State, step_size: Array, *rest: Any) -> Update:
        *own_state, updates = state
        size = step_size * np.power(factor, updates // period, dtype=step_size.dtype)
        stepped, next_state = optimizer.step(weights, gradient, tuple(own_state), size, *rest)
        return stepped, (*next_state, updates + 1)

    note = f"the step size is multiplied by {factor:g} every {passes:g} passes"
    note = f"{optimizer.note}; {note}" if optimizer.note else note
    # Not plain: theory is of steps of one size.
    return optimizer._replace(init=init, step=step, plain=False, note=note)
