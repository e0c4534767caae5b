"""What each of the Makefile's targets installs."""

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
    + [(target, True) for target in ("setup", "test", "check", "slow", "test-server", "bench")],
)
def test_a_comparison_installs_what_it_needs_and_tests_what_they_need_too(tmp_path, target, extras):
    (installed,) = steps(tmp_path, target)
    assert installed.endswith("-c constraints.txt -e " + ("'.[test]'" if extras else "."))
    assert "--quiet" in installed


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_documentation_installs_no_tests(tmp_path):
    assert [line.split(" -e ")[1] for line in steps(tmp_path, "docs")] == [".", "'.[docs]'"]
