"""What shadows and finer step sizes cost beside the grid that they make sure of."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from sklearn import datasets

from normbench import names
from normbench.choices import build, options
from normbench.costs import multiclass_softmax, softmax
from normbench.datasets import make_dataset
from normbench.engine import rounds
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCaches, run
from normbench.optimizers import gradient_descent
from tests.benchmarks.data import mnist

SCHEMES = ("identity", "standard", "pca_sphere")
GRIDS = {
    "breast cancer": 10.0 ** np.arange(-7, 3),
    "digits": 10.0 ** np.arange(-7, 3),
    "MNIST t10k": 10.0 ** np.arange(-6, 3),
}


def doubt_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of all descents over those of the grids alone, of three schemes together."""
    for data, grid in GRIDS.items():
        name = f"descents with shadows and refinement over without, {data}, {len(grid)} steps"
        if only in name:
            ratios = [_seconds(data, "auto") / _seconds(data, False) for _ in range(max(3, turns))]
            value = median(ratios)
            yield {"name": name, "ratio": value, "sense": "at most", "target": 2, "met": value <= 2}


def _seconds(data: str, refine: bool | str) -> float:
    """Return the seconds that the descents of three jobs take; refine: with shadows, too."""
    own, seconds, costs = rounds.descend, [], []

    def timed(*parts: Any, **more: Any) -> Any:
        tick = time.perf_counter()
        histories = own(*parts, **more)
        seconds.append(time.perf_counter() - tick)
        return histories

    cost = softmax if data == "breast cancer" else multiclass_softmax
    settings = Settings(tuple(GRIDS[data]), 100, refine=refine, shadows=bool(refine))
    shared, dataset = PointsCaches(), _dataset(data)
    rounds.descend = timed
    try:
        for scheme in SCHEMES:
            normalizer = build("normalizer", options("normalizer", scheme))
            job = Job(dataset, cost, normalizer, gradient_descent(), settings)
            found = run(job, shared=shared)
            costs += [step.histories[names.TRAIN_COST.key] for step in found.steps]
    finally:
        rounds.descend = own
    _SEEN.setdefault(data, costs)
    if not all(np.array_equal(one, other) for one, other in zip(costs, _SEEN[data], strict=True)):
        raise SystemExit(f"{data}: the grid's histories differ")
    return sum(seconds)


_SEEN: dict[str, list[Any]] = {}


def _dataset(data: str) -> Any:
    if data == "MNIST t10k":
        x, y = mnist("t10k", "float64")
    else:
        load = datasets.load_digits if data == "digits" else datasets.load_breast_cancer
        x, y = load(return_X_y=True)
    classes = [f"class {number}" for number in range(len(np.unique(y)))]
    return make_dataset(data, x, y, class_names=classes, source="-")
