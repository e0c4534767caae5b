"""The store that tests write to: SQLite in a folder, or a server (`pytest --store server`).

A folder has one store. Of servers, the tests share one, which is empty again for each folder; a
store that several tests read has a server of its own.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

KINDS = ("sqlite", "server")
RESULTS = "results"  # the word of a command that reads a store

Ask = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Place:
    """A store as a test needs it.

    settings: what names it to a command that writes to it. ask: what its database answers.
    kept: the folder that its artifacts are below, on this machine. server: None of a file.
    """

    uri: str
    artifacts: str | None
    settings: tuple[str, ...]
    ask: Ask
    kept: Path
    server: Any = None

    def named(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return the words of a command together with those that name this store to it."""
        if not self.settings or any("tracking" in word or word == "--store" for word in words):
            return words
        if words[:1] == (RESULTS,):
            return (*words, "--store", self.uri)
        return (*words, *self.settings)


class Servers:
    """PostgreSQL, and the servers before its databases; they start where they are first used."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self._base: Any = None
        self._shared: Place | None = None

    def shared(self) -> Place:
        """Return the store of the server that tests share, emptied."""
        if self._shared is None:
            self._shared = self.own("shared")
        self._shared.ask(EMPTIED)
        self._shared.ask(FIRST)
        rmtree(self._shared.kept, ignore_errors=True)  # there once something is kept
        return self._shared

    def own(self, database: str) -> Place:
        """Return the store of a server of its own."""
        from tests.servers.mlflows import Server, serving
        from tests.servers.postgres import postgres

        if self._base is None:
            self._base = self._ends.enter_context(postgres())
        folder = Path(self._ends.enter_context(TemporaryDirectory()))
        base = self._base
        server = self._ends.enter_context(serving(Server(base.create(database), folder)))
        return Place(
            server.uri,
            None,
            ("tracking=server", f"tracking.uri={server.uri}"),
            lambda query: base.ask(database, query),
            server.artifacts,
            server,
        )

    def end(self) -> None:
        """End all of them."""
        self._ends.close()


EMPTIED = "truncate experiments, datasets, inputs, input_tags restart identity cascade"
FIRST = (  # MLflow's own, which it makes with the tables alone
    "insert into experiments (experiment_id, name, artifact_location, lifecycle_stage, "
    "creation_time, last_update_time, workspace) "
    "values (0, 'Default', 'mlflow-artifacts:/0', 'active', 0, 0, 'default')"
)
# Tables of an empty database that have rows.
FILLED = ("alembic_version", "workspaces")
servers: Servers | None = None  # where `--store server` is given
_known: dict[Path, Place] = {}


@contextmanager
def on_a_server() -> Iterator[None]:
    """Let folders have the store of a server until the context exits, whatever was asked for."""
    global servers
    before = servers
    servers = before or Servers()
    try:
        yield
    finally:
        if not before:
            servers.end()
            _known.clear()
        servers = before


def of(folder: Path, own: bool = False) -> Place:
    """Return the store of a folder. own: several tests read it."""
    if folder not in _known:
        if servers is None:
            _known[folder] = file(folder)
        else:
            _known[folder] = servers.own(f"own{len(_known)}") if own else servers.shared()
    return _known[folder]


def file(folder: Path) -> Place:
    """Return the store of a database in a folder."""
    database = folder / "mlflow.db"

    def ask(query: str) -> list[tuple[Any, ...]]:
        if not database.exists():
            return []
        with closing(sqlite3.connect(database, timeout=60)) as connection:
            return connection.execute(query).fetchall()

    kept = folder / "mlartifacts"
    return Place(f"sqlite:///{database}", str(kept), (), ask, kept)


def empty(database: Path) -> None:
    """Empty a database in a file, but for what MLflow makes together with its tables."""
    with closing(sqlite3.connect(database)) as connection, connection:
        query = "select name from sqlite_master where type = 'table' and name not like 'sqlite%'"
        for (table,) in connection.execute(query).fetchall():
            if table not in FILLED:
                first = " where experiment_id > 0" if table == "experiments" else ""
                connection.execute(f"delete from {table}{first}")
