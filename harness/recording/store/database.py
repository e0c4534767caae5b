"""Write the tables of MLflow in a SQLite file without MLflow; see `results.store.database`.

This store refuses and truncates the same values as MLflow; a test compares the two stores.
"""

import json
import math
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from normbench import names
from normbench.results.store import database, local_artifacts, mlflows_own
from normbench.results.store.entities import Dataset, DatasetInput, Metric, Param
from normbench.results.store.errors import RefusedError

MLFLOW_VERSION = "3.17."  # whose tables `tables.sql` holds
KEY = re.compile(r"[/\w.\- :]{1,250}")  # that MLflow accepts
MAX_PARAM, MAX_TAG, MAX_EXPERIMENT_TAG = 6000, 8000, 20_000  # characters
MAX_EXPERIMENT_NAME = 250  # characters; MLflow itself takes some longer names
MAX_FLOAT = 1.7976931348623157e308  # stored for infinity
UPSERT_LATEST = (
    "insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) "
    "values (?, ?, ?, ?, ?, ?) on conflict (key, run_uuid) do update set value = excluded.value, "
    "timestamp = excluded.timestamp, step = excluded.step, is_nan = excluded.is_nan "
    "where (excluded.step, excluded.timestamp, excluded.value) > (step, timestamp, value)"
)
Written = TypeVar("Written")


def client(uri: str) -> Any:
    """Return a client with the interface of MLflow's that writes to a file without MLflow."""
    return database.client(uri, WritableDatabase)


def tables() -> bytes:
    """Return the content of a SQLite file with the empty tables of MLflow."""
    if not version("mlflow").startswith(MLFLOW_VERSION):
        return mlflows_own.tables()
    text = files("normbench.results.store").joinpath("tables.sql").read_text()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(text)
        return connection.serialize()


class WritableDatabase(database.Database):
    """A writable store in a file. Each call is one transaction; see `at_once`."""

    def at_once(self, write: Callable[["WritableDatabase"], Written]) -> Written:
        """Call a function with this database in one transaction, and return its value.

        Args:
            write: Calls methods of the database that it is given; they join the transaction.
        """
        with self._write_transaction():
            return write(self)

    @contextmanager
    def _write_transaction(self, run_id: str | None = None) -> Iterator[None]:
        """Run the enclosed statements as one transaction, or as a part of the current one.

        Args:
            run_id: The run that they change; None where they change no existing run.

        Raises:
            RefusedError: The run does not exist, or is deleted.
        """
        # "immediate" takes the lock at once, so that no other process writes between the reading
        # and the writing of a transaction.
        with self._lock, self._snapshot("begin immediate"):
            if run_id is not None:
                stage = self._rows("select lifecycle_stage from runs where run_uuid = ?", [run_id])
                if not stage:
                    raise RefusedError(f"Run with id={run_id} not found")
                if stage != [("active",)]:
                    raise RefusedError(f"The run {run_id} must be in the 'active' state")
            yield

    def _insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], on_conflict: str
    ) -> None:
        """Insert rows into a table.

        Args:
            table: The name of the table.
            columns: The names of the columns, separated by `, `.
            rows: The values of the columns.
            on_conflict: SQLite's word for a row whose key the table has: abort, ignore or replace.
        """
        marks = ", ".join("?" * len(columns.split(", ")))
        query = f"insert or {on_conflict} into {table} ({columns}) values ({marks})"
        self._connection.executemany(query, rows)

    def create_experiment(self, name: str, artifact_location: str | None = None) -> str:
        """Create an experiment and return its id.

        MLflow itself chooses a missing artifact location and refuses an invalid name.

        Args:
            name: The name of the experiment.
            artifact_location: The URI of the folder of its artifacts.

        Raises:
            RefusedError: There is an experiment of that name.
        """
        if not artifact_location or not name or len(name) > MAX_EXPERIMENT_NAME:
            return str(self._mlflow.create_experiment(name, artifact_location))
        created = _milliseconds()
        columns = "name, artifact_location, lifecycle_stage, creation_time, last_update_time"
        with self._write_transaction():
            if self._experiments("where name = ?", [name]):
                raise RefusedError(f"Experiment(name={name}) already exists.")
            row = (name, artifact_location, "active", created, created)
            self._insert("experiments", columns, [row], "abort")
            ((experiment,),) = self._rows("select last_insert_rowid()")
        return str(experiment)

    def create_run(
        self, experiment_id: str, start_time: int | None, tags: Mapping[str, str], run_name: str
    ) -> Any:
        """Create a running run with its name and tags, and return it.

        Args:
            experiment_id: The id of its experiment.
            start_time: The start in ms since 1970; now if None.
            tags: Its tags; that of the user also sets its user.
            run_name: Its name, which becomes a tag too.

        Raises:
            RefusedError: The experiment does not exist, or is deleted.
        """
        run_id = uuid.uuid4().hex
        with self._write_transaction():
            experiment = self.get_experiment(experiment_id)
            if experiment.lifecycle_stage != "active":
                raise RefusedError(f"The experiment {experiment_id} must be in the 'active' state")
            artifacts = mlflows_own.append_to_uri(experiment.artifact_location, run_id, "artifacts")
            row = {
                "run_uuid": run_id,
                "name": run_name,
                "source_type": "UNKNOWN",
                "source_name": "",
                "entry_point_name": "",
                "user_id": tags.get(names.USER.key, "unknown"),
                "status": "RUNNING",
                "start_time": start_time or _milliseconds(),
                "source_version": "",
                "lifecycle_stage": "active",
                "artifact_uri": artifacts,
                "experiment_id": int(experiment_id),
            }
            self._insert("runs", ", ".join(row), [list(row.values())], "abort")
            self._write_tags(run_id, {names.RUN_NAME.key: run_name, **tags})
            return self.get_run(run_id)

    def set_terminated(
        self, run_id: str, status: str | None = None, end_time: int | None = None
    ) -> None:
        """End a run.

        Args:
            run_id: The id of the run.
            status: Its status; FINISHED if None.
            end_time: Its end in ms since 1970; now if None.
        """
        with self._write_transaction(run_id):
            query = "update runs set status = ?, end_time = ? where run_uuid = ?"
            self._rows(query, [status or "FINISHED", end_time or _milliseconds(), run_id])

    def log_batch(
        self,
        run_id: str,
        metrics: Sequence[Metric] = (),
        params: Sequence[Param] = (),
        tags: Sequence[Param] = (),
    ) -> None:
        """Write metrics, parameters and tags of a run; equal points of a metric are stored once.

        Too long values of parameters and tags are truncated. A tag that the run has is replaced.

        Args:
            run_id: The id of the run.
            metrics: The points: key, value, timestamp in ms, step.
            params: The parameters: key and text.
            tags: The tags: key and text.

        Raises:
            RefusedError: A name is invalid, or a parameter has another recorded value.
        """
        with self._write_transaction(run_id):
            self._write_metrics(run_id, metrics)
            self._write_params(run_id, {_key(key): text for key, text in params})
            self._write_tags(run_id, {_key(key): text[:MAX_TAG] for key, text in tags})

    def _write_metrics(self, run_id: str, metrics: Sequence[Metric]) -> None:
        """Write points of metrics, and the latest point of each.

        The latest point has the largest step; of equal steps, the largest time, then value.

        Args:
            run_id: The id of the run.
            metrics: The points: key, value, timestamp in ms, step.
        """
        rows = [
            (_key(key), *_number(float(value)), int(when), int(step), run_id)
            for key, value, when, step in metrics
        ]
        columns = "key, value, is_nan, timestamp, step, run_uuid"
        self._insert("metrics", columns, rows, "ignore")
        latest_points: dict[str, Any] = {}
        for row in rows:
            key, value, _, when, step, _ = row
            if key not in latest_points or (step, when, value) > latest_points[key][0]:
                latest_points[key] = (step, when, value), row
        # In the order of `UPSERT_LATEST`: key, value, timestamp, step, is_nan, run.
        latest = (
            (row[0], row[1], row[3], row[4], row[2], run_id) for _, row in latest_points.values()
        )
        self._connection.executemany(UPSERT_LATEST, latest)

    def _write_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Write parameters; raise `RefusedError` for one that changes a recorded value."""
        new = {key: text[:MAX_PARAM] for key, text in params.items()}
        recorded = dict(self._rows("select key, value from params where run_uuid = ?", [run_id]))
        changed = [key for key in new if recorded.get(key, new[key]) != new[key]]
        if changed:
            raise RefusedError(f"Changing param values is not allowed: {changed[0]}")
        rows = ((key, text, run_id) for key, text in new.items())
        self._insert("params", "key, value, run_uuid", rows, "ignore")

    def _write_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Write or replace tags, texts by key; the tag of the run name also names the run."""
        rows = [(key, text, run_id) for key, text in tags.items()]
        upsert = "on conflict (key, run_uuid) do update set value = excluded.value"
        query = f"insert into tags (key, value, run_uuid) values (?, ?, ?) {upsert}"
        self._connection.executemany(query, rows)
        for text in [text for key, text in tags.items() if key == names.RUN_NAME.key]:
            self._rows("update runs set name = ? where run_uuid = ?", [text, run_id])

    def delete_tag(self, run_id: str, key: str) -> None:
        """Delete a tag of a run; raise `RefusedError` if the run does not have it."""
        with self._write_transaction(run_id):
            query = "delete from tags where run_uuid = ? and key = ? returning key"
            if not self._rows(query, [run_id, key]):
                raise RefusedError(f"No tag with name: {key} in run with id {run_id}")

    def set_experiment_tag(self, experiment_id: str, key: str, value: str) -> None:
        """Set a tag of an experiment; a tag that it has is replaced.

        Raises:
            RefusedError: The value is too long, the key is invalid, or there is no such experiment.
        """
        if len(value) > MAX_EXPERIMENT_TAG:
            raise RefusedError(f"'value' exceeds the maximum length of {MAX_EXPERIMENT_TAG}")
        with self._write_transaction():
            self.get_experiment(experiment_id)  # raises an error for a missing one
            row = (_key(key), value, int(experiment_id))
            self._insert("experiment_tags", "key, value, experiment_id", [row], "replace")

    def log_inputs(self, run_id: str, datasets: Sequence[DatasetInput]) -> None:
        """Record the input data sets of a run; those of equal name and digest are stored once.

        Args:
            run_id: The id of the run.
            datasets: The data sets with their tags; tags of an input that the run has are ignored.
        """
        with self._write_transaction(run_id):
            ((experiment,),) = self._rows(
                "select experiment_id from runs where run_uuid = ?", [run_id]
            )
            for dataset_input in datasets:
                dataset_id = self._dataset_id(experiment, dataset_input.dataset)
                edge = (uuid.uuid4().hex, "DATASET", dataset_id, "RUN", run_id)
                query = (
                    "insert or ignore into inputs (input_uuid, source_type, source_id, "
                    "destination_type, destination_id) values (?, ?, ?, ?, ?) returning input_uuid"
                )
                for (key,) in self._rows(query, edge):  # no row where it is recorded
                    tags = ((key, tag.key, tag.value) for tag in dataset_input.tags)
                    self._insert("input_tags", "input_uuid, name, value", tags, "abort")

    def _dataset_id(self, experiment: int, data: Dataset) -> str:
        """Return the id of a data set, which is written if its experiment does not have it.

        Args:
            experiment: The id of the experiment.
            data: The data set; its name and digest identify it.
        """
        columns = (
            "dataset_uuid, experiment_id, name, digest, dataset_source_type, dataset_source, "
            "dataset_schema, dataset_profile"
        )
        row = (uuid.uuid4().hex, experiment, *(text for _, text in data))
        self._insert("datasets", columns, [row], "ignore")
        query = "select dataset_uuid from datasets where (experiment_id, name, digest) = (?, ?, ?)"
        ((key,),) = self._rows(query, [experiment, data.name, data.digest])
        return str(key)

    def log_artifact(self, run_id: str, path: str, folder: str | None = None) -> None:
        """Copy a file to the artifacts of a run.

        Args:
            run_id: The id of the run.
            path: The file.
            folder: The folder among the artifacts; None for the topmost.
        """
        artifact_folder = self._folder(run_id)
        if artifact_folder is None:  # the artifacts are not on this machine
            self._mlflow.log_artifact(run_id, path, folder)
        else:
            local_artifacts.copy(Path(path), artifact_folder, folder or "")

    def log_artifacts(self, run_id: str, path: str, folder: str) -> None:
        """Copy the files in a folder, which has no folders in it, to the artifacts of a run.

        Args:
            run_id: The id of the run.
            path: The folder that is copied.
            folder: The folder among the artifacts.
        """
        for file in sorted(Path(path).iterdir()):
            self.log_artifact(run_id, str(file), folder)

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Write a text as an artifact of a run; name: the path of the artifact."""
        artifact_folder = self._folder(run_id)
        if artifact_folder is None:  # the artifacts are not on this machine
            self._mlflow.log_text(run_id, text, name)
        else:
            local_artifacts.write(artifact_folder, name, text)

    def log_dict(self, run_id: str, value: Any, name: str) -> None:
        """Write a value as a JSON artifact of a run; what JSON cannot hold is written as text."""
        self.log_text(run_id, json.dumps(value, indent=2, default=str), name)


def _milliseconds() -> int:
    """Return the current time in ms since 1970."""
    return int(time.time() * 1000)


@lru_cache(maxsize=4096)  # a history has one key for all iterations
def _key(key: str) -> str:
    """Return a name unchanged if MLflow accepts it; raise `RefusedError` for any other.

    MLflow may use the name as a path: `a//b`, `a/./b` and slashes at its ends are refused.
    """
    normalized = Path(key).as_posix()
    if not KEY.fullmatch(key) or normalized != key or key.startswith(("/", "..")) or key == ".":
        raise RefusedError(
            f"Invalid value {key!r} for parameter 'name' supplied: Names may only contain "
            "alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and "
            "slashes (/)."
        )
    return key


def _number(value: float) -> tuple[float, bool]:
    """Return a number as the tables store it, and whether it is NaN.

    NaN is stored as 0, and infinity as `MAX_FLOAT` of its sign.
    """
    return (0.0, True) if math.isnan(value) else (min(max(value, -MAX_FLOAT), MAX_FLOAT), False)
