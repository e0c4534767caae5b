"""Which errors of a store pass by themselves, and how a database is begun."""

import errno
import os
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from mlflow.exceptions import MlflowException

from normbench.datasets import UserError
from normbench.recording.store import connection as connections
from normbench.recording.store.connection import (
    RetryingClient,
    Store,
    StoreLostError,
    _initialize,
    _remove_remnants,
)
from normbench.recording.store.places import try_folder
from normbench.results.store import mlflows_own


class Client:
    """A store that fails once, or always, with given words."""

    def __init__(self, words, always=False):
        self.words, self.always, self.calls = words, always, 0

    def log_inputs(self, run_id):
        self.calls += 1
        if self.always or self.calls == 1:
            raise MlflowException(self.words)
        return run_id

    create_experiment = log_inputs


@pytest.mark.parametrize(
    "words",
    [
        "(sqlite3.OperationalError) database is locked",
        "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.experiment_id, datasets.name",
        '(psycopg.errors.UniqueViolation) duplicate key value violates unique constraint "pk"',
    ],
)
def test_what_passes_is_tried_again(words):
    client = Client(words)
    assert RetryingClient(client, "sqlite:///mlflow.db").log_inputs("run") == "run"
    assert client.calls == 2


def test_another_experiment_of_that_name_is_told_at_once():
    words = "Experiment(name=a) already exists. (sqlite3.IntegrityError) UNIQUE constraint failed"
    with pytest.raises(MlflowException, match="already exists"):
        RetryingClient(Client(words), "sqlite:///mlflow.db").create_experiment("a")


def test_what_lasts_is_told_at_once():
    client = Client("(sqlite3.DatabaseError) database disk image is malformed", always=True)
    with pytest.raises(StoreLostError, match="malformed"):
        RetryingClient(client, "sqlite:///mlflow.db").log_inputs("run")
    assert client.calls == 1


def test_what_never_passes_is_lost_after_some_patience():
    client = Client("database is locked", always=True)
    patient = RetryingClient(client, "sqlite:///mlflow.db", seconds=0.2)
    with pytest.raises(StoreLostError, match="locked"):
        patient.log_inputs("run")
    assert client.calls >= 4
    with pytest.raises(StoreLostError):
        patient.log_inputs("run")  # the others do not wait again
    assert client.calls == 5


def test_another_error_is_the_callers():
    client = Client("RESOURCE_DOES_NOT_EXIST", always=True)
    with pytest.raises(MlflowException):
        RetryingClient(client, "sqlite:///mlflow.db").log_inputs("run")
    assert client.calls == 1


@pytest.mark.parametrize(("seconds", "stays"), [(60, False), (-60, True)])
def test_the_log_of_a_database_that_was_deleted_is_not_read(tmp_path, seconds, stays):
    """But one that is younger than the look for the database is that of a process just begun."""
    database, log = tmp_path / "mlflow.db", tmp_path / "mlflow.db-wal"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute("create table of_old (x)")
        connection.commit()
        shutil.copy(log, tmp_path / "kept")
    database.unlink()
    shutil.move(tmp_path / "kept", log)
    changed = time.time() - seconds
    os.utime(log, (changed, changed))
    _initialize(database, None)
    assert log.exists() == stays
    if not stays:
        with closing(sqlite3.connect(database)) as connection:
            (found,) = connection.execute("pragma integrity_check").fetchone()
            tables = {name for (name,) in connection.execute("select name from sqlite_master")}
        assert found == "ok"
        assert "runs" in tables
        assert "of_old" not in tables


def schema(file):
    """Return what a database has, without the order of a table's checks, which Python hashes."""
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute("select type, name, sql from sqlite_master").fetchall()
        revision = connection.execute("select * from alembic_version").fetchall()
        spaces = connection.execute("select * from workspaces").fetchall()
    lines = {
        (kind, name, *sorted(line.strip() for line in str(sql).split("\n")))
        for kind, name, sql in found
    }
    return lines, revision, spaces


@pytest.mark.commands
def test_new_tables_are_those_of_mlflow(tmp_path):
    """`tables.sql` is written anew, for another version, from the dump of what MLflow makes."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = Store.at("sqlite:///mlflow.db", "mlartifacts", tmp_path)
    _initialize(store.database, store.artifacts)
    (tmp_path / "b").mkdir()
    theirs = SqlAlchemyStore(f"sqlite:///{tmp_path}/b/mlflow.db", store.artifacts)
    theirs.engine.dispose()
    (mine,) = store.client.search_experiments()
    assert mine.artifact_location == theirs.get_experiment("0").artifact_location
    assert schema(store.database) == schema(tmp_path / "b" / "mlflow.db")


@pytest.mark.parametrize(("mode", "waits"), [("wal", 1), ("delete", 2)])
def test_only_a_database_in_wal_mode_waits_less_for_the_disk(tmp_path, mode, waits):
    """1 is SQLite's NORMAL, 2 its FULL."""
    import sqlalchemy

    store = Store.at("sqlite:///mlflow.db", "artifacts", tmp_path)
    assert store.client.search_experiments()
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute(f"pragma journal_mode={mode}")
        connection.execute("create table t (a)")
    mlflows_own.make_client(store.uri)  # MLflow's own, from which on its connections are minded
    engine = sqlalchemy.create_engine(f"sqlite:///{other}")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("pragma synchronous").scalar() == waits
    engine.dispose()


def test_a_job_waits_for_the_disk_once(tmp_path, monkeypatch):
    """What is waited for is the database's log, to which every write goes first."""
    store = Store.at("sqlite:///mlflow.db", "artifacts", tmp_path)
    assert store.client.search_experiments()
    waited = []
    monkeypatch.setattr(
        os, "fsync", lambda number: waited.append(os.readlink(f"/proc/self/fd/{number}"))
    )
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("create table t (a)")  # while it is open, its log is there
        store.sync()
    assert waited == [str(tmp_path / "mlflow.db-wal")]
    Store("http://127.0.0.1:1", None).sync()
    assert len(waited) == 1


def test_many_may_try_a_folder_at_once_and_nothing_stays(tmp_path):
    """Each with a trial of its own: none takes away what another has just made."""
    folder = tmp_path / "mlartifacts" / "data-cost"
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(try_folder, [folder] * 400)) == [None] * 400
    assert list(tmp_path.iterdir()) == []


RAW = (
    "API request to http://127.0.0.1:9/api/2.0/mlflow/runs/search failed with exception "
    "HTTPConnectionPool(host='127.0.0.1', port=9): Max retries exceeded with url: "
    "/api/2.0/mlflow/runs/search (Caused by NewConnectionError('<urllib3.connection.HTTPConnection "
    "object at 0x7f0>: Failed to establish a new connection: [Errno 111] {}'))" + "x" * 300
)


@pytest.mark.parametrize(
    ("text", "words"),
    [(RAW.format("Connection refused"), "connection refused"), (RAW.format("else"), "API request")],
)
def test_a_lost_server_is_told_in_few_words(text, words):
    with pytest.raises(StoreLostError, match=words) as caught:
        RetryingClient(Client(text, always=True), "http://127.0.0.1:9", 0).log_inputs("run")
    assert len(str(caught.value)) < 300


def old(file, seconds):
    """Make a file that was changed so many seconds ago."""
    file.write_bytes(b"")
    changed = time.time() - seconds
    os.utime(file, (changed, changed))
    return file


def test_what_killed_processes_drafted_goes_after_an_hour(tmp_path):
    names = {f".mlflow.db.{number}": ago for number, ago in ((1, 3700), (2, 3500), (3, 0))}
    names |= {".other.db.1": 9999, "mlflow.db.1": 9999}
    files = {name: old(tmp_path / name, ago) for name, ago in names.items()}
    _initialize(tmp_path / "mlflow.db", None)
    assert [name for name, file in files.items() if not file.exists()] == [".mlflow.db.1"]
    assert not list(tmp_path.glob(f".mlflow.db.{os.getpid()}*"))


def test_drafts_of_a_database_with_brackets_in_its_name_go(tmp_path):
    file = tmp_path / "a[1].db"
    old(tmp_path / f".{file.name}.1", 4000)
    _initialize(file, None)
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("has_links", [True, False])
def test_processes_that_start_at_once_make_one_database(has_links, tmp_path, monkeypatch):
    """Without hard links, as on exFAT, too; no process replaces the database of another.

    Threads stand for processes: their locks on a file are as apart as those of processes.
    """
    if not has_links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "not permitted")))
    monkeypatch.setattr(os, "getpid", threading.get_ident)
    file, start = tmp_path / "mlflow.db", threading.Barrier(6)
    # After each has seen that there is no database.
    monkeypatch.setattr(connections, "_remove_remnants", lambda *_: start.wait())

    def work(number):
        _initialize(file, None)
        with closing(sqlite3.connect(file, timeout=60)) as database:
            database.execute(f"create table of_process_{number} (a)")

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == [None] * 6
    with closing(sqlite3.connect(file)) as database:
        query = "select count(*) from sqlite_master where name like 'of_process_%'"
        assert database.execute(query).fetchone() == (6,)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("seconds", "stays"), [(0.2, True), (0.8, False)])
def test_a_log_goes_where_it_is_half_a_second_older_than_the_look(seconds, stays, tmp_path):
    logs = [old(tmp_path / f"mlflow.db{ending}", 0) for ending in ("-wal", "-shm")]
    at = logs[0].stat().st_mtime + seconds
    for log in logs:
        os.utime(log, (at - seconds, at - seconds))
    _remove_remnants(tmp_path / "mlflow.db", at)
    assert [log.exists() for log in logs] == [stays] * 2


def test_a_database_that_cannot_be_made_or_written_is_refused(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"the folder .*none does not exist"):
        _initialize(tmp_path / "none" / "mlflow.db", None)
    file, access = tmp_path / "mlflow.db", os.access
    _initialize(file, None)
    before = file.read_bytes()
    for locked in (file, tmp_path):
        with monkeypatch.context() as patched:
            patched.setattr(os, "access", lambda path, mode, at=locked: path != at)
            with pytest.raises(PermissionError, match=r"mlflow\.db cannot be written"):
                _initialize(file, None)
    assert os.access is access
    _initialize(file, None)  # one that is there stays as it is
    assert file.read_bytes() == before
    strange = tmp_path / "strange.db"
    with closing(sqlite3.connect(strange)) as connection:
        connection.execute("create table t (a)")
        connection.commit()
    with pytest.raises(ValueError, match="another program's database"):
        _initialize(strange, None)
    empty = old(tmp_path / "empty.db", 0)
    _initialize(empty, None)
    assert empty.read_bytes() == b""


@pytest.mark.parametrize("artifacts", [None, "file:///elsewhere"])
def test_artifacts_are_beside_a_new_database_unless_they_have_a_place(artifacts, tmp_path):
    _initialize(tmp_path / "mlflow.db", artifacts)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        rows = connection.execute("select artifact_location from experiments").fetchall()
    ((location,),) = rows
    assert location.startswith(artifacts or str(tmp_path))


def test_paths_of_a_store_are_those_from_a_folder(tmp_path):
    store = Store.at("sqlite:///a.db", "kept", tmp_path)
    assert store == Store(f"sqlite:///{tmp_path}/a.db", (tmp_path / "kept").as_uri())
    assert store.database == tmp_path / "a.db"
    served = Store.at("http://me:secret12@host:5000", "s3://bucket/a", tmp_path)
    assert served == Store("http://me:secret12@host:5000", "s3://bucket/a")
    assert (served.database, "secret12" in served.safe_uri) == (None, False)
    assert Store.at("http://host:5000", None, tmp_path).artifacts is None
    for uri, artifacts, words in (
        ("", None, "must be a URI"),
        (None, None, "must be a URI"),
        (3, "kept", "must be a URI"),
        ("sqlite:///a.db", 3, "must be a folder, a URI or null"),
    ):
        with pytest.raises(UserError, match=words):
            Store.at(uri, artifacts, tmp_path)


def test_runs_that_a_server_does_not_have_have_no_status():
    def get_run(run):
        if run == "none":
            raise MlflowException("no such run")
        return SimpleNamespace(info=SimpleNamespace(status=f"{run} status"))

    store = Store("http://127.0.0.1:1", None)
    store.__dict__["client"] = SimpleNamespace(get_run=get_run)
    assert store.statuses(["a", "none", "b"]) == {"a": "a status", "b": "b status"}
    assert store.statuses([]) == {}

    def lost(run):
        raise StoreLostError("away")

    store.__dict__["client"] = SimpleNamespace(get_run=lost)
    assert store.statuses(["a"]) == {}


def test_a_store_that_does_not_answer_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "OPENING_PATIENCE", 0.0)
    with pytest.raises(
        UserError, match=r"the store cannot be opened \(the folder .* does not"
    ) as no:
        assert Store.at("sqlite:///none/a.db", None, tmp_path).client
    assert "give a URI that can be written, such as tracking.uri=sqlite:///" in str(no.value)


@pytest.mark.parametrize("artifacts", [None, "s3://bucket/a"])
def test_artifacts_of_a_server_are_its_own_to_check(artifacts, monkeypatch):
    asked = []
    monkeypatch.setattr(connections, "try_remote", lambda uri, open_: asked.append(uri))
    Store("http://127.0.0.1:1", artifacts)._check_artifacts()
    assert asked == []
    Store("sqlite:///a.db", artifacts)._check_artifacts()
    assert asked == ([artifacts] if artifacts else [])
