"""What a run is written with: times, texts, values, artifacts, and what is collected."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import pandas as pd
import pytest

from normbench import names
from normbench.recording.reuse.recorded import RecordedRun
from normbench.recording.store import database
from normbench.recording.store import writer as writing
from normbench.results.store.entities import Param
from tests import door
from tests import stores as places
from tests.recording.clients import run as a_run
from tests.recording.clients import writer_of

STEPS = pd.DataFrame(
    {
        "run_id": ["a", "b", "c"],
        "parent": ["r", "other", "r"],
        names.STEP_SIZE.column: [0.1, 0.5, 1.0],
        names.BEST.column: ["false", "true", "true"],
    }
)


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        (STEPS, 1.0),
        (STEPS[:2], None),
        (STEPS[:1], None),
        (STEPS.drop(columns=names.BEST.column), None),
    ],
)
def test_the_step_size_that_is_shown_is_the_best_of_the_schemes_own(steps, shown):
    sweep = SimpleNamespace(of_role=lambda role: {names.STEP: steps}[role])
    assert RecordedRun(sweep, "r").shown_step_size == shown


def test_a_recorded_run_has_its_arrays_its_parameters_and_its_series():
    schemes = pd.DataFrame(
        {
            "run_id": ["r", "other"],
            "label": ["mine", "theirs"],
            names.RECORDED.column: ["path,points", ""],
            f"{names.PARAMS}cost": ["softmax", "perceptron"],
            "tags.gone": [None, "x"],
        }
    )
    sweep = SimpleNamespace(
        of_role=lambda role: {names.SCHEME: schemes}[role],
        arrays=lambda rows, name: {label: {name: 1} for label in rows["label"]},
        series=lambda run_id, key: {0: 2.0, 5: 1.0} if (run_id, key) == ("r", "m") else {},
    )
    mine = RecordedRun(sweep, "r")
    assert mine.arrays == {"path": {"path": 1}, "points": {"points": 1}}
    assert mine.params == {"cost": "softmax"}
    assert "tags.gone" not in mine.row
    assert [part.tolist() for part in mine.series("m")] == [[0, 5], [2, 1]]
    assert RecordedRun(sweep, "other").arrays == {}


@pytest.fixture
def own(tmp_path, with_store):
    return door.writer(places.of(tmp_path)).client


@pytest.mark.sqlite("of the file itself")
def test_a_run_has_the_times_that_it_is_given_or_the_present_ones(own, monkeypatch):
    monkeypatch.setattr(database.time, "time", lambda: 12.3456)
    given = own.create_run("0", 5, {names.USER.key: "me"}, "one").info
    now = own.create_run("0", None, {}, "two").info
    assert (given.start_time, now.start_time) == (5, 12345)
    assert (given.status, given.run_name, given.end_time) == ("RUNNING", "one", None)
    own.set_terminated(given.run_id, "KILLED", 9)
    own.set_terminated(now.run_id)
    ends = [own.get_run(one.run_id).info for one in (given, now)]
    assert [(end.status, end.end_time) for end in ends] == [("KILLED", 9), ("FINISHED", 12345)]


@pytest.mark.sqlite("of the file itself")
def test_texts_are_cut_off_where_mlflow_cuts_them(own):
    run_id = own.create_run("0", 5, {}, "one").info.run_id
    own.log_batch(run_id, params=[Param("p", "x" * 6001)], tags=[Param("t", "y" * 8001)])
    data = own.get_run(run_id).data
    assert (len(data.params["p"]), len(data.tags["t"])) == (6000, 8000)


@pytest.mark.sqlite("of the file itself")
def test_a_value_is_kept_as_json_that_one_can_read(own, tmp_path):
    run_id = own.create_run("0", 5, {}, "one").info.run_id
    own.log_dict(run_id, [{"a": Path("b")}], "jobs.json")
    file = own.download_artifacts(run_id, "jobs.json", str(tmp_path))
    assert Path(file).read_text() == '[\n  {\n    "a": "b"\n  }\n]'


@pytest.mark.parametrize("folder", [None, Path("here")])
def test_artifacts_that_are_not_in_a_folder_are_mlflows_to_write(monkeypatch, folder):
    asked, wrote = [], []
    mlflow = SimpleNamespace(
        log_text=lambda *of: asked.append(of), log_artifact=lambda *of: asked.append(of)
    )
    monkeypatch.setattr(database.local_artifacts, "write", lambda *of: wrote.append(of))
    monkeypatch.setattr(database.local_artifacts, "copy", lambda *of: wrote.append(of))
    here = SimpleNamespace(_folder=lambda run_id: folder, _mlflow=mlflow)
    database.WritableDatabase.log_text(here, "r", "words", "a.txt")
    database.WritableDatabase.log_artifact(here, "r", "b.png", None)
    if folder is None:
        assert (asked, wrote) == ([("r", "words", "a.txt"), ("r", "b.png", None)], [])
    else:
        assert (asked, wrote) == ([], [(folder, "a.txt", "words"), (Path("b.png"), folder, "")])


def test_an_artifact_of_no_folder_is_a_topmost_one():
    writer, client = writer_of()
    for folder in ("", "figures"):
        writer.log_file("r", Path("a.png"), folder)
    assert client.named("log_artifact") == [("r", "a.png", None), ("r", "a.png", "figures")]


def test_a_user_without_a_name_is_unknown(monkeypatch):
    for error in (KeyError, OSError):

        def fail(error=error):
            raise error

        monkeypatch.setattr("getpass.getuser", fail)
        assert writing._user() == "unknown"


@pytest.mark.parametrize("error", [None, OSError("the disk is away\nby now")])
def test_deleted_runs_of_a_file_are_removed_each_once(monkeypatch, error):
    writer, client = writer_of()
    writer.store.uri, removed = "sqlite:///a.db", Mock(side_effect=error)
    monkeypatch.setattr(writing.mlflows_own, "remove_run", removed)
    runs, deleted = [a_run("a", **{names.ROLE.key: names.SCHEME}), a_run("b")], [a_run("c")]
    note = writer.remove(runs, deleted)
    assert note.endswith("could not be freed of them (the disk is away)" if error else "")
    assert bool(note) == bool(error)
    assert client.named("delete_run") == [("a",), ("b",)]
    calls = [call("sqlite:///a.db", run) for run in (*runs, *deleted)]
    assert removed.call_args_list == calls[: 1 if error else 3]


def test_a_server_keeps_deleted_runs_and_loses_the_artifacts_of_all_but_steps(monkeypatch):
    writer, client = writer_of()
    cleared = []
    monkeypatch.setattr(writer, "_remove_artifacts", lambda run: cleared.append(run.info.run_id))
    monkeypatch.setattr(writing.mlflows_own, "remove_run", None)
    roles = {"a": names.SWEEP, "b": names.SCHEME, "c": names.STEP}
    runs = [a_run(run_id, **{names.ROLE.key: role}) for run_id, role in roles.items()]
    assert writer.remove(runs).startswith("the server keeps them as deleted runs")
    assert cleared == ["a", "b"]
    assert client.named("delete_run") == [("a",), ("b",), ("c",)]
    assert writer.deleted_runs("s") == []
