"""One job, start to end: one data set, cost, scheme and optimizer, and the whole step grid."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from normbench import measures
from normbench.checks import check
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import check_unchanged
from normbench.engine import threads
from normbench.engine.descent import Histories
from normbench.engine.rounds import Progress
from normbench.engine.scheme import apply_scheme
from normbench.engine.start import SAME_FUNCTION, default_start_name, starting_weights
from normbench.measures.contract import Array, Findings, FinishedJob
from normbench.measures.judged import judge_descent
from normbench.normalizers.decomposition import PointsCache
from normbench.preparation import Job, prepare
from normbench.settings import FITTED
from normbench.verdicts.judging import Step

__all__ = ["Job", "Outcome", "PointsCache", "check", "run", "with_default_start"]


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
    applied = apply_scheme(started.scheme, job.dataset, job.settings.precision)
    try:
        starting_weights(started.settings, started.scoring, job.scores, applied, job.dataset)
    except UserError:
        started = replace(started, settings=replace(job.settings, start="normal"))
    object.__setattr__(started, "applied", applied)  # `replace` would hand it on to other jobs
    return started


def run(
    job: Job,
    progress: Progress | None = None,
    points_cache: PointsCache | None = None,
    checkpoint: Any = None,
    phase: Callable[[str], None] = lambda phase_name: None,
) -> Outcome:
    """Run a job: fit the scheme, descend, judge, and take measures.

    Args:
        job: The job; its scheme is fitted in place.
        progress: Called at every iteration of the descent of the grid.
        points_cache: What the jobs on the same points share; a new one if None.
        checkpoint: Saves the state of the descent, and resumes it; None for no checkpoints.
        phase: Called at the beginning of each phase of the job, with a text such as `descends`.

    Returns:
        The outcome.

    Raises:
        UserError: The scheme refuses the points, or a part of the job does not fit another.
    """
    check(job)
    data, settings = job.dataset, job.effective_settings
    check_unchanged(data.x, data.x_test)
    points_cache = points_cache or PointsCache(data.x)
    phase("fits the scheme")
    applied = job.applied or apply_scheme(job.scheme, data, settings.precision, points_cache)
    points = {"z_test": applied.z_test, "shown_point": settings.shown_point}
    finished = FinishedJob(data, applied.scheme, applied.z, points_cache, **points)
    finished = replace(finished, descend_dataset=partial(_descend_dataset, job))
    features = applied.z.shape[1]
    if measures.without_descent(settings):
        findings, arrays = measures.take(finished, settings)
        return Outcome((), None, applied.scheme, features, applied.seconds, 0.0, findings, arrays)
    phase("descends")
    train, start, rounds, seconds = prepare(job, applied, checkpoint)
    fit_seconds = applied.seconds + seconds  # a preconditioner fits a scheme, too
    # All descents have the same threads, whose number may change rounding. The squares of points
    # under a scheme may overflow: the verdicts say so, not a warning.
    with threads.limit_threads(applied.z.size), np.errstate(over="ignore", invalid="ignore"):
        histories = rounds.descend(settings.step_sizes, progress)
        descent_seconds = histories.seconds  # of the grid alone
        check_unchanged(data.x, data.x_test)  # again: a file may have changed during the descent
        phase("computes theory and the least cost")
        tick = time.perf_counter()
        inputs = (train, settings, job.rules, job.search, start, rounds)
        descent = judge_descent(*inputs, histories, points_cache, (fit_seconds, descent_seconds))
        theory_seconds = time.perf_counter() - tick
        phase("takes measures" if settings.refine is False else "tries finer step sizes")
        findings, arrays = measures.take(replace(finished, judged_descent=descent), settings)
    steps = list(descent.steps)
    for number, values in findings.of_steps.items():
        step = steps[number]
        metrics = {key: value for key, value in values.items() if np.ndim(value) == 0}
        series = {key: value for key, value in values.items() if np.ndim(value)}
        steps[number] = replace(step, metrics={**step.metrics, **metrics}, series=series)
    findings = replace(findings, seconds=findings.seconds + theory_seconds)
    judged = tuple(steps), descent.best, applied.scheme, features
    timings, seconds_a_step = (fit_seconds, descent_seconds), descent.judging_context.seconds_a_step
    return Outcome(*judged, *timings, findings, arrays, seconds_a_step)


def _descend_dataset(job: Job, data: Dataset, step_size: float) -> Histories:
    """Return the histories of a job on another data set, such as a fold, at one step size.

    A copy of the scheme is fitted to that data set, without shadows and without the job's caches.
    """
    settings = replace(job.settings, step_sizes=(step_size,), shown_step=None, shadows=False)
    schemes = {"normalizer": job.scheme, "optimizer": job.step_rule}  # with their columns
    other_job = replace(job, dataset=data, settings=settings, **schemes)
    applied = apply_scheme(other_job.scheme, data, settings.precision)
    _, _, rounds, _ = prepare(other_job, applied)
    return rounds.descend([step_size])
