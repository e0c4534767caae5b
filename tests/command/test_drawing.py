"""Figures and the report of a sweep are written by a process that has loaded Matplotlib."""

import os
import signal
from pathlib import Path

import pytest

from tests.cluster.one_machine import wait
from tests.faults import bench
from tests.test_waits import SMALL, loaded

TWO_CORES = len(os.sched_getaffinity(0)) > 1


@pytest.mark.slow
def test_matplotlib_is_loaded_beside_the_jobs_where_there_are_two_cores(tmp_path):
    text, libraries = loaded(tmp_path, *SMALL, "figures=[melt]", "tracking=none")
    assert ("matplotlib" in libraries) == (not TWO_CORES)
    assert "report.html and 1 figure (png, svg)" in text
    (report,) = tmp_path.glob("outputs/*/report.html")
    assert "<svg" in report.read_text()
    assert "still running" not in report.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not TWO_CORES, reason="one core: nothing is prepared")
def test_the_prepared_process_ends_with_a_command_that_is_killed(tmp_path):
    words = (
        *SMALL[:2],
        "step_sizes=[0.1,1]",
        "iterations=1000000",
        "checkpoint=0.1",
        "tracking=none",
    )
    started = bench.start(tmp_path, *words)
    wait("a job at work", lambda: list(tmp_path.glob("outputs/checkpoints/*.npz")))
    (prepared,) = children(started.process.pid)
    os.kill(started.process.pid, signal.SIGKILL)
    assert bench.end(started).code == -signal.SIGKILL
    wait("its end", lambda: not at_work(prepared))


def children(process):
    """Return the numbers of the processes that a process has started."""
    return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def at_work(process):
    """Return whether a process is there, and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
