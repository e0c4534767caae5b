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
FILE = re.compile(r"^`([^`\n]+)`\n((?:\n```\w+\n.*?^```\n)+)", re.M | re.S)
PARTS = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
MOST = 2  # files of an extension, a YAML file among them
QUICK = {"normalizer": "standard", "step_sizes": "[0.1,1]", "figures": "[]", "tracking": "none"}
COMMAND = re.compile(r"^```\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the rooms, in which the examples are written, with one comparison recorded."""
    copy = tmp_path_factory.mktemp("checkout")
    for room in ("conf", "costs", "datasets", "harness", "optimizers", "results"):
        shutil.copytree(ROOT / room, copy / room)  # with what Python has compiled of it
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / ".packages").mkdir()
    (copy / ".packages" / "normbench").symlink_to(copy / "harness")  # as an editable install has it
    shell(copy, "normbench normalizer=standard iterations=5 'figures=[]' tracking=none")
    return copy


def shell(folder, command):
    bin_first = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": bin_first, "PYTHONPATH": str(folder / ".packages")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changed(text, diff):
    """Return a file's text with the lines of a diff put in and taken out, at the one place."""
    lines = [line or " " for line in diff.splitlines()]
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
    after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
    assert text.count(before) == 1, before
    return text.replace(before, after)


def put(checkout, path, parts):
    """Write a file of an example, or change one that is there."""
    file = checkout / path
    for language, text in parts:
        assert file.exists() == (language == "diff")
        file.write_text(changed(file.read_text(), text) if language == "diff" else text)


def test_there_is_an_example_of_each_kind_and_none_touches_many_files():
    kinds = {title.split(":")[0]: FILE.findall(text) for title, text in SECTIONS.items()}
    assert set(kinds) == {
        *("A scheme", "A cost", "An optimizer", "A data set", "A measure"),
        *("A metric of every iteration", "A figure of the command line", "A verdict"),
    }
    for title, text in SECTIONS.items():
        count = len(FILE.findall(text))
        assert title.endswith(f": {count} file{'s' * (count > 1)}")
        assert 1 <= count <= MOST + (title.startswith("A verdict"))


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_an_example_works_as_it_stands(checkout, title):
    files = FILE.findall(SECTIONS[title])
    commands = COMMAND.findall(FILE.sub("", SECTIONS[title]))
    assert commands
    for path, parts in files:
        put(checkout, path, PARTS.findall(parts))
    for command in commands:
        more = [f"'{key}={value}'" for key, value in QUICK.items() if f"{key}=" not in command]
        shell(checkout, command.replace(" iterations=5", " ".join([" iterations=5", *more])))
