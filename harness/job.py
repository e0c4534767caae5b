"""One job, start to end: one data set, cost, scheme and optimizer, and the whole step grid."""

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import Points, Rows
from normbench.engine.descent import Histories, Progress
from normbench.engine.fast import threads
from normbench.engine.midway import Checkpoint
from normbench.engine.penalty import check_penalty, penalty_of
from normbench.engine.preconditioner import with_map
from normbench.engine.problem import Cost, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.scheme.applying import check_scheme, normalize
from normbench.engine.scheme.under import Under
from normbench.engine.settings import Settings
from normbench.engine.start import same_function, starts
from normbench.engine.targets import check_cost, check_curvature, encoded, scores_of
from normbench.measures.contract import Findings, Finished
from normbench.measures.judged import judged
from normbench.optimizers import Optimizer
from normbench.route import objective, quickest
from normbench.theory.shared import PointsCache
from normbench.theory.shared import Shared as Shared
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Step
from normbench.verdicts.search import Search

Array = NDArray[Any]
SAME_FUNCTION = "same_function"
FAR = 10  # times where a run counts as diverged: there no shadow of it ends otherwise


@dataclass(frozen=True)
class Job:
    """What one job is made of; the scheme is a scikit-learn transformer that is not yet fitted.

    l2_in: whose weights l2 penalizes, see `normbench.engine.penalty`. engine: `plain` descends
    without `normbench.engine.fast`; the numbers are the same to rounding.
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
    engine: str = "fast"

    def __post_init__(self) -> None:
        if getattr(self.optimizer, "gridless", False):
            one = replace(self.settings, step_sizes=(1.0,), shown_step=None)
            object.__setattr__(self, "settings", one)


@dataclass(frozen=True)
class Outcome:
    """What a job found: a `Step` for each step size, the seconds it took.

    best: the number of the best of them, or of the one that `shown_step` chooses.

    A study without a descent (`iterations=0` with a record) has no steps. arrays: by the words of
    `record`. seconds_a_step: of one run, NaN without a descent.
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


def check(job: Job) -> None:
    """Raise `UserError` for a cost, a scheme, a start or a record that does not fit the job."""
    _check(job)
    if job.settings.start == SAME_FUNCTION:
        scheme, z = _tried(job)
        same_function(job.settings, 1, scheme, *_seen(job, z))


def with_default_start(job: Job) -> Job:
    """Return a job with the start that `start=null` stands for: zero weights.

    But they have the least of a positively homogeneous cost, and every step would raise it. There
    it is one function under every scheme that can have it, and `normal` under the others.
    """
    start = first_start(job.cost)
    if start == SAME_FUNCTION and not measures.without_descent(job.settings):
        scheme, z = _tried(job)
        try:
            same_function(job.settings, 1, scheme, *_seen(job, z))
        except UserError:
            start = "normal"
    return replace(job, settings=replace(job.settings, start=start))


def first_start(cost: Any) -> str:
    """Return what `start=null` stands for under a cost, before the scheme is asked."""
    return SAME_FUNCTION if traits(cost).positively_homogeneous else "zeros"


def _tried(job: Job) -> tuple[Any, Rows]:
    """Return a job's scheme, fitted aside, and the training points under it."""
    scheme = deepcopy(job.normalizer)
    settings = replace(job.settings, precision="float64")
    return scheme, _normalized(replace(job, normalizer=scheme, settings=settings))[0]


def _check(job: Job) -> None:
    data = job.dataset
    if not measures.without_descent(job.settings):
        check_cost(job.cost, data.name, data.task, data.classes, data.x.shape)
        if job.optimizer.curved:
            check_curvature(job.cost)
    check_scheme(job.normalizer)
    check_penalty(job.l2, job.l2_in, job.normalizer)
    measures.check(job.settings, data, job.normalizer)


def run(
    job: Job,
    progress: Progress | None = None,
    shared: Shared | None = None,
    checkpoint: Checkpoint | None = None,
    phase: Callable[[str], None] = lambda doing: None,
) -> Outcome:
    """Return what the job found. Raises `UserError` for a scheme that refuses the points.

    shared: what the jobs of one comparison know of their data sets, and may add to. checkpoint:
    where the job's own descent is kept, and goes on from. phase: is told what the job does next.
    """
    _check(job)
    data, settings = job.dataset, job.settings
    _check_sources(data)
    known = (shared or Shared()).get(data.fingerprint, data.x)
    phase("fits the scheme")
    shared_fits = known.decompositions
    tick, saved = time.perf_counter(), shared_fits.saved
    z, z_test = _normalized(job, known)
    # As if this job were alone: with the seconds of what an earlier job has found.
    fit_seconds = time.perf_counter() - tick + shared_fits.saved - saved
    made = Finished(
        data,
        job.normalizer,
        z,
        known,
        elsewhere=partial(_elsewhere, job),
        shown=job.settings.shown_point,
    )
    if measures.without_descent(settings):
        found, arrays = measures.take(made, settings)
        return Outcome((), None, job.normalizer, z.shape[1], fit_seconds, 0.0, found, arrays)
    train, test = _problems(job, z, z_test)
    start = _starts(job, train, z).astype(z.dtype)
    phase("descends")
    rounds = _rounds(job, train, test, start, checkpoint)
    histories = rounds.descend(settings.step_sizes, progress)
    seconds = rounds.seconds  # of the grid alone
    _check_sources(data)
    # A scheme may give points too large to be squared: judged by the outcome, not warned of.
    with threads.limit_threads(z.size), np.errstate(over="ignore", invalid="ignore"):
        phase("computes theory and the least cost")
        tick = time.perf_counter()
        parts = (train, rounds.optimizer, settings, job.rules, job.search, start, rounds)
        here, budget = judged(*parts, histories, known, (fit_seconds, seconds))
        theory_seconds = time.perf_counter() - tick
        phase("takes measures" if settings.refine is False else "tries finer step sizes")
        found, arrays = measures.take(replace(made, descended=here), settings, budget)
    return Outcome(
        steps=tuple(_with(step, found, number) for number, step in enumerate(here.steps)),
        best=here.best,
        scheme=job.normalizer,
        features=z.shape[1],
        fit_seconds=fit_seconds,
        descent_seconds=seconds,
        findings=replace(found, seconds=found.seconds + theory_seconds),
        arrays=arrays,
        seconds_a_step=here.bench.seconds_a_step,
    )


def _check_sources(data: Dataset) -> None:
    """Raise `UserError` where points that are read are not what they were."""
    for part in (data.x, data.x_test):
        if isinstance(part, Points):
            part.check()


def _normalized(job: Job, known: PointsCache | None = None) -> tuple[Any, Any]:
    """Return training and test points under a job's scheme, which is fitted on what it says."""
    data, precision, fold = job.dataset, job.settings.precision, job.settings.fold
    if data.fit_on == "all" and len(data.x_test):
        both = np.concatenate([data.x, data.x_test])
        z, _ = normalize(job.normalizer, both, both[:0], precision)
        return z[: len(data.x)], z[len(data.x) :]
    fits = known.decompositions if known else None
    return normalize(job.normalizer, data.x, data.x_test, precision, fits, fold)


def _rounds(
    job: Job,
    train: Problem,
    test: Problem | None,
    start: Array,
    checkpoint: Checkpoint | None = None,
) -> Rounds:
    """Return what descends a job's runs, on the quickest equivalent of its problem."""
    settings = job.settings
    work = (len(settings.step_sizes) * settings.starts, settings.iterations)
    optimizer = with_map(job.optimizer, train)
    route = quickest(job.engine, train, test, start, optimizer, work)
    parts = (*route, optimizer, settings.iterations, settings.shadows, checkpoint)
    far = np.inf if traits(job.cost).positively_homogeneous else FAR * job.rules.diverged
    return Rounds(*parts, far=far)


def _elsewhere(job: Job, data: Dataset, step_size: float) -> Histories:
    """Return a job's histories on other data at one step size; its own scheme stays as it is."""
    settings = replace(job.settings, step_sizes=(step_size,), shown_step=None, shadows=False)
    scheme = deepcopy(job.normalizer)
    there = replace(job, dataset=data, normalizer=scheme, settings=settings)
    z, z_test = _normalized(there)
    train, test = _problems(there, z, z_test)
    start = _starts(there, train, z).astype(z.dtype)
    return _rounds(there, train, test, start).descend([step_size])


def _starts(job: Job, train: Problem, z: Rows) -> Array:
    """Return the weights that the runs start from; job: its scheme is fitted."""
    if job.settings.start == SAME_FUNCTION:
        return same_function(job.settings, train.shape[0], job.normalizer, *_seen(job, z))
    return starts(job.settings, train.shape)


def _seen(job: Job, z: Rows) -> tuple[Array, Array]:
    """Return points before and under a scheme that tell whether a start is one function."""
    if not isinstance(z, Under):
        return job.dataset.x, z
    if z.map is None:
        return z.x[:2], z[:2]
    before, under = z.pair  # an affine map's: it is the same on the surrogate's rows
    return before.moment_rows, under.moment_rows


def _problems(job: Job, z: Rows, z_test: Rows) -> tuple[Problem, Problem | None]:
    """Return the problem on normalized points z (P, M), and on z_test where there are any."""
    data = job.dataset
    scores = scores_of(traits(job.cost), data.classes)
    l2 = penalty_of(job.l2, job.l2_in, job.normalizer, z.dtype)

    def made(points: Rows, y: Array, held_out: bool) -> Problem:
        parts = job.cost, points, encoded(y, scores, data.classes, z.dtype), data.classes > 0
        return objective(job.engine, *parts, l2, scores, held_out)

    return made(z, data.y, False), made(z_test, data.y_test, True) if len(z_test) else None


def _with(step: Step, found: Findings, number: int) -> Step:
    """Return a step size with what measures found of it."""
    more = found.of_steps.get(number)
    if more is None:
        return step
    return replace(step, metrics={**step.metrics, **more.metrics}, series=more.series)
