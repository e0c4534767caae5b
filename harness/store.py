"""The store: opened safely, and called with patience."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from datasets import UserError

PATIENCE = 60.0  # seconds that a call is repeated for, where waiting can help
LONGEST_PAUSE = 5.0
# What passes by itself, and what does not, in the words of the databases and of MLflow's client.
PASSING = (
    "database is locked",
    "disk is full",
    "no space left",
    "disk i/o error",
    "connection refused",
    "connection reset",
    "connection aborted",
    "could not connect",
    "max retries exceeded",
    "server closed the connection",
    "error code 5",
    "temporarily unavailable",
    "timed out",
    "too many clients",
)
LASTING = (
    "readonly",
    "read-only",
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "permission denied",
    "password authentication",
)


class StoreLostError(RuntimeError):
    """The store cannot be written, and waiting did not help; what was found is kept on disk."""


class Patient:
    """MLflow's client, whose calls are repeated while the store is away for the moment.

    After one call that waited in vain, the others do not wait again.
    """

    def __init__(self, client: Any, uri: str, seconds: float = PATIENCE) -> None:
        self._client, self._uri, self._seconds = client, uri, seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def repeated(*arguments: Any, **named: Any) -> Any:
            deadline, pause = time.monotonic() + self._seconds, 0.1
            while True:
                try:
                    return call(*arguments, **named)
                except Exception as error:
                    kind = trouble(error)
                    if kind is None:
                        raise
                    if kind == "lasting" or time.monotonic() + pause > deadline:
                        self._seconds = 0.0
                        raise StoreLostError(
                            f"tracking.uri={without_passwords(self._uri)}: the store cannot be "
                            f"written ({first_line(error)})"
                        ) from error
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

        return repeated


def trouble(error: Exception) -> str | None:
    """Return `passing` or `lasting` for an error of the store, None for any other."""
    words = f"{error} {error.__cause__ or ''}".lower()
    if any(word in words for word in LASTING):
        return "lasting"
    return "passing" if any(word in words for word in PASSING) else None


def without_passwords(text: str) -> str:
    """Return a text with the password of every URI in it blotted out."""
    from results.runs import without_passwords as blot  # which loads pandas

    return blot(text)


def first_line(error: BaseException) -> str:
    """Return what an error says in its first line, without passwords."""
    lines = str(error).strip().splitlines()
    return without_passwords(lines[0] if lines else type(error).__name__)


@dataclass(frozen=True)
class Store:
    """Where runs go: MLflow's tracking URI, and the folder or URI of the artifacts."""

    uri: str
    artifacts: str | None

    @classmethod
    def at(cls, uri: Any, artifacts: Any, folder: Path) -> "Store":
        """Return the store with paths made absolute against a folder."""
        if not isinstance(uri, str) or not uri:
            raise UserError(f"tracking.uri={uri}: must be a URI, such as sqlite:///mlflow.db")
        if uri.startswith("sqlite:///"):
            uri = f"sqlite:///{folder / uri.removeprefix('sqlite:///')}"
        if artifacts and "://" not in str(artifacts):
            artifacts = (folder / str(artifacts)).as_uri()
        return cls(uri, artifacts)

    @property
    def shown(self) -> str:
        """The URI without its password."""
        return without_passwords(self.uri)

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store; None for any other."""
        prefix = "sqlite:///"
        return Path(self.uri.removeprefix(prefix)) if self.uri.startswith(prefix) else None

    @cached_property
    def client(self) -> Any:
        """MLflow's client, with patience. Raises `UserError` where the store cannot be opened."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ASYNC_LOGGING", "false")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        # Our own patience is told of and bounded; MLflow's would come on top of it.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        import logging

        from mlflow import MlflowClient

        # What MLflow would log of a failed call, with its traceback, we say in one line.
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            if self.database:
                _initialize(self.database, self.artifacts)
            client = Patient(MlflowClient(tracking_uri=self.uri), self.uri)
            client.search_experiments(max_results=1)
            return client
        except Exception as error:  # whatever a database's driver raises
            cause = (
                error.__cause__ if isinstance(error, StoreLostError) and error.__cause__ else error
            )
            raise UserError(
                f"tracking.uri={self.shown}: the store cannot be opened "
                f"({first_line(cause)}); give a URI that can be written, such as "
                "tracking.uri=sqlite:////tmp/mlflow.db"
            ) from error


def _initialize(database: Path, artifacts: str | None) -> None:
    """Make the database under a name of its own and link it to its place.

    Many processes may start on a fresh folder, and one may be interrupted: no one ever opens a
    database whose tables are half made.
    """
    if not database.parent.is_dir():
        raise FileNotFoundError(f"the folder {database.parent} does not exist")
    if database.exists():
        if not os.access(database, os.W_OK) or not os.access(database.parent, os.W_OK):
            raise PermissionError(f"{database} cannot be written")
        return
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    draft = database.with_name(f".{database.name}.{os.getpid()}")
    try:
        draft.touch()
        store = SqlAlchemyStore(  # type: ignore[no-untyped-call]
            f"sqlite:///{draft}", artifacts or str(database.parent)
        )
        store.engine.dispose()
        with sqlite3.connect(draft) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
        with suppress(FileExistsError):  # another process was first
            os.link(draft, database)
    finally:
        for leftover in database.parent.glob(f"{draft.name}*"):
            leftover.unlink()
