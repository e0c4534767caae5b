"""MLflow's undocumented internals: its database and its limits.

They were read from version 3.17 and are tested with it, the views in a browser; `pyproject.toml`
bounds the version. This module holds the tables of MLflow's database and its limits; `saved_views`
holds the format of its page. Only `recording` calls the two functions that write.
"""

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit
from weakref import WeakSet

from normbench.results.store import uris
from normbench.results.store.entities import Run
from normbench.results.store.errors import RefusedError
from normbench.results.store.uris import path_of

EXPERIMENTS_TABLE = "experiments"  # a table of every MLflow database
# How many trailing segments of an artifacts' path, mlartifacts/EXPERIMENT/RUN/artifacts, stay the
# same when the database's folder moves: of an experiment's path, and of a run's.
OF_EXPERIMENT, OF_RUN = 2, 4
# The objects that hold SQLite's connections and can close them, here and in SQLAlchemy's pools.
CONNECTION_HOLDERS: WeakSet[Any] = WeakSet()
MAX_REFUSAL_LENGTH = 200  # characters
MLFLOW_VARIABLES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # of every run
}


def set_environment(retries: int) -> None:
    """Set MLflow's environment variables that the user has not set.

    Args:
        retries: How often MLflow repeats a failed request to a server. By default it retries for
            minutes, in addition to our own retries.
    """
    for name, value in {
        **MLFLOW_VARIABLES,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": str(retries),
    }.items():
        os.environ.setdefault(name, value)


def make_client(uri: str) -> Any:
    """Return MLflow's client for a store, with the logging of failed calls switched off.

    Args:
        uri: The URI of the store.

    Returns:
        MLflow's own client, whose loading takes 1.3 s.
    """
    from mlflow import MlflowClient

    if uris.database(uri):
        relax_synchronous_writes()
    for name in ("mlflow", "alembic"):  # set here, since loading MLflow resets the levels
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient(tracking_uri=uri)


def refusals() -> tuple[type[Exception], ...]:
    """Return the error types by which a store refuses a value, for an `except` clause.

    MLflow's own type is among them only if MLflow is loaded; otherwise it cannot be raised.
    """
    loaded_module = sys.modules.get("mlflow.exceptions")
    return (RefusedError, *((loaded_module.MlflowException,) if loaded_module else ()))


@cache
def tables() -> bytes:
    """Return the bytes of a SQLite file with MLflow's empty tables, created once per process.

    The file is created in memory: MLflow alters the tables a hundred times, and each change would
    be written to the disk.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    # `write_tables` sets the artifacts' location; MLflow would create the folder at once.
    store = SqlAlchemyStore("sqlite:///:memory:", "nowhere://")  # type: ignore[no-untyped-call]
    with closing(store.engine.raw_connection()) as connection:
        database_bytes: bytes = cast(sqlite3.Connection, connection.driver_connection).serialize()
    store.engine.dispose()
    return database_bytes


def has_revision(revision: str) -> bool:
    """Return whether the installed MLflow has a revision of the schema; MLflow is not loaded.

    It has its own and all earlier ones, from which `mlflow db upgrade` leads to its own.
    """
    spec = find_spec("mlflow")
    assert spec
    assert spec.origin
    migrations = Path(spec.origin).parent / "store" / "db_migrations" / "versions"
    return revision in {file.name.partition("_")[0] for file in migrations.glob("*.py")}


def write_tables(database: Path, tables: bytes, artifacts: str) -> None:
    """Write a new database with empty tables, in WAL mode.

    Args:
        database: The file.
        tables: The bytes of such a database, from `tables()` or an equal file.
        artifacts: The URI under which the default experiment stores its artifacts.
    """
    database.write_bytes(tables)
    artifact_location, timestamp = append_to_uri(artifacts, "0"), int(time.time() * 1000)
    with closing(sqlite3.connect(database)) as connection:
        # The default experiment, of id 0, is the only row.
        assignments = "artifact_location = ?, creation_time = ?, last_update_time = ?"
        connection.execute(
            f"update experiments set {assignments}", [artifact_location, timestamp, timestamp]
        )
        connection.commit()
        connection.execute("PRAGMA journal_mode=WAL")


def append_to_uri(uri: str, *segments: str) -> str:
    """Return a URI with segments appended: `file:///a` and `b` make `file:///a/b`.

    Args:
        uri: The URI; a query or fragment, from a `?` or `#` on, stays at its end.
        *segments: The segments of a path.

    Returns:
        The URI, without a slash at its end.
    """
    if set(uri) & {"?", "#"}:  # the segments go before a query or fragment
        from mlflow.utils.uri import append_to_uri_path

        return str(append_to_uri_path(uri, *segments))  # type: ignore[no-untyped-call]
    return "/".join([uri.rstrip("/"), *segments])


def moved_with_database(database: Path, artifacts: str, segment_count: int) -> Path | None:
    """Return the folder of artifacts that were moved or copied together with their database.

    Args:
        database: The file of the database.
        artifacts: The artifacts' recorded URI, with the path before the move.
        segment_count: How many trailing segments of that path are unchanged, `OF_EXPERIMENT` or
            `OF_RUN`.

    Returns:
        The folder beside the database; None where there is none, or the artifacts never moved.
    """
    if urlsplit(artifacts).scheme not in ("", "file"):  # not in a local folder
        return None
    recorded_path = path_of(artifacts)
    beside_database = database.parent.absolute().joinpath(*recorded_path.parts[-segment_count:])
    # A folder that is beside the database and is the recorded one has not moved.
    moved = beside_database.is_dir() and not (
        recorded_path.is_dir() and recorded_path.samefile(beside_database)
    )
    return beside_database if moved else None


def update_artifact_locations(database: Path) -> None:
    """Update the artifacts' locations in a database that was moved or copied with its artifacts.

    MLflow records absolute paths, so that a copied database would store new artifacts in the
    original's folder. Artifacts that exist only at the recorded location keep it.

    Args:
        database: The file of the database.
    """
    with closing(sqlite3.connect(database)) as connection:
        locations_query = "select experiment_id, artifact_location from experiments"
        for experiment, recorded_location in connection.execute(locations_query).fetchall():
            # None where the artifacts did not move.
            current_location = moved_with_database(database, recorded_location, OF_EXPERIMENT)
            if not current_location:
                continue
            runs_query = "select run_uuid, artifact_uri from runs where experiment_id = ?"
            runs = connection.execute(runs_query, [experiment]).fetchall()
            # Where the recorded folder still exists, the other one may be of another database.
            is_copied = any((current_location / run).is_dir() for run, _ in runs)
            if path_of(recorded_location).is_dir() and not is_copied:
                continue
            update = "update experiments set artifact_location = ? where experiment_id = ?"
            connection.execute(update, [current_location.as_uri(), experiment])
            for run, uri in runs:
                recorded_parent, _, path_in_run = uri.rpartition(f"/{run}/")
                # A run may have its artifacts elsewhere, or still at the recorded location alone.
                if recorded_parent == recorded_location and (
                    not path_of(uri).is_dir() or moved_with_database(database, uri, OF_RUN)
                ):
                    update = "update runs set artifact_uri = ? where run_uuid = ?"
                    connection.execute(
                        update, [f"{current_location.as_uri()}/{run}/{path_in_run}", run]
                    )
        connection.commit()


@cache
def relax_synchronous_writes() -> None:
    """Set `synchronous=NORMAL` on each SQLite connection that MLflow opens from now on.

    Otherwise SQLite waits for the disk after each of some 40 writes of a job. In WAL mode a killed
    process loses nothing, and a power failure damages no database but may lose the last writes, so
    each job waits for the disk at its end. The setting belongs to a connection, so SQLAlchemy's
    event applies it to each of them; they are also registered for `close_connections`.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "connect")
    def set_synchronous(connection: Any, pool_record: Any) -> None:
        """Register a new connection, and set its mode if its database is in WAL mode."""
        if isinstance(connection, sqlite3.Connection):
            CONNECTION_HOLDERS.add(pool_record)
            with suppress(sqlite3.Error):  # MLflow reports a damaged file
                if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                    connection.execute("PRAGMA synchronous=NORMAL")


def close_connections() -> None:
    """Close all SQLite connections of this process.

    SQLite writes the write-ahead log back into the database when its last connection is closed.
    """
    for holder in list(CONNECTION_HOLDERS):
        holder.close()


def remove_run(uri: str, run: Any) -> None:
    """Remove a run that is marked as deleted, with its artifacts, as `mlflow gc` does.

    The command itself takes 8 s, most of them for the imports of a process of its own.

    Args:
        uri: The URI of the store, which is no server.
        run: The run.
    """
    from mlflow.exceptions import InvalidUrlException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    repository: Any = get_artifact_repository(run.info.artifact_uri, uri)
    with suppress(InvalidUrlException):  # artifacts that are nowhere
        repository.delete_artifacts()
    make_client(uri)._tracking_client.store._hard_delete_run(run.info.run_id)


def statuses(database: Path, runs: Sequence[str]) -> dict[str, str]:
    """Return the statuses of runs in an existing SQLite file.

    Args:
        database: The file.
        runs: The ids of the runs, any number of them.

    Returns:
        The status by the run's id, for those that are in the file.

    Raises:
        sqlite3.OperationalError: The file cannot be opened, or is locked.
    """
    ids = "select value from json_each(?)"  # any number of ids, as one JSON list
    address = f"file:{quote(str(database))}?mode=rw"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        query = f"select run_uuid, status from runs where run_uuid in ({ids})"
        return dict(connection.execute(query, [json.dumps(list(runs))]).fetchall())


def last_points(run: Any) -> dict[str, tuple[int, float, int]]:
    """Return the last step, value and timestamp (ms) of each of a run's metrics, by key.

    Args:
        run: The run, from this package's reader or from MLflow's client.
    """
    # MLflow's own `metrics` has the values alone; its protocol buffer has steps and times, too.
    points = run.data.last_points if isinstance(run, Run) else run.data.to_proto().metrics
    return {point.key: (point.step, point.value, point.timestamp) for point in points}


def check_run(
    name: str,
    params: Mapping[str, str],
    tags: Mapping[str, str],
    inputs: Sequence[Mapping[str, Mapping[str, str]]],
) -> None:
    """Raise ValueError for a run that MLflow would refuse, truncate or alter.

    Args:
        name: The run's name.
        params: Its params.
        tags: Its tags.
        inputs: Its data sets, each with its fields under `input` and its tags under `tags`.

    Raises:
        ValueError: The first value that MLflow would not store as it is.
    """
    from mlflow.entities import Dataset, InputTag

    validation = _validation()

    if not 0 < len(name) <= validation.MAX_ENTITY_KEY_LENGTH:
        raise ValueError("a run has no name, or too long a one")
    with _as_value_errors():
        for key, text in params.items():
            if len(text) > validation.MAX_PARAM_VAL_LENGTH:  # MLflow would truncate it
                raise ValueError(f"the parameter {key[:50]} has {len(text)} characters")
            validation._validate_param(key, text)
        for key, text in tags.items():
            if len(text) > validation.MAX_TAG_VAL_LENGTH:
                raise ValueError(f"the tag {key[:50]} has {len(text)} characters")
            validation._validate_tag(key, text)
        for dataset_input in inputs:
            validation._validate_dataset(Dataset(**dataset_input["input"]))
            validation._validate_input_tags(
                [InputTag(*tag) for tag in dataset_input["tags"].items()]
            )
    identities = {
        (dataset_input["input"]["name"], dataset_input["input"]["digest"])
        for dataset_input in inputs
    }
    if len(identities) < len(inputs):
        raise ValueError("a run has a data set twice")


def check_metric(key: str) -> None:
    """Raise ValueError if MLflow would refuse a metric of this name."""
    validation = _validation()

    with _as_value_errors():
        validation._validate_metric(key, 0.0, 0, 0)  # any value, timestamp and step


def check_experiment(name: str) -> None:
    """Raise ValueError if MLflow would refuse an experiment of this name."""
    validation = _validation()

    with _as_value_errors():
        validation._validate_experiment_name(name)


def _validation() -> Any:
    """Return MLflow's module of checks, which is not typed."""
    from mlflow.utils import validation

    return validation


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Turn an error of MLflow's checks inside the context into a ValueError, its message cut."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise ValueError(str(error)[:MAX_REFUSAL_LENGTH]) from error
