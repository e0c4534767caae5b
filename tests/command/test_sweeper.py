"""What a command records of itself, how it ends, and the threads that its processes take."""

import os
import shlex
import subprocess
import sys

import pytest

import normbench
from normbench import names
from tests import forks
from tests.command.test_grid import LIGHT
from tests.conftest import ROOT

SCHEMES = """
import os
from pathlib import Path

from sklearn.base import BaseEstimator, TransformerMixin
from normbench.datasets.values import UserError

class Writes(TransformerMixin, BaseEstimator):
    def fit(self, x, y=None):
        Path("threads").write_text(
            os.environ["OMP_NUM_THREADS"] + " " + os.environ["OPENBLAS_NUM_THREADS"]
        )
        return self
    def transform(self, x):
        return x

class Refuses(Writes):
    def fit(self, x, y=None):
        if len(x):
            raise UserError("mine: these points are not mine")

class Breaks(Writes):
    def fit(self, x, y=None):
        if len(x):
            raise ArithmeticError("mine: broke")
"""
SMALL = ("dataset=iris", "cost=multiclass_softmax", "iterations=2", "step_sizes=[0.1]", *LIGHT)


@pytest.fixture
def mine(tmp_path):
    """Write schemes of a user's own; return the words that name their options."""
    (tmp_path / "mine.py").write_text(SCHEMES)
    (tmp_path / "options" / "normalizer").mkdir(parents=True)
    for name in ("Writes", "Refuses", "Breaks"):
        file = tmp_path / "options" / "normalizer" / f"{name}.yaml"
        file.write_text(f"_target_: mine.{name}\n")
    return ("--config-dir", "options", "packages=[mine]", *SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(("schemes", "code"), [("Refuses", 2), ("Refuses,Breaks", 1)])
def test_the_exit_code_says_whether_every_failed_job_is_a_mistake(command, mine, schemes, code):
    done = command(*mine, f"normalizer=standard,{schemes}")
    assert done.returncode == code, done.stderr
    assert "mine: these points are not mine" in done.stdout + done.stderr


@pytest.mark.slow
def test_processes_side_by_side_share_the_cores_unless_a_user_has_chosen(mine, tmp_path):
    words = [*mine, "normalizer=Writes", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    done = subprocess.run(
        [sys.executable, "-m", "normbench", *words],
        cwd=tmp_path,
        env=forks.user_environment(OMP_NUM_THREADS="5"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    assert (tmp_path / "threads").read_text() == f"5 {share}"


@pytest.mark.commands
def test_a_comparison_holds_its_command_and_the_commit(command, tmp_path):
    words = ("normalizer=standard", "seed=0", f"folder={tmp_path}/outputs", *SMALL)
    assert command(*words).returncode == 0
    row = normbench.load(folder=tmp_path / "outputs").sweep.of_role("sweep").iloc[0]
    assert shlex.split(row[names.COMMAND.column]) == ["normbench", *words]
    git = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert row.get(names.COMMIT.column) == (git.stdout.strip() or None)
