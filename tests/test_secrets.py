"""No password and no token in what a command prints, nor in any file that it leaves."""

import os
import shlex
import subprocess
import sys

import pytest

from normbench.results.store import runs
from tests import forks
from tests.servers.mlflows import Server, serving

pytestmark = pytest.mark.slow

SECRET = "s3cret-W0rd"
QUICK = ("normalizer=standard", "step_sizes=[1]", "iterations=2", "figures=[histories]")
URIS = {
    "password": f"postgresql://me:{SECRET}@127.0.0.1:1/db",
    "token": f"http://{SECRET}@127.0.0.1:1",
    "blank": f"postgresql://me:x {SECRET}@127.0.0.1:1/db",
    "newline": f"postgresql://me:x\n{SECRET}@127.0.0.1:1/db",
    "odbc": f"mssql+pyodbc:///?odbc_connect=DRIVER%3D%7BX%7D%3BUID%3Dme%3BPWD%3D{SECRET}%3B",
}


def nowhere(folder, *commands):
    """Hold that the secret is in no output of some commands and in no file below a folder."""
    for done in commands:
        assert SECRET not in done.stdout + done.stderr
        assert "***" in done.stdout + done.stderr
    for file in folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("form", URIS)
def test_the_stores_is_not_told(command, tmp_path, form):
    failed = command(f'tracking.uri="{URIS[form]}"', *QUICK)
    assert failed.returncode == 2
    assert "the store cannot be opened" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("normbench: ")
    nowhere(tmp_path, failed)


@pytest.mark.parametrize(
    "launcher",
    [
        (),
        ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
        ("hydra/launcher=submitit_local", "hydra.launcher.jobs_per_task=3"),
    ],
)
def test_a_paths_is_told_and_kept_nowhere(command, tmp_path, launcher):
    """Files of these names are there; one of two schemes refuses their points."""
    paths = f"https://me:{SECRET}@h/x.csv?password={SECRET}", f"https://{SECRET}@h/y.csv"
    paths += (f"https://me:x {SECRET}@h/z.csv",)
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("a,y\n-1,0\n1,1\n2,0\n3,1\n")
    listed = ",".join(f'"{path}"' for path in paths)
    mixed = command(
        "dataset=csv",
        f"dataset.path={listed}",
        "dataset.target=y",
        *QUICK,
        "normalizer=standard,power",
        "normalizer.method=box-cox",
        *launcher,
    )
    assert mixed.returncode == 2, mixed.stderr
    assert "3 of 6 jobs failed" in mixed.stdout
    again = command("results", "table", "--format", "csv")
    assert again.returncode == 0
    assert SECRET not in again.stdout + mixed.stdout + mixed.stderr
    for recorded in runs.sweeps(f"sqlite:///{tmp_path}/mlflow.db")["command"]:
        assert any("https://me:***@h" in word for word in shlex.split(recorded))
    nowhere(tmp_path)


BROKEN = """
import runpy, sys
from normbench.command.config import compose as config
real, calls = config.JobSpec.writer, []
def writer(spec):
    calls.append(spec)
    if len(calls) > 1:
        raise RuntimeError("a bug at " + spec.plain_settings["data_dir"])
    return real(spec)
config.JobSpec.writer = writer
runpy.run_module("normbench", run_name="__main__", alter_sys=True)
"""


def test_a_bugs_line_and_its_traceback_do_not_tell_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, *QUICK, f'data_dir="https://me:x {SECRET}@h/"'],
        cwd=tmp_path,
        env=forks.user_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "the job of " in done.stderr
    assert "RuntimeError: a bug at https://me:***@h/" in done.stderr
    nowhere(tmp_path, done)


def test_mlflows_lines_do_not_tell_it(command, tmp_path):
    with serving(Server(f"sqlite:///{tmp_path}/mlflow.db", tmp_path)) as server:
        uri = f"http://me:{SECRET}@127.0.0.1:{server.port}"
        words = (*QUICK, "tracking=server", f"tracking.uri={uri}")
        quiet = command(*words)
        loud = command(*words, "cost.l2=0.1", MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT="false")
        listed = command("results", "list", "--store", uri)
    assert [done.returncode for done in (quiet, loud, listed)] == [0, 0, 0]
    assert "View run" not in quiet.stdout
    assert (
        f"View experiment at: http://me:***@127.0.0.1:{server.port}/#/experiments/1" in loud.stdout
    )
    nowhere(tmp_path, quiet, loud)
    assert SECRET not in listed.stdout + listed.stderr


def test_the_environments_is_not_told(command, tmp_path):
    done = command(f"dataset={SECRET}", MLFLOW_TRACKING_PASSWORD=SECRET)
    assert done.returncode == 2
    nowhere(tmp_path, done)
    assert "MLFLOW_TRACKING_PASSWORD" not in os.environ
