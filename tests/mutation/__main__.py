"""Break lines on purpose, and list those whose break no test notices.

python -m tests.mutation [--sample N] [--seed N] [--only WORD] [--json FILE]: N mutants of every
room, drawn by chance (0: all of them), each run against its room's tests in a copy of the checkout.
The tests must pass there while nothing is broken: otherwise every mutant would look caught. The
exit code is 1 where a room's tests catch less than nine in ten.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from tests.mutation.mutants import Mutant, of
from tests.wheel import ROOT, copy

ENOUGH = 0.9
SECONDS = 300  # a mutant that makes the tests run longer is caught
STATISTICS = ("evidence", "reached", "comparisons", "merging", "heldout")


def _harness(*names: str) -> list[str]:
    """Return the files of the harness's tests that have these names."""
    return [f"tests/harness/test_{name}.py" for name in names]


# Where a room's files are, and the tests that are to notice what is broken in them, quickest first.
ROOMS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "costs": (["costs"], ["tests/costs", *_harness("objective")]),
    "optimizers": (["optimizers"], ["tests/optimizers"]),
    "normalizers": (
        ["harness/normalizers"],
        [*_harness("scheme", "theory"), "tests/harness/normalizers"],
    ),
    "engine": (
        ["harness/engine"],
        _harness(
            *("objective", "products", "columns", "plain_route", "curvature", "penalty", "start"),
            *("scheme", "kernels", "measures", "compare", "verdicts", "descent"),
        ),
    ),
    "theory": (
        ["harness/theory"],
        _harness(
            *("theory", "curvature", "minimum", "measures", "plain_route", "record_inputs"),
            *("penalty", "separability", "verdicts", "claims"),
        ),
    ),
    "verdicts": (
        ["harness/verdicts"],
        _harness("convergence", "verdicts", "measures", "compare", "descent"),
    ),
    "measures": (
        ["harness/measures"],
        _harness(
            *("measures", "theory", "plain_route", "record_inputs", "record", "compare"),
            *("verdicts", "rejudge"),
        ),
    ),
    "statistics": (
        [f"results/{name}.py" for name in STATISTICS],
        [f"tests/results/test_{name}.py" for name in (*STATISTICS, "verdict")],
    ),
}


@dataclass(frozen=True)
class Case:
    """A mutant of a file, and the tests that are to notice it."""

    room: str
    file: str
    mutant: Mutant
    tests: Sequence[str]


def cases(room: str) -> list[Case]:
    """Return every mutant of a room."""
    places, tests = ROOMS[room]
    files = [
        file
        for place in places
        for file in (
            [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        )
    ]
    return [
        Case(room, str(file.relative_to(ROOT)), mutant, tests)
        for file in files
        for mutant in of(file.read_text())
    ]


def passes(tests: Sequence[str], folder: Path) -> bool:
    """Return whether tests pass, in time, on a copy of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(folder / ".packages")}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *tests],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def caught(case: Case, folder: Path) -> bool:
    """Return whether the tests notice a mutant, in a copy of the checkout that is nobody else's."""
    file = folder / case.file
    sound = file.read_text()
    file.write_text(case.mutant.text)
    try:
        return not passes(case.tests, folder)
    finally:
        file.write_text(sound)


def checkout(folder: Path) -> Path:
    """Make a copy of the checkout whose code is what `normbench` names; return it."""
    folder.mkdir()
    copy(folder)
    for name in ("tests", "CONTRIBUTING.md", "Makefile"):
        of_ours = ROOT / name
        if of_ours.is_dir():
            shutil.copytree(of_ours, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(of_ours, folder)
    (folder / ".packages").mkdir()
    (folder / ".packages" / "normbench").symlink_to(folder / "harness")
    return folder


def judged(chosen: Sequence[Case], workers: int) -> Iterator[tuple[Case, bool]]:
    """Yield each case and whether it was caught, several at a time."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        free: Queue[Path] = Queue()
        for number in range(workers):
            free.put(checkout(Path(place) / f"checkout{number}"))
        for room in dict.fromkeys(case.room for case in chosen):
            if not passes(ROOMS[room][1], Path(place) / "checkout0"):
                sys.exit(f"{room}: the tests fail while nothing is broken")

        def run(case: Case) -> tuple[Case, bool]:
            folder = free.get()
            try:
                return case, caught(case, folder)
            finally:
                free.put(folder)

        yield from pool.map(run, chosen)


def main() -> int:
    """Print a table of rooms, and the survivors; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=20, help="mutants of a room; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rooms whose name holds this")
    parser.add_argument("--json", type=Path, help="write the survivors there")
    options = parser.parse_args()
    chosen: list[Case] = []
    for room in ROOMS:
        if options.only in room:
            there = cases(room)
            size = min(options.sample, len(there)) if options.sample else len(there)
            chosen += random.Random(f"{room} {options.seed}").sample(there, size)
    found: list[tuple[Case, bool]] = []
    for case, noticed in judged(chosen, len(os.sched_getaffinity(0))):
        found.append((case, noticed))
        if not noticed:
            what = f"{case.mutant.before}  ->  {case.mutant.after}"
            print(f"survives  {case.file}:{case.mutant.line}: {what}", flush=True)
    print(f"{'room':<14}{'mutants':>9}{'caught':>9}{'share':>8}")
    low = False
    for room in ROOMS:
        told = [noticed for case, noticed in found if case.room == room]
        if told:
            share = sum(told) / len(told)
            low = low or share < ENOUGH
            print(f"{room:<14}{len(told):>9}{sum(told):>9}{share:>8.0%}")
    if options.json:
        lost = [{"file": c.file, **asdict(c.mutant), "text": ""} for c, ok in found if not ok]
        options.json.write_text(json.dumps(lost, indent=1))
    return int(low)


if __name__ == "__main__":
    sys.exit(main())
