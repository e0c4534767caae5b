"""`normbench` and `normbench results` as a user meets them: as processes."""

import json
import re
import shlex
import sqlite3
import subprocess
import sys

import pytest
from mlflow import MlflowClient

from normbench import names as result_names
from normbench.choices import build, describe_options, names, options
from normbench.results.pages import dashboard, view
from normbench.results.store import runs
from normbench.settings import OF_OPTIONS, TABLE
from tests import forks

pytestmark = pytest.mark.commands


def of_role(client, experiment, role):
    found = client.get_experiment_by_name(experiment)
    return list(
        client.search_runs([found.experiment_id], f"tags.role = '{role}'", max_results=1000)
    )


COMMAND = "normbench iterations=5 'step_sizes=[1e-5,1,10]' 'figures=[melt]'"


@pytest.fixture(scope="module")
def default_sweep(tmp_path_factory):
    """The default comparison with fewer iterations and step sizes, in a folder of its own."""
    folder = tmp_path_factory.mktemp("sweep")
    done = forks.run(shlex.split(COMMAND)[1:], folder)
    assert done.returncode == 0, done.stderr
    return folder, MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")


def test_the_default_sweep_is_recorded_in_three_roles(default_sweep):
    _, client = default_sweep
    name = "breast_cancer-softmax"
    (sweep,) = of_role(client, name, "sweep")
    schemes = of_role(client, name, "scheme")
    steps = of_role(client, name, "step")
    assert sweep.data.tags["command"] == COMMAND
    assert {"version.numpy", "version.mlflow", "version.python"} <= set(sweep.data.tags)
    assert {run.data.tags["normalizer"] for run in schemes} == {
        "identity",
        "standard",
        "pca_sphere",
    }
    assert len(schemes) == 3
    assert {run.data.params["start"] for run in schemes} == {"zeros"}  # what null stands for
    assert len(steps) == 3 * 3
    assert {run.data.tags["mlflow.parentRunId"] for run in schemes} == {sweep.info.run_id}
    assert {run.data.tags["mlflow.parentRunId"] for run in steps} == {
        run.info.run_id for run in schemes
    }
    assert {run.info.status for run in [sweep, *schemes, *steps]} == {"FINISHED"}
    for run in steps:
        history = client.get_metric_history(run.info.run_id, "train/cost")
        assert [point.step for point in history] == list(range(6))
        assert run.data.tags["verdict"] in result_names.VERDICTS


def test_a_scheme_run_holds_its_parameters_its_input_and_its_best_history(default_sweep):
    _, client = default_sweep
    for scheme in of_role(client, "breast_cancer-softmax", "scheme"):
        assert scheme.data.params["dataset"] == "breast_cancer"
        assert scheme.data.params["cost"] == "softmax"
        assert scheme.data.params["normalizer"] == scheme.data.tags["normalizer"]
        assert scheme.data.params["iterations"] == "5"
        data = scheme.inputs.dataset_inputs[0].dataset
        assert data.name == "breast_cancer"
        note = scheme.data.tags[result_names.DESCRIPTION.key]
        assert f"**{scheme.data.tags['normalizer']}** on breast" in note.replace("\\", "")
        assert "The best step size is" in note
        assert scheme.data.tags["target_summary"] == "2 classes (malignant 212, benign 357)"
        assert "target: 2 classes (malignant 212, benign 357)" in note
        files = [file.path for file in client.list_artifacts(scheme.info.run_id)]
        assert "melt.png" in files
        columns = json.loads(data.schema)["mlflow_colspec"]
        assert [column["name"] for column in columns][:2] == ["mean radius", "mean texture"]
        assert len(columns) == 30
        (best,) = client.search_runs(
            [scheme.info.experiment_id],
            f"tags.best = 'true' and tags.`mlflow.parentRunId` = '{scheme.info.run_id}'",
        )
        assert best.data.tags["step_size"] == scheme.data.tags["step_size"]
        for key in ("train/cost", "train/misclassifications"):
            assert [
                (point.step, point.value)
                for point in client.get_metric_history(scheme.info.run_id, key)
            ] == [
                (point.step, point.value)
                for point in client.get_metric_history(best.info.run_id, key)
            ]
        metrics = scheme.data.metrics
        assert metrics["final/train_cost"] == metrics["train/cost"]
        assert {"time/fit_seconds", "time/descent_seconds"} <= set(metrics)


def test_the_sweep_leaves_views_colours_and_descriptions(default_sweep):
    folder, client = default_sweep
    name = "breast_cancer-softmax"
    (sweep,) = of_role(client, name, "sweep")
    sweep_id = sweep.data.tags["sweep_id"]
    tags = client.get_experiment_by_name(name).tags
    assert {f"mlflow.sharedViewState.{sweep_id}", f"mlflow.sharedViewState.{sweep_id}-steps"} <= (
        set(tags)
    )
    found = runs.load(f"sqlite:///{folder}/mlflow.db", sweep_id)
    assert f"viewStateShareKey={sweep_id}" in dashboard.link(found, name)
    assert "Fastest: pca_sphere. It removes 90 %" in tags["mlflow.note.content"]
    assert "target: 2 classes (malignant 212, benign 357)" in tags["mlflow.note.content"]
    assert sweep.data.tags["mlflow.note.content"] == tags["mlflow.note.content"]
    for run in [*of_role(client, name, "scheme"), *of_role(client, name, "step")]:
        assert run.data.tags["mlflow.runColor"].startswith("#")
    for role, count in (("scheme", 3), ("step", 9)):
        search = view.search_filter(found, name, role)
        assert len(client.search_runs([sweep.info.experiment_id], search)) == count


def test_nothing_that_is_not_finite_is_logged(command, with_store, tmp_path):
    done = command(
        "dataset=breast_cancer",
        "cost=least_squares",
        "normalizer=identity",
        "step_sizes=[1e-8,1e8]",
        "figures=[]",
    )
    assert done.returncode == 0, done.stderr
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    steps = of_role(client, "breast_cancer-least_squares", "step")
    words = {run.data.tags["step_size"]: run.data.tags for run in steps}
    assert words["1e+08"]["verdict"] == "diverged"
    assert "stopped being finite at step" in words["1e+08"]["reason"]
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        (bad,) = connection.execute(
            "select count(*) from metrics where is_nan or abs(value) > 1e308"
        ).fetchone()
    connection.close()
    assert bad == 0


def test_test_points_have_histories(command, with_store, tmp_path):
    words = ("normalizer=standard", "step_sizes=[1]", "figures=[]", "iterations=20")
    done = command("dataset.test_fraction=0.25", *words)
    assert done.returncode == 0, done.stderr
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    (scheme,) = of_role(client, "breast_cancer-softmax", "scheme")
    history = client.get_metric_history(scheme.info.run_id, "test/cost")
    assert [point.step for point in history] == list(range(21))
    assert scheme.data.metrics["final/test_misclassifications"] <= 0.1 * 142
    assert "test cost" in done.stdout


@pytest.mark.slow
def test_a_command_draws_the_figures_that_are_asked_for(command, with_store, tmp_path):
    for place, wanted in enumerate(([], ["step_sizes"])):
        words = f"figures=[{','.join(wanted)}]", f"hydra.sweep.dir=outputs/{place}"
        done = command("normalizer=standard", "iterations=3", "step_sizes=[1]", *words)
        assert done.returncode == 0, done.stderr
        drawn = {file.stem for file in (tmp_path / "outputs" / str(place)).glob("*.png")}
        assert drawn == set(wanted)  # the second has the first one's jobs


def test_the_database_is_one_file_once_a_command_has_ended(command, with_store, tmp_path):
    for arguments in (("iterations=3", "step_sizes=[1]", "figures=[]"), ("results", "list")):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        assert [file.name for file in tmp_path.glob("mlflow.db*")] == ["mlflow.db"]


def test_a_command_runs_with_the_threads_that_a_user_has(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as the Makefile sets it
    program = "import os; print(os.environ.get('OMP_NUM_THREADS'))"
    assert forks.run([], tmp_path, program=program).stdout == "None\n"
    assert forks.user_environment(OMP_NUM_THREADS="2")["OMP_NUM_THREADS"] == "2"


# Mistakes whose remedy, pasted, is taken. The files are those of `test_what_a_remedy_says_runs`.
PASTED = (
    *(("dataset.test_size=0.3",), ("dataset.split_seed=0..1",), ("cost=logistic",)),
    *(("normalizer=standard", "pca_sphere"), ("normalizer=standard,", "pca_sphere")),
    *(("normalizer=all",), ("cost.l2=0,", "0.1"), ("loss=logistic",)),
    *(("step_sizes=[0.1,", "1]"), ("dataset=patients.csv",), ("it's.csv",)),
    *(("[x].csv",), ("my data.csv",), ("my", "data.csv"), ("dataset=a=b.csv",)),
    *(("dataset=$x.csv",), ("dataset=données.csv",)),
)


@pytest.mark.parametrize("words", PASTED, ids=" ".join)
def test_what_a_remedy_says_runs(command, with_store, tmp_path, words):
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


def test_a_bug_at_the_end_of_a_sweep_keeps_its_traceback(with_store, tmp_path):
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


def test_one_failed_job_does_not_stop_the_others(command, with_store, tmp_path):
    words = ("normalizer=standard,power", "normalizer.method=box-cox")
    done = command("-m", *words, "iterations=5", "step_sizes=[1]", "figures=[]")
    assert done.returncode == 2
    assert "1 of 2 jobs failed" in done.stdout
    assert "strictly positive" in done.stdout
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    schemes = of_role(client, "breast_cancer-softmax", "scheme")
    assert sorted(run.info.status for run in schemes) == ["FAILED", "FINISHED"]
    (failed,) = [run for run in schemes if run.info.status == "FAILED"]
    assert failed.data.tags["verdict"] == "failed"
    assert [item.path for item in client.list_artifacts(failed.info.run_id)] == ["traceback.txt"]


@pytest.mark.slow
def test_many_first_starts_at_once_lose_nothing(tmp_path):
    arguments = [sys.executable, "-m", "normbench", "normalizer=standard", "step_sizes=[1]"]
    arguments += ["figures=[]"]
    environment = forks.user_environment()
    started = [
        subprocess.Popen(
            [*arguments, f"iterations={number}"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    told = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 2, told
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    assert len(of_role(client, "breast_cancer-softmax", "step")) == 2
