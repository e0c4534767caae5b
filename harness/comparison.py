"""The comparison from Python: what the command line runs, on arrays, without a store."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from normbench import names, settings
from normbench.choices import build, locate, options
from normbench.costs.declaration import Traits
from normbench.datasets import Dataset, Drawn, UserError, label_dataset
from normbench.datasets.files import Options, table_dataset
from normbench.datasets.values import did_you_mean, limited_memory, python_spelling
from normbench.engine.scheme.applying import check_scheme
from normbench.engine.settings import Settings
from normbench.job import Job, Shared, run, with_default_start
from normbench.recording.store.records import Place, of_outcome
from normbench.results.report.notebook import Comparison
from normbench.results.store import memory as recorded
from normbench.results.store.job_records import JobRecord
from normbench.verdicts.convergence import Rules

PLAIN = (bool, int, float, str, type(None))
ARGUMENTS = dict(settings.arguments())  # by their names in Python
COST, OPTIMIZER, STEP_SIZES, ITERATIONS = map(
    settings.default, ("cost", "optimizer", "step_sizes", "iterations")
)


def compare(
    x: Any,
    y: Any,
    cost: Any = COST,
    normalizers: Iterable[Any] = ("identity", "standard", "pca_sphere"),
    step_sizes: Sequence[float] = STEP_SIZES,
    iterations: int = ITERATIONS,
    *,
    optimizer: str = OPTIMIZER,
    rules: Rules | None = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    name: str = "x",
    **others: Any,
) -> Comparison:
    """Descend one cost under every normalizer and step size; return what was found.

    x: points (P, N), an array or a pandas frame, one point per row. y: targets (P,); labels of
    any kind for a cost of classes, numbers for `least_squares` on more than two distinct values.
    cost: a name under `conf/cost`, or a function of scores and targets. normalizers: names under
    `conf/normalizer`, or scikit-learn transformers, pipelines among them. drop, encode, fill,
    missing: what is done with the columns of a frame, as `dataset.drop` of a file's. name: what the
    data are called. The other arguments are settings of the command line, without their groups.
    Raises `UserError`, a ValueError, on a value that is out of its range.
    """
    unknown = next((key for key in others if key not in ARGUMENTS), None)
    if unknown:
        raise TypeError(f"compare() takes no {unknown}{did_you_mean(unknown, ARGUMENTS)}")
    given = {"step_sizes": step_sizes, "iterations": iterations, **others}
    records: list[JobRecord] = []
    shared = Shared()
    with python_spelling(normalizer="normalizers"), limited_memory(given.get("memory")):
        named = isinstance(cost, str)
        function = locate("cost", options("cost", cost)["_target_"]) if named else cost
        values = {
            key: settings.check(row.name, given.get(key, row.default))
            for key, row in ARGUMENTS.items()
        }
        drawn = Drawn(**{field.name: values[field.name] for field in fields(Drawn)})
        own = {field.name: values[field.name] for field in fields(Settings) if field.name in values}
        own["start"] = "normal" if values["start"] is None else values["start"]
        # The split's seed draws other starts; no seed made the points.
        descent = Settings(**own, draws=(drawn.split_seed if drawn.test_fraction else 0, 0))
        data = drawn.of(_dataset(name, x, y, function, Options(drop, encode, fill, missing)))
        for normalizer in normalizers:
            from_conf = isinstance(normalizer, str)
            job = Job(
                dataset=data,
                cost=function,
                normalizer=build("normalizer", options("normalizer", normalizer))
                if from_conf
                else _clone(normalizer),
                optimizer=build("optimizer", options("optimizer", optimizer)),
                settings=descent,
                l2=values["l2"],
                l2_in=values["l2_in"],
                rules=rules or Rules(),
            )
            job = with_default_start(job) if values["start"] is None else job
            choices = {
                "dataset": data.name,
                "cost": cost if named else getattr(cost, "__name__", type(cost).__name__),
                "normalizer": normalizer if from_conf else type(normalizer).__name__,
                "optimizer": optimizer,
            }
            place = _place(job, len(records), values, choices)
            records.append(of_outcome(place, data, run(job, shared=shared)))
    if not records:
        raise UserError("normalizers=[]: is empty; name one at least, such as 'standard'")
    return Comparison(recorded.sweep(records, {names.COMMAND.key: "normbench.compare(...)"}))


def _signature() -> inspect.Signature:
    """Return the signature of `compare`, with every setting that it takes by its name."""
    told = inspect.signature(compare)
    known = [each for each in told.parameters.values() if each.kind != each.VAR_KEYWORD]
    more = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=row.default)
        for key, row in ARGUMENTS.items()
        if key not in told.parameters
    ]
    return told.replace(parameters=[*known, *more])


compare.__signature__ = _signature()  # type: ignore[attr-defined]
compare.__doc__ = f"{compare.__doc__}\n" + "".join(
    f"    {key}: {row.help}.\n" for key, row in ARGUMENTS.items()
)


def _place(job: Job, number: int, values: Mapping[str, Any], choices: Mapping[str, str]) -> Place:
    """Return what is known of a job, by the names that the command line records it under."""
    own = job.normalizer.get_params() if hasattr(job.normalizer, "get_params") else {}
    params = {
        **choices,
        **{f"normalizer.{key}": value for key, value in own.items() if isinstance(value, PLAIN)},
        **{row.name: values[key] for key, row in ARGUMENTS.items() if row.recorded},
        "start": job.settings.start,
        "step_sizes": list(job.settings.step_sizes),
        "record": list(job.settings.record),
    }
    tags = {
        **choices,
        names.SWEEP_ID.key: recorded.SWEEP,
        names.membership(recorded.SWEEP).key: str(number),
    }
    if values["start"] is None and job.settings.start == "normal":
        tags[names.STANDS_IN.key] = "true"
    return Place(recorded.STORE, f"{choices['dataset']}-{choices['cost']}", "", params, tags)


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
