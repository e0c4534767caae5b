"""Whole commands: what `normbench` costs beside the descent, in time and in memory."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.data import folder
from tests.benchmarks.turns import in_turns, ratio

ROOT = Path(__file__).resolve().parents[2]
# What the command imports of others, whole, in a process that collects garbage as the command does.
IMPORTS = (
    "from normbench.command.startup.garbage import collect_nothing_yet\n"
    "collect_nothing_yet()\n"
    "import numpy, scipy.stats, autograd, hydra, mlflow, pandas, jinja2\n"
    "import sklearn.preprocessing, sklearn.covariance, sklearn.datasets\n"
    "from mlflow.store.tracking import sqlalchemy_store\n"
    "import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg\n"
    "import mpl_toolkits.mplot3d"
)
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
PEAK_OF_IMPORTS = f"{IMPORTS}\nimport sys\n{TELL}"


def command_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of whole commands."""
    if only in "normbench over its imports":
        yield _overhead(turns)
    name = "normbench over that without shadows and refinement"
    if only in name:
        yield _with_doubts(name, turns)
    if only in "normbench results over its imports":
        yield _results(turns)
    if only in "job outside fit and descent":
        yield _job()
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


def _overhead(turns: int) -> dict[str, Any]:
    """Seconds of `normbench` on an existing database over importing the same libraries."""
    with tempfile.TemporaryDirectory() as work_folder:
        return _over_imports("normbench", ["reuse=false"], 3, work_folder, turns)


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
        )
    value = ratio(found["with"], found["without"])
    return {"name": name, "ratio": value, "sense": "at most", "target": 1.1, "met": value <= 1.1}


def _results(turns: int) -> dict[str, Any]:
    """Seconds of `normbench results`, which draws a sweep again, over those imports."""
    with tempfile.TemporaryDirectory() as work_folder:
        _python(["-m", "normbench", "figures=[]"], work_folder)
        return _over_imports("normbench results", ["results"], 1, work_folder, turns)


def _over_imports(
    name: str, words: list[str], target: float, work_folder: str, turns: int
) -> dict[str, Any]:
    """Return the row of a command's seconds over those of importing what it imports of others."""
    found = in_turns(
        {
            "command": lambda: _python(["-m", "normbench", *words], work_folder),
            "imports": lambda: _python(["-c", IMPORTS], work_folder),
        },
        turns,
    )
    seconds = median(a - b for a, b in zip(found["command"], found["imports"], strict=True))
    return {
        "name": f"{name} over its imports, seconds",
        "ratio": seconds,
        "sense": "at most",
        "target": target,
        "met": seconds <= target,
    }


def _job() -> dict[str, Any]:
    """Seconds of a job of 10 step sizes x 100 iterations outside fit and descent.

    The median time from the start of a job's runs to the start of the next job's, in one sweep.
    """
    with tempfile.TemporaryDirectory() as work_folder:
        seeds = "seed=" + ",".join(map(str, range(20)))
        _python(["-m", "normbench", "normalizer=pca_sphere", "start=normal", seeds], work_folder)
        with closing(sqlite3.connect(Path(work_folder) / "mlflow.db")) as store:
            starts = store.execute(
                "select start_time from runs join tags using (run_uuid) "
                "where key = 'role' and tags.value = 'scheme' order by start_time"
            ).fetchall()
            inside = store.execute(
                "select value from latest_metrics "
                "where key in ('time/fit_seconds', 'time/descent_seconds')"
            ).fetchall()
    between = [(late - early) / 1000 for (early,), (late,) in pairwise(starts)]
    seconds = median(between) - sum(value for (value,) in inside) / len(starts)
    return {
        "name": "a job outside fit and descent, seconds",
        "ratio": seconds,
        "sense": "at most",
        "target": 0.4,
        "met": seconds <= 0.4,
    }


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
