"""A process of joblib's ends soon after the comparison that started it."""

import subprocess
import sys

import pytest

PARENT = """
import subprocess, sys
from normbench.command.sweep import orphans
subprocess.run(orphans.watched([sys.executable, "-m", "sleeper", "word", "-m"]))
"""
CHILD = "import sys, time; print(sys.argv[1:], flush=True); time.sleep(60)"


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
