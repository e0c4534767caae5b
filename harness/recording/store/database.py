"""MLflow's tables in a SQLite file, written without MLflow: see `normbench.results.store.database`.

What is refused is what MLflow refuses, and what it cuts is cut; a test compares the two stores.
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

VERSIONS = "3.17."  # of MLflow, that have the tables of `tables.sql`
KEY = re.compile(r"[/\w.\- :]{1,250}")  # that MLflow takes
LONGEST_PARAM, LONGEST_TAG, LONGEST_EXPERIMENT_TAG = 6000, 8000, 20_000  # characters
LARGEST = 1.7976931348623157e308  # stands for infinity
LAST = (
    "insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) "
    "values (?, ?, ?, ?, ?, ?) on conflict (key, run_uuid) do update set value = excluded.value, "
    "timestamp = excluded.timestamp, step = excluded.step, is_nan = excluded.is_nan "
    "where (excluded.step, excluded.timestamp, excluded.value) > (step, timestamp, value)"
)
Result = TypeVar("Result")


def client(uri: str) -> Any:
    """Return what answers as MLflow's client does, and writes to a file without MLflow."""
    return database.client(uri, WritableDatabase)


def tables() -> bytes:
    """Return a SQLite file with MLflow's tables and nothing in them."""
    if not version("mlflow").startswith(VERSIONS):
        return mlflows_own.tables()
    text = files("normbench.results.store").joinpath("tables.sql").read_text()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(text)
        return connection.serialize()


class WritableDatabase(database.Database):
    """A store in a file, to be written. Each call is one transaction; see `at_once`."""

    def at_once(self, write: Callable[["WritableDatabase"], Result]) -> Result:
        """Return what a function gives that writes here; all of it is written, or nothing."""
        with self._changing():
            return write(self)

    @contextmanager
    def _changing(self, run_id: str | None = None) -> Iterator[None]:
        """Write what belongs together. run_id: a run that it is written to, which must be there."""
        with self._lock, self._snapshot("begin immediate"):
            if run_id is not None:
                stage = self._rows("select lifecycle_stage from runs where run_uuid = ?", [run_id])
                if not stage:
                    raise RefusedError(f"Run with id={run_id} not found")
                if stage != [("active",)]:
                    raise RefusedError(f"The run {run_id} must be in the 'active' state")
            yield

    def _insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]], how: str) -> None:
        marks = ", ".join("?" * len(columns.split(", ")))
        query = f"insert or {how} into {table} ({columns}) values ({marks})"
        self._connection.executemany(query, rows)

    def create_experiment(self, name: str, artifact_location: str | None = None) -> str:
        """Return the id of a new experiment; MLflow says where one goes that has no place."""
        if not artifact_location or not name or len(name) > 250:
            return str(self._mlflow.create_experiment(name, artifact_location))
        now, columns = _now(), "name, artifact_location, lifecycle_stage, creation_time"
        with self._changing():
            if self._experiments("where name = ?", [name]):
                raise RefusedError(f"Experiment(name={name}) already exists.")
            row = (name, artifact_location, "active", now, now)
            self._insert("experiments", f"{columns}, last_update_time", [row], "abort")
            ((experiment,),) = self._rows("select last_insert_rowid()")
        return str(experiment)

    def create_run(
        self, experiment_id: str, start_time: int | None, tags: Mapping[str, str], run_name: str
    ) -> Any:
        """Return a new run, which has its id and no more."""
        run_id, columns = (
            uuid.uuid4().hex,
            (
                "run_uuid, name, source_type, source_name, entry_point_name, user_id, status, "
                "start_time, source_version, lifecycle_stage, artifact_uri, experiment_id"
            ),
        )
        with self._changing():
            experiment = self.get_experiment(experiment_id)
            if experiment.lifecycle_stage != "active":
                raise RefusedError(f"The experiment {experiment_id} must be in the 'active' state")
            place = mlflows_own.append_to_uri(experiment.artifact_location, run_id, "artifacts")
            user, begun = tags.get(names.USER.key, "unknown"), start_time or _now()
            row = (run_id, run_name, "UNKNOWN", "", "", user, "RUNNING", begun, "", "active", place)
            self._insert("runs", columns, [(*row, int(experiment_id))], "abort")
            self._write_tags(run_id, {names.RUN_NAME.key: run_name, **tags})
            return self.get_run(run_id)

    def set_terminated(
        self, run_id: str, status: str | None = None, end_time: int | None = None
    ) -> None:
        """End a run, now or at another time."""
        with self._changing(run_id):
            query = "update runs set status = ?, end_time = ? where run_uuid = ?"
            self._rows(query, [status or "FINISHED", end_time or _now(), run_id])

    def log_batch(
        self,
        run_id: str,
        metrics: Sequence[Metric] = (),
        params: Sequence[Param] = (),
        tags: Sequence[Param] = (),
    ) -> None:
        """Write points of metrics, parameters and tags of a run; equal points are one."""
        with self._changing(run_id):
            self._write_metrics(run_id, metrics)
            self._write_params(run_id, {_key(key): text for key, text in params})
            self._write_tags(run_id, {_key(key): text[:LONGEST_TAG] for key, text in tags})

    def _write_metrics(self, run_id: str, metrics: Sequence[Metric]) -> None:
        rows = [
            (_key(key), *_number(float(value)), int(when), int(step), run_id)
            for key, value, when, step in metrics
        ]
        columns = "key, value, is_nan, timestamp, step, run_uuid"
        self._insert("metrics", columns, rows, "ignore")
        last: dict[str, Any] = {}
        for row in rows:
            key, value, _, when, step, _ = row
            if key not in last or (step, when, value) > last[key][0]:
                last[key] = (step, when, value), row
        latest = ((row[0], row[1], row[3], row[4], row[2], run_id) for _, row in last.values())
        self._connection.executemany(LAST, latest)

    def _write_params(self, run_id: str, params: Mapping[str, str]) -> None:
        new = {key: text[:LONGEST_PARAM] for key, text in params.items()}
        there = dict(self._rows("select key, value from params where run_uuid = ?", [run_id]))
        changed = [key for key in new if there.get(key, new[key]) != new[key]]
        if changed:
            raise RefusedError(f"Changing param values is not allowed: {changed[0]}")
        rows = ((key, text, run_id) for key, text in new.items())
        self._insert("params", "key, value, run_uuid", rows, "ignore")

    def _write_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        rows = [(key, text, run_id) for key, text in tags.items()]
        upsert = "on conflict (key, run_uuid) do update set value = excluded.value"
        query = f"insert into tags (key, value, run_uuid) values (?, ?, ?) {upsert}"
        self._connection.executemany(query, rows)
        for text in [text for key, text in tags.items() if key == names.RUN_NAME.key]:
            self._rows("update runs set name = ? where run_uuid = ?", [text, run_id])

    def delete_tag(self, run_id: str, key: str) -> None:
        """Take a tag from a run."""
        with self._changing(run_id):
            query = "delete from tags where run_uuid = ? and key = ? returning key"
            if not self._rows(query, [run_id, key]):
                raise RefusedError(f"No tag with name: {key} in run with id {run_id}")

    def set_experiment_tag(self, experiment_id: str, key: str, value: str) -> None:
        """Set a tag of an experiment."""
        if len(value) > LONGEST_EXPERIMENT_TAG:
            raise RefusedError(f"'value' exceeds the maximum length of {LONGEST_EXPERIMENT_TAG}")
        with self._changing():
            self.get_experiment(experiment_id)
            row = (_key(key), value, int(experiment_id))
            self._insert("experiment_tags", "key, value, experiment_id", [row], "replace")

    def log_inputs(self, run_id: str, datasets: Sequence[DatasetInput]) -> None:
        """Say that a run was given data sets; one of a name and digest is there once."""
        with self._changing(run_id):
            ((experiment,),) = self._rows(
                "select experiment_id from runs where run_uuid = ?", [run_id]
            )
            for given in datasets:
                data = self._dataset(experiment, given.dataset)
                edge = (uuid.uuid4().hex, "DATASET", data, "RUN", run_id)
                query = (
                    "insert or ignore into inputs (input_uuid, source_type, source_id, "
                    "destination_type, destination_id) values (?, ?, ?, ?, ?) returning input_uuid"
                )
                for (key,) in self._rows(query, edge):  # none where it is known
                    tags = ((key, tag.key, tag.value) for tag in given.tags)
                    self._insert("input_tags", "input_uuid, name, value", tags, "abort")

    def _dataset(self, experiment: int, data: Dataset) -> str:
        """Return the id of a data set, which is written where it is new."""
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
        """Copy a file to a run's artifacts."""
        here = self._folder(run_id)
        if here is None:
            self._mlflow.log_artifact(run_id, path, folder)
        else:
            local_artifacts.copy(Path(path), here, folder or "")

    def log_artifacts(self, run_id: str, path: str, folder: str) -> None:
        """Copy the files of a folder to a run's artifacts."""
        for file in sorted(Path(path).iterdir()):
            self.log_artifact(run_id, str(file), folder)

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Keep a text as a run's artifact."""
        here = self._folder(run_id)
        if here is None:
            self._mlflow.log_text(run_id, text, name)
        else:
            local_artifacts.write(here, name, text)

    def log_dict(self, run_id: str, value: Any, name: str) -> None:
        """Keep a value as a run's artifact, as JSON."""
        self.log_text(run_id, json.dumps(value, indent=2, default=str), name)


def _now() -> int:
    return int(time.time() * 1000)


@lru_cache(maxsize=4096)  # a history names its own at every iteration
def _key(key: str) -> str:
    """Return a name that MLflow takes. Raises `RefusedError` for any other."""
    parts = Path(key).as_posix()
    if not KEY.fullmatch(key) or parts != key or key.startswith(("/", "..")) or key == ".":
        raise RefusedError(
            f"Invalid value {key!r} for parameter 'name' supplied: Names may only contain "
            "alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and "
            "slashes (/)."
        )
    return key


def _number(value: float) -> tuple[float, bool]:
    """Return a number as the tables hold it, and whether it stands for none."""
    return (0.0, True) if math.isnan(value) else (min(max(value, -LARGEST), LARGEST), False)
