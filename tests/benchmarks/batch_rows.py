"""A pass of batches beside a numpy loop, PyTorch and JAX: the same updates in the same order.

All threads of the process, whichever library's, run on as many cores as this program has threads.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from normbench.costs import multiclass_softmax, softmax
from normbench.engine import threads
from normbench.engine.plan import Batches
from tests import door
from tests.benchmarks.data import breast_cancer, mnist
from tests.benchmarks.turns import Row, absent, in_turns, is_installed, judged, ratio

STEPS = np.array([1e-4, 1e-3, 1e-2, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
Side = Callable[[], Any]


def batch_rows(turns: int, only: str) -> Iterator[Row]:
    """Seconds of a pass over the points with 9 step sizes in float64, over those of each side."""
    for name, points, size, classes, targets in (
        ("a pass of batch 200, MNIST t10k", mnist, 200, 10, {"jax": 1.5, "pytorch": 1.0}),
        ("a pass of batch 10, breast cancer", breast_cancer, 10, 1, {}),
    ):
        others = ("numpy", *FRAMEWORKS) if classes > 1 else ("numpy",)
        rows = {side: f"{name}, over {side}" for side in others}
        rows = {side: row for side, row in rows.items() if only in row}
        if not rows:
            continue
        x, y = points("t10k", "float64") if points is mnist else points()
        order = np.random.default_rng([0, 0]).permutation(len(x))
        start = np.zeros((len(STEPS), classes, x.shape[1] + 1))
        sides: dict[str, Side] = {
            "ours": of_ours(x, y, size, start),
            "numpy": by_numpy(x, y, size, start, order),
        }
        for side in [side for side in rows if side in FRAMEWORKS]:
            module, make = FRAMEWORKS[side]
            if not is_installed(module):
                yield absent(rows.pop(side), module)
            else:
                sides[side] = make(x, y, size, start, order)
        count = threads.available_threads()
        with on_cores(count) as cores:
            weights = {side: np.asarray(run()) for side, run in sides.items()}
            for side, found in weights.items():
                if np.abs(found - weights["numpy"]).max() > 1e-9 * np.abs(found).max():
                    raise SystemExit(f"{name}: {side} and numpy differ")
            found_seconds = in_turns(sides, turns)
        for side, row_name in rows.items():
            value = ratio(found_seconds["ours"], found_seconds[side])
            yield judged(row_name, value, "at most", targets.get(side)) | {
                "threads": f"{thread_counts(side, count)}, on {cores} cores"
            }


@contextmanager
def on_cores(count: int) -> Iterator[int]:
    """Hold every thread of this process to so many cores; yield their number.

    Libraries have pools of their own, whose sizes are fixed when they start, so that the cores are
    what all sides can be given alike. Threads that start later inherit the caller's cores.
    """
    if not hasattr(os, "sched_setaffinity"):  # not of every system
        yield os.cpu_count() or 1
        return
    allowed = os.sched_getaffinity(0)
    cores = set(sorted(allowed)[:count])
    _set_cores(cores)
    try:
        yield len(cores)
    finally:
        _set_cores(allowed)


def _set_cores(cores: set[int]) -> None:
    """Let all threads of this process run on these cores alone."""
    for task in Path("/proc/self/task").iterdir():
        try:
            os.sched_setaffinity(int(task.name), cores)
        except ProcessLookupError:  # it has ended since
            continue


def thread_counts(side: str, own: int) -> str:
    """Return the threads of ours and of a side, as `threads: ours 2, pytorch 2`."""
    if side.startswith("pytorch"):
        import torch

        other = str(torch.get_num_threads())
    else:
        other = str(own) if side == "numpy" else "a pool of its own"
    return f"threads: ours {own}, {side} {other}"


def of_ours(x: Any, y: Any, size: int, start: Any) -> Side:
    """Return a pass of this program's batches."""
    cost = softmax if start.shape[1] == 1 else multiclass_softmax
    train = door.problem(cost, x, y, True, 0.0, start.shape[1])
    plan, steps = door.plan(1, Batches(len(x), size)), STEPS[:, None, None]

    def run() -> Any:
        weights = start.copy()
        for update in range(plan.updates_before(1)):
            weights = weights - steps * plan.gradient(train, weights, update)
        return weights

    return run


def by_numpy(x: Any, y: Any, size: int, start: Any, order: Any) -> Side:
    """Return the pass as a loop of numpy, all step sizes in one product."""
    extended, (runs, classes, width) = np.column_stack([np.ones(len(x)), x]), start.shape

    def run() -> Any:
        weights = start.copy()
        for first in range(0, len(x), size):
            rows = order[first : first + size]
            points, targets = extended[rows], y[rows]
            scores = (weights.reshape(-1, width) @ points.T).reshape(runs, classes, -1)
            if classes == 1:
                scores = -targets / (1 + np.exp(targets * scores))
            else:
                scores = np.exp(scores - scores.max(axis=1, keepdims=True))
                scores /= scores.sum(axis=1, keepdims=True)
                scores[:, targets, np.arange(len(rows))] -= 1
            gradient = (scores.reshape(runs * classes, -1) @ points).reshape(weights.shape)
            weights = weights - STEPS[:, None, None] * gradient / size
        return weights

    return run


def by_pytorch(x: Any, y: Any, size: int, start: Any, order: Any) -> Side:
    """Return the pass in PyTorch, all step sizes in one product."""
    import torch

    points = torch.from_numpy(np.column_stack([np.ones(len(x)), x]))
    targets, steps = torch.from_numpy(np.array(y)), torch.from_numpy(STEPS)[:, None, None]
    shuffled, (runs, classes, width) = torch.from_numpy(order), start.shape

    def run() -> Any:
        weights = torch.from_numpy(start.copy())
        for rows in shuffled.split(size):
            weights.requires_grad_()
            scores = (weights.reshape(-1, width) @ points[rows].T).reshape(runs, classes, -1)
            own = targets[rows].expand(runs, -1)
            cost = torch.nn.functional.cross_entropy(scores, own, reduction="sum")
            (gradient,) = torch.autograd.grad(cost / size, weights)
            weights = (weights - steps * gradient).detach()
        return weights.numpy()

    return run


def by_pytorch_runs(x: Any, y: Any, size: int, start: Any, order: Any) -> Side:
    """Return the pass in PyTorch, one step size after another, as most people would write it."""
    import torch

    points = torch.from_numpy(np.column_stack([np.ones(len(x)), x]))
    targets, shuffled = torch.from_numpy(np.array(y)), torch.from_numpy(order)

    def run() -> Any:
        ends = []
        for first, step in zip(start, STEPS):
            weights = torch.from_numpy(first.copy())
            for rows in shuffled.split(size):
                weights.requires_grad_()
                scores = points[rows] @ weights.T
                cost = torch.nn.functional.cross_entropy(scores, targets[rows], reduction="sum")
                (gradient,) = torch.autograd.grad(cost / size, weights)
                weights = (weights - float(step) * gradient).detach()
            ends.append(weights.numpy())
        return np.stack(ends)

    return run


def by_jax(x: Any, y: Any, size: int, start: Any, order: Any) -> Side:
    """Return the pass in JAX: jit, a scan over the batches, vmap over the step sizes."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    points, targets = jnp.asarray(np.column_stack([np.ones(len(x)), x])), jnp.asarray(y)
    batches, first = jnp.asarray(order.reshape(-1, size)), jnp.asarray(start)

    def cost(weights: Any, rows: Any) -> Any:
        scores = points[rows] @ weights.T
        own = jnp.take_along_axis(scores, targets[rows][:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(scores, axis=1) - own)

    def descend(weights: Any, step: Any) -> Any:
        def update(weights: Any, rows: Any) -> Any:
            return weights - step * jax.grad(cost)(weights, rows), None

        return jax.lax.scan(update, weights, batches)[0]

    passed = jax.jit(jax.vmap(descend))
    return lambda: np.asarray(passed(first, jnp.asarray(STEPS)))


FRAMEWORKS: dict[str, tuple[str, Callable[..., Side]]] = {
    "pytorch": ("torch", by_pytorch),
    "pytorch, run by run": ("torch", by_pytorch_runs),
    "jax": ("jax", by_jax),
}
