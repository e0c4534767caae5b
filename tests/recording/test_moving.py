"""Sweeps that move to another store in one file: the same there, whole, and none twice."""

import json
import shutil
from pathlib import Path

import pytest

from normbench.command.results.commands import main
from normbench.recording.resume import leftovers
from normbench.recording.transfer import exporting
from normbench.results.answer import tables
from normbench.results.pages.publishing import publish
from normbench.results.store import mlflows_own
from normbench.results.store.runs import load, sweeps
from tests import door, stores
from tests.results.stores import everything

pytestmark = pytest.mark.commands


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
    experiment = client.get_experiment_by_name("two-softmax")
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "my own note")
    client.log_metric(two.runs["a", "StandardScaler"], "mine", float("nan"), 7, 3)
    client.log_metric(two.runs["a", "StandardScaler"], "mine", 0.1 + 0.2, 5, 4)
    return two


@pytest.fixture
def fresh(tmp_path, empty_store):
    """Return a function that makes an empty store, a file, in a folder of a name."""

    def made(name):
        (tmp_path / name).mkdir()
        shutil.copy(empty_store, tmp_path / name / "mlflow.db")
        return stores.file(tmp_path / name)

    return made


def export(store, file, *sweeps):
    assert main(["export", *(sweeps or ["--all"]), str(file), "--store", store.uri]) == 0
    return file


def bring(file, store):
    assert main(["import", str(file), "--store", store.uri]) == 0


def table(store, sweep):
    return tables.markdown(tables.summary(load(store.uri, sweep)))


def rows(store):
    """How many rows the tables have of what is not deleted: a server keeps what is."""
    of_run = "select count(*) from {} join runs using (run_uuid) where lifecycle_stage = 'active'"
    queries = {name: of_run.format(name) for name in ("metrics", "params", "tags")}
    queries["runs"] = "select count(*) from runs where lifecycle_stage = 'active'"
    queries["experiment_tags"] = "select count(*) from experiment_tags"
    return {name: store.ask(query)[0][0] for name, query in queries.items()}


def test_a_store_is_the_same_where_it_is_imported(home, fresh, tmp_path, capsys):
    before, new = rows(home.store), fresh("new")
    bring(export(home.store, tmp_path / "house.zip"), new)
    assert "imported 2 sweeps, 3 jobs, 11 runs, " in capsys.readouterr().out
    assert everything(new) == everything(home.store)
    for sweep in "ab":
        assert table(new, sweep) == table(home.store, sweep)
    note = door.writer(new).experiment_tags("two-softmax")
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
    assert rows(home.store) == before


def of_one(store, sweep):
    """Labels, numbers and steps of a sweep, whatever else its store holds."""
    found = load(store.uri, sweep)
    steps = found.of_role("step").sort_values(["label", "tags.step_size"])
    return table(store, sweep), list(steps["metrics.final/train_cost"]), found.experiments


def test_a_job_that_a_sweep_took_from_another_goes_with_it(home, fresh, tmp_path):
    new = fresh("new")
    bring(export(home.store, tmp_path / "b.zip", "b"), new)
    assert of_one(new, "b") == of_one(home.store, "b")
    guest = load(new.uri, "b").of_role("scheme").set_index("normalizer").loc["MinMaxScaler"]
    assert (guest["tags.sweep_id"], guest["tags.job"]) == ("b", "b/1")
    assert guest["parent"] == load(new.uri, "b").of_role("sweep")["run_id"].item()
    assert "tags.sweep.a" not in load(new.uri, "b").runs
    bring(export(home.store, tmp_path / "a.zip", "a"), new)  # it is there, and one of `a`, too
    assert (of_one(new, "a"), of_one(new, "b")) == (
        of_one(home.store, "a"),
        of_one(home.store, "b"),
    )
    assert rows(new)["runs"] == rows(home.store)["runs"]


def test_what_comes_home_is_there_and_a_copy_of_a_copy_is_one(home, fresh, tmp_path):
    before, second, third = rows(home.store), fresh("second"), fresh("third")
    bring(export(home.store, tmp_path / "1.zip"), second)
    bring(export(second, tmp_path / "2.zip"), home.store)
    assert rows(home.store) == before
    bring(tmp_path / "2.zip", third)
    once = rows(third)
    bring(tmp_path / "1.zip", third)
    assert rows(third) == once
    assert everything(third) == everything(home.store)


@pytest.mark.slow
def test_what_is_gone_comes_back(home, fresh, tmp_path):
    before = everything(home.store)
    export(home.store, tmp_path / "house.zip")
    assert main(["delete", "a", "b", "--yes", "--store", home.uri]) == 0
    assert rows(home.store)["runs"] == 0
    bring(tmp_path / "house.zip", home.store)
    assert everything(home.store) == before


def test_the_stores_of_two_laboratories_become_one(home, fresh, tmp_path, capsys):
    """Sweeps of one name are told apart; equal jobs stay two: each has times of its own."""
    other, third = fresh("other"), fresh("third")
    writer = door.writer(other)
    bring(export(home.store, tmp_path / "first.zip"), other)
    for run in writer.search_runs("tags.imported_from LIKE '%'"):  # as if it had run there
        writer.untag(run.info.run_id, ["imported_from"])
        if run.data.tags["role"] == "scheme":
            writer.client.log_metric(run.info.run_id, "time/fit_seconds", 77.0, 1 << 42, 0)
    export(other, tmp_path / "second.zip")
    bring(tmp_path / "first.zip", third)
    capsys.readouterr()
    bring(tmp_path / "second.zip", third)
    assert "comparison a is a.2 here: another one has its id\ncomparison b is b.2 here" in (
        capsys.readouterr().out
    )
    for sweep in "ab":
        assert of_one(third, sweep) == of_one(home.store, sweep)
        assert of_one(third, f"{sweep}.2") == of_one(other, sweep)
        mine = load(third.uri, f"{sweep}.2").of_role("scheme")
        assert set(mine["metrics.time/fit_seconds"]) == {77.0}
        assert set(mine["tags.job"]) <= {"a.2/0", "a.2/1", "b.2/0"}
        assert not {f"tags.sweep.{name}" for name in "ab"} & set(mine.dropna(axis=1, how="all"))
    once = rows(third)
    assert once["runs"] == 2 * rows(home.store)["runs"]
    for name in ("first.zip", "second.zip"):
        bring(tmp_path / name, third)
    assert rows(third) == once
    (run,) = door.writer(third).sweep_runs("b.2").values()
    place = Path(door.writer(third).run(run).info.artifact_uri[7:])
    listed = {job["run_id"] for job in json.loads((place / "jobs.json").read_text())}
    assert listed == set(load(third.uri, "b.2").of_role("scheme")["run_id"])


@pytest.mark.parametrize(
    ("call", "number"), [("create_run", 1), ("log_batch", 3), ("log_artifact", 3)]
)
def test_an_import_that_was_stopped_is_finished_by_the_next(
    home, fresh, tmp_path, call, number, monkeypatch
):
    new, calls = fresh("new"), []
    export(home.store, tmp_path / "house.zip")
    client = type(home.writer.client._client)
    true = getattr(client, call)

    def stopped(self, *arguments, **named):
        calls.append(call)
        if len(calls) == number + 1:
            raise KeyboardInterrupt
        return true(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(client, call, stopped)
        assert main(["import", str(tmp_path / "house.zip"), "--store", new.uri]) == 130
    bring(tmp_path / "house.zip", new)
    assert everything(new) == everything(home.store)
    bring(tmp_path / "house.zip", new)
    assert rows(new)["runs"] == rows(home.store)["runs"]


def test_an_import_that_cannot_be_read_back_is_told_and_written_again(
    home, fresh, tmp_path, monkeypatch, capsys
):
    new = fresh("new")
    export(home.store, tmp_path / "house.zip")
    true = door.Writer.log_points

    def another(self, run_id, points):
        true(self, run_id, [(key, value + 1e-15, *rest) for key, value, *rest in points])

    with monkeypatch.context() as patched:
        patched.setattr(door.Writer, "log_points", another)
        assert main(["import", str(tmp_path / "house.zip"), "--store", new.uri]) == 1
    assert "the same import writes it again" in capsys.readouterr().err
    assert load(new.uri, "a").of_role("scheme").empty
    bring(tmp_path / "house.zip", new)
    assert everything(new) == everything(home.store)


def test_what_the_store_refuses_leaves_nothing(home, fresh, tmp_path, monkeypatch, capsys):
    new = fresh("new")
    true = exporting.copy_run

    def wrong(*arguments):
        copy = true(*arguments)
        copy.metrics.update({"long" * 100: [(0, 1.0, 1)]} if copy.metrics else {})
        return copy

    with monkeypatch.context() as patched:
        patched.setattr(exporting, "copy_run", wrong)
        export(home.store, tmp_path / "house.zip")
    monkeypatch.setattr(mlflows_own, "check_metric", lambda key: None)  # a limit of its own
    assert main(["import", str(tmp_path / "house.zip"), "--store", new.uri]) == 2
    assert "house.zip: the store refuses what it holds (" in capsys.readouterr().err
    assert rows(new)["runs"] == 0


def test_a_sweep_at_work_is_not_exported(home, tmp_path, capsys):
    with leftovers.lock_new_folder(home.folder / "outputs" / "a"):
        (run,) = home.writer.sweep_runs("a").values()
        home.writer.client.update_run(run, "RUNNING")
        assert main(["export", "a", str(tmp_path / "a.zip"), "--store", home.uri]) == 2
    assert "comparison a: is at work; stop it, or wait for it" in capsys.readouterr().err
    assert not list(tmp_path.glob("*a.zip*"))


def test_a_sweep_that_was_cut_off_comes_as_killed_without_the_job_it_was_cut_off_in(
    home, fresh, tmp_path
):
    (run,) = home.writer.sweep_runs("a").values()
    for one in (run, home.runs["a", "StandardScaler"]):
        home.writer.client.update_run(one, "RUNNING")
    new = fresh("new")
    bring(export(home.store, tmp_path / "a.zip", "a"), new)
    assert list(sweeps(new.uri)["status"]) == ["KILLED"]
    assert of_one(new, "a") == of_one(home.store, "a")
    assert list(load(new.uri, "a").of_role("scheme")["normalizer"]) == ["MinMaxScaler"]


def test_artifacts_that_are_gone_are_told_of_and_nothing_is_exported(home, tmp_path, capsys):
    shutil.rmtree(next(home.store.kept.glob("*/*/artifacts/arrays")))
    assert main(["export", "--all", str(tmp_path / "a.zip"), "--store", home.uri]) == 2
    assert ": its arrays/descent.npz cannot be read (" in capsys.readouterr().err
    assert not list(tmp_path.glob("*a.zip*"))


def test_a_sweep_that_is_not_there_is_told_of(home, tmp_path, capsys):
    assert main(["export", "none", str(tmp_path / "a.zip"), "--store", home.uri]) == 2
    assert "comparison none: is not in" in capsys.readouterr().err
    assert not list(tmp_path.glob("*a.zip*"))
