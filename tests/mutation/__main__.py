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
from typing import Any, NamedTuple

from tests.mutation.mutants import Mutant, of
from tests.wheel import ROOT, copy

ENOUGH = 0.9
SECONDS = 30  # and 5 times what the tests take: a mutant that makes them run longer is caught
NO_TESTS = 5  # pytest's exit code
VERDICTS, COMPARE = "tests/verdicts/test_verdicts.py", "tests/test_compare.py"
CLAIMS = "tests/claims/test_claims.py"
MEASURES, THEORY = "tests/measures/test_measures.py", "tests/theory/test_spectra.py"
REJUDGE, ANSWER = "tests/record/test_rejudge.py", "tests/results/answer"
CLOSING = ("tests/results/report/test_captions.py", "tests/results/report/test_terminal.py")
COMMAND_LINE = "tests/test_command_line.py"


class Room(NamedTuple):
    """Where the files of a room are, and the tests that are to notice what is broken in them.

    Attributes:
        files: Files and folders with the code.
        tests: Its own tests, files and folders.
        others: Tests of other rooms, run where no test of its own notices a mutant.
        commands: Tests that run the code as commands, in processes whose lines are not noted: all
            of them are run where no other test notices a mutant.
    """

    files: Sequence[str]
    tests: Sequence[str]
    others: Sequence[str] = ()
    commands: Sequence[str] = ()


ROOMS = {
    "costs": Room(["costs"], ["tests/costs"], ["tests/engine/test_linear.py"]),
    "optimizers": Room(["optimizers"], ["tests/optimizers"], ["tests/engine/test_plan.py"]),
    "datasets": Room(["datasets"], ["tests/datasets"]),
    "normalizers": Room(
        ["harness/normalizers"], ["tests/normalizers"], ["tests/engine/test_scheme.py", THEORY]
    ),
    "engine": Room(
        ["harness/engine"],
        ["tests/engine"],
        [MEASURES, VERDICTS, COMPARE],
    ),
    "theory": Room(
        ["harness/theory"],
        ["tests/theory"],
        [
            *("tests/measures", CLAIMS, VERDICTS, COMPARE),
            *(f"tests/engine/test_{name}.py" for name in ("hessian", "scheme_maps")),
        ],
    ),
    "verdicts": Room(["harness/verdicts"], ["tests/verdicts"], [MEASURES, COMPARE, REJUDGE]),
    "measures": Room(
        ["harness/measures"],
        ["tests/measures"],
        [
            *(THEORY, CLAIMS, VERDICTS, COMPARE, REJUDGE),
            "tests/results/figures/test_biplot.py",
        ],
    ),
    "record": Room(["harness/record"], ["tests/record"], [COMPARE]),
    "store": Room(["results/store"], ["tests/results/store"], ["tests/record"]),
    "compare": Room(["results/compare"], ["tests/results/compare"], [ANSWER, *CLOSING]),
    "answer": Room(["results/answer"], [ANSWER, *CLOSING], ["tests/results/compare", CLAIMS]),
    "words": Room(["results/words"], ["tests/results/words", *CLOSING], [ANSWER, CLAIMS]),
    "figures": Room(["results/figures"], ["tests/results/figures"], ["tests/measures"]),
    "report": Room(["results/report"], ["tests/results/report"], [ANSWER, COMPARE]),
    "models": Room(
        ["harness/models"],
        ["tests/models"],
        [
            "tests/engine/test_network_steps.py",
            "tests/record/test_numbers.py",
            "tests/test_choices.py",
        ],
    ),
    "command": Room(
        ["harness/command"],
        ["tests/command", "tests/cluster/test_queues.py"],
        [
            *("tests/record/test_folder.py", REJUDGE),
            *(f"{ANSWER}/test_tables.py", "tests/results/report/test_report.py"),
        ],
        [COMMAND_LINE, "tests/mistakes/test_mistakes.py", "tests/test_verdicts_command_line.py"],
    ),
    "studies": Room(  # the numbers of the gallery are compared where its studies run whole
        ["results/studies/expected.py", "results/studies/study_table.py"],
        ["tests/results/studies"],
        ["tests/results/safe/test_clean.py"],
    ),
    "pages": Room(
        ["results/pages"],
        ["tests/results/pages"],
        [
            *("tests/results/compare/test_merging.py", "tests/results/safe/test_clean.py"),
        ],
        [COMMAND_LINE],
    ),
    "safe": Room(
        ["results/safe"],
        ["tests/results/safe"],
        [
            *("tests/record/test_outcome.py", f"{ANSWER}/test_tables.py"),
        ],
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
        those that run any line of the file. A file's tests stay together. All tests where no line
        of any file is noted: these run the code in other processes.
        """
        lines = self.ran.get(file, {})
        there = lines.get(str(line)) or {test for tests in lines.values() for test in tests}
        there = there if self.ran else set(self.seconds)
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
    return [
        Case(room, str(file.relative_to(ROOT)), mutant)
        for path in ROOMS[room].files
        for file in sorted((ROOT / path).rglob("*.py")) or [ROOT / path]
        for mutant in of(file.read_text())
    ]


class Checkout:
    """A copy of the checkout whose code is what `normbench` names, and a process that tests it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        copy(folder)
        for name in ("tests", "docs", "CONTRIBUTING.md", "Makefile"):
            source = ROOT / name
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / name, ignore=ignore)
            else:
                shutil.copy(source, folder)
        (folder / ".packages").mkdir()
        (folder / ".packages" / "normbench").symlink_to(folder / "harness")
        environment = {**os.environ, "PYTHONPATH": str(folder / ".packages")}
        self.folder = folder
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.lines"],
            cwd=folder,
            env=environment | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, **order: Any) -> int:
        """Return the exit code of a run, whose order is that of `tests.mutation.lines`."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps({"patience": None, **order}) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._server.communicate()


def noted(tests: Sequence[str], files: set[str], checkout: Checkout) -> Noted:
    """Return which tests run which lines of files; each test file has a process of its own."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    folder, report = checkout.folder, checkout.folder / "lines.json"
    for path in tests:
        test_path = folder / path
        for file in sorted(test_path.rglob("test_*.py")) if test_path.is_dir() else [test_path]:
            name = str(file.relative_to(folder))
            code = checkout.run(test_file=name, files=sorted(files), report=str(report))
            if code not in (0, NO_TESTS):  # none: all tests of the file are slow
                sys.exit(f"the tests fail while nothing is broken: {name}")
            of_file = json.loads(report.read_text())
            seconds |= of_file["seconds"]
            for name, by_line in of_file["ran"].items():
                for line, names in by_line.items():
                    lines[name][line] += names
    return Noted(seconds, lines)


def caught(case: Case, known: Noted, checkout: Checkout) -> bool:
    """Return whether the tests notice a mutant, in a copy of the checkout that is nobody else's."""
    tests = known.tests(case.file, case.mutant.line)
    if not tests:
        return False
    ast.parse(case.mutant.text)  # one that is no Python at all would look caught
    file = checkout.folder / case.file
    sound, times = file.read_text(), file.stat()
    file.write_text(case.mutant.text)
    os.utime(file, (0, 0))  # so that the sound code's compiled file is not taken
    try:
        patience = SECONDS + 5 * sum(known.seconds[test] for test in tests)
        return checkout.run(chosen=tests, patience=patience) not in (0, NO_TESTS)
    finally:
        file.write_text(sound)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def judged(chosen: Sequence[Case], workers: int) -> Iterator[tuple[Case, bool]]:
    """Yield each case and whether it was caught, several at a time.

    What a room's own tests do not notice is tried with the tests of other rooms, and then with
    those that run commands.
    """
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        checkouts = [Checkout(Path(place) / f"checkout{number}") for number in range(workers)]
        free: Queue[Checkout] = Queue()
        for checkout in checkouts:
            free.put(checkout)

        def tried(
            of_room: Sequence[Case], tests: Sequence[str], notes_lines: bool = True
        ) -> Iterator[tuple[Case, bool]]:
            files = {case.file for case in of_room} if notes_lines else set()
            known = noted(tests, files, checkouts[0])

            def run(case: Case) -> tuple[Case, bool]:
                checkout = free.get()
                try:
                    return case, caught(case, known, checkout)
                finally:
                    free.put(checkout)

            yield from pool.map(run, of_room)

        try:
            for room in dict.fromkeys(case.room for case in chosen):
                left = [case for case in chosen if case.room == room]
                stages = (
                    (ROOMS[room].tests, True),
                    (ROOMS[room].others, True),
                    (ROOMS[room].commands, False),
                )
                for tests, notes_lines in stages:
                    if not (left and tests):
                        continue
                    survivors: list[Case] = []
                    for case, noticed in tried(left, tests, notes_lines):
                        if noticed:
                            yield case, True
                        else:
                            survivors.append(case)
                    left = survivors
                yield from ((case, False) for case in left)
        finally:
            for checkout in checkouts:
                checkout.end()


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
