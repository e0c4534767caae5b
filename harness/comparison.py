"""The comparison from Python: what the command line runs, on arrays, without a store."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.choices import build, locate, options
from normbench.costs.declaration import Traits
from normbench.datasets import Dataset, Drawn, UserError, label_dataset
from normbench.datasets.files import Options, table_dataset
from normbench.datasets.values import limited_memory, number
from normbench.engine.scheme.applying import check_scheme
from normbench.engine.settings import Settings
from normbench.job import Job, Shared, run, with_default_start
from normbench.recording.store.records import Place, of_outcome
from normbench.results.report.notebook import Comparison
from normbench.results.store import memory as recorded
from normbench.results.store.job_records import JobRecord
from normbench.verdicts.convergence import Rules

# A setting of a data set as the command line writes it, with its values, and one of a list.
WRITTEN = re.compile(r"'?dataset\.(\w+)(?:=(?:\[([^\]]*)\]|([^\s,;:')]+)))?'?")
ITEMS = re.compile(r'"([^"]*)"|([^,"]+)')
NUMBER = re.compile(r"-?[\d.]+")
# The settings that are recorded under their own names.
RECORDED = ("iterations", "start_scale", "starts", "seed", "precision", "theory")


def compare(
    x: Any,
    y: Any,
    cost: Any = "softmax",
    normalizers: Iterable[Any] = ("identity", "standard", "pca_sphere"),
    step_sizes: Sequence[float] = (0.001, 0.01, 0.1, 1.0, 10.0),
    iterations: int = 100,
    *,
    optimizer: str = "gradient_descent",
    l2: float = 0.0,
    l2_in: str = "transformed",
    start: Any = None,
    start_scale: float = 0.1,
    starts: int = 1,
    seed: int = 0,
    precision: str = "float64",
    theory: str = "auto",
    rules: Rules | None = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    points: int | None = None,
    test_fraction: float = 0.0,
    folds: int | None = None,
    repeats: int = 1,
    split_seed: int = 0,
    augment: str | None = None,
    augment_copies: int = 1,
    augment_noise: float = 0.2,
    fit_on: str = "train",
    record: Sequence[str] = (),
    memory: Any = None,
    fold: bool = False,
    name: str = "x",
) -> Comparison:
    """Descend one cost under every normalizer and step size; return what was found.

    x: points (P, N), an array or a pandas frame, one point per row. y: targets (P,); labels of
    any kind for a cost of classes, numbers for `least_squares` on more than two distinct values.
    cost: a name under `conf/cost`, or a function of scores and targets. normalizers: names under
    `conf/normalizer`, or scikit-learn transformers, pipelines among them. drop, encode, fill,
    missing: what is done with the columns of a frame, as `dataset.drop` of a file's.
    points to fit_on: which points are used, which are held out, and what copies are made of the
    others, as `dataset.points` to `dataset.fit_on`. record: what some figures need, such as
    `contours`. memory: the most that this process takes meanwhile, such as `"1GiB"`. fold: make no
    copy of the points under an affine scheme. name: what the data are called. The other settings
    are those of the command line.
    Raises `UserError`, a ValueError, on a value that is out of its range.
    """
    function = locate("cost", options("cost", cost)["_target_"]) if isinstance(cost, str) else cost
    with _told_in_python():
        drawn = Drawn(
            points=points,
            test_fraction=test_fraction,
            folds=folds,
            repeats=repeats,
            split_seed=split_seed,
            augment=augment,
            augment_copies=augment_copies,
            augment_noise=augment_noise,
            fit_on=fit_on,
        )
    settings = Settings(
        step_sizes=tuple(step_sizes),
        iterations=iterations,
        start="normal" if start is None else start,
        start_scale=start_scale,
        starts=starts,
        seed=seed,
        precision=precision,
        theory=theory,
        record=tuple(record),
        fold=fold,
        draws=(drawn.split_seed if drawn.test_fraction else 0, 0),  # no seed made the points
    )
    records: list[JobRecord] = []
    shared = Shared()
    with limited_memory(memory):
        with _told_in_python():
            data = drawn.of(_dataset(name, x, y, function, Options(drop, encode, fill, missing)))
        for normalizer in normalizers:
            scheme = (
                build("normalizer", options("normalizer", normalizer))
                if isinstance(normalizer, str)
                else _clone(normalizer)
            )
            job = Job(
                dataset=data,
                cost=function,
                normalizer=scheme,
                optimizer=build("optimizer", options("optimizer", optimizer)),
                settings=settings,
                l2=number("l2", l2, least=0),
                l2_in=l2_in,
                rules=rules or Rules(),
            )
            job = with_default_start(job) if start is None else job
            called = normalizer if isinstance(normalizer, str) else type(normalizer).__name__
            words = (called, cost if isinstance(cost, str) else _name(cost), optimizer)
            place = _place(job, len(records), start is None, *words)
            place.params.update({f"dataset.{key}": value for key, value in asdict(drawn).items()})
            records.append(of_outcome(place, data, run(job, shared=shared)))
    if not records:
        raise UserError("normalizers=[]: is empty; name one at least, such as 'standard'")
    return Comparison(recorded.sweep(records, {names.COMMAND.key: "normbench.compare(...)"}))


@contextmanager
def _told_in_python() -> Iterator[None]:
    """Tell of mistakes in the settings of data as Python writes them: `encode=['city']`."""
    try:
        yield
    except UserError as error:
        told = WRITTEN.sub(_in_python, str(error)).replace("Correct the file", "Correct the frame")
        raise UserError(told) from None


def _in_python(setting: re.Match[str]) -> str:
    name, values, value = setting.groups()
    if values is not None:
        return f"{name}={[quoted or bare for quoted, bare in ITEMS.findall(values)]}"
    if value is None:
        return str(name)
    return f"{name}={value if NUMBER.fullmatch(value) else repr(value)}"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _place(
    job: Job, number: int, start_follows: bool, normalizer: str, cost: str, optimizer: str
) -> Place:
    """Return what is known of a job, by the names that the command line records it under."""
    settings = job.settings
    own = job.normalizer.get_params() if hasattr(job.normalizer, "get_params") else {}
    params = {
        "dataset": job.dataset.name,
        "cost": cost,
        "cost.l2": job.l2,
        "cost.l2_in": job.l2_in,
        "normalizer": normalizer,
        **{f"normalizer.{key}": value for key, value in own.items() if _is_plain(value)},
        "optimizer": optimizer,
        "step_sizes": list(settings.step_sizes),
        "start": settings.start,
        **{key: getattr(settings, key) for key in RECORDED},
    }
    tags = {
        names.DATASET.key: job.dataset.name,
        names.COST.key: cost,
        names.NORMALIZER.key: normalizer,
        names.OPTIMIZER.key: optimizer,
        names.SWEEP_ID.key: recorded.SWEEP,
        names.membership(recorded.SWEEP).key: str(number),
    }
    if start_follows and settings.start == "normal":
        tags[names.STANDS_IN.key] = "true"
    return Place(recorded.STORE, f"{job.dataset.name}-{cost}", "", params, tags)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _clone(normalizer: Any) -> Any:
    """Return a scheme like the one that is given, which stays as it is."""
    from sklearn.base import clone

    check_scheme(normalizer)
    return clone(normalizer) if hasattr(normalizer, "get_params") else deepcopy(normalizer)


def _dataset(name: str, x: Any, y: Any, cost: Any, columns: Options) -> Dataset:
    """Return arrays or frames as a data set: labels are encoded, numbers of regression kept."""
    targets = np.asarray(y)
    tasks = getattr(cost, "traits", Traits(tasks=())).tasks
    numeric = np.issubdtype(targets.dtype, np.number)
    real = numeric and "regression" in tasks and (len(tasks) == 1 or len(np.unique(targets)) > 2)
    task = "regression" if real else "classes"
    if isinstance(x, pd.DataFrame) and targets.shape == (len(x),):
        table = pd.concat([x.reset_index(drop=True), pd.Series(targets, name="y")], axis=1)
        return table_dataset(name, table, -1, task, columns, source="arrays")
    if columns != Options():
        raise UserError("drop, encode, fill, missing: are for the columns of a pandas frame")
    return label_dataset(name, x, targets, task, source="arrays")
