"""Which errors of a store pass by themselves, and how a database is begun."""

import os
import shutil
import sqlite3
import time
from contextlib import closing

import pytest
from mlflow.exceptions import MlflowException

from normbench.recording.store import Patient, StoreLostError, _initialize


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
    assert Patient(client, "sqlite:///mlflow.db").log_inputs("run") == "run"
    assert client.calls == 2


def test_another_experiment_of_that_name_is_told_at_once():
    words = "Experiment(name=a) already exists. (sqlite3.IntegrityError) UNIQUE constraint failed"
    with pytest.raises(MlflowException, match="already exists"):
        Patient(Client(words), "sqlite:///mlflow.db").create_experiment("a")


def test_what_lasts_is_told_at_once():
    client = Client("(sqlite3.DatabaseError) database disk image is malformed", always=True)
    with pytest.raises(StoreLostError, match="malformed"):
        Patient(client, "sqlite:///mlflow.db").log_inputs("run")
    assert client.calls == 1


def test_what_never_passes_is_lost_after_some_patience():
    client = Client("database is locked", always=True)
    patient = Patient(client, "sqlite:///mlflow.db", seconds=0.2)
    with pytest.raises(StoreLostError, match="locked"):
        patient.log_inputs("run")
    assert client.calls >= 4
    with pytest.raises(StoreLostError):
        patient.log_inputs("run")  # the others do not wait again
    assert client.calls == 5


def test_another_error_is_the_callers():
    client = Client("RESOURCE_DOES_NOT_EXIST", always=True)
    with pytest.raises(MlflowException):
        Patient(client, "sqlite:///mlflow.db").log_inputs("run")
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
