"""The comparison from Python: the engine that the command line runs, on arrays, without a store."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd

from normbench.choices import build, locate, options
from normbench.costs.declaration import Traits
from normbench.datasets import Dataset, UserError, label_dataset
from normbench.datasets.files import Options, table_dataset
from normbench.engine.scheme import check_scheme
from normbench.engine.settings import Settings, number
from normbench.job import Job, Shared, run, with_default_start
from normbench.results import names
from normbench.verdicts.convergence import Rules


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
) -> pd.DataFrame:
    """Descend one cost under every normalizer and step size; return one row a run and iteration.

    x: points (P, N), an array or a pandas frame, one point per row. y: targets (P,); labels of
    any kind for a cost of classes, numbers for `least_squares` on more than two distinct values.
    cost: a name under `conf/cost`, or a function of scores and targets. normalizers: names under
    `conf/normalizer`, or scikit-learn transformers, pipelines among them. drop, encode, fill,
    missing: what is done with the columns of a frame, as `dataset.drop` of a file's. The other
    settings are those of the command line. Columns: normalizer, step_size, iteration, cost (mean
    over points), misclassifications (NaN for regression), verdict. A diverged run has rows up to
    its last finite iteration.
    Raises `UserError`, a ValueError, on a value that is out of its range.
    """
    function = locate("cost", options("cost", cost)["_target_"]) if isinstance(cost, str) else cost
    settings = Settings(
        step_sizes=tuple(step_sizes),
        iterations=iterations,
        start="normal" if start is None else start,
        start_scale=start_scale,
        starts=starts,
        seed=seed,
        precision=precision,
        theory=theory,
    )
    data = _dataset(x, y, function, Options(drop, encode, fill, missing))
    frames, shared = [], Shared()
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
        name = normalizer if isinstance(normalizer, str) else type(normalizer).__name__
        job = with_default_start(job) if start is None else job
        for step in run(job, shared=shared).steps:
            costs = step.histories[names.TRAIN_COST.key]
            frames.append(
                pd.DataFrame(
                    {
                        "normalizer": name,
                        "step_size": step.step_size,
                        "iteration": np.arange(len(costs)),
                        "cost": costs,
                        "misclassifications": step.histories.get(
                            names.TRAIN_MISCLASSIFICATIONS.key, np.full(len(costs), np.nan)
                        ),
                        "verdict": step.verdict,
                    }
                )
            )
    if not frames:
        raise UserError("normalizers=[]: is empty; name one at least, such as 'standard'")
    return pd.concat(frames, ignore_index=True)


def _clone(normalizer: Any) -> Any:
    """Return a scheme like the one that is given, which stays as it is."""
    from sklearn.base import clone

    check_scheme(normalizer)
    return clone(normalizer) if hasattr(normalizer, "get_params") else deepcopy(normalizer)


def _dataset(x: Any, y: Any, cost: Any, columns: Options) -> Dataset:
    """Return arrays or frames as a data set: labels are encoded, numbers of regression kept."""
    targets = np.asarray(y)
    tasks = getattr(cost, "traits", Traits(tasks=())).tasks
    numeric = np.issubdtype(targets.dtype, np.number)
    real = numeric and "regression" in tasks and (len(tasks) == 1 or len(np.unique(targets)) > 2)
    task = "regression" if real else "classes"
    if isinstance(x, pd.DataFrame) and targets.shape == (len(x),):
        table = pd.concat([x.reset_index(drop=True), pd.Series(targets, name="y")], axis=1)
        return table_dataset("x", table, -1, task, columns, source="arrays")
    if columns != Options():
        raise UserError("drop, encode, fill, missing: are for the columns of a pandas frame")
    return label_dataset("x", x, targets, task, source="arrays")
