"""The rehearsal of a cluster, in processes of this machine."""

import os
import re
import signal
from pathlib import Path

import pytest

from normbench import names
from tests.cluster.one_machine import wait
from tests.faults import bench

pytestmark = pytest.mark.slow

WORDS = ("hydra/launcher=submitit_local", "iterations=20", "step_sizes=[0.1,1]", "theory=none")
WORDS += ("figures=[histories]",)


def tasks_at_work(folder):
    """Return the numbers of the processes of a folder's tasks, and of those that watch them."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        if "submitit" in words and f"{folder}/outputs" in words:
            found.append((int(place.name), "_submit" in words))
    return [number for number, _ in found], [number for number, task in found if task]


def test_jobs_run_in_tasks_and_their_logs_are_found(tmp_path):
    sizes = ("hydra.launcher.jobs_per_task=2", "hydra.launcher.array_parallelism=2")
    done = bench.run(tmp_path, *WORDS, *sizes)
    assert done.code == 0, done.err
    assert "2 tasks for local" in done.err
    logs = bench.tags(tmp_path, names.LOG)
    assert len(logs) == 3
    for number, log in enumerate(logs, 1):
        assert f"job {number} of 3: " in Path(log).read_text()
    assert len(set(logs)) == 2
    assert not list(tmp_path.rglob("*.pkl"))
    assert tasks_at_work(tmp_path) == ([], [])


def test_a_task_that_is_stopped_keeps_the_jobs_that_it_has_done(tmp_path):
    words = (
        *WORDS,
        "normalizer=standard",
        "iterations=20,40000",
        "hydra.launcher.jobs_per_task=2",
    )
    first = bench.start(tmp_path, *words)
    wait("a job that is done", lambda: bench.recorded(tmp_path))
    os.kill(tasks_at_work(tmp_path)[1][0], signal.SIGTERM)  # as Slurm does when its time is up
    done = bench.end(first)
    assert done.code == 1
    assert re.search(r"lost: job 2 \(task \d+ ended\); logs in ", done.err)
    (log,) = tmp_path.glob("outputs/*/tasks.*/*.out")
    assert "stopped; the same command runs what is not recorded" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert "1 of 2 jobs are not recorded: the same command runs them again" in done.err
    assert len(bench.recorded(tmp_path)) == 1
    again = bench.run(tmp_path, *words)
    assert again.code == 0, again.err
    assert "reused 1 of 2" in again.out
    assert len(bench.recorded(tmp_path)) == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_leaves_no_task_at_work(tmp_path, how):
    first = bench.start(tmp_path, *WORDS, "iterations=1000000")  # not done when they are stopped
    wait("two tasks", lambda: len(tasks_at_work(tmp_path)[1]) == 2)
    os.kill(first.process.pid, how)
    done = bench.end(first)
    assert done.code in (130, -signal.SIGKILL)
    wait("their end", lambda: tasks_at_work(tmp_path) == ([], []))
    assert bench.recorded(tmp_path) == []
    if how != signal.SIGKILL:
        assert not list(tmp_path.rglob("*.pkl"))
        assert "Traceback" not in done.err
