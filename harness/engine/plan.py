"""The plan of a descent: which points each update sees, and when a record is made."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from normbench.datasets import Dataset
from normbench.engine.batches import Batches, join_single_point
from normbench.engine.problem import Array, Problem
from normbench.engine.settings import Settings
from normbench.engine.statistics import Statistics
from normbench.models.network import ALL, RUNNING
from normbench.settings import CYCLIC, FITTED

STATISTICS_NOTES = {
    RUNNING: "recorded costs are under running statistics, and steps under those of their points",
    ALL: "recorded costs are under statistics of all points, and steps under those of a batch",
}


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
    def full_batch(self) -> bool:
        """Whether a step follows the gradient of the recorded cost."""
        return self.batches is None

    @property
    def order(self) -> str:
        """What the points of each update depend on, for checkpoints; empty where all of them."""
        if self.batches is None or self.batches.size == self.batches.points:
            return ""
        batches, moved = self.batches, self.statistics
        kind = f" {moved.kind} {moved.window}" if moved else ""
        return f"{batches.size} {batches.order} {batches.seed} {batches.records}{kind}"

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


def plan_of(settings: Settings, train: Problem) -> Plan:
    """Return the plan of a job's descent, for statistics that do not move.

    Args:
        settings: The engine's.
        train: The problem of the training points.
    """
    count = len(train.targets)
    batches: Batches | None = None
    if settings.batch is not None:
        # A fold of cross-validation may have fewer points than a batch: all of them are then one.
        order = settings.batch_order, settings.batch_seed, settings.records_per_pass
        batches = Batches(count, min(settings.batch, count), *order)
    notes = []
    if train.linear is None:
        mlp = train.model.mlp
        if batches is None and mlp.has_running_statistics:
            # One batch of all points: its statistics move the running ones at each step.
            batches = Batches(count, count, CYCLIC)
        if batches is not None and mlp.needs_all_points:
            batches = join_single_point(batches)
            notes.append(STATISTICS_NOTES.get(mlp.statistics, ""))
    if batches is not None and batches.joins_last:
        notes.append("the last batch of a pass has one point more, which else were alone")
    return Plan(settings.records, batches, note="; ".join(filter(None, notes)))


def with_statistics(plan: Plan, settings: Settings, scheme: Any, data: Dataset, z: Array) -> Plan:
    """Return a plan whose scheme learns from other points at each step, where the settings say so.

    Each step then transforms the points anew, so that the plan has the points before the scheme.
    """
    if settings.statistics == FITTED:
        return plan
    assert plan.batches is not None
    kind, points = (settings.statistics, settings.window), (data.x, data.x_test)
    statistics = Statistics(*kind, scheme, *points, plan.batches, z.dtype, z.shape[1])
    return replace(plan, statistics=statistics)
