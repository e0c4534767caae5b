"""The plan of a descent: which points each update sees, and when a record is made."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import Points
from normbench.engine.batches import Batches, batches_of, join_single_point
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
    scheme that move with the batches, else None; x and x_test are then the training and the test
    points before the scheme. note: how steps or records differ from what their names say.
    """

    records: int
    batches: Batches | None = None
    statistics: Statistics | None = None
    x: Any = None
    x_test: Any = None
    note: str = ""

    @property
    def full_batch(self) -> bool:
        """Whether a step follows the gradient of the recorded cost."""
        return self.batches is None

    @property
    def order(self) -> str:
        """Which points each update sees, as a checkpoint holds it; empty where all of them."""
        if self.batches is None or self.batches.size == self.batches.points:
            return ""
        statistics = self.statistics.description if self.statistics else ""
        return f"{self.batches.description} {statistics}".strip()

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
        scheme = self.statistics.scheme_after(updates) if self.statistics else None
        if scheme is None or self.statistics is None:
            return problem
        x = self.x if problem.training is None else self.x_test
        return problem.on(self.statistics.transform(scheme, x), problem.l2)


def plan_of(settings: Settings, train: Problem) -> Plan:
    """Return the plan of a job's descent, for statistics that do not move.

    Args:
        settings: The engine's.
        train: The problem of the training points.
    """
    batches = batches_of(settings, len(train.targets))
    if train.linear is not None:
        return Plan(settings.records, batches)
    mlp = train.model.mlp
    if batches is None and mlp.needs_all_points and mlp.statistics == RUNNING:
        # One batch of all points: its statistics move the running ones at each step.
        batches = Batches(len(train.targets), len(train.targets), CYCLIC)
    if batches is None:
        return Plan(settings.records)
    notes = []
    if mlp.needs_all_points:
        batches = join_single_point(batches)
        notes.append(STATISTICS_NOTES.get(mlp.statistics, ""))
    if batches.joins_last:
        notes.append("the last batch of a pass has one point more, which else were alone")
    return Plan(settings.records, batches, note="; ".join(filter(None, notes)))


def with_statistics(plan: Plan, settings: Settings, scheme: Any, data: Dataset, z: Points) -> Plan:
    """Return a plan whose scheme learns from other points at each step, where the settings say so.

    Each step then transforms the points anew, so that the plan has the points before the scheme.
    """
    if settings.statistics == FITTED:
        return plan
    assert plan.batches is not None
    kind, window = settings.statistics, settings.window
    statistics = Statistics(kind, window, scheme, data.x, plan.batches, z.dtype, z.shape[1])
    return replace(plan, statistics=statistics, x=data.x, x_test=data.x_test)
