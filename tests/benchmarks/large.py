"""Points that are not copied beside points in memory: a step of each, and of the disk."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from normbench import costs, optimizers
from normbench.choices import build, options
from normbench.datasets.on_disk.npy import npy
from normbench.engine.scheme.applying import normalize
from normbench.route import objective, quickest
from tests.benchmarks.data import mnist
from tests.benchmarks.turns import in_turns, ratio

POINTS, FEATURES, RUNS = 1_000_000, 100, 10
Row = dict[str, Any]


def large_rows(turns: int, only: str) -> Iterator[Row]:
    """Points in memory over points read from a file that the system has in its cache; and folds."""
    name = "step in memory over read, 1,000,000 x 100, 10 runs, float64"
    if only in name:
        yield _row(name, _read(turns), "at least", 0.7)
    for scheme in ("standard", "pca_sphere"):
        name = f"step folded over copied, MNIST 60,000, {scheme}, 9 runs, float64"
        if only in name:
            yield _row(name, _folded(scheme, turns), "at most", 1.2)


def _row(name: str, value: float, sense: str, target: float) -> Row:
    met = value >= target if sense == "at least" else value <= target
    return {"name": name, "ratio": value, "sense": sense, "target": target, "met": met}


def _read(turns: int) -> float:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((POINTS, FEATURES))
    x *= np.geomspace(1, 30, FEATURES)
    x += 10.0
    y = (x @ rng.standard_normal(FEATURES) > 0).astype(np.int8)
    weights = 0.01 * rng.standard_normal((RUNS, 1, FEATURES + 1))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", x)
        np.save(Path(folder) / "y.npy", y)
        data = npy(f"{folder}/x.npy", f"{folder}/y.npy", in_blocks=True)
        sides = {
            "memory": _step(x, y, costs.softmax, "standard", weights, False),
            "read": _step(data.x, y, costs.softmax, "standard", weights, False),
        }
        found = in_turns(sides, turns)
        _check(sides["memory"](), sides["read"]())
    return ratio(found["memory"], found["read"])


def _folded(scheme: str, turns: int) -> float:
    x, y = mnist("train", "float64")
    weights = 0.01 * np.random.default_rng(0).standard_normal((9, 10, x.shape[1] + 1))
    sides = {
        "copied": _step(x, y, costs.multiclass_softmax, scheme, weights, False),
        "folded": _step(x, y, costs.multiclass_softmax, scheme, weights, True),
    }
    found = in_turns(sides, max(3, turns // 3))
    _check(sides["copied"](), sides["folded"]())
    return ratio(found["folded"], found["copied"])


def _step(
    x: Any, y: Any, cost: Any, scheme: str, weights: Any, fold: bool
) -> Callable[[], np.ndarray[Any, Any]]:
    """Return what takes a step's cost and gradient, as a descent of 100 iterations does."""
    classes = weights.shape[1]
    made = build("normalizer", options("normalizer", scheme))
    z, _ = normalize(made, x, x[:0], "float64", None, fold)
    targets = y.astype(np.intp) if classes > 1 else 2.0 * y - 1
    whole = objective("fast", cost, z, targets, True, 0.0, classes)
    rule = optimizers.gradient_descent()
    train = quickest("fast", whole, None, weights[:1], rule, (len(weights), 100)).train
    memory: dict[Any, Any] = {}

    def step() -> np.ndarray[Any, Any]:
        gradient = train.evaluate(weights, True, memory).gradient
        assert gradient is not None
        return gradient

    return step


def _check(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> None:
    size = np.abs(one).max()
    if np.abs(one - other).max() > 1e-9 * size:
        raise SystemExit(f"the two sides differ by {np.abs(one - other).max() / size}")
