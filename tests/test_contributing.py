"""Every worked example of CONTRIBUTING.md is carried out as it stands."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S))
FILE = re.compile(r"^`([^`\n]+)`\n\n```\w+\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^```\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, empty_store):
    """A copy of the rooms, in which the examples are written, with one comparison recorded."""
    copy = tmp_path_factory.mktemp("checkout")
    for room in ("conf", "costs", "datasets", "harness", "optimizers", "results"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, copy / room, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / ".packages").mkdir()
    (copy / ".packages" / "normbench").symlink_to(copy / "harness")  # as an editable install has it
    shutil.copy(empty_store, copy / "mlflow.db")
    shell(copy, "normbench normalizer=standard iterations=5")
    return copy


def shell(folder, command):
    bin_first = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": bin_first, "PYTHONPATH": str(folder / ".packages")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_an_example_of_each_kind():
    assert set(SECTIONS) >= {
        "A scheme",
        "A cost",
        "An optimizer",
        "A data set",
        "A figure",
        "A measure",
    }


@pytest.mark.parametrize("title", SECTIONS)
def test_an_example_works_as_it_stands(checkout, title):
    files = FILE.findall(SECTIONS[title])
    commands = COMMAND.findall(FILE.sub("", SECTIONS[title]))
    assert files
    assert commands
    for path, text in files:
        assert not (checkout / path).exists()
        (checkout / path).write_text(text)
    for command in commands:
        shell(checkout, command)
