"""`make bench`: one table of ratios, each with its target, and a JSON of the same.

python -m tests.benchmarks [--turns N] [--only WORD] [--json FILE]; the data is found by
NORMBENCH_DATA, or in `../shared/data` beside the checkout.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from normbench.command.startup import kernels
from normbench.engine.fast import processor

# What the machine sets for OpenBLAS, before the kernels are chosen.
OF_MACHINE = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
kernels.choose()

import numpy as np  # noqa: E402  (after the kernels are chosen)
from threadpoolctl import threadpool_info, threadpool_limits  # noqa: E402

from normbench.engine.fast import packed, products, threads  # noqa: E402
from tests.benchmarks import sides  # noqa: E402
from tests.benchmarks.batch_rows import batch_rows  # noqa: E402
from tests.benchmarks.commands import command_rows  # noqa: E402
from tests.benchmarks.data import breast_cancer, mnist  # noqa: E402
from tests.benchmarks.doubts import doubt_rows  # noqa: E402
from tests.benchmarks.explorer_rows import explorer_rows  # noqa: E402
from tests.benchmarks.fit_rows import fit_rows  # noqa: E402
from tests.benchmarks.large import large_rows  # noqa: E402
from tests.benchmarks.network_rows import network_rows  # noqa: E402
from tests.benchmarks.product_rows import product_rows  # noqa: E402
from tests.benchmarks.sparse_rows import sparse_rows  # noqa: E402
from tests.benchmarks.turns import in_turns, ratio  # noqa: E402

GRID = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 1.0])
PRECISIONS = ("float64", "float32")
# At most, of a step over the products of the rows that it multiplies, and of all C: by runs, and
# of one run by precision.
TARGETS: dict[int, dict[str, tuple[float | None, float]]] = {
    1: {"float64": (None, 1.25), "float32": (None, 1.3)},
    9: dict.fromkeys(PRECISIONS, (1.1, 1.0)),
    32: dict.fromkeys(PRECISIONS, (1.1, 1.0)),
}
SIDES = {
    "ours": sides.ours,
    "all columns": sides.unmerged,
    "packed": sides.always_packed,
    "unpacked": sides.unpacked,
    "points at once": sides.at_once,
    "textbook": lambda work: lambda: sides.textbook(work),
    "careful textbook": lambda work: lambda: sides.textbook(work, careful=True),
    "pytorch": sides.pytorch,
    "jax": sides.jax,
}
# The wrappers that a job descends by together, see `normbench.route`.
COMBINATIONS = (
    *("columns", "fewer", "packed", "columns+fewer", "columns+packed", "fewer+packed"),
    *("columns+fewer+packed", "under", "under+fewer"),
)
Row = dict[str, Any]


def main() -> int:
    """Print the table; exit 1 where two sides did not compute the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name holds this word")
    parser.add_argument("--json", type=Path, help="where to write the table as JSON")
    options = parser.parse_args()
    machine = {"processor": processor.read_field("model name"), "blas": kernels.describe_blas()}
    environment = ", ".join(f"{name}={value}" for name, value in sorted(OF_MACHINE.items()))
    print("; ".join(filter(None, [*machine.values(), environment])), file=sys.stderr)
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ran = "; ".join(sorted({pool.get("architecture", pool["internal_api"]) for pool in pools}))
    rows = []
    groups = (step_rows, combination_rows, framework_rows, small_rows, short_rows, size_rows)
    later = (
        thread_rows,
        product_rows,
        batch_rows,
        fit_rows,
        large_rows,
        sparse_rows,
        network_rows,
        doubt_rows,
        explorer_rows,
        command_rows,
    )
    for group in (*groups, *later):
        for row in group(options.turns, options.only):
            row["kernels"] = ran
            rows.append(row)
            print(line(row), flush=True)
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


def line(row: Row) -> str:
    """Return a row of the table: what, ratio, target, whether it was met, threads and kernels."""
    if row.get("ratio") is None:
        return f"{row['name']:69}  {row['note']}"
    bound = f"{row['sense']} {row['target']:g}" if "target" in row else "reported"
    met = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    ran = "; ".join(filter(None, (row.get("threads"), row.get("kernels"))))
    return f"{row['name']:69}  {row['ratio']:7.2f}  {bound:14} {met:6}  {ran}".rstrip()


def judged(name: str, value: float, sense: str = "", target: float | None = None) -> Row:
    """Return a row with its verdict."""
    row: Row = {"name": name, "ratio": value}
    if target is not None:
        met = value <= target if sense == "at most" else value >= target
        row |= {"sense": sense, "target": target, "met": bool(met)}
    return row


def step_rows(turns: int, only: str) -> Iterator[Row]:
    """One step over the two products alone, of all 784 columns, on MNIST t10k.

    And of 3 classes, where the last is a third of the rows.
    """
    for precision in PRECISIONS:
        for runs, targets in TARGETS.items():
            own, every = targets[precision]
            words = f"{runs} runs, {precision}"
            names = [f"step over the products of {rows}, {words}" for rows in ("C - 1 rows", "C")]
            if not any(only in name for name in names):
                continue
            work = mnist_work(runs, precision)
            parts = {"ours": sides.unmerged(work)}
            parts |= {"own": sides.floor(work, 1), "every": sides.floor(work)}
            found = in_turns(parts, 3 * turns if runs == 1 else turns)  # some 40 ms a side
            yield judged(names[0], ratio(found["ours"], found["own"]), "at most", own)
            yield judged(names[1], ratio(found["ours"], found["every"]), "at most", every)
            name = f"packing the points over a step, {words}"
            if not packed.is_installed():
                yield {"name": name, "ratio": None, "note": "mkl is not installed"}
                continue
            made = {"packing": sides.packing(work), "packed": sides.always_packed(work)}
            found = in_turns(made, 3)
            yield judged(name, ratio(found["packing"], found["packed"]))
    name = "step over the products of C, 3 classes, 20,000 x 300, 9 runs, float64"
    if only in name:
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((20_000, 300)), rng.integers(0, 3, 20_000)
        work = sides.Work(x, y, 0.01 * rng.standard_normal((9, 3, 301)), GRID, 5)
        parts = {"ours": sides.unmerged(work), "every": sides.floor(work)}
        parts["all rows"] = sides.every_row(work)
        check_same(sides.unmerged(work)(), sides.every_row(work)(), "float64", name)
        found = in_turns(parts, turns)
        yield judged(name, ratio(found["ours"], found["every"]), "at most", 0.85)
        name = "all rows over ours, 3 classes, 20,000 x 300, 9 runs, float64"
        yield judged(name, ratio(found["all rows"], found["ours"]))


def combination_rows(turns: int, only: str) -> Iterator[Row]:
    """The descent by no wrapper over that by each combination in use, on MNIST t10k."""
    for words in COMBINATIONS:
        name = f"no wrapper over {words}, 9 runs, float64"
        if only not in name:
            continue
        if "packed" in words and not packed.is_installed():
            yield {"name": name, "ratio": None, "note": "mkl is not installed"}
            continue
        work = mnist_work(9, "float64")
        other, ours = sides.unwrapped(work, words), sides.wrapped(work, words)
        check_same(ours(), other(), "float64", name)
        found = in_turns({"other": other, "ours": ours}, turns)
        yield judged(name, ratio(found["other"], found["ours"]))


def framework_rows(turns: int, only: str) -> Iterator[Row]:
    """The textbook's loop, PyTorch and JAX over ours, on MNIST t10k.

    Ours as a job descends, with equal columns merged, which the others are not told of; "all
    columns" is ours without that, so that both sides multiply the same matrices; "packed" and
    "unpacked" are that with and without packed points, whatever the processor is. What merging,
    packing, and of few rows of weights pieces of the points gain are the first rows.
    """
    none: dict[str, float | None] = {"float64": None, "float32": None}
    avx512 = products.scores_piece_size(10, 784, 4) > 0
    wanted: list[tuple[str, str, int, dict[str, float | None]]] = [
        ("all columns", "ours", 9, none),
        *(("unpacked", "packed", runs, none) for runs in (1, 9, 32)),
        ("points at once", "unpacked", 1, none),
        ("textbook", "ours", 9, {"float64": 10 if avx512 else 7, "float32": 12}),
        ("careful textbook", "ours", 9, {"float32": None}),
        ("pytorch", "ours", 9, {"float64": 2.2, "float32": 2.5}),
        ("pytorch", "all columns", 9, none),
        ("jax", "ours", 1, dict.fromkeys(PRECISIONS, 1.0)),
        ("jax", "ours", 9, dict.fromkeys(PRECISIONS, 1.1)),
        ("jax", "all columns", 9, dict.fromkeys(PRECISIONS, 1.0)),
        ("jax", "ours", 32, dict.fromkeys(PRECISIONS, 1.1)),
        ("jax", "all columns", 32, dict.fromkeys(PRECISIONS, 1.1)),
    ]
    for side, under, runs, targets in wanted:
        for precision, target in targets.items():
            name = f"{side} over {under}, {runs} runs, {precision}"
            if only not in name:
                continue
            package = {"pytorch": "torch", "jax": "jax"}.get(side)
            if package and importlib.util.find_spec(package) is None:
                yield {"name": name, "ratio": None, "note": f"{package} is not installed"}
                continue
            if side == "unpacked" and not packed.is_installed():
                yield {"name": name, "ratio": None, "note": "mkl is not installed"}
                continue
            if side == "points at once" and not avx512:
                yield {"name": name, "ratio": None, "note": "these kernels take no pieces"}
                continue
            work = mnist_work(runs, precision)
            other, ours = SIDES[side](work), SIDES[under](work)
            check_same(ours(), other(), precision, name)
            few = max(1, turns // 3) if side.endswith("textbook") else turns
            found = in_turns({"other": other, "ours": ours}, few)
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


def short_rows(turns: int, only: str) -> Iterator[Row]:
    """JAX over ours where a step multiplies less than the points; what that takes is in the time.

    Half a minute a side: few turns.
    """
    rng = np.random.default_rng(0)
    steps = np.geomspace(1e-3, 1e-1, 10)

    def many() -> sides.Work:
        x = rng.standard_normal((1_000_000, 50))
        y = x @ rng.standard_normal(50) + rng.standard_normal(len(x))
        return sides.Work(x, y, np.zeros((10, 1, 51)), steps, 1000, squares=True)

    def wide() -> sides.Work:
        x = rng.standard_normal((200, 20_000))
        y = rng.integers(0, 2, len(x))
        return sides.Work(x, y, np.zeros((10, 2, 20_001)), steps / 100, 300)

    wanted = {
        "least squares, 1,000,000 x 50, 10 runs, 1,000 iterations": (many, 30),
        "softmax, 200 x 20,000, 10 runs, 300 iterations": (wide, 15),
    }
    for words, (make, target) in wanted.items():
        name = f"jax over ours, {words}"
        if only not in name:
            continue
        if importlib.util.find_spec("jax") is None:
            yield {"name": name, "ratio": None, "note": "jax is not installed"}
            continue
        work = make()
        other, ours = sides.jax(work), sides.short_cut(work)
        check_same(ours(), other(), "float64", name)
        found = in_turns({"other": other, "ours": ours}, max(1, turns // 3))
        yield judged(name, ratio(found["other"], found["ours"]), "at least", target)


def size_rows(turns: int, only: str) -> Iterator[Row]:
    """60,000 points over 10,000, per step, of all 784 columns: more are equal in the few.

    Neither is packed: 60,000 would not be.
    """
    name = "60,000 points over 10,000, per step, 9 runs, float64"
    if only not in name:
        return
    small, large = mnist_work(9, "float64"), mnist_work(9, "float64", "train")
    found = in_turns(
        {"large": sides.unpacked(large), "small": sides.unpacked(small)}, max(3, turns // 3)
    )
    yield judged(name, ratio(found["large"], found["small"]), "at most", 6.6)


def thread_rows(turns: int, only: str) -> Iterator[Row]:
    """A descent on one thread over that on more, by the runs and the precision, on MNIST t10k.

    And on all threads over that on as many as the project takes for so much work.
    """
    available = threads.available_threads()
    counts = [count for count in (2, 4, 8, 16, 32, 64) if count <= max(2, available)]
    for precision in PRECISIONS:
        for runs in TARGETS:
            words = f"{runs} runs, {precision}"
            names = {count: f"one thread over {count}, {words}" for count in counts}
            all_over_taken = f"all threads over those that pay, {words}"
            if not any(only in name for name in (*names.values(), all_over_taken)):
                continue
            run = sides.unpacked(mnist_work(runs, precision))

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
