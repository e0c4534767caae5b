"""One job, start to end: one data set, cost, scheme and optimizer, and the whole step grid."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets import Dataset, UserError
from harness import convergence, record
from harness.descent import Histories, Progress, descend
from harness.objective import Cost, Objective
from harness.scheme import check_scheme, normalize
from harness.settings import Settings
from optimizers import Optimizer

Array = NDArray[Any]
ALL_TASKS = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Job:
    """What one job is made of; the scheme is a scikit-learn transformer that is not yet fitted."""

    dataset: Dataset
    cost: Cost
    normalizer: Any
    optimizer: Optimizer
    settings: Settings
    l2: float = 0.0


@dataclass(frozen=True)
class Step:
    """One step size: its histories (k,) from step 0 on, and its verdict.

    With several starts a history is the median over them, and `quartiles` holds, under the same
    names, the quartiles (2, k). A history ends where the first start stopped being finite.
    """

    step_size: float
    verdict: str
    reason: str
    histories: dict[str, NDArray[np.float64]]
    quartiles: dict[str, NDArray[np.float64]]

    @property
    def final_cost(self) -> float:
        """The last finite training cost; infinite for a run that had none."""
        costs = self.histories["train/cost"]
        return float(costs[-1]) if len(costs) else float("inf")


@dataclass(frozen=True)
class Outcome:
    """What a job found: a `Step` for each step size, the best of them, the seconds it took.

    A study without a descent (`iterations=0` with a record) has no steps. arrays: what `record`
    asked for, see `harness.record`.
    """

    steps: tuple[Step, ...]
    best: int | None
    scheme: Any
    features: int
    fit_seconds: float
    descent_seconds: float
    arrays: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


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
    settings = job.settings
    tick = time.perf_counter()
    z, z_test = normalize(job.normalizer, job.dataset.x, job.dataset.x_test, settings.precision)
    fit_seconds = time.perf_counter() - tick
    if record.without_descent(settings.record, settings.iterations):
        arrays = record.arrays(settings.record, job.dataset, job.normalizer, z, None)
        return Outcome((), None, job.normalizer, z.shape[1], fit_seconds, 0.0, arrays)
    classes, targets, test_targets = _encode(job, z.dtype)
    classify = job.dataset.task != "regression"
    train = Objective(job.cost, z, targets, classify, job.l2)
    test = Objective(job.cost, z_test, test_targets, classify, job.l2) if len(z_test) else None
    start = _starts(settings, classes, z.shape[1]).astype(z.dtype)
    step_sizes = np.repeat(np.array(settings.step_sizes), settings.starts)
    tick = time.perf_counter()
    histories = descend(
        train,
        test,
        job.optimizer,
        np.tile(start, (len(settings.step_sizes), 1, 1)),
        step_sizes,
        settings.iterations,
        progress,
    )
    descent_seconds = time.perf_counter() - tick
    steps = _steps(histories, settings)
    finals = np.array([step.final_cost for step in steps])
    best = convergence.best(finals, [step.verdict for step in steps])
    again = (
        None
        if best is None
        else record.Descent(
            train, job.optimizer, start[:1], settings.step_sizes[best], settings.iterations
        )
    )
    return Outcome(
        steps=steps,
        best=best,
        scheme=job.normalizer,
        features=z.shape[1],
        fit_seconds=fit_seconds,
        descent_seconds=descent_seconds,
        arrays=record.arrays(settings.record, job.dataset, job.normalizer, z, again),
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


def _starts(settings: Settings, classes: int, features: int) -> Array:
    """Return the weights that the runs start from, (starts, C, N + 1), bias first."""
    shape = (settings.starts, classes, features + 1)
    if settings.start == "zeros":
        return np.zeros(shape)
    if settings.start == "normal":
        rng = np.random.default_rng(settings.seed)
        return settings.start_scale * rng.standard_normal(shape)
    try:
        weights = np.array(settings.start, dtype=float)
    except ValueError as error:
        raise UserError(f"start={settings.start}: its rows differ in length") from error
    if weights.size != classes * (features + 1):
        raise UserError(
            f"start={settings.start}: has {weights.size} weights; "
            f"it takes {classes} x {features + 1} (a bias and {features} features a score)"
        )
    return weights.reshape(shape)


def _steps(histories: Histories, settings: Settings) -> tuple[Step, ...]:
    """Return a `Step` for each step size, its starts summarized."""
    named = {
        "train/cost": histories.cost,
        "train/misclassifications": histories.misclassifications,
        "test/cost": histories.test_cost,
        "test/misclassifications": histories.test_misclassifications,
    }
    with np.errstate(all="ignore"):
        minimum = float(np.nanmin(histories.cost, initial=np.inf))
    steps = []
    for number, step_size in enumerate(settings.step_sizes):
        runs = slice(number * settings.starts, (number + 1) * settings.starts)
        left = histories.diverged_at[runs]
        stops = left[left >= 0]
        length = int(stops.min()) if len(stops) else settings.iterations + 1
        parts = {key: part[runs, :length] for key, part in named.items() if part is not None}
        medians = {key: np.median(part, axis=0) for key, part in parts.items()}
        steps.append(
            Step(
                step_size=step_size,
                verdict=convergence.verdict(medians["train/cost"], bool(len(stops)), minimum),
                reason=_reason(stops, length, settings.starts),
                histories=medians,
                quartiles={
                    key: np.quantile(part, [0.25, 0.75], axis=0)
                    for key, part in parts.items()
                    if settings.starts > 1
                },
            )
        )
    return tuple(steps)


def _reason(stops: NDArray[np.int64], length: int, starts: int) -> str:
    if not len(stops):
        return ""
    who = f"{len(stops)} of {starts} starts: " if starts > 1 else ""
    return f"{who}the cost or its gradient stopped being finite at step {length}"
