"""The contract of a measure: `Measure`, its input `FinishedJob`, and its output `Findings`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import Points, is_in_memory, take_rows
from normbench.engine.descent import Histories
from normbench.engine.plan import Plan
from normbench.engine.problem import QUIET, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.normalizers.decomposition import Moments, moment_rows
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer
from normbench.theory.analysis import AtStart, Theory
from normbench.theory.least_cost import Minimum
from normbench.verdicts import convergence, judging
from normbench.verdicts.judging import JudgingContext, Shadows, Step
from normbench.verdicts.search import Search

Array = NDArray[Any]
Series = tuple[NDArray[np.int64], NDArray[np.float64]]
UNKNOWN = float("nan")
NOT_LINEAR = "is for model=linear, and these scores are not linear in the weights"
# What findings may depend on in the judging (`Measure.depends_on`): the verdicts, the best step
# size, the rules of judging.
STEP_VERDICTS, BEST_STEP, RULES = "verdicts", "best", "rules"
MAX_SHOWN_POINTS = 20_000  # drawn for figures where points are read from a disk
MAX_SHOWN_ENTRIES = 1 << 26  # numbers of these points: 512 MB
MAX_PATH_NUMBERS = 1 << 24  # numbers of a path of weights: 128 MB
MAX_RECORDED_NUMBERS = 500_000  # numbers of a path that is recorded: 4 MB
# Consecutive iterations that are kept together where not all are: a run that oscillates between two
# sides would show one side alone at every second iteration.
STRETCH_LENGTH = 3


class OfStep(NamedTuple):
    """Findings about one step size: numbers, and histories (K + 1,)."""

    metrics: Mapping[str, float]
    series: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Findings:
    """What measures find beside the histories: mappings by the names under which it is logged.

    Attributes:
        metrics: Numbers, NaN for an unknown one.
        tags: Texts.
        series: Numbers by iteration, or by the rank of a direction: `(steps, values)`.
        arrays: Arrays that a figure needs, small enough to keep.
        notes: Sentences on what could not be computed, and why.
        of_steps: Findings about one step size, by its index in the grid.
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
    of_steps: Mapping[int, OfStep] = field(default_factory=dict)
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

    def at(self, iterations: NDArray[np.int64]) -> "WeightPath":
        """Return the path at some iterations, or at the next ones that are kept."""
        rows = np.unique(np.searchsorted(self.iteration, iterations))
        rows = rows[rows < len(self.iteration)]
        return WeightPath(self.iteration[rows], self.weights[rows], self.cost[rows])

    def spread(self, last: int, count: int) -> "WeightPath":
        """Return the path at `count` of the iterations to the last at most, close at first."""
        return self.at(spread_iterations(last, count))


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
        return self.optimizer.plain and self.plan.full_batch

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

    def descend_finer(self, step_sizes: Sequence[float]) -> tuple[tuple[Step, ...], Array]:
        """Descend and judge step sizes beside those of the grid, from all A starts.

        Returns:
            The judged step sizes, S of them, and their costs `(S, A, K + 1)`.
        """
        histories = self.rounds.descend(step_sizes, is_grid=False)
        steps = judging.judge_steps(
            *(histories_by_key(histories), histories.diverged_at, step_sizes, self.judging_context),
            shadows_of(histories, self.judging_context),
        )
        return steps, histories.cost.reshape(len(step_sizes), len(self.start), -1)

    @cached_property
    def at_start(self) -> AtStart:
        """The problem at the first start, with the eigendirections of its Hessian."""
        return AtStart(self.train, self.start[0], self.theory.spectrum, self.settings.theory)

    @cached_property
    def path(self) -> WeightPath:
        """The path of the best step size from the first start: of the very run that was recorded.

        All runs of the grid descend once more, together, since one alone would round otherwise.
        Where all iterations would take more than 128 MB, evenly spaced stretches of
        `STRETCH_LENGTH` of them are kept.
        """
        run = self.best_run
        cost = self.histories.cost[run]
        count = max(2 * STRETCH_LENGTH, MAX_PATH_NUMBERS // self.start[0].size)
        iteration = stretched_iterations(self.settings.records, count)
        iteration = iteration[np.isfinite(cost[iteration])]
        rows = {k: row for row, k in enumerate(iteration.tolist())}
        weights = np.empty((len(rows), *self.start.shape[1:]), self.start.dtype)

        def observe(k: int, alive: NDArray[np.int64], alive_weights: Array) -> None:
            """Keep the weights of the best run, which is finite at all of these iterations."""
            weights[rows[k]] = alive_weights[np.searchsorted(alive, run)]

        self.rounds.replay(self.settings.step_sizes, rows, observe)
        return WeightPath(iteration, weights, cost[iteration])

    @property
    def recorded_path(self) -> WeightPath:
        """The path, thinned evenly to 4 MB with its ends."""
        last, count = self.settings.records, max(2, MAX_RECORDED_NUMBERS // self.start[0].size)
        return self.path.at(np.unique(np.linspace(0, last, count).round().astype(int)))


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
    points_cache: Moments
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
        indices = np.arange(count)  # of the points that are kept, increasing
        max_points = min(MAX_SHOWN_POINTS, max(2, MAX_SHOWN_ENTRIES // data.x.shape[1]))
        if count > max_points:
            drawn = np.random.default_rng(0).choice(count, max_points, replace=False)
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
        suits: `suits(dataset) -> bool`: whether it can be taken of a data set of so many features.
        needs: What `suits` needs of a data set, as an error message says it.
        inverse: Whether the measure needs the inverse of the scheme.
    """

    take: Callable[[FinishedJob], Findings]
    record: str = ""
    on_request: bool = False
    of_descent: bool = True
    depends_on: str = ""
    features: tuple[float, float] = (1, math.inf)
    suits: Callable[[Dataset], bool] = lambda dataset: True
    needs: str = ""
    inverse: bool = False

    def check(self, dataset: Dataset, scheme: Any) -> None:
        """Check that this requested measure can be taken, before the scheme is fitted.

        Args:
            dataset: The data set.
            scheme: The scheme, not yet fitted.

        Raises:
            UserError: The data set does not suit the measure, or the scheme has no inverse and the
                measure needs it. The remedy is to remove the measure from `record`.
        """
        (points, features), (least, most) = dataset.x.shape, self.features
        if not (least <= features <= most and self.suits(dataset)):
            bounds = f"{least} features" if least == most else f"{least} to {most} features"
            # Without a largest number any number of features suits.
            needs = " and ".join(filter(None, (self.needs, bounds if most < math.inf else "")))
            targets = f"{dataset.classes} classes" if dataset.classes else "real targets"
            raise UserError(
                f"record={self.record}: needs {needs}; {dataset.name} has {points} points of "
                f"{features} features, and {targets if len(dataset.y) else 'no targets'}; leave "
                f"{self.record} out"
            )
        if self.inverse and not hasattr(scheme, "inverse_transform"):
            raise UserError(
                f"record={self.record}: normalizer {name_scheme(scheme)} has no inverse_transform; "
                f"leave {self.record} out or choose another scheme"
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


def histories_by_key(histories: Histories) -> dict[str, NDArray[np.float64]]:
    """Return the histories `(R, K + 1)` of a descent, by the keys under which they are logged.

    Histories of misclassifications or of test points that do not exist are left out.
    """
    candidates = {
        names.TRAIN_COST.key: histories.cost,
        names.TRAIN_MISCLASSIFICATIONS.key: histories.misclassifications,
        names.TEST_COST.key: histories.test_cost,
        names.TEST_MISCLASSIFICATIONS.key: histories.test_misclassifications,
    }
    return {key: history for key, history in candidates.items() if history is not None}


def shadows_of(histories: Histories, context: JudgingContext) -> Shadows | None:
    """Return the last costs of the shadows of R runs, and their iterations to each target.

    A shadow is a run repeated from a start perturbed by rounding. Shadows record costs alone, so
    that targets of misclassified points count as unreached.

    Args:
        histories: The histories of the runs, with the costs of the shadows that some runs have.
        context: Holds the targets.

    Returns:
        Arrays `(R, M)`, with M the largest number of shadows of a run: NaN pads runs of fewer, and
        infinity stands for a shadow that diverged or misses the target. None without any shadow.
    """
    if not histories.shadows:
        return None
    shape = len(histories.cost), max(len(costs) for costs in histories.shadows.values())
    ends = np.full(shape, np.nan)
    iterations = {name: np.full(shape, np.nan) for name in context.targets}
    for run, costs in histories.shadows.items():
        ends[run, : len(costs)] = np.where(np.isnan(costs[:, -1]), np.inf, costs[:, -1])
        for name, goal in context.targets.items():
            arrivals = [convergence.arrival_iteration(cost, goal) for cost in costs]
            is_reached = np.isfinite(arrivals) & (not context.compared_points)
            iterations[name][run, : len(costs)] = np.where(is_reached, arrivals, np.inf)
    return Shadows(ends, iterations)


def stretched_iterations(last: int, count: float) -> NDArray[np.int64]:
    """Return the iterations from 0 to the last, or evenly spaced stretches of them, increasing.

    Args:
        last: The last iteration.
        count: The largest number of iterations, at least those of two stretches.
    """
    if last < count:
        return np.arange(last + 1)
    first = np.linspace(0, last + 1 - STRETCH_LENGTH, int(count // STRETCH_LENGTH))
    return np.unique(first.round().astype(int)[:, None] + np.arange(STRETCH_LENGTH))


def spread_iterations(last: int, count: int) -> NDArray[np.int64]:
    """Return at most `count` iterations from 0 to the last, close together at first.

    All of them are returned where there are no more than `count`.
    """
    if last < count:
        return np.arange(last + 1)
    spread = np.geomspace(1, last, count - 1).round().astype(np.int64)
    return np.unique(np.r_[0, spread])
