"""Small parts of recording: who ends an orphan, what is thinned, which stores are asked first."""

import sqlite3
from types import SimpleNamespace

import pytest

from normbench.recording.resume import recovery
from normbench.recording.store import connection, records, thinned

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
    monkeypatch.setattr(recovery, "lives", lambda folder: lives)
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
