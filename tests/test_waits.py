"""What a command need not load or draw: where all is recorded, and where it is asked for help."""

import json
import subprocess
import sys

import pytest

from normbench import choices
from normbench.command.config import help as helping
from tests import forks

HEAVY = {"mlflow", "sklearn", "scipy", "matplotlib", "sqlalchemy", "autograd"}
CODE = """
import json, runpy, sys
sys.argv = ["normbench", *{words}]
try:
    runpy.run_module("normbench", run_name="__main__")
except SystemExit as left:
    code = left.code
print(json.dumps([code, sorted({heavy} & set(sys.modules))]), file=sys.stderr)
"""
SMALL = ("dataset=iris", "cost=multiclass_softmax", "iterations=5", "step_sizes=[0.1,1]")
SMALL += ("normalizer=standard,minmax",)


def loaded(folder, *words, **environment):
    """Return what a command prints, and which heavy libraries it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(words=list(words), heavy=HEAVY)],
        cwd=folder,
        env=forks.user_environment(**environment),
        capture_output=True,
        text=True,
        timeout=300,
    )
    code, libraries = json.loads(done.stderr.splitlines()[-1])
    assert not code, done.stderr
    return done.stdout, libraries


@pytest.mark.slow
def test_what_is_recorded_is_shown_without_heavy_libraries(command, tmp_path):
    plain = (*SMALL, "tracking=none")
    first = command(*plain)
    assert first.returncode == 0, first.stderr
    assert "mlflow" not in loaded(tmp_path, *plain, "reuse=false")[1]
    assert loaded(tmp_path, "results", "table")[1] == []
    again, libraries = loaded(tmp_path, *plain)  # the first comparison, whose folder has its files
    assert libraries == []
    assert "reused 2 of 2" in again
    told = again.partition("reused 2 of 2\n")[2]
    assert told.startswith(first.stdout.partition("\nfiles ")[0])
    assert command(*plain, "reuse=5").returncode == 2  # a mistake stays one


@pytest.mark.parametrize(
    "group", ["dataset", "cost", "normalizer", "optimizer", "model", "tracking"]
)
def test_an_options_entries_are_those_of_its_yaml(group):
    for name in choices.names(group):
        assert choices.entries(group, name) == list(choices.options(group, name)), name


@pytest.mark.commands
def test_help_alone_is_what_hydra_prints(command):
    assert command("--help").stdout == command("--help", "-m").stdout == f"{helping.text()}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["--help"], {"hydra", "numpy", "autograd"}),
        (["--cfg", "job"], {"autograd"}),
        (["lrr=1"], {"numpy", "autograd"}),  # a name is looked for before NumPy is loaded
        (["iterations=-1"], set()),
    ],
)
def test_help_and_mistakes_load_nothing_heavy(tmp_path, words, more):
    code = CODE.format(words=words, heavy=(HEAVY - {"autograd"}) | more | {"pandas"})
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    code, libraries = json.loads(done.stderr.splitlines()[-1])
    assert (code or 0, libraries) == (0 if words[0].startswith("--") else 2, [])
