"""Whole commands: what `normbench` costs beside the descent, in time and in memory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from normbench import names
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from tests.benchmarks import writing
from tests.benchmarks.data import folder
from tests.benchmarks.turns import in_turns, of_children, ratio

ROOT = Path(__file__).resolve().parents[2]
# What the command imports of others, whole, in a process that collects garbage as the command does.
IMPORTS = (
    "from normbench.command.startup.garbage import disable_collection\n"
    "disable_collection()\n"
    "import numpy, scipy.stats, autograd, hydra, pandas, jinja2, sqlite3\n"
    "import sklearn.preprocessing, sklearn.covariance, sklearn.datasets\n"
    "import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg\n"
    "import mpl_toolkits.mplot3d"
)
NOTHING = "pass"
OVERHEAD = "normbench over its imports"
FEW, MORE = 4, 24  # jobs of a sweep
SIDE_BY_SIDE = {100: 1.7, 300: None}  # jobs, and how much sooner two processes should end
# Whole commands on a store that holds the default comparison: the words, and the most seconds.
WHOLE = {
    "normbench again, all reused": ((), 1.2),
    "normbench results": (("results",), 1.0),
    "normbench results table": (("results", "table"), 1.0),
    "normbench results list": (("results", "list"), 1.0),
    "normbench --help": (("--help",), 0.3),
    "a mistake in a name": (("lrr=1",), 0.3),
    "a mistake in a value": (("iterations=-1",), 0.5),
}
# Of jobs as the default comparison's: on a store that holds so many, the words, the most seconds.
MANY = {
    "normbench results list": (("results", "list"), 2000, 2.0),
    "normbench results report": (("results", "report"), 300, 10.0),
}
# Of the process's own memory: the greatest size that getrusage tells starts at its parent's.
TELL = (
    "status = open('/proc/self/status').read()\n"
    "print('PEAK', status.split('VmHWM:')[1].split()[0], file=sys.__stderr__)"
)
PEAK = (
    "import runpy, sys\n"
    "sys.argv = ['normbench', *sys.argv[1:]]\n"
    "try: runpy.run_module('normbench', run_name='__main__')\n"
    "except SystemExit as end: assert not end.code, end.code\n"
    f"{TELL}"
)
COMMAND = (
    "import runpy, sys\n"
    "sys.argv = ['normbench', *sys.argv[1:]]\n"
    "try: runpy.run_module('normbench', run_name='__main__')\n"
    "except SystemExit as end: assert end.code in (None, 0, 2), end.code"
)
PEAK_OF_IMPORTS = f"{IMPORTS}\nimport sys\n{TELL}"


def command_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of whole commands."""
    if only in OVERHEAD:
        yield from _overhead(turns)
    name = "normbench over that without shadows and refinement"
    if only in name:
        yield _with_doubts(name, turns)
    yield from _whole(turns, only)
    yield from _many(turns, only)
    if only in _title("a small job, fit and descent included"):
        yield _job()
    for jobs, least in SIDE_BY_SIDE.items():
        name = f"one by one over two side by side, {jobs} small jobs"
        if only in name:
            yield from _side_by_side(name, jobs, least, max(1, turns // 3))
    name = "three MNIST jobs beside two busy loops over quiet ones, seconds of the clock"
    if only in name:
        yield _crowded(name, max(1, turns // 10))
    for precision, fold, target in (("float32", False, 2.2), ("float64", True, 1.25)):
        name = f"peak memory, MNIST 60,000, {precision}, over the data's bytes{', folded' * fold}"
        if only in name:
            yield _memory(name, precision, fold, target)


def _python(code: list[str], work_folder: str) -> str:
    """Return what a Python says, whose modules are compiled once, as they are for a user."""
    done = subprocess.run(
        [sys.executable, *code],
        cwd=work_folder,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stderr


def _overhead(turns: int) -> Iterator[dict[str, Any]]:
    """Seconds of `normbench` on an existing database over importing the same libraries."""
    for what, clock in (("clock", time.perf_counter), ("processor", of_children)):
        with tempfile.TemporaryDirectory() as work_folder:
            found = in_turns(
                {
                    "command": lambda: _python(["-m", "normbench", "reuse=false"], work_folder),
                    "imports": lambda: _python(["-c", IMPORTS], work_folder),
                },
                turns,
                clock,
            )
        seconds = median(a - b for a, b in zip(found["command"], found["imports"], strict=True))
        row = {"name": f"{OVERHEAD}, seconds of the {what}", "ratio": seconds}
        # A user waits for the clock.
        bar = {"sense": "at most", "target": 1.2, "met": seconds <= 1.2} if what == "clock" else {}
        yield row | bar


def _with_doubts(name: str, turns: int) -> dict[str, Any]:
    """Seconds of `normbench` over those of a command that trusts its grid."""
    with tempfile.TemporaryDirectory() as work_folder:
        words = ["-m", "normbench", "reuse=false"]
        found = in_turns(
            {
                "with": lambda: _python(words, work_folder),
                "without": lambda: _python([*words, "shadows=false", "refine=false"], work_folder),
            },
            turns,
            of_children,
        )
    value = ratio(found["with"], found["without"])
    return {"name": name, "ratio": value, "sense": "at most", "target": 1.1, "met": value <= 1.1}


def _whole(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of whole commands on a store that holds the default comparison.

    Python itself, which loads nothing, is the other side in turns: its seconds are in all of them.
    """
    rows = {name: row for name, row in WHOLE.items() if only in _title(name)}
    if not rows:
        return
    with tempfile.TemporaryDirectory() as work_folder:
        _python(["-m", "normbench"], work_folder)
        sides = {name: _command(words, work_folder) for name, (words, _) in rows.items()}
        bare = {"python": lambda: _python(["-c", NOTHING], work_folder)}
        found = in_turns(bare | sides, turns, of_children)
    for name, (_, most) in rows.items():
        yield _seconds(name, median(found[name]), most)
    yield {"name": _title("python alone, in each of these"), "ratio": median(found["python"])}


def _many(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of commands on a store of many jobs, of a sweep that was cut off."""
    for name, (words, jobs, most) in MANY.items():
        title = f"{name}, {jobs:,} jobs"
        if only not in _title(title):
            continue
        with tempfile.TemporaryDirectory() as work_folder:
            fill(Path(work_folder), jobs)
            found = in_turns({name: _command(words, work_folder)}, max(1, turns // 3), of_children)
        yield _seconds(title, median(found[name]), most)


def fill(work_folder: Path, jobs: int) -> None:
    """Write a sweep of some jobs, each of two step sizes, that was stopped before its last one."""
    store = Store.at("sqlite:///mlflow.db", "mlartifacts", work_folder)
    writer = Writer(store)
    tags = {names.JOBS.key: str(jobs + 1), names.COMMAND.key: "normbench seed=0"}
    parent = writer.start_sweep(writing.NAME, writing.SWEEP, tags)
    for number in range(jobs):
        job = writing.record(number, parent)
        own = {"seed": str(number), "start": "normal"}
        writer.write(replace(job, params=job.params | own, steps=job.steps[-3:-1]))
    writer.finish(parent, "KILLED")


def _command(words: Sequence[str], work_folder: str) -> Callable[[], str]:
    """Return what runs a command; that a mistake is told is no failure here."""
    return lambda: _python(["-c", COMMAND, *words], work_folder)


def _title(name: str) -> str:
    return f"{name}, seconds of the processor"


def _seconds(name: str, seconds: float, most: float) -> dict[str, Any]:
    """Return a row of seconds."""
    row = {"name": _title(name), "ratio": seconds, "sense": "at most", "target": most}
    return row | {"met": seconds <= most}


def _crowded(name: str, turns: int) -> dict[str, Any]:
    """Seconds of the three default schemes on MNIST while two other programs want a core each."""
    words = ["dataset=mnist", "dataset.subset=test10k", f"data_dir={folder()}", "reuse=false"]
    words += ["cost=multiclass_softmax", "figures=[]"]

    def crowded() -> None:
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            _python(["-m", "normbench", *words], work_folder)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()

    with tempfile.TemporaryDirectory() as work_folder:
        quiet = lambda: _python(["-m", "normbench", *words], work_folder)  # noqa: E731
        found = in_turns({"crowded": crowded, "quiet": quiet}, turns)
    value = ratio(found["crowded"], found["quiet"])
    return {"name": name, "ratio": value, "sense": "at most", "target": 4, "met": value <= 4}


def _job() -> dict[str, Any]:
    """Seconds of a job of 10 step sizes x 100 iterations, with its fit and descent of some 0.04 s.

    What a sweep of `MORE` seeds takes beyond one of `FEW`, a job. What a job says of its own time
    is of the clock, and longer where others are at work: it is not taken off.
    """
    spent = {}
    for jobs in (FEW, MORE):
        with tempfile.TemporaryDirectory() as work_folder:
            words = ["normalizer=pca_sphere", "start=normal", f"seed=range(0,{jobs})", "figures=[]"]
            before = of_children()
            _python(["-m", "normbench", *words], work_folder)
            spent[jobs] = of_children() - before
    seconds = (spent[MORE] - spent[FEW]) / (MORE - FEW)
    return _seconds("a small job, fit and descent included", seconds, 0.15)


def _side_by_side(
    name: str, jobs: int, least: float | None, turns: int
) -> Iterator[dict[str, Any]]:
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
    bar = {"sense": "at least", "target": least, "met": value >= least} if least else {}
    yield {"name": name, "ratio": value} | bar
    for side in sides:
        words_of_side = f"{jobs} small jobs, {side}"
        yield {"name": f"{words_of_side}, jobs a second", "ratio": jobs / median(seconds[side])}
        yield {"name": _title(f"{words_of_side}, a job"), "ratio": median(used[side]) / jobs}


def _memory(name: str, precision: str, fold: bool, target: float) -> dict[str, Any]:
    """Peak memory on MNIST 60,000, less that of the imports, over the data's bytes."""
    arguments = [
        "dataset=mnist",
        "dataset.subset=train60k",
        f"data_dir={folder()}",
        "cost=multiclass_softmax",
        f"precision={precision}",
        "iterations=3",
        "step_sizes=[0.01,0.1,1]",
        "normalizer=standard",
        f"fold={str(fold).lower()}",
    ]
    with tempfile.TemporaryDirectory() as work_folder:
        peaks = [
            int(_python(["-c", *code], work_folder).rsplit("PEAK", 1)[1])
            for code in ([PEAK, *arguments], [PEAK_OF_IMPORTS])
        ]
    value = (peaks[0] - peaks[1]) * 1024 / (60_000 * 784 * np.dtype(precision).itemsize)
    return {
        "name": name,
        "ratio": value,
        "sense": "at most",
        "target": target,
        "met": value <= target,
    }
