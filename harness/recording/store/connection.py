"""The connection to a store: opened safely, and retried while the store is away."""

import fcntl
import glob
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
from normbench.recording.store.places import suggested_path, try_folder, try_remote
from normbench.results.safe import clean
from normbench.results.store import entities, mlflows_own, stores, uris

PATIENCE = 60.0  # seconds for which a call is retried, where waiting can help
OPENING_PATIENCE = 10.0  # seconds: a wrong URI is more likely, and nothing is lost yet
KNOCK_PATIENCE = 3.0  # seconds until the store answers at all
SILENT_SECONDS = 2.0  # of retries before the first message
DRAFT_LIFETIME = 3600.0  # seconds after which the process that drafted a database has ended
CLOCK_TOLERANCE = 0.5  # seconds by which the time of a file may be behind the clock
MAX_PAUSE = 5.0  # seconds between two calls
MIN_CALLS = 4
MLFLOW_RETRIES = 1  # for a request
PARALLEL_REQUESTS = 8  # to a server
# Errors that pass by themselves, and errors that last, in the messages of databases and MLflow.
PASSING = re.compile(
    "database is locked|disk is full|no space left|disk i/o error|could not connect"
    "|connection (refused|reset|aborted)|max retries exceeded|server closed the connection"
    "|error code 5|temporarily unavailable|timed out|too many clients|starting up|shutting down"
    "|terminating connection"
)
# Errors of two processes that create the same database, or log the same data set.
RACES = re.compile(f"{PASSING.pattern}|already exists|duplicate key|unique constraint")
LASTING = re.compile(
    "readonly|read-only|malformed|not a database|no such (table|column)|permission denied"
    f"|password authentication|{stores.UNAUTHORIZED}"
)


class StoreLostError(RuntimeError):
    """The store cannot be written, and waiting did not help; records stay on the disk."""


class RetryingClient:
    """A client of MLflow that retries its calls while the store is away.

    After one call has waited in vain, later calls do not wait again.

    Args:
        client: MLflow's client, or a `WritableDatabase` with the same methods.
        uri: The URI of the store, for messages.
        seconds: The time for which a call is retried.
    """

    def __init__(self, client: Any, uri: str, seconds: float = PATIENCE) -> None:
        self._client, self._uri, self._seconds = client, uri, seconds
        # Whether `at_once` writes in one transaction; MLflow's own client has no such method.
        self.has_transactions = isinstance(client, database.WritableDatabase)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of the client under a wrapper that retries it."""
        call = getattr(self._client, name)
        # Two processes may log the same data set at once: one of them fails, and has to retry.
        passing = RACES if name == "log_inputs" else PASSING

        def retry(*arguments: Any, **keywords: Any) -> Any:
            """Call the method of the client, and retry it for the remaining patience."""
            try:
                return retry_call(
                    lambda: call(*arguments, **keywords), self._uri, self._seconds, passing
                )
            except StoreLostError:
                self._seconds = 0.0  # later calls do not wait again
                raise

        return retry


def retry_call(
    call: Callable[[], Any],
    uri: str,
    seconds: float,
    passing: re.Pattern[str] = PASSING,
    min_calls: int = MIN_CALLS,
) -> Any:
    """Return the value of a call, retried while the store of a URI is away.

    Args:
        call: The call.
        uri: The URI of the store, for messages.
        seconds: The patience: the time for which the call is retried; 0 for a single call.
        passing: Matches the messages, in lower case, of errors that waiting can resolve.
        min_calls: The least number of calls, because one call may take longer than the patience.

    Raises:
        StoreLostError: The store stays away, or the message matches `LASTING`: waiting cannot help.
        Exception: Any other error of the call, at once.
    """
    started, pause, warned, tries = time.monotonic(), 0.1, False, 0  # pause: seconds
    setting = f"tracking.uri={clean.blot(uri)}"
    while True:
        try:
            tries += 1
            return call()
        except Exception as error:
            must_retry = tries < min_calls and seconds > 0
            waited, text = time.monotonic() - started, f"{error} {error.__cause__ or ''}".lower()
            lasting = LASTING.search(text)
            if not lasting and not passing.search(text):
                raise
            reason = stores.reason_of(error)
            # Give up where the next call would begin after the patience is over.
            if lasting or (waited + pause > seconds and not must_retry):
                raise StoreLostError(
                    f"{setting}: the store cannot be written ({reason})"
                ) from error
        # A store that is being opened is retried for a short time only, without a message.
        if waited > SILENT_SECONDS and not warned and seconds > OPENING_PATIENCE:
            print(f"{setting}: {reason}; trying for {seconds:.0f} s", file=sys.stderr, flush=True)
            warned = True
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)


@dataclass(frozen=True)
class Store:
    """A store of runs: the tracking URI of MLflow, and the URI of the artifacts.

    Without a URI of the artifacts (None), MLflow chooses where they are.
    """

    uri: str
    artifacts: str | None

    @classmethod
    def at(cls, uri: Any, artifacts: Any, folder: Path) -> "Store":
        """Return a store, with its paths resolved against a folder.

        Args:
            uri: The setting `tracking.uri`.
            artifacts: The setting `tracking.artifacts`: a folder or a URI; None lets MLflow choose.
            folder: The folder against which relative paths are resolved.

        Raises:
            UserError: A setting is no URI, or the artifacts hold a password.
        """
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
        if artifacts and clean.blot(artifacts) != artifacts:
            raise UserError(
                f"tracking.artifacts={clean.blot(artifacts)}: holds a password, "
                "which the database would keep for everybody who reads it; leave it out, "
                "and set it where the artifacts' library looks for it, such as "
                "AWS_SECRET_ACCESS_KEY or MLFLOW_TRACKING_PASSWORD"
            )
        try:
            uri = uris.absolute(uri, folder)
        except ValueError as error:
            raise UserError(f"tracking.uri={clean.blot(uri)}: {error}") from None
        if artifacts and "://" not in artifacts:
            artifacts = (folder / os.path.expanduser(artifacts)).as_uri()
        return cls(uri, artifacts)

    @property
    def safe_uri(self) -> str:
        """The URI without its password, the same in every process."""
        return clean.blot(self.uri)

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store; None for any other."""
        return uris.database(self.uri)

    def sync(self) -> None:
        """Wait until the writes of a job are on disk (`mlflows_own.relax_synchronous_writes`)."""
        # Without a write-ahead log, as for a server, whose `database` is None, the file is missing:
        # there is nothing to wait for.
        with suppress(OSError), open(f"{self.database}-wal", "rb+") as log:
            os.fsync(log.fileno())

    def statuses(self, runs: Sequence[str]) -> dict[str, str]:
        """Return the statuses of runs by their ids, for those runs that the store has.

        Runs that cannot be read are missing; where the store is away, all are. A file is read by a
        new connection, because an open one still reads a file that was removed.

        Args:
            runs: The ids of the runs.
        """
        statuses: dict[str, str] = {}  # an empty status: the server has no such run
        with suppress(StoreLostError, sqlite3.Error):
            if self.database:
                query = partial(mlflows_own.statuses, self.database, runs)
                statuses = retry_call(query, self.uri, PATIENCE)
            else:
                with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
                    statuses = dict(zip(runs, pool.map(self._run_status, runs)))
        return {run: status for run, status in statuses.items() if status}

    def _run_status(self, run: str) -> str:
        """Return the status of a run on a server; empty where the server has no such run."""
        try:
            return str(self.client.get_run(run).info.status)
        except mlflows_own.refusals():
            return ""

    @property
    def entities(self) -> Any:
        """The module of the entity classes that the client takes: metrics, parameters, tags."""
        if self.client.has_transactions:
            return entities
        import mlflow.entities

        return mlflow.entities

    def _open(self) -> Any:
        """Return a client of MLflow that has answered; it creates missing tables."""
        client = database.client(self.uri)
        client.search_experiments(max_results=1)
        return client

    def _check_artifacts(self) -> None:
        """Raise `UserError` where artifacts cannot be written, before the first job runs."""
        if not self.artifacts or uris.is_server(self.uri):  # the server chooses the place
            return
        try:
            if self.artifacts.startswith("file:"):
                try_folder(uris.path_of(self.artifacts))
            else:
                from mlflow.store.artifact import artifact_repository_registry as repositories

                repository = repositories.get_artifact_repository
                try_remote(self.artifacts, lambda uri: repository(uri, self.uri))
        except Exception as error:  # of any class: each artifact library has its own
            raise UserError(
                f"tracking.artifacts={clean.blot(self.artifacts)}: cannot be written "
                f"({clean.first_line(error)}); name a folder that can, such as "
                f"tracking.artifacts={suggested_path('mlartifacts')}"
            ) from error

    @cached_property
    def client(self) -> Any:
        """The retrying client. Raises `UserError` where the store cannot be opened."""
        mlflows_own.set_environment(MLFLOW_RETRIES)
        self._check_artifacts()
        try:
            if self.database:
                _initialize(self.database, self.artifacts)
                update_locations = partial(mlflows_own.update_artifact_locations, self.database)
                retry_call(update_locations, self.uri, OPENING_PATIENCE)
            # A single knock may take longer than the patience: it is not repeated then.
            retry_call(lambda: _knock(self.uri), self.uri, KNOCK_PATIENCE, min_calls=1)
            return RetryingClient(
                retry_call(self._open, self.uri, OPENING_PATIENCE, RACES), self.uri
            )
        except Exception as error:  # of any class: each database driver has its own
            # A StoreLostError hides the error of the store, by which the remedy is chosen.
            cause = (isinstance(error, StoreLostError) and error.__cause__) or error
            suggestion = f"tracking.uri={uris.of_file(suggested_path('mlflow.db'))}"
            reason = clean.first_line(cause)
            remedy = f"give a URI that can be written, such as {suggestion}"
            if stores.is_refused(cause):
                reason, remedy = stores.REFUSED_ACCESS
            raise UserError(
                f"tracking.uri={self.safe_uri}: the store cannot be opened ({reason}); {remedy}"
            ) from error


def _knock(uri: str) -> None:
    """Raise an error where a database or a server does not answer; MLflow would wait 100 s."""
    if uris.is_server(uri):
        stores.knock(uri)
        return
    file = uris.database(uri)
    if file:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("select name from sqlite_master").fetchall()  # reads the file
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    try:
        sqlalchemy.inspect(engine).get_table_names()
    finally:
        engine.dispose()


def _initialize(file: Path, artifacts: str | None) -> None:
    """Check an existing database, or create one under a temporary name and then give it its name.

    Many processes may start on a new folder, and one may be interrupted. No process ever opens a
    database with a part of its tables.

    Args:
        file: The file of the database.
        artifacts: The URI of the artifacts of a new database; None for the folder of the file.

    Raises:
        OSError: The folder is missing, or the database or its folder cannot be written.
        ValueError: The file is no database of MLflow's.
    """
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist")
    started = time.time()
    if file.exists():
        # SQLite writes its logs beside the database.
        if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
            raise PermissionError(f"{file} cannot be written")
        stores.refuse_foreign_database(file, empty=True)
        return
    _remove_remnants(file, started)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.touch()
        mlflows_own.write_tables(draft, database.tables(), artifacts or str(file.parent))
        _publish(draft, file)
    finally:  # remove the draft and the logs of SQLite beside it
        for leftover in file.parent.glob(f"{glob.escape(draft.name)}*"):
            leftover.unlink()


def _publish(draft: Path, file: Path) -> None:
    """Give a draft the name of a database, unless another process was first.

    A hard link does that at once. Where the file system has none, as exFAT, the first process that
    locks a file beside the database renames its draft.
    """
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    except OSError:
        lock_file = file.with_name(f".{file.name}.lock")
        with open(lock_file, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                os.replace(draft, file)
            # Whoever locks the file that is removed, or a new one, sees the database.
            lock_file.unlink(missing_ok=True)


def _remove_remnants(file: Path, missing: float) -> None:
    """Remove the remnants of killed processes beside a missing database.

    They are drafts, and the logs of a deleted database, which SQLite would write into the new one.

    Args:
        file: The file of the database.
        missing: A time, in seconds since 1970, at which the database was missing. A younger log
            belongs to a new database, and stays.
    """
    for ending in ("-wal", "-shm"):
        log = Path(f"{file}{ending}")
        with suppress(FileNotFoundError):
            if log.stat().st_mtime < missing - CLOCK_TOLERANCE:
                log.unlink()
    for draft in file.parent.glob(f".{glob.escape(file.name)}.*"):
        with suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > DRAFT_LIFETIME:
                draft.unlink()
