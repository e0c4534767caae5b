"""One job, start to end: one data set, cost, scheme and optimizer, and the whole step grid."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset, UserError
from normbench.engine.descent import Histories, Observe, Progress, descend
from normbench.engine.problem import Cost, Objective
from normbench.engine.route import objective, quickest
from normbench.engine.scheme import check_scheme, normalize
from normbench.engine.settings import Settings
from normbench.measures import findings, record
from normbench.measures.explanation import explain
from normbench.measures.findings import Findings
from normbench.normalizers.spectrum import keeping
from normbench.optimizers import Optimizer
from normbench.results import names
from normbench.theory import analysis, spectra
from normbench.theory.analysis import Theory
from normbench.theory.minimum import Minimum
from normbench.verdicts import convergence, judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Bench, Step
from normbench.verdicts.search import Critical, Search, critical_step

Array = NDArray[Any]
SMALL = 1_000_000  # numbers in the points: below, linear algebra is as quick on one thread
ALL_TASKS = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Job:
    """What one job is made of; the scheme is a scikit-learn transformer that is not yet fitted.

    engine: `plain` descends without `normbench.engine.fast`; the numbers are the same to rounding.
    """

    dataset: Dataset
    cost: Cost
    normalizer: Any
    optimizer: Optimizer
    settings: Settings
    l2: float = 0.0
    rules: Rules = field(default_factory=Rules)
    search: Search = field(default_factory=Search)
    engine: str = "fast"


@dataclass(frozen=True)
class Outcome:
    """What a job found: a `Step` for each step size, the seconds it took.

    best: the number of the best of them, or of the one that `shown_step` chooses.

    A study without a descent (`iterations=0` with a record) has no steps. arrays: what `record`
    asked for, see `normbench.measures.record`. seconds_a_step: of one run, NaN without a descent.
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


@dataclass(frozen=True)
class Descent:
    """A job whose grid has been descended: what theory and verdicts are made from.

    start: `(starts, C, N + 1)`; test is None without test points.
    """

    job: Job
    train: Objective
    test: Objective | None
    start: Array
    histories: Histories
    fit_seconds: float
    seconds: float


def check(job: Job) -> None:
    """Raise `UserError` for a cost, a scheme or a record that does not fit the job."""
    settings = job.settings
    if not record.without_descent(settings.record, settings.iterations):
        _check_cost(job)
    check_scheme(job.normalizer)
    record.check(settings.record, settings.iterations, job.dataset, job.normalizer)


def _check_cost(job: Job) -> None:
    """Raise `UserError` where the job's cost does not fit its targets."""
    tasks = getattr(job.cost, "tasks", ALL_TASKS)
    data = job.dataset
    if data.task not in tasks:
        classes = f", {data.classes} classes" if data.classes else ""
        name = getattr(job.cost, "__name__", str(job.cost))
        remedy = {
            "binary": "cost=softmax or cost=multiclass_softmax",
            "multiclass": "cost=multiclass_softmax",
            "regression": "cost=least_squares",
            "unlabelled": "a data set with targets (of a file of yours: set dataset.target), or, "
            "without a descent, iterations=0 'record=[points]'",
        }[data.task]
        if data.task == "regression" or (data.classes and tasks == ("regression",)):
            other = "classes" if data.task == "regression" else "regression"
            remedy += f" (or, where a file's targets are meant so, dataset.task={other})"
        if len(data.x) < data.x.shape[1]:
            remedy += (
                f"; {data.name} has {len(data.x)} points of {data.x.shape[1]} features: "
                "of a csv file with one point per column, dataset.points_in=columns"
            )
        raise UserError(
            f"cost={name}: does not fit the targets of {data.name} ({data.task}{classes}); "
            f"it is for {' and '.join(tasks)} targets; use {remedy}"
        )


def run(job: Job, progress: Progress | None = None) -> Outcome:
    """Return what the job found. Raises `UserError` for a scheme that refuses the points."""
    check(job)
    data = job.dataset
    tick = time.perf_counter()
    with keeping(data.x, data.fingerprint) as kept:
        z, z_test = normalize(job.normalizer, data.x, data.x_test, job.settings.precision)
    fit_seconds = time.perf_counter() - tick + kept.saved  # what the scheme would take alone
    if record.without_descent(job.settings.record, job.settings.iterations):
        arrays = record.arrays(job.settings.record, job.dataset, job.normalizer, z, None)
        found = findings.of_record(arrays)
        return Outcome((), None, job.normalizer, z.shape[1], fit_seconds, 0.0, found, arrays)
    made = _descend(job, z, z_test, fit_seconds, progress)
    # A scheme may give points too large to be squared: judged by the outcome, not warned of.
    with _few_threads(made.train.x.size), np.errstate(over="ignore", invalid="ignore"):
        return _conclude(made)


def _few_threads(numbers: int) -> AbstractContextManager[Any]:
    """Keep small matrices on one thread.

    Where others use the cores, waiting for a second thread took 50 ms a product of 1 ms.
    """
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas") if numbers < SMALL else nullcontext()


def _descend(
    job: Job, z: Array, z_test: Array, fit_seconds: float, progress: Progress | None
) -> Descent:
    """Descend the grid on normalized points z (P, M) and z_test (Q, M)."""
    settings = job.settings
    classes, targets, test_targets = _encode(job, z.dtype)
    classify = job.dataset.task != "regression"
    made_of = (classify, job.l2, classes)
    train = objective(job.engine, job.cost, z, targets, *made_of)
    test = None
    if len(z_test):
        test = objective(job.engine, job.cost, z_test, test_targets, *made_of)
    start = _starts(settings, train.shape).astype(z.dtype)
    tick = time.perf_counter()
    raw = (job.dataset.x, job.dataset.x_test)
    with quickest(train, test, raw) as (quick, quick_test):
        histories = descend(
            quick,
            quick_test,
            job.optimizer,
            np.repeat(start[None], len(settings.step_sizes), 0).reshape(-1, *train.shape),
            np.repeat(np.array(settings.step_sizes), settings.starts),
            settings.iterations,
            progress,
        )
    seconds = time.perf_counter() - tick
    return Descent(job, train, test, start, histories, fit_seconds, seconds)


def _conclude(made: Descent) -> Outcome:
    """Return verdicts, theory and what explains them."""
    job, settings = made.job, made.job.settings
    tick = time.perf_counter()
    known = analysis.theorize(job, made.train, made.start[0])
    with np.errstate(all="ignore"):
        lowest = float(np.nanmin(made.histories.cost, initial=np.inf))
    least = analysis.least(job, made.train, made.start.shape[1], lowest)
    bench = _bench(made, known, least, lowest)
    steps = judging.steps(made.histories, settings.step_sizes, bench)
    steps = _predicted(made, known, least, steps, bench)
    best = _shown(steps, settings.shown_step)
    chosen = best is not None and settings.step_sizes[best] == settings.shown_step
    at_best = None
    if best is not None and _affords_best(known, made.start):
        weights = made.histories.weights[best * settings.starts]
        at_best, _ = analysis.largest_curvature(made.train, weights)
    seconds = time.perf_counter() - tick
    tick = time.perf_counter()
    critical = _critical(made, bench) if job.search.critical else None
    sharpness = Findings()
    if "sharpness" in settings.record and best is not None:
        sharpness = _sharpness(made, settings.step_sizes[best])
    search_seconds = time.perf_counter() - tick
    judgements = [step.judgement for step in steps]
    convergent = convergence.largest_convergent(settings.step_sizes, judgements)
    falling = convergence.largest_falling(settings.step_sizes, judgements)
    arrays = record.arrays(
        settings.record, job.dataset, job.normalizer, made.train.x, _best_run(made, best)
    )
    words = explain(
        known,
        job.normalizer,
        None if best is None else steps[best],
        at_best,
        convergent,
        falling,
        least,
        spectra.bound(job.cost),
        bench.plain,
        chosen,
    )
    return Outcome(
        steps=steps,
        best=best,
        scheme=job.normalizer,
        features=made.train.x.shape[1],
        fit_seconds=made.fit_seconds,
        descent_seconds=made.seconds,
        findings=findings.merged(
            findings.of_theory(known, at_best, bench.plain),
            findings.of_minimum(least, bench.reference),
            findings.of_grid(convergent, falling, critical),
            findings.of_covariance(known.facts, job.normalizer),
            sharpness,
            findings.of_record(arrays),
            findings.of_choice(chosen),
            Findings(
                tags={names.EXPLANATION.key: words}, seconds=seconds, search_seconds=search_seconds
            ),
        ),
        arrays=arrays,
        seconds_a_step=bench.seconds_a_step,
    )


def _shown(steps: Sequence[Step], chosen: float | None) -> int | None:
    """Return the number of the step that stands for its scheme; None where none stays finite.

    The chosen one, unless it diverged; otherwise the best.
    """
    for number, step in enumerate(steps):
        if step.step_size == chosen and step.verdict != names.DIVERGED:
            return number
    costs = np.array([step.final_cost for step in steps])
    return convergence.best(costs, [step.verdict for step in steps])


def _best_run(made: Descent, best: int | None) -> record.Descent | None:
    """Return the best step's run, ready to be descended again for the record."""
    if best is None:
        return None
    settings = made.job.settings
    step_size, iterations = settings.step_sizes[best], settings.iterations
    return record.Descent(made.train, made.job.optimizer, made.start[:1], step_size, iterations)


def _affords_best(known: Theory, start: Array) -> bool:
    if known.threshold is None or known.budget is None:
        return False
    classes, width = start.shape[1:]
    return known.budget.affords(
        "curvature at the best weights", analysis.curvature_passes(width, classes)
    )


def _bench(made: Descent, known: Theory, least: Minimum, lowest: float) -> Bench:
    """Return what the runs are judged with; g* is no higher than the lowest cost that was seen."""
    zero = np.zeros_like(made.start[:1])
    steps_made = int(np.isfinite(made.histories.cost).sum()) - len(made.histories.cost)
    return Bench(
        rules=made.job.rules,
        minimum=min(least.value, lowest),
        reference=float(made.train.evaluate(zero, with_gradient=False).costs[0]),
        theory=known,
        plain=judging.is_plain_descent(made.job.optimizer),
        epsilon=float(np.finfo(made.start.dtype).eps),
        fit_seconds=made.fit_seconds,
        seconds_a_step=made.seconds / max(1, steps_made),
    )


def _predicted(
    made: Descent, known: Theory, least: Minimum, steps: tuple[Step, ...], bench: Bench
) -> tuple[Step, ...]:
    """Return the steps below `2/L` of plain descent on least squares with their predictions."""
    if not (known.exact and bench.plain and known.threshold):
        return steps
    x, iterations = made.train.x, made.job.settings.iterations
    if x.shape[1] > spectra.DENSE:
        return steps
    here = made.train.evaluate(made.start)
    assert here.gradient is not None
    problems = [
        spectra.quadratic(x, float(cost), gradient, made.job.l2)
        for cost, gradient in zip(here.costs, here.gradient.astype(np.float64))
    ]
    goals = convergence.targets(bench.minimum, bench.reference)
    predicted = []
    for step in steps:
        if step.step_size >= known.threshold:
            predicted.append(step)
            continue
        paths = [spectra.predicted_history(each, step.step_size, iterations) for each in problems]
        counts = {
            name: float(
                np.median(
                    [
                        spectra.predicted_iterations(each, step.step_size, goal - bench.minimum)
                        for each in problems
                    ]
                )
            )
            for name, goal in goals.items()
        }
        predicted.append(judging.with_prediction(step, np.median(paths, axis=0), counts))
    return tuple(predicted)


def _critical(made: Descent, bench: Bench) -> Critical:
    """Search the critical step size, each time with a descent of a few step sizes."""
    starts = made.job.settings.starts

    def fails(step_sizes: Sequence[float]) -> list[bool]:
        histories = _again(made, step_sizes, made.start)
        judged = [
            bench.judge(cost, step_sizes[number // starts], int(histories.diverged_at[number]))
            for number, cost in enumerate(histories.cost)
        ]
        return [
            convergence.together(judged[first : first + starts]).fails
            for first in range(0, len(judged), starts)
        ]

    first = bench.theory.threshold
    first = first if first and np.isfinite(first) else made.job.settings.step_sizes[0]
    return critical_step(fails, first / 2, made.job.search.width)


def _sharpness(made: Descent, step_size: float) -> Findings:
    """Return the path of `step L(w_k) / 2` for one step size, from its first start.

    Below 1 the cost falls; where descent hovers at 1 it has flattened its own way until the step
    fits. Some 20 points of the path, by Lanczos or from the matrix.
    """
    iterations = made.job.settings.iterations
    every = max(1, iterations // 20)
    path: dict[int, float] = {}

    def observe(k: int, alive: NDArray[np.int64], weights: Array) -> None:
        if k % every == 0 and len(alive):
            curved, _ = analysis.largest_curvature(made.train, weights[0])
            if curved is not None:
                path[k] = step_size * curved / 2

    _again(made, [step_size], made.start[:1], observe)
    if not path:
        return Findings()
    return Findings(
        series={names.SHARPNESS.key: (np.array(list(path)), np.array([*path.values()]))}
    )


def _again(
    made: Descent,
    step_sizes: Sequence[float],
    start: Array,
    observe: Observe | None = None,
) -> Histories:
    """Descend a few other runs on the same training points."""
    return descend(
        made.train,
        None,
        made.job.optimizer,
        np.tile(start, (len(step_sizes), 1, 1)),
        np.repeat(np.array(step_sizes), len(start)),
        made.job.settings.iterations,
        observe=observe,
    )


def _encode(job: Job, dtype: Any) -> tuple[int, Array, Array]:
    """Return the scores a point C, and the targets of both parts as the cost wants them."""
    data = job.dataset
    if data.task == "regression":
        return 1, data.y.astype(dtype), data.y_test.astype(dtype)
    per_class = getattr(job.cost, "score_per_class", None)
    if per_class or (per_class is None and data.classes > 2):
        return data.classes, data.y, data.y_test
    return 1, (2 * data.y - 1).astype(dtype), (2 * data.y_test - 1).astype(dtype)


def _starts(settings: Settings, one: tuple[int, ...]) -> Array:
    """Return the weights that the runs start from, (starts, C, N + 1), bias first."""
    shape, (classes, width) = (settings.starts, *one), one
    if settings.start == "zeros":
        return np.zeros(shape)
    if settings.start == "normal":
        rng = np.random.default_rng(settings.seed)
        return settings.start_scale * rng.standard_normal(shape)
    try:
        weights = np.array(settings.start, dtype=float)
    except ValueError as error:
        raise UserError(f"start={settings.start}: its rows differ in length") from error
    if weights.size != classes * width:
        raise UserError(
            f"start={settings.start}: has {weights.size} weights; "
            f"it takes {classes} x {width} (a bias and {width - 1} features a score)"
        )
    return weights.reshape(shape)
