"""`make bench`: one table of ratios, each with its target, and a JSON of the same.

python -m tests.benchmarks [--turns N] [--only WORD] [--json FILE]; the data is found by
NORMBENCH_DATA, or in `../shared/data` beside the checkout.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from normbench.engine.fast import threads
from normbench.recording.store.provenance import describe_blas
from tests.benchmarks import sides
from tests.benchmarks.batch_rows import batch_rows
from tests.benchmarks.commands import command_rows
from tests.benchmarks.data import breast_cancer, mnist
from tests.benchmarks.network_rows import network_rows
from tests.benchmarks.sparse_rows import sparse_rows
from tests.benchmarks.turns import Row, absent, in_turns, is_installed, judged, line, ratio

# What the machine sets for OpenBLAS.
OF_MACHINE = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
GRID = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 1.0])
RUNS, PRECISIONS = (1, 9, 32), ("float64", "float32")
SIDES = {
    "ours": sides.ours,
    "textbook": lambda work: lambda: sides.textbook(work),
    "pytorch": sides.pytorch,
    "jax": sides.jax,
}
PACKAGES = {"pytorch": "torch", "jax": "jax"}
# A side over another, the runs, and at least how many times as long it takes by precision.
FRAMEWORKS: list[tuple[str, str, int, tuple[float | None, float | None]]] = [
    ("textbook", "ours", 9, (7, 12)),
    ("pytorch", "ours", 9, (2.2, 2.5)),
    ("jax", "ours", 1, (1.0, 1.0)),
    ("jax", "ours", 9, (1.1, 1.1)),
    ("jax", "ours", 32, (1.1, 1.1)),
]


def main() -> int:
    """Print the table; exit 1 where two sides did not compute the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name holds this word")
    parser.add_argument("--json", type=Path, help="where to write the table as JSON")
    options = parser.parse_args()
    machine = {"processor": processor(), "blas": describe_blas()}
    environment = ", ".join(f"{name}={value}" for name, value in sorted(OF_MACHINE.items()))
    print("; ".join(filter(None, [*machine.values(), environment])), file=sys.stderr)
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ran = "; ".join(sorted({pool.get("architecture", pool["internal_api"]) for pool in pools}))
    rows = []
    groups = (framework_rows, small_rows, thread_rows)
    for group in (*groups, batch_rows, sparse_rows, network_rows, command_rows):
        for row in group(options.turns, options.only):
            rows.append(row | {"kernels": ran})
            print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({**machine, "rows": rows}, indent=1))
    if OF_MACHINE:
        print(f"the same without {environment}:", flush=True)
        bare = {name: value for name, value in os.environ.items() if name not in OF_MACHINE}
        words = [f"--turns={options.turns}", f"--only={options.only}"]
        return subprocess.run(
            [sys.executable, "-m", "tests.benchmarks", *words], env=bare
        ).returncode
    return 0


def processor() -> str:
    """Return the name of the processor; empty outside Linux."""
    file = Path("/proc/cpuinfo")
    name = re.search(r"model name\s*: (.*)", file.read_text() if file.exists() else "")
    return name[1] if name else ""


def framework_rows(turns: int, only: str) -> Iterator[Row]:
    """The textbook's loop, PyTorch and JAX over ours, on MNIST t10k.

    Ours as a job descends, with equal columns merged, which the others are not told of.
    """
    for side, under, runs, targets in FRAMEWORKS:
        for precision, target in zip(PRECISIONS, targets):
            name = f"{side} over {under}, {runs} runs, {precision}"
            if only not in name:
                continue
            if side in PACKAGES and not is_installed(PACKAGES[side]):
                yield absent(name, PACKAGES[side])
                continue
            work = mnist_work(runs, precision)
            other, ours = SIDES[side](work), SIDES[under](work)
            check_same(ours(), other(), precision, name)
            found = in_turns({"other": other, "ours": ours}, turns if side != "textbook" else 3)
            yield judged(name, ratio(found["other"], found["ours"]), "at least", target)


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


def thread_rows(turns: int, only: str) -> Iterator[Row]:
    """A descent on one thread over that on more, by the runs and the precision, on MNIST t10k.

    And on all threads over that on as many as the project takes for so much work.
    """
    available = threads.available_threads()
    counts = [count for count in (2, 4, 8, 16, 32, 64) if count <= max(2, available)]
    for precision in PRECISIONS:
        for runs in RUNS:
            words = f"{runs} runs, {precision}"
            names = {count: f"one thread over {count}, {words}" for count in counts}
            all_over_taken = f"all threads over those that pay, {words}"
            if not any(only in name for name in (*names.values(), all_over_taken)):
                continue
            run = sides.all_columns(mnist_work(runs, precision))

            def alone(run: Callable[[], sides.Histories] = run) -> sides.Histories:
                with threadpool_limits(1, "blas"):
                    return run()

            parts = {"one": alone, "taken": run, "all": _on_threads(run, available)}
            parts |= {str(count): _on_threads(run, count) for count in counts}
            check_same(alone(), run(), precision, all_over_taken)
            found = in_turns(parts, turns)
            for count, name in names.items():
                yield judged(name, ratio(found["one"], found[str(count)]))
            yield judged(all_over_taken, ratio(found["all"], found["taken"]))


def _on_threads(run: Callable[[], sides.Histories], count: int) -> Callable[[], sides.Histories]:
    """Return a descent on so many threads, however little work it is."""

    def on_them() -> sides.Histories:
        with patch.object(threads, "count_worthwhile", lambda work, pays_from: count):
            return run()

    return on_them


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
