"""Break lines on purpose, and list those whose break no test notices.

python -m tests.mutation [--sample N] [--seed N] [--only WORD] [--processes N] [--json FILE]: N
mutants of every room, drawn by chance (0: all of them), each run against those of its room's tests
that run the line, in a copy of the checkout. The tests must pass there while nothing is broken:
otherwise every mutant would look caught. The exit code is 1 where a room's tests catch less than
nine in ten.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from tests.mutation.mutants import Mutant, of
from tests.wheel import ROOT, copy

ENOUGH = 0.9
SECONDS = 30  # and 5 times what the tests take: a mutant that makes them run longer is caught
NO_TESTS = 5  # pytest's exit code
VERDICTS, COMPARE = "tests/verdicts/test_verdicts.py", "tests/test_compare.py"
PLAIN, CLAIMS = "tests/engine/fast/test_plain_route.py", "tests/claims/test_claims.py"
MEASURES, THEORY = "tests/measures/test_measures.py", "tests/theory/test_theory.py"
REJUDGE, REPORT = "tests/recording/test_rejudge.py", "results/report"
# Where a room's files are, and the tests that are to notice what is broken in them.
ROOMS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "costs": (["costs"], ["tests/costs", "tests/engine/test_objective.py"]),
    "optimizers": (["optimizers"], ["tests/optimizers"]),
    "normalizers": (
        ["harness/normalizers"],
        ["tests/normalizers", "tests/engine/test_scheme.py", THEORY],
    ),
    "engine": (
        ["harness/engine"],
        ["tests/engine", "tests/command/test_kernels.py", MEASURES, VERDICTS, COMPARE],
    ),
    "theory": (
        ["harness/theory"],
        [
            *("tests/theory", "tests/measures", PLAIN, CLAIMS, VERDICTS, COMPARE),
            *(f"tests/engine/test_{name}.py" for name in ("curvature", "penalty")),
        ],
    ),
    "verdicts": (["harness/verdicts"], ["tests/verdicts", MEASURES, COMPARE, REJUDGE]),
    "measures": (
        ["harness/measures"],
        [
            *("tests/measures", THEORY, PLAIN, CLAIMS, VERDICTS, COMPARE, REJUDGE),
            "tests/results/figures/test_biplot.py",
        ],
    ),
    "statistics": (
        ["results/compare", f"{REPORT}/terminal.py", f"{REPORT}/profile.py"],
        ["tests/results/compare", f"tests/{REPORT}", "tests/results/answer/test_answer.py"],
    ),
}


@dataclass(frozen=True)
class Case:
    """A mutant of a file."""

    room: str
    file: str
    mutant: Mutant


@dataclass(frozen=True)
class Noted:
    """The seconds of each test of a room, and by file and line the tests that run it."""

    seconds: dict[str, float]
    ran: dict[str, dict[str, list[str]]]

    def tests(self, file: str, line: int) -> list[str]:
        """Return the tests that run a line, the quickest first; or what is run at import only,
        those that run any line of the file. A file's tests stay together.
        """
        lines = self.ran.get(file, {})
        there = lines.get(str(line)) or {test for tests in lines.values() for test in tests}
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in self.seconds:
            name = test.partition("::")[0]
            if test in there or name in there:
                by_file[name].append(test)
        parts = [sorted(tests, key=self.seconds.__getitem__) for tests in by_file.values()]
        parts.sort(key=lambda tests: sum(map(self.seconds.__getitem__, tests)))
        return [test for tests in parts for test in tests]


def cases(room: str) -> list[Case]:
    """Return every mutant of a room."""
    places, _ = ROOMS[room]
    files = [
        file
        for place in places
        for file in (
            [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        )
    ]
    return [
        Case(room, str(file.relative_to(ROOT)), mutant)
        for file in files
        for mutant in of(file.read_text())
    ]


def ran(words: Sequence[str], folder: Path, seconds: float | None = None) -> int:
    """Return the exit code of `tests.mutation.lines` on a copy of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(folder / ".packages")}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "tests.mutation.lines", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=seconds,
    ).returncode


def noted(room: str, folder: Path) -> Noted:
    """Return which of a room's tests run which lines; a process each file, which shares nothing."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written = folder / "lines.json"
    for place in ROOMS[room][1]:
        there = folder / place
        for file in sorted(there.rglob("test_*.py")) if there.is_dir() else [there]:
            if ran([str(written), str(file.relative_to(folder))], folder):
                sys.exit(f"{room}: the tests fail while nothing is broken: {file.name}")
            found = json.loads(written.read_text())
            seconds |= found["seconds"]
            for name, by_line in found["ran"].items():
                for line, tests in by_line.items():
                    lines[name][line] += tests
    return Noted(seconds, lines)


def caught(case: Case, known: Noted, folder: Path) -> bool:
    """Return whether the tests notice a mutant, in a copy of the checkout that is nobody else's."""
    tests = known.tests(case.file, case.mutant.line)
    if not tests:
        return False
    ast.parse(case.mutant.text)  # one that is no Python at all would look caught
    file, chosen = folder / case.file, folder / "chosen.json"
    chosen.write_text(json.dumps(tests))
    sound = file.read_text()
    file.write_text(case.mutant.text)
    try:
        longest = SECONDS + 5 * sum(known.seconds[test] for test in tests)
        return ran(["--only", str(chosen)], folder, longest) not in (0, NO_TESTS)
    except subprocess.TimeoutExpired:
        return True
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
        rooms = dict.fromkeys(case.room for case in chosen)
        known = {room: noted(room, Path(place) / "checkout0") for room in rooms}

        def run(case: Case) -> tuple[Case, bool]:
            folder = free.get()
            try:
                return case, caught(case, known[case.room], folder)
            finally:
                free.put(folder)

        yield from pool.map(run, chosen)


def main() -> int:
    """Print a table of rooms, and the survivors; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=20, help="mutants of a room; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rooms whose name holds this")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="write the survivors there")
    options = parser.parse_args()
    chosen: list[Case] = []
    for room in ROOMS:
        if options.only in room:
            there = cases(room)
            size = min(options.sample, len(there)) if options.sample else len(there)
            chosen += random.Random(f"{room} {options.seed}").sample(there, size)
    found: list[tuple[Case, bool]] = []
    for case, noticed in judged(chosen, options.processes):
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
