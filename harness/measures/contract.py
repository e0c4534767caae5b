"""The contract of a measure: `Measure`, its input `FinishedJob`, and its output `Findings`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import Points, is_in_memory, take_rows
from normbench.engine.descent import Histories
from normbench.engine.plan import Plan
from normbench.engine.problem import QUIET, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.normalizers.decomposition import PointsCache, moment_rows
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer
from normbench.theory.analysis import AtStart, Theory
from normbench.theory.least_cost import Minimum
from normbench.verdicts.judging import JudgingContext, Step
from normbench.verdicts.search import Search

Array = NDArray[Any]
Series = tuple[NDArray[np.int64], NDArray[np.float64]]
UNKNOWN = float("nan")
NOT_LINEAR = "is for model=linear, and these scores are not linear in the weights"
# What findings may depend on in the judging (`Measure.depends_on`): the verdicts, the best step
# size, the rules of judging.
STEP_VERDICTS, BEST_STEP, RULES = "verdicts", "best", "rules"
MAX_SHOWN_POINTS = 20_000  # drawn for figures where points are read from a disk
MAX_PATH_NUMBERS = 1 << 24  # numbers of a path of weights, 128 MB, beyond which it is thinned
MAX_RECORDED_NUMBERS = 500_000  # numbers of a path that is recorded: 4 MB


@dataclass(frozen=True)
class Findings:
    """What measures find beside the histories: mappings by the names under which it is logged.

    Attributes:
        metrics: Numbers, NaN for an unknown one.
        tags: Texts.
        series: Numbers by iteration, or by the rank of a direction: `(steps, values)`.
        arrays: Arrays that a figure needs, small enough to keep.
        notes: Sentences on what could not be computed, and why.
        of_steps: Findings about one step size, by its index in the grid: numbers, and histories
            (K + 1,), by the names under which they are logged.
        depends_on: What each finding depends on in the judging, by its name: the
            `Measure.depends_on` of its measure. Only merged findings have it.
        seconds: The seconds of the measures that are taken unasked. Only merged findings have it.
        search_seconds: The seconds of the measures that a setting requests, likewise.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, Series] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    of_steps: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    depends_on: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    search_seconds: float = 0.0


class WeightPath(NamedTuple):
    """The path of the best step size from the first start, as far as it is finite.

    Attributes:
        iteration: The iterations whose weights are kept, `(k,)`, increasing.
        weights: The weights at these iterations, `(k, *shape)`.
        cost: The recorded costs at these iterations, `(k,)`.
    """

    iteration: NDArray[np.int64]
    weights: Array
    cost: NDArray[np.float64]

    def spread(self, count: int) -> "WeightPath":
        """Return the path at `count` of its iterations at most, close together at first."""
        wanted = spread_iterations(int(self.iteration[-1]), count)
        rows = np.unique(np.searchsorted(self.iteration, wanted))
        return WeightPath(self.iteration[rows], self.weights[rows], self.cost[rows])


@dataclass(frozen=True)
class JudgedDescent:
    """The descent of a job, with its theory and its verdicts.

    Attributes:
        train: The training problem.
        optimizer: The optimizer.
        settings: The settings of the descent.
        search: The settings of the search for the critical step size.
        start: The starting weights, `(starts, *shape)`.
        rounds: Descends further runs with their shadows (the same runs from starts perturbed by
            rounding), and keeps their histories.
        histories: The histories of the grid.
        theory: The predictions of theory.
        least: The least cost.
        judging_context: The numbers and rules by which runs are judged.
        steps: The judged step sizes of the grid.
        best: The index of the step size that represents the scheme; None where there is none.
        chosen: Whether the user chose that step size, so that it need not be the best.
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
    judging_context: JudgingContext
    steps: tuple[Step, ...]
    best: int | None
    chosen: bool

    @property
    def plan(self) -> Plan:
        """Which points each update sees."""
        return self.rounds.plan

    @property
    def plain(self) -> bool:
        """Whether this is plain gradient descent on the recorded cost."""
        return self.optimizer.plain and self.plan.batches is None

    @property
    def best_step(self) -> Step:
        """The judged step size that represents the scheme; `best` must not be None."""
        assert self.best is not None
        return self.steps[self.best]

    @property
    def best_run(self) -> int:
        """The index of the run of the best step size from the first start."""
        assert self.best is not None
        return self.best * len(self.start)

    @property
    def best_weights(self) -> Array:
        """The last weights of the best step size from the first start, in the problem's shape."""
        return np.asarray(self.histories.weights[self.best_run])

    @cached_property
    def at_start(self) -> AtStart:
        """The problem at the first start, with the eigendirections of its Hessian."""
        return AtStart(self.train, self.start[0], self.theory.spectrum, self.settings.theory)

    @cached_property
    def path(self) -> WeightPath:
        """The path of the best step size from the first start: of the very run that was recorded.

        All runs of the grid descend once more, together, since one alone would round otherwise.
        Where all iterations would take more than 128 MB, pairs of consecutive ones are kept: a run
        that oscillates between two sides shows both.
        """
        run, last = self.best_run, self.settings.records
        firsts = spread_iterations(last, max(2, MAX_PATH_NUMBERS // self.start[0].size))
        iteration = np.unique(np.minimum(np.r_[firsts, firsts + 1], last))
        cost = self.histories.cost[run, iteration]
        iteration, cost = iteration[np.isfinite(cost)], cost[np.isfinite(cost)]
        rows = {k: row for row, k in enumerate(iteration.tolist())}
        weights = np.empty((len(rows), *self.start.shape[1:]), self.start.dtype)

        def observe(k: int, alive: NDArray[np.int64], alive_weights: Array) -> None:
            """Keep the weights of the best run, which is finite at all of these iterations."""
            weights[rows[k]] = alive_weights[np.searchsorted(alive, run)]

        self.rounds.replay(self.settings.step_sizes, rows, observe)
        return WeightPath(iteration, weights, cost)

    @property
    def recorded_path(self) -> WeightPath:
        """The path, thinned to 4 MB with its ends, close at first."""
        return self.path.spread(max(2, MAX_RECORDED_NUMBERS // self.start[0].size))


@dataclass(frozen=True)
class FinishedJob:
    """A job that has run.

    Attributes:
        dataset: The data set.
        scheme: The fitted scheme.
        z: The training points under the scheme, (P, M).
        points_cache: The moments of the points of the data set, before the scheme.
        judged_descent: The descent; None where the job fits the scheme and records only.
        descend_dataset: Fits the scheme and descends on another data set, at one step size; None
            where a job cannot.
        shown_point: The index of the training point that a figure reconstructs.
        moment_pair: The moment rows of all points before and under the scheme, where z holds only a
            sample of the points; None where they are computed from z.
        z_test: The test points under the scheme, (Q, M); None without test points.
    """

    dataset: Dataset
    scheme: Any
    z: Points
    points_cache: PointsCache
    judged_descent: JudgedDescent | None = None
    descend_dataset: Callable[[Dataset, float], Histories] | None = None
    shown_point: int = 0
    moment_pair: tuple[Array, Array] | None = None
    z_test: Points | None = None

    @property
    def descent(self) -> JudgedDescent:
        """The descent, for measures that need one."""
        assert self.judged_descent is not None
        return self.judged_descent

    @property
    def moments(self) -> tuple[Array, Array]:
        """Rows with the mean and the covariance of all points, before and under the scheme.

        They are the points themselves, or a few rows where the points are no array in memory.
        """
        return self.moment_pair or (moment_rows(self.dataset.x), moment_rows(self.z))

    @cached_property
    def shown_points(self) -> "FinishedJob":
        """This job with points in memory: all points of an array, else a sample of them.

        The sample includes the point `shown_point`.
        """
        if is_in_memory(self.z):
            return self
        data, count = self.dataset, len(self.z)
        drawn = np.random.default_rng(0).choice(count, min(count, MAX_SHOWN_POINTS), replace=False)
        indices = np.unique(np.r_[drawn, self.shown_point])
        # A data set without targets has an empty y.
        y = data.y[indices] if len(data.y) else data.y
        return replace(
            self,
            dataset=replace(data, x=take_rows(data.x, indices), y=y),
            z=take_rows(self.z, indices),
            shown_point=int(np.searchsorted(indices, self.shown_point)),  # its place in the sample
            moment_pair=self.moments,
        )


@dataclass(frozen=True)
class Measure:
    """A measure of a finished job: a function of a module of this room under `measure`.

    Attributes:
        take: `take(job) -> Findings`: takes the measure. It finds nothing where a job has none.
        record: The name of the measure in the setting `record`, which requests it; empty for a
            measure that is taken unasked.
        on_request: Whether a setting of its own requests the measure. The seconds of requested
            measures are counted apart.
        of_descent: Whether the measure needs a descent, and so `job.descent`.
        depends_on: What the findings depend on in the judging. When a recorded job is judged by
            other rules, findings that follow `STEP_VERDICTS` are computed again; those that follow
            `BEST_STEP` or `RULES` need another descent if the best step or the rules changed; all
            others stay true. Findings that follow `BEST_STEP` need a best step.
        features: The least and the largest number of features of a data set that it takes.
        lacks: `lacks(dataset, scheme) -> str`: what is missing to take the measure of a data set of
            so many features, under a scheme that is not fitted yet; empty where nothing is.
    """

    take: Callable[[FinishedJob], Findings]
    record: str = ""
    on_request: bool = False
    of_descent: bool = True
    depends_on: str = ""
    features: tuple[float, float] = (1, math.inf)
    lacks: Callable[[Dataset, Any], str] = lambda dataset, scheme: ""

    def check(self, dataset: Dataset, scheme: Any) -> None:
        """Check that this requested measure can be taken, before the scheme is fitted.

        Args:
            dataset: The data set.
            scheme: The scheme, not yet fitted.

        Raises:
            UserError: The data set or the scheme does not suit the measure. The remedy is to remove
                the measure from `record`.
        """
        (points, features), (least, most) = dataset.x.shape, self.features
        needs = self.lacks(dataset, scheme)
        if not least <= features <= most:
            needs = f"{least} features" if least == most else f"{least} to {most} features"
        if needs:
            targets = f"{dataset.classes} classes" if dataset.classes else "real targets"
            raise UserError(
                f"record={self.record}: needs {needs}; {dataset.name} has {points} points of "
                f"{features} features, and {targets if len(dataset.y) else 'no targets'}; the "
                f"normalizer is {name_scheme(scheme)}; leave {self.record} out"
            )


def measure(record: str = "", **facts: Any) -> Callable[[Callable[..., Findings]], Measure]:
    """Return a decorator that makes a function of a finished job a `Measure`.

    Args:
        record: The name in the setting `record`; empty for a measure that is taken unasked.
        facts: Further attributes of the `Measure`.
    """
    return lambda take: Measure(take, record, **facts)


def gradient_at(problem: Problem, weights: Array) -> NDArray[np.float64]:
    """Return the gradient of a cost at the weights of one model, flat and in float64."""
    with QUIET():
        gradient = problem.evaluate(weights[None]).gradient
    assert gradient is not None
    return gradient[0].astype(np.float64).ravel()


def scheduled_step_sizes(descent: JudgedDescent, iteration: NDArray[np.int64]) -> Array:
    """Return the step size of the best run at recorded iterations `(k,)`, by its schedule.

    A schedule multiplies the step size by a factor after every so many passes.
    """
    settings, size = descent.settings, descent.best_step.step_size
    passes, factor = settings.step_schedule or (1, 1.0)  # without a schedule it stays
    return np.asarray(size * factor ** (iteration // (passes * settings.records_per_pass)))


def spread_iterations(last: int, count: int) -> NDArray[np.int64]:
    """Return at most `count` iterations from 0 to the last, close together at first.

    All of them are returned where there are no more than `count`.
    """
    if last < count:
        return np.arange(last + 1)
    spread = np.geomspace(1, last, count - 1).round().astype(np.int64)
    return np.unique(np.r_[0, spread])
