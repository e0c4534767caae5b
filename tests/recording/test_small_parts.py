"""Small parts of recording: who ends an orphan, what is thinned, which stores are asked first."""

import sqlite3
from types import SimpleNamespace

import pytest

from normbench import names
from normbench.recording.resume import recovery
from normbench.recording.store import connection, records, thinned
from normbench.recording.transfer import copies

SWEEP, HERE = 10, 20  # numbers of processes


@pytest.mark.parametrize(
    ("here", "parent", "lives", "done"),
    [
        (SWEEP, 1, True, []),
        (SWEEP, SWEEP, False, []),
        (HERE, SWEEP, False, ["deaf", f"ends with {SWEEP}"]),
        (HERE, 1, True, ["deaf"]),
        (HERE, 1, False, ["deaf", "exit 1"]),
    ],
)
def test_a_launchers_process_ends_with_its_sweep(monkeypatch, tmp_path, here, parent, lives, done):
    did = []
    monkeypatch.setattr(recovery.os, "getpid", lambda: here)
    monkeypatch.setattr(recovery.os, "getppid", lambda: parent)
    monkeypatch.setattr(recovery.os, "_exit", lambda code: did.append(f"exit {code}"))
    monkeypatch.setattr(recovery, "end_with", lambda number: did.append(f"ends with {number}"))
    monkeypatch.setattr(recovery, "is_locked", lambda folder: lives)
    monkeypatch.setattr(recovery.signal, "signal", lambda number, how: did.append("deaf"))
    recovery.stop_orphan(tmp_path, {"process": SWEEP})
    assert did == done


@pytest.mark.parametrize(
    ("lengths", "starts", "is_thinned"),
    [((1, 1), 1, True), ((-5, 1), 1, True), ((0, 0), 1, False), ((1, 1), 2, False), ((), 1, False)],
)
def test_long_histories_of_one_start_are_thinned(lengths, starts, is_thinned):
    histories = {str(n): [0.0] * (thinned.MAX_POINTS + more) for n, more in enumerate(lengths)}
    step = SimpleNamespace(histories=histories, verdicts=("converged",) * starts)
    assert records._is_thinned(step) == is_thinned


def test_a_file_is_asked_by_itself_and_another_database_through_its_driver(tmp_path, monkeypatch):
    asked = []

    def engine(uri):
        asked.append(uri)
        return SimpleNamespace(dispose=lambda: asked.append("disposed"))

    monkeypatch.setattr("sqlalchemy.create_engine", engine)
    tables = SimpleNamespace(get_table_names=lambda: asked.append("tables"))
    monkeypatch.setattr("sqlalchemy.inspect", lambda engine: tables)
    monkeypatch.setattr(connection.stores, "knock", lambda uri: asked.append(f"knock {uri}"))
    file = tmp_path / "mlflow.db"
    connection._knock(f"sqlite:///{file}")
    assert (asked, file.exists()) == ([], True)
    file.write_text("no database, however long this text is" * 9)
    with pytest.raises(sqlite3.DatabaseError):
        connection._knock(f"sqlite:///{file}")
    connection._knock("http://localhost:5000")
    connection._knock("postgresql://u@h/d")
    assert asked == ["knock http://localhost:5000", "postgresql://u@h/d", "tables", "disposed"]


def test_what_waits_has_its_sweeps_ledger_beside_it_even_if_that_was_removed(tmp_path):
    file = tmp_path / "sweep" / "pending" / "3.npz"
    file.parent.mkdir(parents=True)
    written = []
    record = SimpleNamespace(save=written.append)
    ledger = file.parents[1] / recovery.LEDGER
    recovery._save(record, file, {"process": 7})
    assert (written, ledger.read_text()) == ([file], '{"process": 7}')
    recovery._save(record, file, {"process": 8})
    assert ledger.read_text() == '{"process": 7}'  # that of the sweep is not written anew


def a_copy(role, **tags):
    own = {names.SWEEP_ID.key: "a", names.ROLE.key: role, **tags}
    return copies.RunCopy("", "e", "n", "FINISHED", 0, 1, own, {}, {}, [], {})


def test_a_job_without_the_sweep_that_made_it_belongs_to_the_first_that_reused_it():
    members = {names.membership(sweep).key: str(n) for n, sweep in enumerate("acdb")}
    scheme = a_copy(names.SCHEME, **members, **{names.JOB.key: "a/0"})
    job = copies.JobCopy(scheme, [a_copy(names.STEP)])
    moved = job.restricted_to(["c", "b"])
    assert moved.scheme.members == {"c": "1", "b": "3"}
    assert [run.sweep for run in moved.runs] == ["b", "b"]
    assert moved.scheme.tags[names.JOB.key] == "b/3"
    same = job.restricted_to(["a", "d"])
    assert [run.sweep for run in same.runs] == ["a", "a"]
    assert same.scheme.tags[names.JOB.key] == "a/0"
