"""What MLflow does not document as an interface; everything of the kind stands here.

Read from version 3.17, and tested with it, the views in a browser: `pyproject.toml` bounds the
version. Four parts: the tables of its database, its limits, the saved views of its page, and the
address that opens one. `results` reads by them; the two functions that write are called by
`recording` alone.
"""

import base64
import json
import logging
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit
from weakref import WeakSet

from normbench.results.store import uris
from normbench.results.store.entities import Run
from normbench.results.store.errors import RefusedError
from normbench.results.store.uris import path_of

TABLE = "experiments"  # that every database of MLflow's has
OF_EXPERIMENT, OF_RUN = 2, 4  # parts of an artifacts' path: mlartifacts/EXPERIMENT/RUN/artifacts
VIEW = "mlflow.sharedViewState."  # before a saved view's id: a tag of its experiment
CONNECTION_HOLDERS: WeakSet[Any] = (
    WeakSet()
)  # that hold SQLite's connections, here and in SQLAlchemy's pools
MAX_TAG_LENGTH = 5000  # characters that MLflow keeps of an experiment's tag
MAX_REFUSAL_LENGTH = 200  # characters
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # of every run
}


def settle(retries: int) -> None:
    """Set what MLflow reads from the environment, where the user has not.

    retries: of a request to a server. MLflow's own patience is minutes, and comes on top of ours.
    """
    for name, value in {**ENVIRONMENT, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": str(retries)}.items():
        os.environ.setdefault(name, value)


def make_client(uri: str) -> Any:
    """Return MLflow's client for a store. What it would log of a failed call, we say in one line.

    Loading MLflow sets levels of its own.
    """
    from mlflow import MlflowClient

    if uris.database(uri):
        mind_connections()
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient(tracking_uri=uri)


def refusals() -> tuple[type[Exception], ...]:
    """Return the errors by which MLflow refuses something; those that this process has loaded."""
    loaded = sys.modules.get("mlflow.exceptions")
    return (RefusedError, *((loaded.MlflowException,) if loaded else ()))


@cache
def tables() -> bytes:
    """Return a SQLite file with MLflow's tables and nothing in them, made once a process.

    Made in memory: MLflow changes them a hundred times, and a disk would keep every step.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    # Where artifacts go is said below: MLflow would make that folder here.
    store = SqlAlchemyStore("sqlite:///:memory:", "nowhere://")  # type: ignore[no-untyped-call]
    with closing(store.engine.raw_connection()) as connection:
        database_bytes: bytes = cast(sqlite3.Connection, connection.driver_connection).serialize()
    store.engine.dispose()
    return database_bytes


def write_tables(database: Path, tables: bytes, artifacts: str) -> None:
    """Write a file of `tables`; artifacts: where those of its default experiment go."""
    database.write_bytes(tables)
    artifact_location, timestamp = append_to_uri(artifacts, "0"), int(time.time() * 1000)
    with closing(sqlite3.connect(database)) as connection:
        assignments = "artifact_location = ?, creation_time = ?, last_update_time = ?"
        connection.execute(
            f"update experiments set {assignments}", [artifact_location, timestamp, timestamp]
        )
        connection.commit()
        connection.execute("PRAGMA journal_mode=WAL")


def append_to_uri(uri: str, *segments: str) -> str:
    """Return the URI of what is below another: `file:///a` and `b` are `file:///a/b`."""
    if set(uri) & {"?", "#"}:
        from mlflow.utils.uri import append_to_uri_path

        return str(append_to_uri_path(uri, *segments))  # type: ignore[no-untyped-call]
    return "/".join([uri.rstrip("/"), *segments])


def moved_with_database(database: Path, artifacts: str, segment_count: int) -> Path | None:
    """Return where artifacts are if they were moved, or copied, together with their database.

    artifacts: their URI, which holds the folder's path of that time. parts: how many of its last
    parts are the same now, `OF_EXPERIMENT` or `OF_RUN`. None where they are not there, or never
    moved.
    """
    if urlsplit(artifacts).scheme not in ("", "file"):
        return None
    recorded_path = path_of(artifacts)
    beside_database = database.parent.absolute().joinpath(*recorded_path.parts[-segment_count:])
    moved = beside_database.is_dir() and not (
        recorded_path.is_dir() and recorded_path.samefile(beside_database)
    )
    return beside_database if moved else None


def follow(database: Path) -> None:
    """Let a database that was moved or copied with its artifacts name them where they are now.

    MLflow keeps absolute paths, and would write what comes next to where the folder was: a copy
    into the original's. What is at the old place alone keeps its path.
    """
    with closing(sqlite3.connect(database)) as connection:
        locations_query = "select experiment_id, artifact_location from experiments"
        for experiment, recorded_location in connection.execute(locations_query).fetchall():
            current_location = moved_with_database(database, recorded_location, OF_EXPERIMENT)
            if not current_location:
                continue
            update = "update experiments set artifact_location = ? where experiment_id = ?"
            connection.execute(update, [current_location.as_uri(), experiment])
            runs_query = "select run_uuid, artifact_uri from runs where experiment_id = ?"
            for run, uri in connection.execute(runs_query, [experiment]).fetchall():
                recorded_parent, _, path_in_run = uri.rpartition(f"/{run}/")
                if recorded_parent == recorded_location and (
                    not path_of(uri).is_dir() or moved_with_database(database, uri, OF_RUN)
                ):
                    update = "update runs set artifact_uri = ? where run_uuid = ?"
                    connection.execute(
                        update, [f"{current_location.as_uri()}/{run}/{path_in_run}", run]
                    )
        connection.commit()


@cache
def mind_connections() -> None:
    """Let SQLite wait for the disk once in a while, not after each of some 40 writes of a job.

    In WAL mode nothing is lost with a process that is killed, and no database is damaged by a
    machine that is switched off; what was not waited for may be missing then, so that a job waits
    at its end. Of one connection at a time, so for each that MLflow opens from now on, by
    SQLAlchemy's own event. They are kept in mind for `close_connections`.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "connect")
    def settle(connection: Any, pool_record: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            CONNECTION_HOLDERS.add(pool_record)
            with suppress(sqlite3.Error):  # of a file that is damaged: MLflow will find it so
                if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                    connection.execute("PRAGMA synchronous=NORMAL")


def close_connections() -> None:
    """Close SQLite's connections, as at a process's end: the last one writes the log back."""
    for holder in list(CONNECTION_HOLDERS):
        holder.close()


def statuses(database: Path, runs: Sequence[str]) -> dict[str, str]:
    """Return the status of each of some runs in a SQLite file, by its id; makes no file."""
    chosen = "select value from json_each(?)"  # any number of them
    address = f"file:{quote(str(database))}?mode=rw"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        query = f"select run_uuid, status from runs where run_uuid in ({chosen})"
        return dict(connection.execute(query, [json.dumps(list(runs))]).fetchall())


def last_points(run: Any) -> dict[str, tuple[int, float, int]]:
    """Return the last point of each of a run's metrics: its step, value and time in ms."""
    last = run.data.last_points if isinstance(run, Run) else run.data.to_proto().metrics
    return {point.key: (point.step, point.value, point.timestamp) for point in last}


def check_run(
    name: str,
    params: Mapping[str, str],
    tags: Mapping[str, str],
    inputs: Sequence[Mapping[str, Mapping[str, str]]],
) -> None:
    """Raise ValueError for a run that MLflow would refuse, or keep otherwise than it is.

    inputs: data sets, each as its entries under `input`, and its tags under `tags`.
    """
    from mlflow.entities import Dataset, InputTag

    validation = _validation()

    if not 0 < len(name) <= validation.MAX_ENTITY_KEY_LENGTH:
        raise ValueError("a run has no name, or too long a one")
    with _refusals():
        for key, text in params.items():
            if len(text) > validation.MAX_PARAM_VAL_LENGTH:  # which MLflow would cut
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
    """Raise ValueError for a metric's name that MLflow would refuse."""
    validation = _validation()

    with _refusals():
        validation._validate_metric(key, 0.0, 0, 0)


def check_experiment(name: str) -> None:
    """Raise ValueError for an experiment's name that MLflow would refuse."""
    validation = _validation()

    with _refusals():
        validation._validate_experiment_name(name)


def _validation() -> Any:
    """Return MLflow's checks of what a store takes, which have no types."""
    from mlflow.utils import validation

    return validation


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what MLflow's checks raise into a ValueError."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise ValueError(str(error)[:MAX_REFUSAL_LENGTH]) from error


def view_tag(key: str, name: str, created: int, state: dict[str, Any]) -> dict[str, str]:
    """Return the tag that saves a view; none where it is longer than what MLflow keeps."""
    view = {
        "name": name,
        "createdAt": created,
        "updatedAt": created,
        "state": compress_state(state),
    }
    text = json.dumps(view)
    return {VIEW + key: text} if len(text) <= MAX_TAG_LENGTH else {}


def compress_state(state: dict[str, Any]) -> str:
    """Return a view's state as MLflow stores it: compressed JSON."""
    text = json.dumps(state, separators=(",", ":"), sort_keys=True)
    return f"deflate;{base64.b64encode(zlib.compress(text.encode(), 9)).decode()}"


def state(
    search: str,
    order: str,
    columns: Sequence[str],
    sections: Sequence[dict[str, Any]],
    charts: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the state of MLflow's page: the runs of a search, and their charts by sections."""
    return {
        "searchFilter": search,
        "orderByKey": order,
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "runsHiddenMode": "SHOW_ALL",  # MLflow shows ten otherwise
        "hideEmptyCharts": True,
        "isAccordionReordered": True,
        "compareRunSections": list(sections),
        "compareRunCharts": list(charts),
    }


def section(key: str, name: str, is_open: bool, height: int) -> dict[str, Any]:
    """Return a section of charts, in two columns: three would cut the metrics' names short."""
    return {
        "uuid": key,
        "name": name,
        "display": is_open,
        "isReordered": True,
        "columns": 2,
        "cardHeight": height,
    }


def bars(metric: str, section: str) -> dict[str, Any]:
    """Return a chart of bars, which MLflow turns into lines where the metric has a history."""
    return {
        "uuid": metric,
        "metricSectionId": section,
        "metricKey": metric,
        "deleted": False,
        "isGenerated": True,
        "type": "BAR",
        "runsCountToCompare": 100,
    }


def no_chart(metric: str) -> dict[str, Any]:
    """Return what keeps MLflow from drawing a chart of its own for a metric."""
    return {**bars(metric, ""), "deleted": True}


def lines(metric: str, section: str, over: str, log: bool) -> dict[str, Any]:
    """Return a chart of lines, over another metric or, where that is empty, over MLflow's step."""
    return {
        **bars(metric, section),
        "type": "LINE",
        "scaleType": "log" if log else "linear",
        "lineSmoothness": 0,
        "useGlobalLineSmoothing": False,
        "useGlobalXaxisKey": False,
        "xAxisKey": "metric" if over else "step",
        "selectedXAxisMetricKey": over,
        "xAxisScaleType": "linear",  # MLflow has no logarithmic axis over a metric
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "range": {},
    }


def page(experiment_id: str, view: str = "", search: str = "", order: str = "") -> str:
    """Return the address of an experiment's charts, after the server's: by a view or a search."""
    start = (
        f"#/experiments/{quote(experiment_id)}/runs"
        "?workflowType=machine_learning&compareRunsMode=CHART"
    )
    if view:  # which holds the search: MLflow takes none beside it
        return f"{start}&viewStateShareKey={quote(view)}"
    parameters = f"searchFilter={quote(search, safe='')}&orderByKey={quote(order, safe='')}"
    return f"{start}&{parameters}&orderByAsc=true"
