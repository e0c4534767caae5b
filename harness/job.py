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
from normbench.datasets.on_disk.points import Points, check_unchanged
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.tables import find_features
from normbench.engine import threads
from normbench.engine.batches import check_batch
from normbench.engine.descent import Histories, Progress
from normbench.engine.linear import Linear
from normbench.engine.midway import Checkpoint
from normbench.engine.network import Network
from normbench.engine.network_steps import check_model, with_affine_and_running_steps
from normbench.engine.penalty import check_penalty, penalty_of
from normbench.engine.plan import Plan, plan_of
from normbench.engine.preconditioner import with_fitted_scheme
from normbench.engine.problem import Cost, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.schedule import check_schedule, with_schedule
from normbench.engine.scheme.applying import check_scheme, normalize
from normbench.engine.scheme.columns import select_columns
from normbench.engine.scheme.sparse import check_sparse
from normbench.engine.settings import Settings
from normbench.engine.smaller import Smaller, smaller_problem
from normbench.engine.start import same_function_weights, starting_weights
from normbench.engine.statistics import FITTED, Statistics, check_statistics
from normbench.engine.targets import check_cost, check_curvature, encode_targets, scores_of
from normbench.measures.contract import Findings, FinishedJob
from normbench.measures.judged import judge_descent
from normbench.models import Mlp
from normbench.optimizers import Optimizer
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

    z: Points
    z_test: Points
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
    model: Mlp | None = None
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


def default_start_name(cost: Any, model: Mlp | None = None) -> str:
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
    if job.model is not None:
        points, cost_traits = (data.x, data.x_test), traits(job.cost)
        check_model(job.model, job.settings, points, job.optimizer, job.l2_in, cost_traits)
    l2_in = job.l2_in if job.l2 else ""  # without a penalty it cannot conflict
    check_statistics(job.settings.statistics, data.x, l2_in, data.fit_on)
    check_scheme(job.normalizer)
    check_sparse(job.normalizer, data.x)
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
    problems, plan = _problems(job, z, z_test)
    train = problems[0]
    start = _starts(job, train, z).astype(z.dtype)
    phase("descends")
    tick = time.perf_counter()
    optimizer = _step_rule(job, problems, plan)
    fit_seconds += time.perf_counter() - tick  # a preconditioner fits a scheme, too
    rounds = _rounds(job, problems, start, optimizer, plan, checkpoint)
    # All descents have the same threads, whose number may change rounding. The squares of points
    # under a scheme may overflow: the verdicts say so, not a warning.
    with threads.limit_threads(z.size), np.errstate(over="ignore", invalid="ignore"):
        histories = rounds.descend(settings.step_sizes, progress)
        seconds = rounds.seconds  # of the grid alone
        _check_sources(data)  # again: a file may have changed during the descent
        phase("computes theory and the least cost")
        tick = time.perf_counter()
        inputs = (train, rounds.optimizer, settings, job.rules, job.search, start, rounds)
        descent = judge_descent(*inputs, histories, points_cache, (fit_seconds, seconds))
        theory_seconds = time.perf_counter() - tick
        phase("takes measures" if settings.refine is False else "tries finer step sizes")
        findings, arrays = measures.take(replace(finished, judged_descent=descent), settings)
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
        check_unchanged(points)


def _normalize(job: Job, points_cache: PointsCache | None = None) -> Normalized:
    """Fit the scheme on the points that `fit_on` names; return all points under it.

    Args:
        job: The job; its scheme is fitted in place.
        points_cache: The cache of the data set, whose decompositions the schemes share; None for
            none.
    """
    data, precision = job.dataset, job.settings.precision
    fits = points_cache.decompositions if points_cache else None
    tick, saved_before = time.perf_counter(), fits.saved if fits else 0.0
    if data.fit_on == "all" and len(data.x_test):
        both = np.concatenate([data.x, data.x_test])
        # Cached decompositions are of the training points alone, so `fit_on=all` does not use them.
        z, _ = normalize(job.normalizer, both, both[:0], precision)
        z, z_test = z[: len(data.x)], z[len(data.x) :]
    else:
        z, z_test = normalize(job.normalizer, data.x, data.x_test, precision, fits)
    # The seconds of this job alone: those of decompositions that an earlier job cached count, too.
    saved = fits.saved - saved_before if fits else 0.0
    return Normalized(z, z_test, time.perf_counter() - tick + saved)


def _step_rule(job: Job, problems: tuple[Problem, Problem | None], plan: Plan) -> Optimizer:
    """Return the optimizer of a job, made ready for its problem.

    The scheme of a preconditioner is fitted on the points that `fit_on` names. The schedule of the
    step size and a model's rates are added where the job has them.
    """
    train, test = problems
    # With `fit_on=train`, the training points alone fit the scheme of a preconditioner.
    further_problems = [test] if test and job.dataset.fit_on == "all" else []
    optimizer = with_fitted_scheme(job.optimizer, train, *further_problems)
    optimizer = with_affine_and_running_steps(with_schedule(optimizer, job.settings, plan), train)
    return optimizer._replace(note="; ".join(filter(None, (optimizer.note, plan.note))))


def _rounds(
    job: Job,
    problems: tuple[Problem, Problem | None],
    start: Array,
    optimizer: Optimizer,
    plan: Plan,
    checkpoint: Checkpoint | None = None,
) -> Rounds:
    """Return the `Rounds` of a job, which descend the smallest equal of its problem.

    Args:
        job: The job.
        problems: The training problem, and the test problem, if any.
        start: The starting weights, `(starts, *shape)`.
        optimizer: The optimizer, from `_step_rule`.
        plan: Which points each update sees.
        checkpoint: Saves the state of the descent, and resumes it; None for no checkpoints.
    """
    settings, descended = job.settings, Smaller(*problems, start)
    # A preconditioner has the size of the given weights.
    if job.model is None and plan.full_batch and job.optimizer.scheme is None:
        runs = len(settings.step_sizes) * settings.starts
        descended = smaller_problem(descended, optimizer, runs, settings.records)
    # The default rules, and not those of the job: which runs get shadows (are repeated from a start
    # perturbed by rounding) must not depend on the rules, since a recorded descent can be judged
    # again by others. Beyond `far` times the start's cost a run gets none: it has diverged. A
    # positively homogeneous cost grows with the weights, so that no height of it is a divergence.
    far = np.inf if traits(job.cost).positively_homogeneous else SHADOW_LIMIT * Rules().diverged
    return Rounds(*descended, optimizer, plan, settings.shadows, checkpoint, far=far)


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
    problems, plan = _problems(other_job, z, z_test)
    start = _starts(other_job, problems[0], z).astype(z.dtype)
    optimizer = _step_rule(other_job, problems, plan)
    return _rounds(other_job, problems, start, optimizer, plan).descend([step_size])


def _starts(job: Job, train: Problem, z: Points) -> Array:
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
    if job.model is None or job.settings.start != "normal":
        return starting_weights(job.settings, train.shape)
    rng = np.random.default_rng([job.settings.seed, *job.settings.draws])
    layout = job.model.layout(z.shape[1], train.classes)
    return job.model.start(layout, job.settings.starts, rng)


def _same_function_starts(job: Job, z: Points) -> Array:
    """Return the starting weights `(starts, C, M + 1)` of `same_function`; see `_starts`."""
    if isinstance(z, SparsePoints):
        raise UserError(
            f"start=same_function: takes dense points, and those of {job.dataset.name} are sparse; "
            "use start=zeros, or start=normal"
        )
    scores = scores_of(traits(job.cost), job.dataset.classes)
    return same_function_weights(job.settings, scores, job.normalizer, job.dataset.x, z)


def _problems(job: Job, z: Points, z_test: Points) -> tuple[tuple[Problem, Problem | None], Plan]:
    """Return the training and the test problem of a job, and the plan of its descent.

    Args:
        job: The job, whose scheme is fitted.
        z: The training points (P, M) under the scheme.
        z_test: The test points (Q, M) under the scheme; Q may be 0.

    Returns:
        The problems, of which the second is None without test points; and the plan.
    """
    data, settings = job.dataset, job.settings
    scores = scores_of(traits(job.cost), data.classes)
    targets, test_targets = (
        encode_targets(y, scores, data.classes, z.dtype) for y in (data.y, data.y_test)
    )
    # An optimizer that is not rotation equivariant may amplify the rounding of a class left out.
    leaves_out_class = job.optimizer.rotation_equivariant
    model = Network(job.model) if job.model else Linear(leaves_out_class=leaves_out_class)
    l2 = penalty_of(job.l2, job.l2_in, job.normalizer, z.dtype)
    train = Problem(
        model, job.cost, z, targets, data.classes > 0, scores, l2, together=settings.batch
    )
    test = train.held_out(z_test, test_targets) if len(z_test) else None
    plan = plan_of(settings, train)
    if settings.statistics != FITTED:
        # The scheme learns from other points at each step, so that each step transforms the points
        # anew: it needs the points before the scheme.
        assert plan.batches is not None
        kind, window, scheme = settings.statistics, settings.window, deepcopy(job.normalizer)
        statistics = Statistics(kind, window, scheme, data.x, plan.batches, z.dtype, z.shape[1])
        plan = replace(plan, statistics=statistics, x=data.x, x_test=data.x_test)
    return (train, test), plan


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
