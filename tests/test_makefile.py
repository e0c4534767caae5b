"""What each of the Makefile's targets installs."""

import os
import shutil
import subprocess

import pytest

from tests.conftest import ROOT


def steps(folder, target):
    """Return the commands that make would run for a target in a folder where nothing is set up."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    made = subprocess.run(
        ["make", "--dry-run", target], cwd=folder, capture_output=True, text=True, check=True
    )
    return [line for line in made.stdout.splitlines() if " install " in line]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("target", "extras"),
    [("compare", False), ("textbook", False), ("dashboard", False)]
    + [(target, True) for target in ("setup", "test", "check", "slow", "test-all", "bench")],
)
def test_a_comparison_installs_what_it_needs_and_tests_what_they_need_too(tmp_path, target, extras):
    (installed,) = steps(tmp_path, target)
    assert installed.endswith("-c constraints.txt -e " + ("'.[test]'" if extras else "."))
    assert "--quiet" in installed


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_documentation_installs_no_tests(tmp_path):
    assert [line.split(" -e ")[1] for line in steps(tmp_path, "docs")] == [".", "'.[docs]'"]


# A `python3` that makes environments whose Python tells its name and installs nothing.
FAKE_PYTHON = """#!/bin/sh
case "$*" in
"--version") echo "Python NAME" ;;
"-m venv --clear .venv") rm -r .venv ;;
esac
mkdir -p .venv/bin
printf '#!/bin/sh\\ncase "$*" in "--version") echo "Python NAME" ;; esac\\n' > .venv/bin/python
chmod +x .venv/bin/python
"""


@pytest.fixture
def make(tmp_path):
    """Return a function that makes a target where `python3` has a version; return what it says."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def run(target, version):
        programs = tmp_path / version
        programs.mkdir(exist_ok=True)
        (programs / "python3").write_text(FAKE_PYTHON.replace("NAME", version))
        (programs / "python3").chmod(0o755)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        options = {"capture_output": True, "text": True, "check": True}
        return subprocess.run(["make", target], cwd=tmp_path, env=environment, **options).stdout

    return run


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_an_environment_keeps_its_python_or_is_made_anew_whole(make, tmp_path):
    assert "Python" not in make(".venv/.ready", "3.11")
    of_first, python = tmp_path / ".venv" / "lib", tmp_path / ".venv" / "bin" / "python"
    of_first.touch()
    assert ".venv: keeps its Python 3.11\n" in make(".venv/.ready-tests", "3.12")
    assert of_first.exists()
    python.write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / ".venv" / ".ready").unlink()
    assert "cannot install; it is made anew with Python 3.12\n" in make(".venv/.ready", "3.12")
    assert not of_first.exists()
    assert "3.12" in python.read_text()
