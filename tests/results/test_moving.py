"""Sweeps that move to another store in one file: the same there, whole, and none twice."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from normbench.command.results import main
from normbench.recording import exporting, leftovers
from normbench.recording.pages import publish
from normbench.recording.store import Store
from normbench.recording.writer import Writer
from normbench.results import tables
from normbench.results.runs import load, sweeps
from tests.results.stores import everything


@pytest.fixture
def home(two):
    """The store of `two`, its sweeps concluded with a note and the list of their jobs."""
    client = two.writer.client
    for sweep in "ab":
        (run,) = two.writer.sweep_runs(sweep).values()
        jobs = [{"run_id": job} for job in load(two.uri, sweep).of_role("scheme")["run_id"]]
        two.writer.log_json(run, jobs, "jobs.json")
        publish(two.writer, load(two.uri, sweep), {"two-softmax": run})
    for (sweep, _), run in two.runs.items():
        number = two.writer.run(run).data.tags[f"sweep.{sweep}"]
        two.writer.tag(run, {"job": f"{sweep}/{number}"})
    (experiment,) = client.search_experiments(filter_string="name = 'two-softmax'")
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "my own note")
    client.log_metric(two.runs["a", "StandardScaler"], "mine", float("nan"), 7, 3)
    client.log_metric(two.runs["a", "StandardScaler"], "mine", 0.1 + 0.2, 5, 4)
    return two


@pytest.fixture
def fresh(tmp_path, empty_store):
    """Return a function that makes an empty store in a folder of a name, and gives its URI."""

    def made(name):
        (tmp_path / name).mkdir()
        shutil.copy(empty_store, tmp_path / name / "mlflow.db")
        return f"sqlite:///{tmp_path / name}/mlflow.db"

    return made


def export(uri, file, *sweeps):
    assert main(["export", *(sweeps or ["--all"]), str(file), "--store", uri]) == 0
    return file


def bring(file, uri):
    assert main(["import", str(file), "--store", uri]) == 0


def table(uri, sweep):
    return tables.markdown(tables.summary(load(uri, sweep)))


def rows(uri):
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
        every = ("runs", "metrics", "params", "tags", "inputs", "datasets", "experiment_tags")
        counts = {name: connection.execute(f"select count(*) from {name}") for name in every}
        return {name: count.fetchone()[0] for name, count in counts.items()}


def test_a_store_is_the_same_where_it_is_imported(home, fresh, tmp_path, capsys):
    before, new = rows(home.uri), fresh("new")
    bring(export(home.uri, tmp_path / "house.zip"), new)
    assert "imported 2 sweeps, 3 jobs, 11 runs, " in capsys.readouterr().out
    assert everything(new[10:]) == everything(home.uri[10:])
    for sweep in "ab":
        assert table(new, sweep) == table(home.uri, sweep)
    note = Writer(Store.at(new, None, tmp_path)).experiment_tags("two-softmax")
    assert note["mlflow.note.content"] == "my own note"
    assert {key for key in note if "View" in key} == {
        f"mlflow.sharedViewState.{sweep}{steps}" for sweep in "ab" for steps in ("", "-steps")
    }
    once = rows(new)
    bring(tmp_path / "house.zip", new)
    assert "imported 0 sweeps, 0 jobs, 0 runs, 0 values and 0 artifacts; 3 of 3 jobs were" in (
        capsys.readouterr().out
    )
    assert rows(new) == once
    assert rows(home.uri) == before


def of_one(uri, sweep):
    """Labels, numbers and steps of a sweep, whatever else its store holds."""
    found = load(uri, sweep)
    steps = found.of_role("step").sort_values(["label", "tags.step_size"])
    return table(uri, sweep), list(steps["metrics.final/train_cost"]), found.experiments


def test_a_job_that_a_sweep_took_from_another_goes_with_it(home, fresh, tmp_path):
    new = fresh("new")
    bring(export(home.uri, tmp_path / "b.zip", "b"), new)
    assert of_one(new, "b") == of_one(home.uri, "b")
    guest = load(new, "b").of_role("scheme").set_index("normalizer").loc["MinMaxScaler"]
    assert (guest["tags.sweep_id"], guest["tags.job"]) == ("b", "b/1")
    assert guest["parent"] == load(new, "b").of_role("sweep")["run_id"].item()
    assert "tags.sweep.a" not in load(new, "b").runs
    bring(export(home.uri, tmp_path / "a.zip", "a"), new)  # it is there, and one of `a`, too
    assert (of_one(new, "a"), of_one(new, "b")) == (of_one(home.uri, "a"), of_one(home.uri, "b"))
    assert rows(new)["runs"] == rows(home.uri)["runs"]


def test_what_comes_home_is_there_and_a_copy_of_a_copy_is_one(home, fresh, tmp_path):
    before, second, third = rows(home.uri), fresh("second"), fresh("third")
    bring(export(home.uri, tmp_path / "1.zip"), second)
    bring(export(second, tmp_path / "2.zip"), home.uri)
    assert rows(home.uri) == before
    bring(tmp_path / "2.zip", third)
    once = rows(third)
    bring(tmp_path / "1.zip", third)
    assert rows(third) == once
    assert everything(third[10:]) == everything(home.uri[10:])


def test_what_is_gone_comes_back(home, fresh, tmp_path):
    before = everything(home.uri[10:])
    export(home.uri, tmp_path / "house.zip")
    assert main(["delete", "a", "b", "--yes", "--store", home.uri]) == 0
    assert rows(home.uri)["runs"] == 0
    bring(tmp_path / "house.zip", home.uri)
    assert everything(home.uri[10:]) == before


def test_the_stores_of_two_laboratories_become_one(home, fresh, tmp_path, capsys):
    """Sweeps of one name are told apart; equal jobs stay two: each has times of its own."""
    other, third = fresh("other"), fresh("third")
    writer = Writer(Store.at(other, str(tmp_path / "other" / "mlartifacts"), tmp_path))
    bring(export(home.uri, tmp_path / "first.zip"), other)
    for run in writer.search("tags.imported_from LIKE '%'"):  # as if it had run there
        writer.untag(run.info.run_id, ["imported_from"])
        if run.data.tags["role"] == "scheme":
            writer.client.log_metric(run.info.run_id, "time/fit_seconds", 77.0, 1 << 42, 0)
    export(other, tmp_path / "second.zip")
    bring(tmp_path / "first.zip", third)
    capsys.readouterr()
    bring(tmp_path / "second.zip", third)
    assert "sweep a is a.2 here: another sweep has its id\nsweep b is b.2 here" in (
        capsys.readouterr().out
    )
    for sweep in "ab":
        assert of_one(third, sweep) == of_one(home.uri, sweep)
        assert of_one(third, f"{sweep}.2") == of_one(other, sweep)
        mine = load(third, f"{sweep}.2").of_role("scheme")
        assert set(mine["metrics.time/fit_seconds"]) == {77.0}
        assert set(mine["tags.job"]) <= {"a.2/0", "a.2/1", "b.2/0"}
        assert not {f"tags.sweep.{name}" for name in "ab"} & set(mine.dropna(axis=1, how="all"))
    once = rows(third)
    assert once["runs"] == 2 * rows(home.uri)["runs"]
    for name in ("first.zip", "second.zip"):
        bring(tmp_path / name, third)
    assert rows(third) == once
    (run,) = Writer(Store.at(third, None, tmp_path)).sweep_runs("b.2").values()
    place = Path(Writer(Store.at(third, None, tmp_path)).run(run).info.artifact_uri[7:])
    listed = {job["run_id"] for job in json.loads((place / "jobs.json").read_text())}
    assert listed == set(load(third, "b.2").of_role("scheme")["run_id"])


@pytest.mark.parametrize(
    ("call", "number"), [("create_run", 1), ("log_batch", 3), ("log_artifact", 3)]
)
def test_an_import_that_was_stopped_is_finished_by_the_next(
    home, fresh, tmp_path, call, number, monkeypatch
):
    new, calls = fresh("new"), []
    export(home.uri, tmp_path / "house.zip")
    true = getattr(MlflowClient, call)

    def stopped(self, *arguments, **named):
        calls.append(call)
        if len(calls) == number + 1:
            raise KeyboardInterrupt
        return true(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, call, stopped)
        assert main(["import", str(tmp_path / "house.zip"), "--store", new]) == 130
    bring(tmp_path / "house.zip", new)
    assert everything(new[10:]) == everything(home.uri[10:])
    bring(tmp_path / "house.zip", new)
    assert rows(new)["runs"] == rows(home.uri)["runs"]


def test_an_import_that_cannot_be_read_back_is_told_and_written_again(
    home, fresh, tmp_path, monkeypatch, capsys
):
    new = fresh("new")
    export(home.uri, tmp_path / "house.zip")
    true = Writer.log_points

    def another(self, run_id, points):
        true(self, run_id, [(key, value + 1e-15, *rest) for key, value, *rest in points])

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "log_points", another)
        assert main(["import", str(tmp_path / "house.zip"), "--store", new]) == 1
    assert "the same import writes it again" in capsys.readouterr().err
    assert load(new, "a").of_role("scheme").empty
    bring(tmp_path / "house.zip", new)
    assert everything(new[10:]) == everything(home.uri[10:])


def test_what_the_store_refuses_leaves_nothing(home, fresh, tmp_path, monkeypatch, capsys):
    new = fresh("new")
    true = exporting.read

    def wrong(*arguments):
        copy = true(*arguments)
        copy.metrics.update({"long" * 100: [(0, 1.0, 1)]} if copy.metrics else {})
        return copy

    with monkeypatch.context() as patched:
        patched.setattr(exporting, "read", wrong)
        export(home.uri, tmp_path / "house.zip")
    assert main(["import", str(tmp_path / "house.zip"), "--store", new]) == 2
    assert "house.zip: the store refuses what it holds (" in capsys.readouterr().err
    assert rows(new)["runs"] == 0


def test_a_sweep_at_work_is_not_exported(home, tmp_path, capsys):
    with leftovers.hold(home.folder / "outputs" / "a"):
        (run,) = home.writer.sweep_runs("a").values()
        home.writer.client.update_run(run, "RUNNING")
        assert main(["export", "a", str(tmp_path / "a.zip"), "--store", home.uri]) == 2
    assert "sweep a: is at work; stop it, or wait for it" in capsys.readouterr().err
    assert not list(tmp_path.glob("*a.zip*"))


def test_a_sweep_that_was_cut_off_comes_as_killed_without_the_job_it_was_cut_off_in(
    home, fresh, tmp_path
):
    (run,) = home.writer.sweep_runs("a").values()
    for one in (run, home.runs["a", "StandardScaler"]):
        home.writer.client.update_run(one, "RUNNING")
    new = fresh("new")
    bring(export(home.uri, tmp_path / "a.zip", "a"), new)
    assert list(sweeps(new)["status"]) == ["KILLED"]
    assert of_one(new, "a") == of_one(home.uri, "a")
    assert list(load(new, "a").of_role("scheme")["normalizer"]) == ["MinMaxScaler"]


def test_artifacts_that_are_gone_are_told_of_and_nothing_is_exported(home, tmp_path, capsys):
    shutil.rmtree(next((home.folder / "artifacts").glob("*/*/artifacts/arrays")))
    assert main(["export", "--all", str(tmp_path / "a.zip"), "--store", home.uri]) == 2
    assert "move the folder of artifacts back there" in capsys.readouterr().err
    assert not list(tmp_path.glob("*a.zip*"))
