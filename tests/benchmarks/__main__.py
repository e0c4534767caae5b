"""`make bench`: one table of ratios, each with its target, and a JSON of the same.

python -m tests.benchmarks [--turns N] [--only WORD] [--json FILE]; the data is found by
NORMBENCH_DATA, or in `../shared/data` beside the checkout.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from normbench.engine import threads
from tests.benchmarks import sides
from tests.benchmarks.batch_rows import batch_rows
from tests.benchmarks.commands import command_rows
from tests.benchmarks.data import breast_cancer, mnist
from tests.benchmarks.network_rows import network_rows
from tests.benchmarks.sparse_rows import sparse_rows
from tests.benchmarks.turns import Row, absent, in_turns, is_installed, judged, line, ratio

GRID = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 1.0])
RUNS, PRECISIONS = (1, 9, 32), ("float64", "float32")
SIDES = {
    "textbook": lambda work: lambda: sides.textbook(work),
    "pytorch": sides.pytorch,
    "jax": sides.jax,
}
PACKAGES = {"pytorch": "torch", "jax": "jax"}
# A side over ours, the runs, and at least how many times as long it takes by precision.
FRAMEWORKS: list[tuple[str, int, tuple[float | None, float | None]]] = [
    ("textbook", 9, (7, 12)),
    *(("pytorch", runs, (None, None)) for runs in RUNS),
    ("jax", 1, (None, None)),
    ("jax", 9, (1.0, 0.95)),
    ("jax", 32, (1.0, 0.95)),
]
# Points and features of least squares, and at least how many times as long JAX takes.
SQUARES = [(1_000_000, 50, 50), (200, 20_000, 5)]


def main() -> int:
    """Print the table; exit 1 where two sides did not compute the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name holds this word")
    parser.add_argument("--json", type=Path, help="where to write the table as JSON")
    options = parser.parse_args()
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ran = "; ".join(sorted({pool.get("architecture", pool["internal_api"]) for pool in pools}))
    rows = []
    groups = (framework_rows, small_rows, squares_rows, thread_rows)
    for group in (*groups, batch_rows, sparse_rows, network_rows, command_rows):
        for row in group(options.turns, options.only):
            rows.append(row | {"kernels": ran})
            print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1))
    return 0


def framework_rows(turns: int, only: str) -> Iterator[Row]:
    """The textbook's loop, PyTorch and JAX over ours, on MNIST t10k."""
    for side, runs, targets in FRAMEWORKS:
        for precision, target in zip(PRECISIONS, targets):
            name = f"{side} over ours, {runs} runs, {precision}"
            if only not in name:
                continue
            if side in PACKAGES and not is_installed(PACKAGES[side]):
                yield absent(name, PACKAGES[side])
                continue
            work = mnist_work(runs, precision)
            other, ours = SIDES[side](work), sides.ours(work)
            check_same(ours(), other(), precision, name)
            seconds = in_turns({"other": other, "ours": ours}, turns if side != "textbook" else 3)
            yield judged(name, ratio(seconds["other"], seconds["ours"]), "at least", target)


def small_rows(turns: int, only: str) -> Iterator[Row]:
    """The textbook's loop over ours on small data: 9 step sizes x 20 starts x 1,000 iterations."""
    name = "textbook over ours, breast cancer, 180 runs, 1,000 iterations"
    if only not in name:
        return
    x, y = breast_cancer()
    start = 0.1 * np.random.default_rng(0).standard_normal((20, 1, x.shape[1] + 1))
    work = sides.Work(x, y, np.tile(start, (9, 1, 1)), np.repeat(GRID, 20), 1000)
    ours = sides.ours(work)
    check_same(ours(), sides.textbook(work), "float64", name)
    found = in_turns({"textbook": lambda: sides.textbook(work), "ours": ours}, 2)
    yield judged(name, ratio(found["textbook"], found["ours"]), "at least", 30)


def squares_rows(turns: int, only: str) -> Iterator[Row]:
    """JAX over ours, least squares with 10 step sizes and 100 iterations, the set-up included."""
    for points, features, target in SQUARES:
        name = f"jax over ours, least squares, {points} x {features}"
        if only not in name:
            continue
        if not is_installed("jax"):
            yield absent(name, "jax")
            continue
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((points, features)), rng.standard_normal(points)
        sizes = np.geomspace(1e-3, 0.5, 10) / max(1.0, (features / points) ** 0.5 + 1) ** 2
        start = np.zeros((10, 1, features + 1))
        ours = sides.our_squares(x, y, start, sizes, 100)
        other = sides.jax_squares(x, y, start, sizes, 100)
        np.testing.assert_allclose(ours(), other(), rtol=1e-8)
        seconds = in_turns({"other": other, "ours": ours}, min(turns, 3))
        yield judged(name, ratio(seconds["other"], seconds["ours"]), "at least", target)


def thread_rows(turns: int, only: str) -> Iterator[Row]:
    """A descent on one thread over that on more, by the runs and the precision, on MNIST t10k."""
    for precision in PRECISIONS:
        for runs in RUNS:
            name = f"one thread over {threads.available_threads()}, {runs} runs, {precision}"
            if only not in name:
                continue
            run = sides.ours(mnist_work(runs, precision))

            def alone(run: Callable[[], sides.Histories] = run) -> sides.Histories:
                with (
                    threadpool_limits(1, "blas"),
                    patch.object(threads, "available_threads", lambda: 1),
                ):
                    return run()

            check_same(alone(), run(), precision, name)
            seconds = in_turns({"one": alone, "all": run}, turns)
            yield judged(name, ratio(seconds["one"], seconds["all"]))


def mnist_work(runs: int, precision: str, part: str = "t10k") -> sides.Work:
    """Return 5 iterations of `runs` runs on contrast-normalized digits."""
    x, y = mnist(part, precision)
    step_sizes = np.resize(GRID, runs) if runs > 1 else np.array([0.5])
    start = 0.01 * np.random.default_rng(0).standard_normal((runs, 10, x.shape[1] + 1))
    return sides.Work(x, y, start.astype(x.dtype), step_sizes, 5)


def check_same(one: sides.Histories, other: sides.Histories, precision: str, name: str) -> None:
    """Exit with 1 unless both sides computed the same histories, to rounding."""
    tolerance = 1e-9 if precision == "float64" else 2e-3
    costs = np.allclose(one[0], other[0], rtol=tolerance)
    counts = np.abs(np.asarray(one[1], float) - other[1]).max()
    # A point on the boundary may fall to either side in float32.
    if not costs or counts > (0 if precision == "float64" else 10):
        sys.exit(f"{name}: the two sides differ: {np.abs(one[0] - other[0]).max()}, {counts}")


if __name__ == "__main__":
    sys.exit(main())
