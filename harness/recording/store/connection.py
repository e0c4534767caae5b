"""The store: opened safely, and called with patience."""

import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from normbench.datasets.values import UserError, format_value
from normbench.recording.store import database
from normbench.recording.store.places import own_place, try_folder, try_remote
from normbench.results.safe import clean, secrets
from normbench.results.store import entities, mlflows_own, stores, uris

PATIENCE = 60.0  # seconds that a call is repeated for, where waiting can help
AT_FIRST = 10.0  # while the store is opened: a mistake is more likely, and nothing is lost yet
KNOCK = 3.0  # until it answers at all
SILENT = 2.0  # of which so many go by before it is told
ABANDONED = 3600.0  # seconds after which the process that drafted a database has ended
GRAIN = 0.5  # seconds by which the time of a file may be behind the clock
LONGEST_PAUSE = 5.0
FEW = 4  # and at least so many times
RETRIES = 1  # of MLflow's own for a request
SIDE_BY_SIDE = 8  # requests to a server
# What passes by itself, and what does not, in the words of the databases and of MLflow's client.
PASSING = re.compile(
    "database is locked|disk is full|no space left|disk i/o error|could not connect"
    "|connection (refused|reset|aborted)|max retries exceeded|server closed the connection"
    "|error code 5|temporarily unavailable|timed out|too many clients|starting up|shutting down"
    "|terminating connection"
)
# Two were the first: to open an empty database, or to log one data set.
RACES = re.compile(f"{PASSING.pattern}|already exists|duplicate key|unique constraint")
LASTING = re.compile(
    "readonly|read-only|malformed|not a database|no such (table|column)|permission denied"
    f"|password authentication|{stores.UNAUTHORIZED}"
)


class StoreLostError(RuntimeError):
    """The store cannot be written, and waiting did not help; what was found is kept on disk."""


class Patient:
    """MLflow's client, whose calls are repeated while the store is away for the moment.

    After one call that waited in vain, the others do not wait again.
    """

    def __init__(self, client: Any, uri: str, seconds: float = PATIENCE) -> None:
        self._client, self._uri, self._seconds = client, uri, seconds
        self.has_transactions = isinstance(client, database.WritableDatabase)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)
        passing = RACES if name == "log_inputs" else PASSING

        def repeated(*arguments: Any, **named: Any) -> Any:
            try:
                return patiently(
                    lambda: call(*arguments, **named), self._uri, self._seconds, passing
                )
            except StoreLostError:
                self._seconds = 0.0
                raise

        return repeated


def patiently(
    call: Callable[[], Any],
    uri: str,
    seconds: float,
    passing: re.Pattern[str] = PASSING,
    few: int = FEW,
) -> Any:
    """Return what a call gives, repeated while the store of a URI is away for the moment.

    passing: finds the errors that waiting can help with. few: how often it is called at least,
    for a call may itself take longer than the patience. Raises `StoreLostError` where the store
    stays away, or where waiting cannot help.
    """
    started, pause, told, tries = time.monotonic(), 0.1, False, 0
    shown = f"tracking.uri={secrets.blot_places(uri)}"
    while True:
        try:
            tries += 1
            return call()
        except Exception as error:
            again = tries < few and seconds > 0
            waited, text = time.monotonic() - started, f"{error} {error.__cause__ or ''}".lower()
            lasting = LASTING.search(text)
            if not lasting and not passing.search(text):
                raise
            words = stores.reason_of(error)
            if lasting or (waited + pause > seconds and not again):
                raise StoreLostError(f"{shown}: the store cannot be written ({words})") from error
        if waited > SILENT and not told and seconds > AT_FIRST:  # else the end is near
            print(f"{shown}: {words}; trying for {seconds:.0f} s", file=sys.stderr, flush=True)
            told = True
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


@dataclass(frozen=True)
class Store:
    """Where runs go: MLflow's tracking URI, and the folder or URI of the artifacts."""

    uri: str
    artifacts: str | None

    @classmethod
    def at(cls, uri: Any, artifacts: Any, folder: Path) -> "Store":
        """Return the store with paths made absolute against a folder."""
        if not isinstance(uri, str) or not uri:
            raise UserError(
                f"tracking.uri={format_value(uri)}: must be a URI, such as "
                "http://host:5000 of a server, or sqlite:///mlflow.db of a file"
            )
        if artifacts is not None and not isinstance(artifacts, str):
            raise UserError(
                f"tracking.artifacts={artifacts}: must be a folder, a URI or null, such as "
                "tracking.artifacts=mlartifacts"
            )
        secrets.learn(uri, artifacts or "")
        if artifacts and secrets.blot_places(artifacts) != artifacts:
            raise UserError(
                f"tracking.artifacts={secrets.blot_places(artifacts)}: holds a user, a password or "
                "a token, which the database would keep for everybody who reads it; leave it out, "
                "and set it where the artifacts' library looks for it, such as "
                "AWS_SECRET_ACCESS_KEY or MLFLOW_TRACKING_PASSWORD"
            )
        try:
            uri = uris.absolute(uri, folder)
        except ValueError as error:
            raise UserError(f"tracking.uri={secrets.blot_places(uri)}: {error}") from None
        if artifacts and "://" not in artifacts:
            artifacts = (folder / artifacts).as_uri()
        return cls(uri, artifacts)

    @property
    def shown(self) -> str:
        """The URI without its password, the same in every process."""
        return secrets.blot_places(self.uri)

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store; None for any other."""
        return uris.database(self.uri)

    def settle(self) -> None:
        """Wait until what is written is on the disk, once a job: `mlflows_own.mind_connections`."""
        with suppress(OSError), open(f"{self.database}-wal", "rb+") as log:  # none: no log, no wait
            os.fsync(log.fileno())

    def statuses(self, runs: Sequence[str]) -> dict[str, str]:
        """Return the status of each of some runs that stands in the store, by its id.

        What cannot be read does not stand there. Of a file, by a connection of its own: one that is
        open still reads a file that was removed.
        """
        found: dict[str, str] = {}
        with suppress(StoreLostError, sqlite3.Error):
            if self.database:
                asked = partial(mlflows_own.statuses, self.database, runs)
                found = patiently(asked, self.uri, PATIENCE)
            else:
                with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                    found = dict(zip(runs, pool.map(self._of_client, runs)))
        return {run: status for run, status in found.items() if status}

    def _of_client(self, run: str) -> str:
        try:
            return str(self.client.get_run(run).info.status)
        except mlflows_own.refusals():
            return ""

    @property
    def entities(self) -> Any:
        """The module whose values the client takes: metrics, parameters, tags, data sets."""
        if self.client.has_transactions:
            return entities
        import mlflow.entities

        return mlflow.entities

    def _open(self) -> Any:
        """Return MLflow's client, which makes the tables where there are none, once it answers."""
        client = database.client(self.uri)
        client.search_experiments(max_results=1)
        return client

    def _check_artifacts(self) -> None:
        """Raise `UserError` where artifacts cannot go: the first job would find out."""
        if not self.artifacts or uris.is_server(self.uri):  # the server says where
            return
        try:
            if self.artifacts.startswith("file:"):
                try_folder(uris.path_of(self.artifacts))
            else:
                from mlflow.store.artifact import artifact_repository_registry as repositories

                repository = repositories.get_artifact_repository
                try_remote(self.artifacts, lambda uri: repository(uri, self.uri))
        except Exception as error:  # whatever the library of a kind of place raises
            raise UserError(
                f"tracking.artifacts={secrets.blot_places(self.artifacts)}: cannot be written "
                f"({clean.first_line(error)}); name a folder that can, such as "
                f"tracking.artifacts={own_place('mlartifacts')}"
            ) from error

    @cached_property
    def client(self) -> Any:
        """MLflow's client, with patience. Raises `UserError` where the store cannot be opened."""
        mlflows_own.settle(RETRIES)
        self._check_artifacts()
        try:
            if self.database:
                _initialize(self.database, self.artifacts)
                followed = partial(mlflows_own.follow, self.database)
                patiently(followed, self.uri, AT_FIRST)
            patiently(lambda: _knock(self.uri), self.uri, KNOCK, few=1)
            return Patient(patiently(self._open, self.uri, AT_FIRST, RACES), self.uri)
        except Exception as error:  # whatever a database's driver raises
            cause = (isinstance(error, StoreLostError) and error.__cause__) or error
            place = f"tracking.uri={uris.of_file(own_place('mlflow.db'))}"
            other = clean.first_line(cause), f"give a URI that can be written, such as {place}"
            why, remedy = stores.REFUSED if stores.is_refused(cause) else other
            raise UserError(
                f"tracking.uri={self.shown}: the store cannot be opened ({why}); {remedy}"
            ) from error


def _knock(uri: str) -> None:
    """Raise an error where a database or a server does not answer; MLflow would wait for 100 s."""
    if uris.is_server(uri):
        stores.knock(uri)
        return
    file = uris.database(uri)
    if file:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("select name from sqlite_master").fetchall()
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    try:
        sqlalchemy.inspect(engine).get_table_names()
    finally:
        engine.dispose()


def _initialize(file: Path, artifacts: str | None) -> None:
    """Make the database under a name of its own and link it to its place.

    Many processes may start on a fresh folder, and one may be interrupted: no one ever opens a
    database whose tables are half made.
    """
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist")
    started = time.time()
    if file.exists():
        if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
            raise PermissionError(f"{file} cannot be written")
        stores.refuse_strange(file, empty=True)
        return
    _sweep_out(file, started)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.touch()
        mlflows_own.write_tables(draft, database.tables(), artifacts or str(file.parent))
        with suppress(FileExistsError):  # another process was first
            os.link(draft, file)
    finally:
        for leftover in file.parent.glob(f"{draft.name}*"):
            leftover.unlink()


def _sweep_out(file: Path, missing: float) -> None:
    """Remove what processes that were killed have left of a database that is not there.

    Their drafts; and the logs of a database that was deleted since, which SQLite would write into
    the new one. missing: when it was not there; a younger log is that of a process which was first.
    """
    for ending in ("-wal", "-shm"):
        log = Path(f"{file}{ending}")
        with suppress(FileNotFoundError):
            if log.stat().st_mtime < missing - GRAIN:
                log.unlink()
    for draft in file.parent.glob(f".{file.name}.*"):
        with suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > ABANDONED:
                draft.unlink()
