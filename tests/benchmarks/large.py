"""Points that are not copied beside points in memory: a step of each, and of the disk."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier

from normbench import costs, optimizers
from normbench.choices import build, options
from normbench.datasets.on_disk.npy import npy
from normbench.datasets.on_disk.row_selection import SelectedRows, select_rows
from normbench.engine.scheme.applying import normalize
from normbench.route import build_objective, fastest_route
from tests.benchmarks.data import mnist
from tests.benchmarks.turns import in_turns, ratio

POINTS, FEATURES, RUNS = 1_000_000, 100, 10
SPLIT_RUNS = 4
SPLIT_SIDES = ("a memory map's loop", "partial_fit", "ours, which reads both parts")
LOOP_ROWS = 20_000  # of a memory map, 8 MB
Row = dict[str, Any]
Array = np.ndarray[Any, Any]


def large_rows(turns: int, only: str) -> Iterator[Row]:
    """Points in memory over points read from a file that the system has in its cache; and folds."""
    name = "step in memory over read, 1,000,000 x 100, 10 runs, float64"
    if only in name:
        yield _row(name, _read(turns), "at least", 0.7)
    yield from _split(turns, only)
    for scheme in ("standard", "pca_sphere"):
        name = f"step folded over copied, MNIST 60,000, {scheme}, 9 runs, float64"
        if only in name:
            yield _row(name, _folded(scheme, turns), "at most", 1.2)


def _row(name: str, value: float, sense: str, target: float) -> Row:
    met = value >= target if sense == "at least" else value <= target
    return {"name": name, "ratio": value, "sense": sense, "target": target, "met": met}


def _read(turns: int) -> float:
    x, y = _points()
    weights = 0.01 * np.random.default_rng(1).standard_normal((RUNS, 1, FEATURES + 1))
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


def _split(turns: int, only: str) -> Iterator[Row]:
    """Others' passes over ours, a step and what it records of a quarter that is held out.

    The loop reads a memory map once for both parts; scikit-learn's descends one model, point after
    point. Ours descends `SPLIT_RUNS` at once, and holds the test part where it is a sixteenth of
    the free memory at most, as here; else it reads the file for each part.
    """
    words = f"a drawn split read, {POINTS:,} x {FEATURES}, {SPLIT_RUNS} runs, float32"
    names = {side: f"{side} over ours, {words}" for side in SPLIT_SIDES}
    if not any(only in name for name in names.values()):
        return
    x, y = _points()
    x = x.astype(np.float32)
    rng = np.random.default_rng(1)
    weights = 0.01 * rng.standard_normal((SPLIT_RUNS, 1, FEATURES + 1)).astype(np.float32)
    is_train = rng.random(POINTS) < 0.75
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", x)
        np.save(Path(folder) / "y.npy", y)
        data = npy(f"{folder}/x.npy", f"{folder}/y.npy", in_blocks=True)
        mapped = np.load(Path(folder) / "x.npy", mmap_mode="r")
        targets = 2 * y.astype(np.float32) - 1
        train, test, test_read = (
            build_objective(
                "fast", costs.softmax, rows, targets[mask], True, 0.0, 1, mask is not is_train
            )
            for rows, mask in (
                (SelectedRows(data.x, is_train), is_train),
                (select_rows(data.x, ~is_train, is_test_part=True), ~is_train),
                (SelectedRows(data.x, ~is_train), ~is_train),
            )
        )
        sides = {
            "ours": lambda: _both(train, test, weights),
            "ours, which reads both parts": lambda: _both(train, test_read, weights),
            "a memory map's loop": lambda: _loop(mapped, targets, is_train, weights),
            "partial_fit": lambda: _partial_fit(mapped, y, is_train),
        }
        found = in_turns(sides, max(3, turns // 3))
        for ours, theirs in zip(sides["ours"](), sides["a memory map's loop"](), strict=True):
            if np.abs(ours - theirs).max() > 1e-3 * np.abs(theirs).max():
                raise SystemExit("the loop over a memory map has other numbers")
    for side, name in names.items():
        yield {"name": name, "ratio": ratio(found[side], found["ours"])}


def _both(train: Any, test: Any, weights: Array) -> tuple[Array, Array]:
    gradient = train.evaluate(weights, True, {}).gradient
    return gradient, test.evaluate(weights, False, {}).costs


def _loop(x: Array, targets: Array, is_train: Array, weights: Array) -> tuple[Array, Array]:
    """Return gradients of the training points and costs of the others, in one walk."""
    rows = weights[:, 0]
    gradient, costs_held = np.zeros_like(rows), np.zeros(len(rows))
    for first in range(0, len(x), LOOP_ROWS):
        block = np.asarray(x[first : first + LOOP_ROWS])
        sign, train = targets[first : first + LOOP_ROWS], is_train[first : first + LOOP_ROWS]
        margins = sign[:, None] * (block @ rows[:, 1:].T + rows[:, 0])
        costs_held += np.logaddexp(0, -margins[~train]).sum(axis=0)
        slopes = -(sign * train)[:, None] / (1 + np.exp(margins))
        gradient[:, 1:] += slopes.T @ block
        gradient[:, 0] += slopes.sum(axis=0)
    held = len(x) - is_train.sum()
    return gradient[:, None] / is_train.sum(), costs_held / held


def _partial_fit(x: Array, y: Array, is_train: Array) -> None:
    """Take a pass of scikit-learn's stochastic descent over the training points, and score."""
    model = SGDClassifier(loss="log_loss", penalty=None, learning_rate="constant", eta0=1e-3)
    for first in range(0, len(x), LOOP_ROWS):
        train = is_train[first : first + LOOP_ROWS]
        block, labels = np.asarray(x[first : first + LOOP_ROWS]), y[first : first + LOOP_ROWS]
        model.partial_fit(block[train], labels[train], classes=[0, 1])
        model.decision_function(block[~train])


def _points() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((POINTS, FEATURES))
    x *= np.geomspace(1, 30, FEATURES)
    x += 10.0
    return x, (x @ rng.standard_normal(FEATURES) > 0).astype(np.int8)


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
    whole = build_objective("fast", cost, z, targets, True, 0.0, classes)
    rule = optimizers.gradient_descent()
    train = fastest_route("fast", whole, None, weights[:1], rule, (len(weights), 100)).train
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
