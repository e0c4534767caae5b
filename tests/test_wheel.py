"""The package as users install it: a wheel, in an environment and a folder of its own."""

import json
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from normbench import names
from normbench.record.mlflow import copies
from normbench.results.store.comparison_files import Comparison
from tests import forks
from tests.conftest import ROOT
from tests.wheel import build

SMALL = ("iterations=5", "step_sizes=[0.1,1]")
PACKAGE = """
from sklearn.base import BaseEstimator, TransformerMixin


class Halve(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / 2
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin folder of an environment with the wheel, and the libraries of this one.

    The libraries are found by a path alone: an editable install here is not found there.
    """
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / "env")
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    pip += ["--no-index"]
    wheel = build(folder)
    assert [name for name in ("build", "dist") if (Path(ROOT) / name).exists()] == []
    subprocess.run([*pip, wheel], check=True)
    return folder / "env" / "bin"


@pytest.fixture
def run(installed, tmp_path):
    """Return a function that runs a program of the environment, outside of any checkout."""
    settings = forks.user_environment()
    clean = {key: text for key, text in settings.items() if not key.startswith("PYTHON")}

    def run(program, *words, folder=tmp_path):
        done = subprocess.run(
            [installed / program, *words],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=400,  # MLflow's copy has the lowest priority
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def comparison_in(home):
    """Return the only comparison of a home."""
    (file,) = home.glob("*/comparison.json")
    return Comparison.read(file.parent)


@pytest.mark.slow
def test_the_comparison_its_results_and_its_fingerprints(run, command, tmp_path):
    """With a package of the user's; a checkout gives each job the same identity."""
    user = tmp_path / "users"
    user.mkdir()
    (user / "mine.py").write_text(PACKAGE)
    subprocess.run(["git", "init", "--quiet", user], check=True)
    (user / "datasets").mkdir()  # of another project
    (user / "datasets" / "__init__.py").write_text("raise ImportError('not normbench')\n")
    words = (*SMALL, "packages=[mine]", "normalizer=pca_sphere,chain")
    words += ("normalizer.schemes=[mine.Halve,centre]", "figures=[histories]")
    told = run("normbench", *words, folder=user)
    assert "pca_sphere" in told
    comparison = comparison_in(user / "outputs")
    assert names.COMMIT.key not in comparison.tags  # the user's repository is not ours
    (copy,) = copies(comparison).values()
    assert len(copy["jobs"]) == 2
    assert "pca_sphere" in (comparison.folder / "report.html").read_text()
    assert "pca_sphere" in run("normbench", "results", folder=user)
    again = command(*words, folder=user)
    assert "reused 2 of 2" in again.stdout


@pytest.mark.slow
def test_from_python_beside_another_projects_datasets(run, tmp_path):
    (tmp_path / "datasets.py").write_text("raise ImportError('not normbench')\n")
    code = (
        "import json; from normbench import compare; import normbench\n"
        "from sklearn.datasets import load_breast_cancer\n"
        "x, y = load_breast_cancer(return_X_y=True)\n"
        "frame = compare(x, y, normalizers=['standard'], step_sizes=[1.0], iterations=3)\n"
        "print(json.dumps([normbench.__file__, len(frame), list(normbench.__path__)]))"
    )
    file, rows, path = json.loads(run("python", "-c", code).splitlines()[-1])
    assert rows == 4
    assert str(ROOT) not in file
    assert len(path) == 1


@pytest.mark.slow
def test_a_checkout_runs_its_own_code_beside_an_installed_normbench(installed, tmp_path):
    settings = forks.user_environment()
    clean = {key: text for key, text in settings.items() if not key.startswith("PYTHON")}
    look = "import harness, normbench, normbench.costs as c; print(normbench.__file__, c.__file__)"
    done = subprocess.run(
        [installed / "python", "-c", look], cwd=ROOT, env=clean, capture_output=True, text=True
    )
    assert done.stdout.split() == [f"{ROOT}/harness/__init__.py", f"{ROOT}/costs/__init__.py"]
    words = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={tmp_path}/out"]
    words += ["normalizer=identity,standard"]
    done = subprocess.run(
        [installed / "python", "-m", "harness", *SMALL, *words, "figures=[]", "tracking=none"],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch("[0-9a-f]{40}", comparison_in(tmp_path / "out").tags[names.COMMIT.key])


def test_without_an_environment_one_line_says_what_to_do(tmp_path):
    venv.create(tmp_path / "empty")
    settings = forks.user_environment()
    clean = {key: text for key, text in settings.items() if not key.startswith("PYTHON")}
    for module in ("harness", "results"):
        done = subprocess.run(
            [tmp_path / "empty" / "bin" / "python", "-m", module],
            cwd=ROOT,
            env=clean,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "make setup" in done.stderr
