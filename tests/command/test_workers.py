"""Ctrl-C while joblib's processes begin: one line, and no traceback of theirs."""

import os
import signal
import subprocess
import sys
import time

import pytest

from normbench.command.sweep.launching import deaf_workers

pytestmark = pytest.mark.slow

WORDS = ("normalizer=standard,identity", "iterations=5", "step_sizes=[1]", "hydra/launcher=joblib")


def hears():
    """Return whether this process hears Ctrl-C."""
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_does_not_hear_it_and_the_sweep_does():
    from joblib import Parallel, delayed

    with deaf_workers():
        assert Parallel(n_jobs=2)(delayed(hears)() for _ in range(4)) == [False] * 4
    assert hears()


@pytest.mark.parametrize("share", [0.4, 0.55, 0.7, 0.85])
def test_a_command_that_is_stopped_while_they_begin_prints_one_line(share, tmp_path):
    """share: of the time that a whole command takes here, at which it is stopped."""

    def run(seconds):
        command = [
            sys.executable,
            "-m",
            "normbench",
            *WORDS,
            "figures=[]",
            "hydra.launcher.n_jobs=2",
        ]
        process = subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started = time.monotonic()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
        return process.communicate()[1], time.monotonic() - started

    _, whole = run(120)
    for file in tmp_path.glob("mlflow.db"):
        file.unlink()
    said, _ = run(share * whole)
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
