"""What is found out about a finished job: the contract of a measure, and what it gets and gives."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import Rows
from normbench.engine.descent import Histories, Leave, Observe, descend
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.normalizers.decomposition import Surrogate
from normbench.optimizers import Optimizer
from normbench.theory.analysis import Theory
from normbench.theory.budget import Work
from normbench.theory.directions import AtStart
from normbench.theory.minimum import Minimum
from normbench.theory.shared import PointsCache
from normbench.verdicts import convergence, judging
from normbench.verdicts.judging import Bench, Shadows, Step
from normbench.verdicts.search import Search

Array = NDArray[Any]
Series = tuple[NDArray[np.int64], NDArray[np.float64]]
# What findings may follow from: the verdicts, the step that stands for the scheme, the rules.
VERDICTS, BEST, RULES = "verdicts", "best", "rules"
MOST_SHOWN = 20_000  # points of those that are read, in what figures show
PATH_NUMBERS = 500_000  # of a path of weights: 4 MB


@dataclass(frozen=True)
class Findings:
    """What a job found beside its histories, by the names that it is logged under.

    Attributes:
        metrics: Numbers, NaN where there is none.
        tags: Words.
        series: A number by step k, or by the rank of a direction: `(steps, values)`.
        arrays: What a figure needs, small enough to keep.
        notes: What could not be told, and why.
        of_steps: What belongs to one step size, by its number.
        follows: For each name of the scheme's own, what it depends on in the judging, see
            `Measure`.
        seconds: What theory took.
        search_seconds: What was taken only because it was asked for.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, Series] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    of_steps: Mapping[int, "OfStep"] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    search_seconds: float = 0.0


class OfStep(NamedTuple):
    """What a measure finds of one step size: numbers, and histories (K + 1,)."""

    metrics: Mapping[str, float]
    series: Mapping[str, NDArray[np.float64]]


class Walk(NamedTuple):
    """The best step's first start, descended once more.

    iteration: `(k,)`. weights: `(k, *shape)`. cost: `(k,)`.
    """

    iteration: NDArray[np.int64]
    weights: Array
    cost: NDArray[np.float64]


@dataclass(frozen=True)
class Descended:
    """What a job's descent came to.

    start: `(starts, *shape)`. rounds: what descends more runs, and keeps them. best: the number of
    the step that stands for the scheme, None where there is none; chosen: the user chose it, and
    it need not be the best.
    """

    train: Problem
    optimizer: Optimizer
    settings: Settings
    search: Search
    start: Array
    rounds: Rounds
    histories: Histories
    theory: Theory
    least: Minimum
    bench: Bench
    steps: tuple[Step, ...]
    best: int | None
    chosen: bool

    @property
    def plain(self) -> bool:
        """Whether it was plain gradient descent along the gradient of the recorded cost."""
        return self.optimizer.plain and self.train.full_batch

    @property
    def best_step(self) -> Step:
        """The step that stands for the scheme, where there is one."""
        assert self.best is not None
        return self.steps[self.best]

    @property
    def best_weights(self) -> Array:
        """The last weights of the best step's first start, in the problem's shape."""
        assert self.best is not None
        return np.asarray(self.histories.weights[self.best * len(self.start)])

    def again(
        self, step_sizes: Sequence[float], start: Array, observe: Observe | None = None
    ) -> Histories:
        """Descend a few other runs on the same training points."""
        return descend(
            self.train,
            None,
            self.optimizer,
            stacked(start, len(step_sizes)),
            np.repeat(np.array(step_sizes), len(start)),
            self.settings.iterations,
            observe=observe,
        )

    def finer(
        self, step_sizes: Sequence[float], leave: Leave | None = None
    ) -> tuple[tuple[Step, ...], Array, NDArray[np.bool_]]:
        """Descend other step sizes; return them, judged, and their costs `(S, A, K + 1)`.

        And of each whether all its runs came to their end: none left, see `descend`.
        """
        histories = self.rounds.descend(step_sizes, tested=False, leave=leave)
        shadows = shadows_of(histories, self.bench)
        steps = judging.steps(
            *(named(histories), histories.diverged_at, step_sizes, self.bench), shadows
        )
        shape = len(step_sizes), len(self.start)
        left = np.isnan(histories.cost[:, -1]) & (histories.diverged_at < 0)
        ended: NDArray[np.bool_] = np.asarray(~left.reshape(shape).any(axis=1))
        return steps, histories.cost.reshape(*shape, -1), ended

    @cached_property
    def at_start(self) -> AtStart:
        """What the problem is at the first start: the eigendirections of its Hessian."""
        return AtStart(self.train, self.start[0], self.theory.spectrum)

    @cached_property
    def walk(self) -> Walk:
        """The way of the best step, for the measures that need it.

        Iterations are thinned evenly, first and last kept, where all would be more than 4 MB.
        """
        start, last = self.start[:1], self.settings.iterations
        room = max(2, PATH_NUMBERS // start.size)
        kept = np.unique(np.linspace(0, last, room).round().astype(int))
        wanted, seen = set(kept.tolist()), []

        def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
            if k in wanted and len(alive):
                seen.append((k, weights[0].copy()))

        histories = self.again([self.best_step.step_size], start, observe)
        iteration = np.array([k for k, _ in seen])
        return Walk(iteration, np.array([w for _, w in seen]), histories.cost[0, iteration])


@dataclass(frozen=True)
class Finished:
    """A job that has run.

    scheme: fitted. z: the training points under it, (P, M), an array or points that are read.
    known: of the data set's own points. descended: None for a study without a descent. elsewhere:
    fits the scheme and descends on other data, at one step size; None where nothing is known to do
    that. shown: the number of the training point that is built up. pair: what `surrogates` gives,
    where z is some of the points alone.
    """

    dataset: Dataset
    scheme: Any
    z: Rows
    known: PointsCache
    descended: Descended | None = None
    elsewhere: Callable[[Dataset, float], Histories] | None = None
    shown: int = 0
    pair: tuple[Surrogate, Surrogate] | None = None

    @property
    def descent(self) -> Descended:
        """What the descent came to, for the measures that are of one."""
        assert self.descended is not None
        return self.descended

    @property
    def surrogates(self) -> tuple[Surrogate, Surrogate]:
        """Points of the means and covariances of those before and under the scheme."""
        if self.pair is not None:
            return self.pair
        if isinstance(self.z, np.ndarray):
            return Surrogate(self.dataset.x, holds_all_points=True), Surrogate(
                self.z, holds_all_points=True
            )
        before, after = self.z.pair
        return before, after

    @cached_property
    def shown_points(self) -> "Finished":
        """The same with points that are in memory: all of an array, some of points that are read.

        The point that is built up is among them.
        """
        if isinstance(self.z, np.ndarray):
            return self
        data, count = self.dataset, len(self.z)
        if isinstance(data.x, np.ndarray):
            return replace(self, z=self.z.transform(data.x), pair=self.surrogates)
        kept = np.arange(count)
        if count > MOST_SHOWN:
            drawn = np.random.default_rng(0).choice(count, MOST_SHOWN, replace=False)
            kept = np.unique(np.r_[drawn, self.shown])
        x, y = data.x[kept], data.y[kept] if len(data.y) else data.y
        return replace(
            self,
            dataset=replace(data, x=x, y=y),
            z=self.z.transform(x),
            shown=int(np.searchsorted(kept, self.shown)),
            pair=self.surrogates,
        )


@dataclass(frozen=True)
class Measure:
    """One thing to find out about a finished job: one file of this room, found without a list.

    Attributes:
        take: `take(finished) -> Findings`.
        record: The word in the setting `record` that asks for it; without one it is always taken.
        asked: Only a setting asks for it, and its seconds are counted apart.
        of_descent: It needs a descent, and so `finished.descent`.
        what: Its name in theory's notes; without one it costs next to nothing.
        work: Its work, which theory's budget must allow (only its memory, where it is asked for).
        follows: What its findings depend on. When a recorded job is judged by other rules,
            findings that follow `VERDICTS` are made again; those that follow `BEST` or `RULES`
            need another descent if the best step or the rules changed; all others stay true.
        applies: Whether there is anything to find.
        most_features: Of a data set that it can be taken of.
        unfit: Why it cannot be taken of a data set, empty where it can.
        inverse: What it needs the scheme's inverse for, empty where the message need not say it;
            None where it needs none.
    """

    take: Callable[[Finished], Findings]
    record: str = ""
    asked: bool = False
    of_descent: bool = True
    what: str = ""
    work: Callable[[Finished], Work] = lambda made: Work()
    follows: str = ""
    applies: Callable[[Finished], bool] = lambda made: True
    most_features: float = math.inf
    unfit: Callable[[Dataset], str] = lambda dataset: ""
    inverse: str | None = None

    @property
    def on_request(self) -> bool:
        """Whether a setting asks for it."""
        return self.asked or bool(self.record)

    def check(self, dataset: Dataset, scheme: Any) -> None:
        """Check that it can be taken, before anything is fitted.

        Args:
            dataset: The data set.
            scheme: The scheme, not yet fitted.

        Raises:
            UserError: It cannot; the remedy is to leave its word in `record` out.
        """
        features, remedy = dataset.x.shape[1], f"leave {self.record} out"
        reason = self.unfit(dataset)
        if features > self.most_features:
            reason = f"is for {self.most_features} features at most; {dataset.name} has {features}"
        elif not reason and self.inverse is not None and not hasattr(scheme, "inverse_transform"):
            reason = f"normalizer {type(scheme).__name__} has no inverse_transform{self.inverse}"
            remedy += " or choose another scheme"
        if reason:
            raise UserError(f"record={self.record}: {reason}; {remedy}")


def named(histories: Histories) -> dict[str, NDArray[np.float64]]:
    """Return the histories that there are, by the names that they log under."""
    every = {
        names.TRAIN_COST.key: histories.cost,
        names.TRAIN_MISCLASSIFICATIONS.key: histories.misclassifications,
        names.TEST_COST.key: histories.test_cost,
        names.TEST_MISCLASSIFICATIONS.key: histories.test_misclassifications,
    }
    return {name: history for name, history in every.items() if history is not None}


def shadows_of(histories: Histories, bench: Bench) -> Shadows | None:
    """Return what the shadows of runs come to; None where none has any.

    Targets of misclassified points count as unreached: shadows are told by their costs.
    """
    if not histories.shadows:
        return None
    runs, count = len(histories.cost), max(len(costs) for costs in histories.shadows.values())
    ends = np.full((runs, count), np.nan)
    reached = {name: np.full((runs, count), np.nan) for name in bench.targets}
    for run, costs in histories.shadows.items():
        ends[run, : len(costs)] = np.where(np.isnan(costs[:, -1]), np.inf, costs[:, -1])
        for name, goal in bench.targets.items():
            counts = [np.nan if bench.points else convergence.reached(cost, goal) for cost in costs]
            reached[name][run, : len(costs)] = np.where(np.isnan(counts), np.inf, counts)
    return Shadows(ends, reached)


def stacked(start: Array, times: int) -> Array:
    """Return the starts `(starts, *shape)` over and over, `(times * starts, *shape)`."""
    return np.concatenate([start] * times)
