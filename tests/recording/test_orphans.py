"""A process of a comparison ends with it: a child soon after, and one of a launcher at once."""

import subprocess
import sys

import pytest

from normbench.recording.resume import recovery

PARENT = """
import subprocess, sys
from normbench.recording.resume import orphans
subprocess.run(orphans.watched([sys.executable, "-m", "sleeper", "word", "-m"]))
"""
CHILD = "import sys, time; print(sys.argv[1:], flush=True); time.sleep(60)"
SWEEP, OWN = 10, 20  # numbers of processes


@pytest.mark.slow
def test_a_child_ends_soon_after_its_parent_was_killed(tmp_path, monkeypatch):
    (tmp_path / "sleeper.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = [sys.executable, "-c", PARENT]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "['word', '-m']\n"
        assert parent.poll() is None
        parent.kill()
        parent.communicate(timeout=30)  # the pipe closes where the child has ended, too


@pytest.mark.parametrize(
    ("own", "parent", "lives", "done"),
    [
        (SWEEP, 1, True, []),
        (SWEEP, SWEEP, False, []),
        (OWN, SWEEP, False, ["deaf", f"ends with {SWEEP}"]),
        (OWN, 1, True, ["deaf"]),
        (OWN, 1, False, ["deaf", "exit 1"]),
    ],
)
def test_a_launchers_process_ends_with_its_sweep(monkeypatch, tmp_path, own, parent, lives, done):
    did = []
    monkeypatch.setattr(recovery.os, "getpid", lambda: own)
    monkeypatch.setattr(recovery.os, "getppid", lambda: parent)
    monkeypatch.setattr(recovery.os, "_exit", lambda code: did.append(f"exit {code}"))
    monkeypatch.setattr(recovery, "end_with", lambda number: did.append(f"ends with {number}"))
    monkeypatch.setattr(recovery, "is_locked", lambda folder: lives)
    monkeypatch.setattr(recovery.signal, "signal", lambda number, how: did.append("deaf"))
    recovery.stop_orphan(tmp_path, {"process": SWEEP})
    assert did == done
