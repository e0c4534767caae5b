"""Keep what the studies of `conf/experiment` conclude, and show what differs between two commits.

    python -m tests.shell.studies keep FOLDER [NAME ...] [--data FOLDER]
    python -m tests.shell.studies diff BEFORE AFTER [NAME ...]

A NAME is a study (`textbook/contours`) or a folder of them (`textbook`). `keep` leaves out a study
that FOLDER has already, so that an interrupted run goes on. It starts `normbench` as a user does
and imports nothing of the project: from the root of another commit's checkout, with that commit's
environment, a copy of this file does the same.
"""

import argparse
import csv
import difflib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STUDIES = Path("conf/experiment")
PREFIX = "normbench-study-"  # of the folders in which studies run
NOT_A_USERS = re.compile(r"\w+_NUM_THREADS|PYTEST_.*|PYTHON.*|MLFLOW_.*|MPLBACKEND")
# What differs from run to run, and what stands in its place while texts are compared.
MASKS = {
    rf"\S*{PREFIX}\w+": "<folder>",
    r"\d{4}-\d\d-\d\d[_T ]\d\d[-:]\d\d([-:]\d\d)?([-.]\d+)?": "<time>",
    r"\b[0-9a-f]{32}\b": "<id>",
    r"\b\d+(\.\d+)?(e[-+]\d+)? (s|ms|min|h|seconds|minutes|hours)\b": "<seconds>",
}
UNSTEADY_COLUMN = re.compile(r"\bseconds?\b|\btime\b|\bid\b|\bfolder\b")
NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")
RELATIVE = 1e-6
ROUNDING = 1e-12  # excess costs this close to zero are differences of rounded numbers
SURE_DIGITS = 4  # a number printed with so many may be rounded to its neighbour


def select(names: list[str], studies: list[str]) -> list[str]:
    """Return the studies that are named, or lie in a named folder; all without a name.

    Raises:
        SystemExit: There is no study of a name.
    """
    for name in names:
        if not any(study == name or study.startswith(f"{name}/") for study in studies):
            sys.exit(f"{name}: no such study or folder; there are {', '.join(studies)}")
    return [s for s in studies if not names or s in names or s.rpartition("/")[0] in names]


def lacking_file(study: str, data: str) -> str:
    """Return the file that the first lines of a study's YAML ask for and `data` lacks, or ""."""
    lines = (STUDIES / f"{study}.yaml").read_text()
    needed = re.findall(r"^# needs ([^ :]+):", lines, re.MULTILINE)
    return next((file for file in needed if not (Path(data) / file).is_file()), "")


def run(words: list[str], folder: str, data: str) -> subprocess.CompletedProcess[str]:
    """Run `normbench WORDS` in a folder, with the environment that a user has."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("normbench", path=path)
    if not program:
        sys.exit("normbench: not in the PATH; activate the environment that has it")
    environment = {k: v for k, v in os.environ.items() if not NOT_A_USERS.fullmatch(k)}
    if data:
        environment["NORMBENCH_DATA"] = data
    words = [program, *words]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def keep_study(study: str, folder: Path, data: str) -> str:
    """Run a study in a store of its own and write its texts to `folder`; return why it failed."""
    clock, processors = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as place:
        ended = run([f"experiment={study}"], place, data)
        if ended.returncode:
            return f"exit code {ended.returncode}: {ended.stderr.strip()[-500:]}"
        clock, used = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
        worked = used.ru_utime + used.ru_stime - processors.ru_utime - processors.ru_stime
        texts = {"printed.txt": ended.stdout, "seconds.txt": f"{clock:.1f} {worked:.1f}\n"}
        tables = {"table": ["table"], "studies": ["studies", study.rpartition("/")[0]]}
        for name, words in tables.items():
            ended = run(["results", *words, "--format", "csv"], place, data)
            texts[f"{name}.csv"] = ended.stdout or ended.stderr
        for name, text in texts.items():
            Path(place, name).write_text(text)
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(texts, key="table.csv".__eq__):  # the sign that all is there, so last
            shutil.copy(Path(place, name), folder / name)
    return ""


def keep(folder: Path, names: list[str], data: str) -> int:
    """Run the studies that are not in `folder` yet; return 1 if one of them fails."""
    files = sorted(STUDIES.glob("*/*.yaml"))
    failed, seconds = 0, 0.0
    for study in select(names, [f"{file.parent.name}/{file.stem}" for file in files]):
        texts = folder / study
        if file := lacking_file(study, data):
            print(f"{study}: not run, {data or 'NORMBENCH_DATA'} lacks {file}", flush=True)
            continue
        if not (texts / "table.csv").is_file() and (failure := keep_study(study, texts, data)):
            print(f"{study}: failed, {failure}", flush=True)
            failed = 1
            continue
        clock, worked = (texts / "seconds.txt").read_text().split()
        print(f"{study}: {clock} s ({worked} s of the processors)", flush=True)
        seconds += float(clock)
    print(f"all: {seconds:.1f} s")
    return failed


def close(before: str, after: str) -> bool:
    """Return whether two printed numbers agree: to 1e-6, or to the last of four digits and more."""
    difference = abs(float(before) - float(after))
    if difference <= max(RELATIVE * max(float(before), float(after)), ROUNDING):
        return True
    mantissa, _, exponent = before.partition("e")
    if len(mantissa.replace(".", "").lstrip("0")) < SURE_DIGITS or "." not in mantissa + after:
        return False
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return difference <= 1.001 * unit


def masked(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, replacement in MASKS.items():
        text = re.sub(pattern, replacement, text)
    return text


def agree(before: str, after: str) -> bool:
    """Return whether two texts have equal words and close numbers."""
    if NUMBER.sub("#", before).split() != NUMBER.sub("#", after).split():
        return False
    return all(map(close, NUMBER.findall(before), NUMBER.findall(after)))


def cells(file: Path) -> dict[str, str]:
    """Return the cells of a table by row and column, or the lines of a text by number."""
    lines = masked(file.read_text()).splitlines()
    if file.suffix != ".csv":
        return {f"line {number}": line for number, line in enumerate(lines, 1)}
    return {
        f"row {number} ({next(iter(row.values()))}), {column}": value or ""
        for number, row in enumerate(csv.DictReader(lines), 1)
        for column, value in row.items()
        if column and not UNSTEADY_COLUMN.search(column)
    }


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for each cell of a study that differs between two folders."""
    for name in ("printed.txt", "table.csv", "studies.csv"):
        old, new = cells(before / name), cells(after / name)
        if name.endswith(".txt") and len(old) != len(new):
            lines = difflib.unified_diff([*old.values()], [*new.values()], n=0, lineterm="")
            yield from (f"{name}: {line}" for line in list(lines)[2:] if line[0] != "@")
            continue
        for label in {**old, **new}:
            pair = old.get(label, "<none>"), new.get(label, "<none>")
            if not agree(*pair):
                yield f"{name}, {label}: {pair[0]} -> {pair[1]}"


def kept_studies(folder: Path) -> set[str]:
    """Return the studies whose texts are in a folder."""
    return {f"{f.parent.parent.name}/{f.parent.name}" for f in folder.glob("*/*/table.csv")}


def show_differences(before: Path, after: Path, names: list[str]) -> int:
    """Print what differs, study by study; return 1 if anything does."""
    different = 0
    for study in select(names, sorted(kept_studies(before) | kept_studies(after))):
        missing = [f for f in (before, after) if study not in kept_studies(f)]
        if missing:
            lines = [f"not in {missing[0]}"]
        else:
            lines = list(differences(before / study, after / study))
        different |= bool(lines)
        print(f"{study}: no differences" if not lines else f"{study}:", *lines, sep="\n  ")
    return different


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    keeping = actions.add_parser("keep", help="run studies and keep what they print")
    keeping.add_argument("folder", type=Path)
    keeping.add_argument("--data", default=os.environ.get("NORMBENCH_DATA", ""))
    comparing = actions.add_parser("diff", help="print what differs between two kept folders")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    for action in (keeping, comparing):
        action.add_argument("names", nargs="*", metavar="NAME", help="of a study or a folder")
    options = parser.parse_args()
    if options.action == "diff":
        return show_differences(options.before, options.after, options.names)
    data = str(Path(options.data).absolute()) if options.data else ""
    return keep(options.folder.absolute(), options.names, data)


if __name__ == "__main__":
    sys.exit(main())
