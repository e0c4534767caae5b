"""Whole commands: the processor's seconds of quick ones, and of jobs in two processes."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median

from tests.benchmarks.turns import Row, in_turns, judged, of_children, ratio

SIDE_BY_SIDE = {100: 1.7, 300: None}  # jobs, and how much sooner two processes should end
# Whole commands on a store that holds the default comparison: the words, and the most seconds.
WHOLE = {
    "normbench again, all reused": ((), 1.2),
    "normbench results": (("results",), 1.0),
    "normbench results list": (("results", "list"), 1.0),
    "normbench --help": (("--help",), 0.3),
    "a mistake in a name": (("lrr=1",), 0.3),
    "a mistake in a value": (("iterations=-1",), 0.5),
}
PYTHON = "python alone, in each of these"


def command_rows(turns: int, only: str) -> Iterator[Row]:
    """Yield the rows of whole commands."""
    yield from _whole(turns, only)
    for jobs, least in SIDE_BY_SIDE.items():
        name = f"one by one over two side by side, {jobs} small jobs"
        if only in name:
            yield from _side_by_side(name, jobs, least, max(1, turns // 3))


def _python(code: Sequence[str], work_folder: str) -> str:
    """Return what a Python says, whose modules are compiled once, as they are for a user.

    That a mistake is told, exit code 2, is no failure here.
    """
    done = subprocess.run(
        [sys.executable, *code],
        cwd=work_folder,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 2):
        raise SystemExit(done.stderr)
    return done.stderr


def _title(name: str) -> str:
    return f"{name}, seconds of the processor"


def _whole(turns: int, only: str) -> Iterator[Row]:
    """Seconds of whole commands on a store that holds the default comparison.

    Python itself, which loads nothing, is the other side in turns: its seconds are in all of them.
    """
    rows = {name: row for name, row in WHOLE.items() if only in _title(name)}
    if not rows:
        return
    with tempfile.TemporaryDirectory() as work_folder:
        _python(["-m", "normbench"], work_folder)
        codes = {PYTHON: ["-c", "pass"]}
        codes |= {name: ["-m", "normbench", *words] for name, (words, _) in rows.items()}
        sides = {name: lambda code=code: _python(code, work_folder) for name, code in codes.items()}
        found = in_turns(sides, turns, of_children)
    for name, seconds in found.items():
        most = rows[name][1] if name in rows else None
        yield judged(_title(name), median(seconds), "at most", most)


def _side_by_side(name: str, jobs: int, least: float | None, turns: int) -> Iterator[Row]:
    """Seconds of small jobs one after the other over those in two processes, in turns.

    And jobs a second of either, and the processor's seconds a job: the second process should add
    none but its start.
    """
    words = ["dataset=iris", "cost=multiclass_softmax", "normalizer=standard", "start=normal"]
    words += [f"seed=range(0,{jobs})", "iterations=50", "step_sizes=[0.1,1]", "figures=[]"]
    sides = {"one by one": [], "side by side": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    used: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(turns):
        for side, own in sides.items():
            with tempfile.TemporaryDirectory() as work_folder:
                tick, before = time.perf_counter(), of_children()
                _python(["-m", "normbench", *words, *own], work_folder)
                seconds[side].append(time.perf_counter() - tick)
                used[side].append(of_children() - before)
    value = ratio(seconds["one by one"], seconds["side by side"])
    yield judged(name, value, "at least", least)
    for side in sides:
        side_name = f"{jobs} small jobs, {side}"
        yield judged(f"{side_name}, jobs a second", jobs / median(seconds[side]))
        yield judged(_title(f"{side_name}, a job"), median(used[side]) / jobs)
