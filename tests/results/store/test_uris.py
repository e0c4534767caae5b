"""URIs of stores: whoever opens one, opens the same file, or nobody does."""

from pathlib import Path

import pytest
import sqlalchemy

from normbench.datasets import UserError
from normbench.recording.store.connection import Store
from normbench.results.store import stores, uris
from normbench.results.store.errors import ResultsError

HONOURED = {
    "sqlite:///my.db": "my.db",
    "sqlite:///my.db?timeout=60": "my.db",
    "sqlite:///my.db?timeout=0.5": "my.db",
    "SQLite:///my.db": "my.db",
    "sqlite+pysqlite:///my.db": "my.db",
    " sqlite:///my.db ": "my.db",
    "sqlite:///a b.db": "a b.db",
    "sqlite:///a%20b.db": "a b.db",
    "sqlite:///50%25.db": "50%.db",
    "sqlite:///a%2520b.db": "a%20b.db",
    "sqlite:///who%3F.db": "who?.db",
    "sqlite:///é=1#a@b:c.db": "é=1#a@b:c.db",
    "sqlite:///file:my.db": "file:my.db",
    "sqlite:///none/../my.db": "my.db",
    "sqlite:///~/my.db": "home/my.db",
}
REFUSED = (
    *("sqlite", "sqlite:my.db", "sqlite:/my.db", "sqlite://my.db", "sqlite://host:5/my.db"),
    *("sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a%00b"),
    *("sqlite+aiosqlite:///my.db", "sqlite+pysqlcipher:///my.db"),
    *("sqlite:///my.db?", "sqlite:///my.db?timeout", "sqlite:///my.db?timeout=soon"),
    *("sqlite:///my.db?timeout=-1", "sqlite:///my.db?timeout=nan", "sqlite:///my.db?timeout=inf"),
    *("sqlite:///my.db?timeout=1&timeout=2", "sqlite:///my.db?timeout=1&mode=ro"),
    *("sqlite:///my.db?mode=ro", "sqlite:///file:my.db?uri=true"),
)


@pytest.fixture(params=["plain", "50%20", "why?"])
def folder(request, tmp_path, monkeypatch):
    """A working folder, whose name may have a meaning in a URI, with the user's home in it."""
    folder = tmp_path / request.param
    (folder / "home").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    return folder


@pytest.mark.parametrize("uri", HONOURED)
def test_writer_reader_and_mlflow_open_one_file(uri, folder):
    file = folder / HONOURED[uri]
    store = Store.at(uri, None, folder)
    assert store.uri == stores.absolute(uri)
    assert Store.at(store.uri, None, Path("/elsewhere")).uri == store.uri
    assert store.database == uris.database(store.uri) == file
    engine = sqlalchemy.create_engine(store.uri)
    with engine.connect() as connection:
        ((name,),) = connection.exec_driver_sql("select file from pragma_database_list")
    engine.dispose()
    assert Path(name) == file


@pytest.mark.parametrize("uri", REFUSED)
def test_what_is_no_file_is_refused_by_writer_and_reader_in_one_line(uri, folder):
    with pytest.raises(UserError) as written:
        Store.at(uri, None, folder)
    with pytest.raises(ResultsError) as read:
        stores.connect(uri)
    rule = str(written.value).removeprefix(f"tracking.uri={uri}: ")
    assert read.value.args[0] == f"--store {uri}: {rule}"
    assert "write sqlite:///mlflow.db" in rule
    assert len(rule.splitlines()) == 1
    assert [entry.name for entry in folder.iterdir()] == ["home"]


def test_a_timeout_reaches_sqlite(folder):
    engine = sqlalchemy.create_engine(stores.absolute("sqlite:///my.db?timeout=60"))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000
    engine.dispose()


@pytest.mark.sqlite("the folder of a file")
def test_mlflow_makes_no_other_folder(folder):
    assert Store.at("sqlite:///my.db", None, folder).client.search_experiments()
    assert sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) == ["home"]
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("HTTP://me:Pa%20ss@Host:5000/A", "http://me:Pa%20ss@Host:5000/A"),
        ("https://host", "https://host"),
        (
            "PostgreSQL+psycopg://me:P%40x@h/db?sslmode=require",
            "postgresql+psycopg://me:P%40x@h/db?sslmode=require",
        ),
        ("mlruns", "mlruns"),
    ],
)
def test_other_stores_stay_as_they_are_written(uri, expected, tmp_path):
    assert uris.absolute(uri, tmp_path) == expected
    assert uris.database(expected) is None
    assert uris.is_server(uri) == expected.startswith("http")
