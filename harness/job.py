"""One job, start to end: one data set, cost, scheme and optimizer, and the whole step grid."""

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import Dataset, UserError
from normbench.datasets.feature_columns import find_features
from normbench.datasets.on_disk.points import Points, Rows
from normbench.datasets.on_disk.sparse import sparse_or_none
from normbench.engine.batches import batches_of, check_batch
from normbench.engine.descent import Histories, Progress
from normbench.engine.fast import threads
from normbench.engine.midway import Checkpoint
from normbench.engine.network import Model, Network
from normbench.engine.network_steps import (
    check_model,
    draw_start,
    held_out_problem,
    step_by_batches,
    with_affine_and_running_steps,
)
from normbench.engine.penalty import check_penalty, penalty_of
from normbench.engine.preconditioner import with_fitted_scheme
from normbench.engine.problem import Cost, Linear, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.schedule import check_schedule, with_schedule
from normbench.engine.scheme.applying import check_scheme, normalize
from normbench.engine.scheme.columns import select_columns
from normbench.engine.scheme.sparse import check_sparse
from normbench.engine.scheme.under import Under
from normbench.engine.settings import Settings
from normbench.engine.start import same_function_weights, starting_weights
from normbench.engine.statistics import FITTED, Statistics, check_statistics
from normbench.engine.targets import check_cost, check_curvature, encode_targets, scores_of
from normbench.measures.contract import Findings, FinishedJob
from normbench.measures.judged import judge_descent
from normbench.optimizers import Optimizer
from normbench.route import build_minibatch, build_objective, check_engine, fastest_route
from normbench.route import network as build_network
from normbench.theory.shared import PointsCache
from normbench.theory.shared import PointsCaches as PointsCaches
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Step
from normbench.verdicts.search import Search

Array = NDArray[Any]
SAME_FUNCTION = "same_function"
SHADOW_LIMIT = 10  # times the limit of divergence: beyond it, the shadows of a run diverge too


class Normalized(NamedTuple):
    """The points of a job under its fitted scheme.

    z: the training points (P, M). z_test: the test points (Q, M). seconds: those of the fit.
    """

    z: Rows
    z_test: Rows
    seconds: float


@dataclass(frozen=True)
class Job:
    """The inputs of a job.

    Attributes:
        dataset: The data set.
        cost: The cost, a function of scores and targets.
        normalizer: The scheme, a scikit-learn transformer; the job has a copy of its own, which
            `run` fits.
        optimizer: The optimizer.
        settings: The settings of the descent.
        l2: The weight of the penalty.
        l2_in: The coordinates whose weights l2 penalizes, see `normbench.engine.penalty`.
        rules: The rules of judging.
        search: The settings of the search for the critical step size.
        model: How scores follow from the weights; None where they are linear in them.
        engine: `plain` descends without `normbench.engine.fast`, `jax` compiles a network's steps;
            the numbers are equal to rounding.
        normalized: The points under the scheme, where `with_default_start` has fitted it; None in
            any job that `replace` makes.
    """

    dataset: Dataset
    cost: Cost
    normalizer: Any
    optimizer: Optimizer
    settings: Settings
    l2: float = 0.0
    l2_in: str = "transformed"
    rules: Rules = field(default_factory=Rules)
    search: Search = field(default_factory=Search)
    model: Model | None = None
    engine: str = "fast"
    normalized: Normalized | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Such an optimizer finds its own step sizes: a grid would repeat one run.
        if getattr(self.optimizer, "gridless", False):
            single_step = replace(self.settings, step_sizes=(1.0,), shown_step=None)
            object.__setattr__(self, "settings", single_step)
        # Finer step sizes serve targets, which need the least cost: that of a network is unknown.
        if self.model is not None:
            object.__setattr__(self, "settings", replace(self.settings, refine=False))
        # The schemes become copies, because the job selects their columns and fits them; the
        # optimizer has a scheme if it preconditions by one.
        object.__setattr__(self, "normalizer", self._with_columns(self.normalizer))
        if getattr(self.optimizer, "scheme", None) is not None:
            scheme = self._with_columns(self.optimizer.scheme)
            object.__setattr__(self, "optimizer", self.optimizer._replace(scheme=scheme))

    def _with_columns(self, scheme: Any) -> Any:
        """Return a copy of a scheme, whose columns (`normalizer.columns`) are of this data set."""
        scheme, data = deepcopy(scheme), self.dataset
        select_columns(scheme, data.feature_names, partial(find_features, data))
        return scheme

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the data; one says that whole numbers are classes for a cost of numbers."""
        data = self.dataset
        if not data.has_numbered_classes or "regression" not in traits(self.cost).tasks:
            return data.notes
        return (
            f"data of {data.name}: the whole numbers of the target are taken for {data.classes} "
            "classes; dataset.task=regression takes them for numbers",
            *data.notes,
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job.

    Attributes:
        steps: A `Step` for each step size; none for a study without a descent (`iterations=0` with
            a record).
        best: The index of the best step size, or of the one that `shown_step` chooses.
        scheme: The fitted scheme.
        features: The number of features under the scheme.
        fit_seconds: The seconds of the fit.
        descent_seconds: The seconds of the descent of the grid.
        findings: The findings of all measures.
        arrays: The arrays of measures, by their names in `record`.
        seconds_a_step: The seconds of one iteration of one run, NaN without a descent.
    """

    steps: tuple[Step, ...]
    best: int | None
    scheme: Any
    features: int
    fit_seconds: float
    descent_seconds: float
    findings: Findings = field(default_factory=Findings)
    arrays: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    seconds_a_step: float = float("nan")


def with_default_start(job: Job) -> Job:
    """Return a job with the start that `start=null` means: zero weights for most costs.

    Zero weights minimize a positively homogeneous cost, and every step would raise it. The start
    is then one function under every scheme that can represent it, and `normal` under the others
    and where the statistics of the scheme move with the batches. The scheme is fitted to find that
    out, and `run` does not fit it again.
    """
    start = default_start_name(job.cost, job.model)
    if start == SAME_FUNCTION and job.settings.statistics != FITTED:
        start = "normal"
    started = replace(job, settings=replace(job.settings, start=start))
    if start != SAME_FUNCTION or measures.without_descent(job.settings):
        return started
    normalized = _normalize(started)
    try:
        _same_function_starts(started, normalized.z)
    except UserError:
        started = replace(started, settings=replace(job.settings, start="normal"))
    object.__setattr__(started, "normalized", normalized)
    return started


def default_start_name(cost: Any, model: Model | None = None) -> str:
    """Return the start that `start=null` means for a cost, before the scheme is consulted.

    Zero weights of a network are a stationary point, so that its weights start at random.

    Args:
        cost: The cost.
        model: The model; None for the linear one.

    Returns:
        One of `settings.NAMED_STARTS`.
    """
    if model is not None:
        return "normal"
    return SAME_FUNCTION if traits(cost).positively_homogeneous else "zeros"


def check(job: Job) -> None:
    """Raise `UserError` for a cost, a scheme or a record that does not fit the job.

    Nothing is fitted: whether the scheme has the start `same_function` is found when the job runs.
    """
    data = job.dataset
    if not measures.without_descent(job.settings):
        rows_shape = data.x.shape if data.read_from_rows else None
        check_cost(job.cost, data.name, data.task, data.classes, rows_shape)
        if job.optimizer.curved:
            check_curvature(job.cost)
    check_batch(job.settings, data.name, len(data.x), job.optimizer)
    check_schedule(job.settings, job.optimizer)
    scores = scores_of(traits(job.cost), data.classes)
    check_engine(job.engine, job.model, job.cost, scores)
    if job.model is not None:
        points, cost_traits = (data.x, data.x_test), traits(job.cost)
        check_model(job.model, job.settings, points, job.optimizer, job.l2_in, cost_traits)
    l2_in = job.l2_in if job.l2 else ""  # without a penalty it cannot conflict
    check_statistics(job.settings.statistics, data.x, job.settings.fold, l2_in, data.fit_on)
    check_scheme(job.normalizer)
    check_sparse(job.normalizer, data.x, job.settings.fold)
    check_penalty(job.l2, job.l2_in, job.normalizer)
    measures.check(job.settings, data, job.normalizer)


def run(
    job: Job,
    progress: Progress | None = None,
    shared: PointsCaches | None = None,
    checkpoint: Checkpoint | None = None,
    phase: Callable[[str], None] = lambda phase_name: None,
) -> Outcome:
    """Run a job: fit the scheme, descend, judge, and take measures.

    Args:
        job: The job; its scheme is fitted in place.
        progress: Called at every iteration of the descent of the grid.
        shared: Caches that the jobs of one comparison share; new ones if None.
        checkpoint: Saves the state of the descent, and resumes it; None for no checkpoints.
        phase: Called at the beginning of each phase of the job, with a text such as `descends`.

    Returns:
        The outcome.

    Raises:
        UserError: The scheme refuses the points, or a part of the job does not fit another.
    """
    check(job)
    data, settings = job.dataset, job.settings
    _check_sources(data)
    points_cache = (shared or PointsCaches()).get(data.fingerprint, data.x)
    phase("fits the scheme")
    z, z_test, fit_seconds = job.normalized or _normalize(job, points_cache)
    finished = FinishedJob(
        data,
        job.normalizer,
        z,
        points_cache,
        descend_dataset=partial(_descend_dataset, job),
        shown_point=job.settings.shown_point,
        z_test=z_test,
    )
    if measures.without_descent(settings):
        findings, arrays = measures.take(finished, settings)
        return Outcome((), None, job.normalizer, z.shape[1], fit_seconds, 0.0, findings, arrays)
    train, test = _problems(job, z, z_test)
    start = _starts(job, train, z).astype(z.dtype)
    phase("descends")
    tick = time.perf_counter()
    optimizer = _step_rule(job, train, test)
    fit_seconds += time.perf_counter() - tick  # a preconditioner fits a scheme, too
    rounds = _rounds(job, train, test, start, optimizer, checkpoint)
    # All descents have the same threads, whose number may change rounding. The squares of points
    # under a scheme may overflow: the verdicts say so, not a warning.
    with threads.limit_threads(z.size), np.errstate(over="ignore", invalid="ignore"):
        histories = rounds.descend(settings.step_sizes, progress)
        seconds = rounds.seconds  # of the grid alone
        _check_sources(data)  # again: a file may have changed during the descent
        phase("computes theory and the least cost")
        tick = time.perf_counter()
        inputs = (train, rounds.optimizer, settings, job.rules, job.search, start, rounds)
        # budget: what the measures below may still spend on theory.
        descent, budget = judge_descent(*inputs, histories, points_cache, (fit_seconds, seconds))
        theory_seconds = time.perf_counter() - tick
        phase("takes measures" if settings.refine is False else "tries finer step sizes")
        findings, arrays = measures.take(
            replace(finished, judged_descent=descent), settings, budget
        )
    return Outcome(
        steps=tuple(
            _with_findings(step, findings, number) for number, step in enumerate(descent.steps)
        ),
        best=descent.best,
        scheme=job.normalizer,
        features=z.shape[1],
        fit_seconds=fit_seconds,
        descent_seconds=seconds,
        findings=replace(findings, seconds=findings.seconds + theory_seconds),
        arrays=arrays,
        seconds_a_step=descent.judging_context.seconds_a_step,
    )


def _check_sources(data: Dataset) -> None:
    """Raise `UserError` where points on a disk have changed since they were opened."""
    for points in (data.x, data.x_test):
        if isinstance(points, Points):
            points.check()


def _normalize(job: Job, points_cache: PointsCache | None = None) -> Normalized:
    """Fit the scheme on the points that `fit_on` names; return all points under it.

    Args:
        job: The job; its scheme is fitted in place.
        points_cache: The cache of the data set, whose decompositions the schemes share; None for
            none.
    """
    data, precision, fold = job.dataset, job.settings.precision, job.settings.fold
    fits = points_cache.decompositions if points_cache else None
    tick, saved_before = time.perf_counter(), fits.saved if fits else 0.0
    if data.fit_on == "all" and len(data.x_test):
        both = np.concatenate([data.x, data.x_test])
        # Cached decompositions are of the training points alone, so `fit_on=all` does not use them.
        z, _ = normalize(job.normalizer, both, both[:0], precision)
        z, z_test = z[: len(data.x)], z[len(data.x) :]
    else:
        z, z_test = normalize(job.normalizer, data.x, data.x_test, precision, fits, fold)
    # The seconds of this job alone: those of decompositions that an earlier job cached count, too.
    saved = fits.saved - saved_before if fits else 0.0
    return Normalized(z, z_test, time.perf_counter() - tick + saved)


def _step_rule(job: Job, train: Problem, test: Problem | None) -> Optimizer:
    """Return the optimizer of a job, made ready for its problem.

    The scheme of a preconditioner is fitted on the points that `fit_on` names. The schedule of the
    step size and a model's rates are added where the job has them.
    """
    # With `fit_on=train`, the training points alone fit the scheme of a preconditioner.
    further_problems = [test] if test and job.dataset.fit_on == "all" else []
    optimizer = with_fitted_scheme(job.optimizer, train, *further_problems)
    return with_affine_and_running_steps(with_schedule(optimizer, job.settings, train), train)


def _rounds(
    job: Job,
    train: Problem,
    test: Problem | None,
    start: Array,
    optimizer: Optimizer,
    checkpoint: Checkpoint | None = None,
) -> Rounds:
    """Return the `Rounds` of a job, which descend the fastest equivalent of its problem.

    Args:
        job: The job.
        train: The training problem.
        test: The test problem, if any.
        start: The starting weights, `(starts, *shape)`.
        optimizer: The optimizer, from `_step_rule`.
        checkpoint: Saves the state of the descent, and resumes it; None for no checkpoints.
    """
    settings = job.settings
    runs = len(settings.step_sizes) * settings.starts
    work = (runs, settings.iterations)
    route = fastest_route(job.engine, train, test, start, optimizer, work)
    descent_arguments = (*route, optimizer, settings.records, settings.shadows, checkpoint)
    # The default rules, and not those of the job: which runs get shadows (are repeated from a start
    # perturbed by rounding) must not depend on the rules, since a recorded descent can be judged
    # again by others. Beyond `far` times the start's cost a run gets none: it has diverged. A
    # positively homogeneous cost grows with the weights, so that no height of it is a divergence.
    far = np.inf if traits(job.cost).positively_homogeneous else SHADOW_LIMIT * Rules().diverged
    return Rounds(*descent_arguments, far=far)


def _descend_dataset(job: Job, data: Dataset, step_size: float) -> Histories:
    """Return the histories of a job on another data set at one step size.

    A copy of the scheme is fitted to that data set, without shadows and without the job's caches.

    Args:
        job: The job.
        data: The data set in place of the job's, such as a fold of a cross-validation.
        step_size: The only step size.
    """
    settings = replace(job.settings, step_sizes=(step_size,), shown_step=None, shadows=False)
    other_job = replace(job, dataset=data, settings=settings)
    z, z_test, _ = _normalize(other_job)
    train, test = _problems(other_job, z, z_test)
    start = _starts(other_job, train, z).astype(z.dtype)
    optimizer = _step_rule(other_job, train, test)
    return _rounds(other_job, train, test, start, optimizer).descend([step_size])


def _starts(job: Job, train: Problem, z: Rows) -> Array:
    """Return the starting weights `(starts, *shape)` of the runs of a job.

    Args:
        job: The job, whose scheme is fitted already.
        train: The training problem, which gives the shape of the weights.
        z: The training points (P, M) under the scheme.

    Raises:
        UserError: The start is `same_function`, and the scheme has no such weights.
    """
    if job.settings.start == SAME_FUNCTION:
        return _same_function_starts(job, z)
    # None for starts that no model draws, such as given weights.
    network_start = draw_start(job.settings, train)
    return starting_weights(job.settings, train.shape) if network_start is None else network_start


def _same_function_starts(job: Job, z: Rows) -> Array:
    """Return the starting weights `(starts, C, M + 1)` of `same_function`; see `_starts`."""
    scores = scores_of(traits(job.cost), job.dataset.classes)
    return same_function_weights(job.settings, scores, job.normalizer, *_start_points(job, z))


def _start_points(job: Job, z: Rows) -> tuple[Array, Rows]:
    """Return the points from which `same_function` finds the map of a scheme.

    Args:
        job: The job, whose data set has the points before the scheme.
        z: The training points under the scheme.

    Returns:
        Points before the scheme, and the same points under it.
    """
    if not isinstance(z, Under):
        return job.dataset.x, z
    if z.map is None:  # no affine scheme, which `same_function` refuses before it reads a point
        return z.x[:2], z
    if sparse_or_none(z.x) is not None:
        raise UserError(
            f"start=same_function: takes dense points, and those of {job.dataset.name} are sparse; "
            "use start=zeros, or start=normal"
        )
    # A few rows with the means and covariances of the points: the map on them is the same.
    surrogate, surrogate_under_scheme = z.surrogates
    return surrogate.moment_rows, surrogate_under_scheme.moment_rows


def _problems(job: Job, z: Rows, z_test: Rows) -> tuple[Problem, Problem | None]:
    """Return the training problem on points z (P, M), and the test problem on those of z_test.

    Args:
        job: The job, whose scheme is fitted.
        z: The training points under the scheme.
        z_test: The test points (Q, M) under the scheme; Q may be 0.

    Returns:
        The training problem, whose steps see batches where the job has them, and the test problem;
        None without test points.
    """
    data = job.dataset
    scores = scores_of(traits(job.cost), data.classes)
    l2 = penalty_of(job.l2, job.l2_in, job.normalizer, z.dtype)
    batches = batches_of(job.settings, len(z))  # None where a step sees all points
    # Below, `data.classes > 0` says whether misclassified points are counted.
    if job.model is not None:
        targets, test_targets = (
            encode_targets(y, scores, data.classes, z.dtype) for y in (data.y, data.y_test)
        )
        arguments = z, targets, data.classes > 0, scores, job.l2
        plain = Network(job.model, job.cost, *arguments, batch=job.settings.batch)
        network = build_network(job.engine, plain)
        return step_by_batches(network, batches), held_out_problem(network, z_test, test_targets)

    def build_problem(points: Rows, y: Array, held_out: bool) -> Linear:
        """Return the linear problem of all given points.

        Args:
            points: The points under the scheme, one per row.
            y: Their targets, as the data set has them.
            held_out: Whether the points are held out, so that no gradient is computed.
        """
        targets = encode_targets(y, scores, data.classes, z.dtype)
        arguments = points, targets, data.classes > 0, l2, scores, held_out
        return build_objective(job.engine, job.cost, *arguments)

    whole = build_problem(z, data.y, held_out=False)
    test = build_problem(z_test, data.y_test, held_out=True) if len(z_test) else None
    if batches is None:
        return whole, test
    train = build_minibatch(job.engine, whole, batches)
    if job.settings.statistics == FITTED:
        return train, test
    # The scheme learns from other points at each step, so that each step transforms the points
    # anew: both problems need the points before the scheme.
    kind, window, scheme = job.settings.statistics, job.settings.window, deepcopy(job.normalizer)
    statistics = Statistics(kind, window, scheme, data.x, train.batches, z.dtype, z.shape[1])
    train = replace(train, statistics=statistics, raw=data.x)
    moving_test = replace(train, inner=test, raw=data.x_test) if test else None
    return train, moving_test


def _with_findings(step: Step, findings: Findings, number: int) -> Step:
    """Return a step size with the findings of measures about it added.

    Args:
        step: The judged step size.
        findings: The findings of all measures.
        number: The index of the step size in the grid.
    """
    step_findings = findings.of_steps.get(number)
    if step_findings is None:
        return step
    return replace(
        step, metrics={**step.metrics, **step_findings.metrics}, series=step_findings.series
    )
