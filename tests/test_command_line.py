"""`normbench` and `normbench results` as a user meets them: as processes."""

import json
import re
import shlex

import numpy as np
import pytest

import normbench
from normbench import names as result_names
from normbench.choices import build, describe_options, names, options
from normbench.settings import OF_OPTIONS, TABLE
from tests import forks

pytestmark = pytest.mark.commands


def sweep_of(folder):
    """Return the comparison that was recorded last in a folder."""
    return normbench.load(folder=folder / "outputs").sweep


COMMAND = "normbench iterations=5 'step_sizes=[1e-5,1,10]' 'figures=[melt]' tracking=none"


@pytest.fixture(scope="module")
def default_sweep(tmp_path_factory):
    """The default comparison with fewer iterations and step sizes, in a folder of its own."""
    folder = tmp_path_factory.mktemp("sweep")
    done = forks.run(shlex.split(COMMAND)[1:], folder)
    assert done.returncode == 0, done.stderr
    return sweep_of(folder)


def test_the_default_sweep_is_recorded_in_three_roles(default_sweep):
    (sweep,), schemes, steps = (
        default_sweep.of_role(role).to_dict("records") for role in ("sweep", "scheme", "step")
    )
    assert sweep["tags.command"] == COMMAND
    assert {"tags.version.numpy", "tags.version.mlflow", "tags.version.python"} <= set(sweep)
    assert [run["normalizer"] for run in schemes] == ["identity", "standard", "pca_sphere"]
    assert {run["params.start"] for run in schemes} == {"zeros"}  # what null stands for
    assert len(steps) == 3 * 3
    assert {run["parent"] for run in steps} == {run["run_id"] for run in schemes}
    for run in steps:
        assert [*default_sweep.series(run["run_id"], "train/cost")] == list(range(6))
        assert run["verdict"] in result_names.VERDICTS


def test_a_scheme_run_holds_its_parameters_its_input_and_its_best_history(default_sweep):
    steps = default_sweep.of_role("step")
    for scheme in default_sweep.of_role("scheme").to_dict("records"):
        assert scheme["params.dataset"] == "breast_cancer"
        assert scheme["params.cost"] == "softmax"
        assert scheme["params.normalizer"] == scheme["normalizer"]
        assert scheme["params.iterations"] == "5"
        assert scheme["tags.target_summary"] == "2 classes (malignant 212, benign 357)"
        data = default_sweep.records[scheme["run_id"]].dataset
        assert data["name"] == "breast_cancer"
        columns = json.loads(data["schema"])["mlflow_colspec"]
        assert [column["name"] for column in columns][:2] == ["mean radius", "mean texture"]
        assert len(columns) == 30
        is_best = (steps["tags.best"] == "true") & (steps["parent"] == scheme["run_id"])
        (best,) = steps[is_best].to_dict("records")
        assert best["tags.step_size"] == scheme["tags.step_size"]
        for key in ("train/cost", "train/misclassifications"):
            one, other = (default_sweep.series(run["run_id"], key) for run in (scheme, best))
            assert one == other
        assert scheme["metrics.final/train_cost"] == scheme["metrics.train/cost"]
        assert scheme["metrics.time/fit_seconds"] >= 0


def test_nothing_that_is_not_finite_is_logged(command, tmp_path):
    done = command(
        "dataset=breast_cancer",
        "cost=least_squares",
        "normalizer=identity",
        "step_sizes=[1e-8,1e8]",
        "figures=[]",
    )
    assert done.returncode == 0, done.stderr
    sweep = sweep_of(tmp_path)
    runs = sweep.of_role("step").set_index("tags.step_size")
    assert runs.loc["1e+08", "verdict"] == "diverged"
    assert "stopped being finite at step" in runs.loc["1e+08", "reason"]
    (job,) = sweep.records.values()
    values = [value for run in (job.scheme, *job.steps) for _, value, _ in run.metrics]
    assert np.isfinite(values).all()


def test_a_command_runs_with_the_threads_that_a_user_has(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as the Makefile sets it
    program = "import os; print(os.environ.get('OMP_NUM_THREADS'))"
    assert forks.run([], tmp_path, program=program).stdout == "None\n"
    assert forks.user_environment(OMP_NUM_THREADS="2")["OMP_NUM_THREADS"] == "2"


# Mistakes whose remedy, pasted, is taken. The files are those of `test_what_a_remedy_says_runs`.
PASTED = (
    *(("dataset.split_seed=0..1",), ("normalizer=standard,", "pca_sphere"), ("loss=logistic",)),
    *(("normalizer=all",), ("step_sizes=[0.1,", "1]"), ("it's.csv",), ("[x].csv",)),
    *(("my data.csv",), ("dataset=a=b.csv",), ("dataset=$x.csv",), ("dataset=données.csv",)),
)


@pytest.mark.parametrize("words", PASTED, ids=" ".join)
def test_what_a_remedy_says_runs(command, tmp_path, words):
    name = " ".join(words).removeprefix("dataset=")
    if name.endswith(".csv"):
        (tmp_path / name).write_text("a,b,label\n1,2,0\n2,1,1\n3,5,0\n4,4,1\n")
    done = command(*words)
    assert done.returncode == 2
    assert not (tmp_path / "outputs").exists()
    pasted = shlex.split(done.stderr.rpartition("type ")[2])
    # All that is right, the data too, is read before a start is: the last mistake that is told.
    ran = command(*pasted, "start=[1,2,3,4,5,6,7]")
    assert ran.returncode == 2
    assert "has 7 weights" in ran.stderr


def test_help_speaks_of_normbench(command):
    helped = command("--help").stdout
    assert helped.count("\n  normbench") >= 4
    assert "normalizer: " in helped
    assert all(f"  {row.name}=" in helped for row in TABLE if row.default is not OF_OPTIONS)
    assert "what does a normalization scheme do to gradient descent" in helped
    for line in describe_options("normalizer").splitlines():
        assert len(line.split()) > 2, line
        assert line in helped
    told = " ".join(helped.split())
    assert (
        "dataset.fit_on=train the points whose statistics the schemes learn: train, or all (lea"
        in told
    )
    assert re.search(r"normalizer\.ridge [^.]*\bthe epsilon of ZCA\b", told)
    for name in names("optimizer"):
        assert build("optimizer", options("optimizer", name)).note in told, name


def test_a_bug_at_the_end_of_a_sweep_keeps_its_traceback(tmp_path):
    program = (
        "import sys\n"
        "from normbench.__main__ import main\n"
        "from normbench.results.report import terminal as conclusion\n"
        "conclusion.present = lambda *_, **__: {}['column']\n"
        "sys.argv[1:] = ['normalizer=standard', 'iterations=1', 'step_sizes=[1]']\n"
        "main()"
    )
    done = forks.run([], tmp_path, program=program)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "KeyError: 'column'" in done.stderr
