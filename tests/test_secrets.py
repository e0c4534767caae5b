"""No password of a URI in what a command prints, nor in any file that it leaves."""

import pytest

from tests import forks

pytestmark = pytest.mark.slow

SECRET = "s3cret-W0rd"
QUICK = ("normalizer=standard", "step_sizes=[1]", "iterations=2", "figures=[histories]")
URIS = {
    "password": f"postgresql://me:{SECRET}@127.0.0.1:1/db",
    "server": f"http://me:{SECRET}@127.0.0.1:1",
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
    assert "the store cannot be had" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("normbench: ")
    nowhere(tmp_path, failed)


BROKEN = """
import runpy, sys
from normbench.command.sweep import sweeper
def run(spec):
    raise RuntimeError("a bug at " + spec.plain_settings["data_dir"])
sweeper.run_spec = run
runpy.run_module("normbench", run_name="__main__", alter_sys=True)
"""


def test_a_bugs_line_and_its_traceback_do_not_tell_it(tmp_path):
    words = [*QUICK, f"data_dir=https://me:{SECRET}@h/", "tracking=none"]
    done = forks.run(words, tmp_path, program=BROKEN)
    assert done.returncode == 1
    assert "the job of " in done.stderr
    assert "RuntimeError: a bug at https://me:***@h/" in done.stderr
    nowhere(tmp_path, done)


def test_variables_of_the_environment_change_no_result(command):
    words = ("step_sizes=[0.001,1]", "iterations=5", "figures=[]")
    done = command(*words, "normalizer=identity,pca_sphere")
    assert done.returncode == 0, done.stderr
    plain = command("results")
    assert "pca_sphere" in plain.stdout
    variables = {"MY_TOKEN": "1", "DB_PASSWORD": "pca_sphere", "APP_SECRET": "identity"}
    assert command("results", **variables).stdout == plain.stdout
