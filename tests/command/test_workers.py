"""Joblib's processes: Ctrl-C while they begin is one line, and they end with their command."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from normbench.command.sweep.launching import Workers, guarded_workers
from normbench.command.sweep.sweeper import Sweep
from tests import forks

pytestmark = pytest.mark.slow

PATIENCE = 60.0  # seconds; joblib's own is 300
KILLED = """
import os, signal
from joblib.externals.loky import get_reusable_executor
from normbench.command.sweep.launching import guarded_workers

with guarded_workers():
    executor = get_reusable_executor(2, timeout=600)
    print(executor.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
WORDS = ("normalizer=standard,identity", "iterations=200000", "step_sizes=[1]")
WORDS += ("hydra/launcher=joblib", "figures=[]", "tracking=none")


def hears():
    """Return whether this process hears Ctrl-C."""
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_does_not_hear_it_and_the_sweep_does():
    from joblib import Parallel, delayed

    with guarded_workers():
        assert Parallel(n_jobs=2)(delayed(hears)() for _ in range(4)) == [False] * 4
    assert hears()


def test_a_worker_ends_whose_command_is_killed_before_its_first_job(tmp_path):
    with (tmp_path / "worker").open("w") as out:  # a pipe would wait for the worker's end
        killed = subprocess.run([sys.executable, "-c", KILLED], stdout=out, stderr=out)
    assert killed.returncode == -signal.SIGKILL
    worker = Path("/proc") / (tmp_path / "worker").read_text().split()[0]
    until = time.monotonic() + PATIENCE
    while worker.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not worker.exists()


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_mistake_ends_them_whatever_they_are_at(has_begun, tmp_path):
    sweep = Sweep()
    sweep.comparison, sweep.lock, sweep.workers = None, None, Workers(2, 2)
    sweep.folder, sweep.is_new_home = tmp_path / "none", False
    worker = Path("/proc") / str(sweep.workers._submit(os.getpid).result() if has_begun else 0)
    assert worker.exists() == has_begun
    sweep.workers._submit(time.sleep, 2 * PATIENCE)
    started = time.monotonic()
    sweep._stop(ValueError())
    assert not worker.exists()
    assert time.monotonic() - started < PATIENCE
    assert not any("Executor" in thread.name for thread in threading.enumerate())


def start(folder):
    """Start a command with two of joblib's processes."""
    words = [sys.executable, "-m", "normbench", *WORDS, "hydra.launcher.n_jobs=2"]
    return subprocess.Popen(
        words,
        cwd=folder,
        env=forks.user_environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def workers_of(process):
    """Return the ids of the processes that a command has started."""
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.parametrize("delay", [pytest.param(0.0, marks=pytest.mark.whole), 0.5])
def test_a_command_that_is_stopped_while_they_begin_prints_one_line(delay, tmp_path):
    """delay: seconds after it has started the first of them, which imports for longer."""
    process = start(tmp_path)
    while process.poll() is None and not workers_of(process):
        time.sleep(0.01)
    time.sleep(delay)
    assert process.poll() is None, f"ended {delay} s after its processes began: nothing was struck"
    os.killpg(process.pid, signal.SIGINT)
    printed = process.communicate()[1]
    assert "Traceback" not in printed
    assert "KeyboardInterrupt" not in printed
    assert printed.count("normbench: stopped; ") == 1
    assert process.returncode in (130, -signal.SIGINT)  # a shell tells them as one
