"""The two products of a step by XLA beside numpy's, alone: whether its library would pay."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.benchmarks.turns import in_turns, ratio

POINTS, FEATURES = 10_000, 700
COLUMNS = (2, 10, 90, 288)  # of weights: 1 run of 3 classes, 1 of ten and more, 9 and 32 runs


def product_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of numpy's products over XLA's, arrays of numpy's in and out, the points its own."""
    for precision in ("float32", "float64"):
        for columns in COLUMNS:
            name = f"numpy's products over XLA's, {columns} columns, {precision}"
            if only not in name:
                continue
            if importlib.util.find_spec("jax") is None:
                yield {"name": name, "ratio": None, "note": "jax is not installed"}
                continue
            sides = _sides(columns, precision)
            found = in_turns(sides, 3 * turns)
            yield {"name": name, "ratio": ratio(found["numpy"], found["xla"])}


def _sides(columns: int, precision: str) -> dict[str, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((POINTS, FEATURES)).astype(precision)
    weights = rng.standard_normal((columns, FEATURES)).astype(precision)
    scores, gradient = np.empty((columns, POINTS), x.dtype), np.empty_like(weights)
    points = jax.device_put(x)
    of_scores = jax.jit(lambda weights: weights @ points.T)
    of_gradient = jax.jit(lambda scores: scores @ points)

    def by_numpy() -> Any:
        np.matmul(weights, x.T, out=scores)
        np.matmul(scores, x, out=gradient)
        return gradient

    def by_xla() -> Any:
        return np.asarray(of_gradient(np.asarray(of_scores(weights))))

    size = np.abs(by_numpy()).max()
    tolerance = 1e-9 if precision == "float64" else 1e-3
    if np.abs(by_xla() - gradient).max() > tolerance * size:
        raise SystemExit(f"{columns} columns, {precision}: the two products differ")
    return {"numpy": by_numpy, "xla": by_xla}
