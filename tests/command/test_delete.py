"""Sweeps are listed, and deleted for good; what other sweeps share stays theirs."""

import fcntl
import json
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from normbench import names
from normbench.command.results import delete
from normbench.command.results.commands import main
from normbench.datasets import UserError
from normbench.recording.resume import leftovers
from normbench.recording.store.writer import Writer
from normbench.results.store import owner
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import last_sweep_ids, load, load_query, sweeps
from tests import door, forks, stores

pytestmark = pytest.mark.commands

NAME = "two-softmax"


def rows(two, table):
    ((count,),) = two.store.ask(f"select count(*) from {table}")
    return count


def collect(two):
    """Do what the command says that is left to do beside a server."""
    if two.store.server:
        two.store.server.collect()


def kept(two):
    return {file.parts[-4] for file in two.store.kept.glob("**/*.npz")}


@pytest.mark.slow
def test_a_sweep_is_gone_but_for_what_others_share(two, capsys):
    shared = two.runs["a", "MinMaxScaler"]
    before = load(two.uri, "b")
    history = before.histories(before.of_role("scheme"))
    assert len(kept(two)) == 3
    assert main(["delete", "a", "--yes", "--store", two.uri]) == 0
    assert "deleted a: 1 job, with artifacts and figures; 1 that other comparisons share stay" in (
        capsys.readouterr().out
    )
    with pytest.raises(ResultsError, match="comparison a: is not in"):
        load(two.uri, "a")
    after = load(two.uri, "b")
    assert set(after.of_role("scheme")["run_id"]) == {two.runs["b", "StandardScaler"], shared}
    assert after.histories(after.of_role("scheme")).equals(history)
    assert len(after.of_role("step")) == 4
    assert set(after.of_role("scheme")["tags.sweep_id"]) == {"b"}
    assert set(after.of_role("scheme")["parent"]) == set(after.of_role("sweep")["run_id"])
    assert kept(two) == {shared, two.runs["b", "StandardScaler"]}
    collect(two)
    assert sorted(os.listdir(two.folder / "outputs")) == ["b"]
    assert rows(two, "runs") == 1 + 2 + 4  # nothing is left of the deleted ones
    assert main(["delete", "b", "--yes", "--store", two.uri]) == 0
    collect(two)
    assert rows(two, "runs") == rows(two, "metrics") == 0
    assert kept(two) == set()


@pytest.mark.sqlite("a server keeps deleted runs until its own gc")
def test_a_deletion_that_was_cut_off_is_finished_by_the_same_command(two, monkeypatch, capsys):
    before = rows(two, "runs")
    with monkeypatch.context() as cut_off:
        cut_off.setattr(Writer, "remove", mark_deleted)
        assert main(["delete", "a", "--yes", "--store", two.uri]) == 0
    assert rows(two, "runs") == before  # MLflow marks them, and keeps them
    assert main(["delete", "a", "--yes", "--store", two.uri]) == 0
    assert "deleted a: the rest of a deletion that was cut off" in capsys.readouterr().out
    assert rows(two, "runs") == 1 + 2 + 4
    assert kept(two) == {two.runs["a", "MinMaxScaler"], two.runs["b", "StandardScaler"]}
    with pytest.raises(ResultsError, match="comparison a: is not in"):
        delete.run(two.uri, ["a"], True)


def test_a_shared_job_has_its_number_in_the_comparison_that_stays(two):
    """A job of the deleted id that waits on disk is no job of the store."""
    two.writer.tag(two.runs["a", "MinMaxScaler"], {"job": "a/1"})
    assert main(["delete", "a", "--yes", "--store", two.uri]) == 0
    assert two.writer.run(two.runs["a", "MinMaxScaler"]).data.tags["job"] == "b/1"
    assert not two.writer.has_ended_job(NAME, "a/1")


def test_the_sweep_that_took_a_job_in_goes_without_it(two):
    assert main(["delete", "b", "--yes", "--store", two.uri]) == 0
    found = load(two.uri, "a").of_role("scheme")
    assert len(found) == 2
    assert not [name for name in found if name.startswith("tags.sweep.b") and found[name].any()]


@pytest.mark.parametrize("own_jobs", [0, 1])
def test_a_deletion_starts_no_process(two, own_jobs, monkeypatch):
    """A comparison without jobs of its own took 9 s, by `mlflow gc` in another process."""
    if not own_jobs:  # a comparison that has reused all its jobs
        two.writer.tag(two.runs["b", "StandardScaler"], {"sweep_id": "a", "sweep.a": "2"})
        for step in two.writer.search_runs(names.PARENT.equals(two.runs["b", "StandardScaler"])):
            two.writer.tag(step.info.run_id, {"sweep_id": "a"})
    started, runs = Mock(), rows(two, "runs")
    monkeypatch.setattr(subprocess, "Popen", started)
    assert main(["delete", "b", "--yes", "--store", two.uri]) == 0
    assert not started.called
    assert rows(two, "runs") == (runs if two.store.server else runs - 1 - 3 * own_jobs)


def test_what_is_not_the_sweep_s_stays(two):
    folder = two.folder / "outputs" / "a"
    (folder / "notes.txt").write_text("mine")
    (folder / "histories.png").write_bytes(b"changed by its owner")
    assert main(["delete", "a", "b", "--yes", "--store", two.uri]) == 0
    assert sorted(os.listdir(folder)) == ["histories.png", "notes.txt"]
    assert not (two.folder / "outputs" / "b").exists()


def test_it_asks_and_only_yes_deletes(two, monkeypatch, capsys):
    with pytest.raises(ResultsError, match="nobody can be asked here; add --yes"):
        delete.run(two.uri, ["a"], False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("builtins.input", lambda words: asked.append(words) or "")
    assert delete.run(two.uri, ["a"], False) == 0
    assert asked == [
        "delete a: 1 job, with artifacts and figures; 1 that other comparisons share stay? [y/N] "
    ]
    assert "nothing is deleted" in capsys.readouterr().out
    assert len(load(two.uri, "a").of_role("scheme")) == 2
    with leftovers.lock_new_folder(two.folder / "outputs" / "a"):
        (sweep,) = two.writer.sweep_runs("a").values()
        two.writer.client.update_run(sweep, "RUNNING")
        with pytest.raises(ResultsError, match="comparison a: is at work"):
            delete.run(two.uri, ["a"], True)


def test_ctrl_d_at_the_question_deletes_nothing(two, monkeypatch, capsys):
    def end_of_input(words):
        raise EOFError

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", end_of_input)
    assert delete.run(two.uri, ["a"], False) == 0
    assert "nothing is deleted" in capsys.readouterr().out


def test_an_id_with_quotes_is_not_there(two, capsys):
    for sweep in ("it's", "a`"):
        assert main(["delete", sweep, "--yes", "--store", two.uri]) == 2
        assert f"comparison {sweep}: is not in" in capsys.readouterr().err


def test_a_comparison_of_another_program_whose_id_has_quotes_breaks_nothing(two, capsys):
    foreign = two.writer.start_sweep(NAME, "it's", {"jobs": "5"})
    assert two.writer.end_abandoned(lambda tags: True) == 0
    two.writer.finish(foreign, "KILLED")
    assert list(sweeps(two.uri)["lacks"]) == ["", "", ""]
    assert last_sweep_ids(two.uri) == ("it's", "b")
    two.writer.tag(two.runs["b", "StandardScaler"], {"sweep_id": "it's"})
    found = load_query(two.uri, "tags.normalizer = 'StandardScaler'").of_role("scheme")
    assert list(found["run_id"]) == [two.runs["a", "StandardScaler"]]


@pytest.mark.parametrize("text", ['[[1, "a"]]', "[" * 7000])
def test_a_list_of_figures_that_is_none_removes_no_file(two, text):
    (sweep,) = two.writer.sweep_runs("b").values()
    two.writer.tag(sweep, {names.DRAWN_FILES.key: text})
    assert main(["delete", "b", "--yes", "--store", two.uri]) == 0
    assert (two.folder / "outputs" / "b" / "histories.png").exists()


def test_a_filter_that_only_an_interrupted_job_matches_finds_nothing(two):
    two.writer.finish(two.runs["b", "StandardScaler"], "KILLED")
    with pytest.raises(ResultsError, match="finds no scheme run in"):
        load_query(two.uri, "params.iterations = '3'")


def test_the_list_says_what_a_sweep_lacks_that_was_cut_off(two):
    (sweep,) = two.writer.sweep_runs("b").values()
    two.writer.tag(sweep, {"jobs": "5"})
    assert list(sweeps(two.uri)["lacks"]) == ["", ""]
    two.writer.finish(sweep, "KILLED")
    assert list(sweeps(two.uri)["lacks"]) == ["3", ""]


def test_several_sweeps_are_one_table(two, tmp_path):
    words = ["table", "a", "b", "--store", two.uri, "--format", "csv"]
    done = forks.run(["results", *words], tmp_path)
    assert done.returncode == 0, done.stderr
    labels = [line.split(",")[0].strip('"') for line in done.stdout.splitlines()[1:]]
    assert labels == ["StandardScaler", "MinMaxScaler", "StandardScaler"]
    assert "iterations=3" in done.stdout


@pytest.fixture(params=[("s", "s.2"), ("s.2", "s"), ("d", "sweep_id")])
def neighbours(request, tmp_path, with_store, monkeypatch):
    """Sweeps, finished one after the other in one folder, whose ids hold one another."""
    store, folder = stores.of(tmp_path), tmp_path / "outputs" / "shared"
    writer = door.writer(store)
    # To free the store of deleted runs takes MLflow seconds, and is tested above.
    monkeypatch.setattr(Writer, "remove", mark_deleted)
    for sweep, picture in zip(request.param, (b"first", b"second"), strict=True):
        with leftovers.lock_new_folder(folder):
            (folder / leftovers.LEDGER).write_text(json.dumps({"sweep_id": sweep, "jobs": 1}))
            (folder / "both.png").write_bytes(b"equal")
            (folder / f"{sweep}.png").write_bytes(picture)
            run = writer.start_sweep(NAME, sweep, {"command": "-", **door.own_folder(folder)})
            pictures = [folder / "both.png", folder / f"{sweep}.png"]
            door.tag_figures(writer, folder, run, NAME, pictures)
            writer.finish(run)
    return SimpleNamespace(
        first=request.param[0], second=request.param[1], folder=folder, writer=writer, uri=store.uri
    )


def mark_deleted(writer, runs, deleted=()):
    """Delete runs as MLflow does, which keeps them in the store."""
    for run in runs:
        writer.client.delete_run(run.info.run_id)
    return ""


def test_a_sweep_at_work_keeps_its_lock_when_its_neighbour_is_deleted(neighbours, capsys):
    first, second, folder = neighbours.first, neighbours.second, neighbours.folder
    files = sorted(os.listdir(folder))
    with leftovers.lock_new_folder(folder) as lock:
        (run,) = neighbours.writer.sweep_runs(second).values()
        neighbours.writer.client.update_run(run, "RUNNING")
        assert delete.run(neighbours.uri, [first], True) == 0
        told = f"{folder}: its files stay; another comparison is at work there"
        assert told in capsys.readouterr().out.splitlines()
        assert leftovers.is_held(lock, folder)
        assert sorted(os.listdir(folder)) == files
        with pytest.raises(UserError, match="another comparison is at work there"):
            leftovers.lock_new_folder(folder)
        with pytest.raises(ResultsError, match=f"comparison {second}: is at work"):
            delete.run(neighbours.uri, [second], True)
        assert sorted(os.listdir(folder)) == files


def test_a_sweep_that_starts_keeps_its_lock_before_it_writes_its_ledger(neighbours):
    folder = neighbours.folder  # with the ledger of the second
    files = sorted(os.listdir(folder))
    with leftovers.lock_new_folder(folder) as lock:
        assert delete.run(neighbours.uri, [neighbours.second], True) == 0
        assert leftovers.is_held(lock, folder)
    assert sorted(os.listdir(folder)) == files


def test_a_finished_neighbour_keeps_its_files(neighbours):
    first, second, folder = neighbours.first, neighbours.second, neighbours.folder
    assert delete.run(neighbours.uri, [first], True) == 0
    assert sorted(os.listdir(folder)) == sorted(
        ["both.png", f"{second}.png", leftovers.LEDGER, owner.LOCK]
    )
    assert delete.run(neighbours.uri, [second], True) == 0
    assert not folder.exists()


def test_neighbours_are_deleted_in_either_order(neighbours):
    first, second, folder = neighbours.first, neighbours.second, neighbours.folder
    assert delete.run(neighbours.uri, [second], True) == 0
    assert sorted(os.listdir(folder)) == sorted(["both.png", f"{first}.png"])
    assert delete.run(neighbours.uri, [first], True) == 0
    assert not folder.exists()


@pytest.mark.parametrize("gone", ["lock", "folder"])
def test_a_sweep_that_starts_while_another_is_removed_has_a_lock_that_stands(
    gone, tmp_path, monkeypatch
):
    """The removal ends between the moment the sweep opens the lock and the moment it locks it."""
    folder = tmp_path / "outputs"
    leftovers.lock_new_folder(folder).close()
    flock, removed = fcntl.flock, []

    def remove_and_lock(file, operation):
        if not removed:
            (folder / owner.LOCK).unlink()
            removed.append(gone)
            if gone == "folder":
                folder.rmdir()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    with leftovers.lock_new_folder(folder) as lock:
        assert removed == [gone]
        assert leftovers.is_held(lock, folder)
        with pytest.raises(UserError, match="another comparison is at work there"):
            leftovers.lock_new_folder(folder)
