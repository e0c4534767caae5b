"""Read MLflow's tables in a SQLite file without MLflow, which takes 1.3 s to load.

Only this module, `tables.sql` and `normbench.recording.store.database`, which writes, know the
tables. Their schema is that of `REVISION`; a test compares this reader with MLflow's client. The
methods have the names and the answers of MLflow's client, which takes over in all other cases: a
file of another revision, a server, another database, or a call that is not implemented here, such
as a user's filter.
"""

import json
import math
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import finalize

from normbench.results.store import local_artifacts, mlflows_own, uris
from normbench.results.store.entities import (
    Dataset,
    DatasetInput,
    Experiment,
    Inputs,
    Metric,
    Page,
    Param,
    Run,
    RunData,
    RunInfo,
)
from normbench.results.store.errors import RefusedError

REVISION = "dc11669786a5"  # of MLflow's schema
LOCK_TIMEOUT = 20.0  # seconds that MLflow waits for a lock
TERM = re.compile(r"(tags|attributes)\.(?:`([^`]+)`|([\w.\-]+)) (=|!=|LIKE) '([^']*)'")
IDS = "select value from json_each(?)"  # any number of ids, as one JSON list
ACTIVE = "lifecycle_stage = 'active'"
# Without the plus, SQLite goes through the metric's points of all runs, which an index orders.
HISTORY_QUERY = (
    "select value, timestamp, step, is_nan from metrics where run_uuid = ? and +key = ? "
    "order by timestamp, step, value"
)


def client(uri: str, database_class: "type[Database] | None" = None) -> Any:
    """Return a client of a store, with the methods of MLflow's client.

    Args:
        uri: The store's URI.
        database_class: The class for a file of the known schema; `Database` by default.

    Returns:
        An instance of that class, or MLflow's client for any other store.
    """
    file = uris.database(uri)
    if file is not None:
        with suppress(sqlite3.Error):
            return (database_class or Database)(file, uri)
    return mlflows_own.make_client(uri)


def _opening_mode(file: Path) -> str:
    """Return the mode in which SQLite opens a file, as a parameter of its URI.

    A file that can be written is opened for writing. Any other is opened as immutable, because
    SQLite can create no log beside it; a log with content is an exception, because SQLite would
    ignore its changes.
    """
    if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        return "mode=rw"
    log = Path(f"{file}-wal")
    return "mode=rw" if log.exists() and log.stat().st_size else "immutable=1"


class Database:
    """A store in a SQLite file; threads may share it.

    Args:
        file: The file.
        uri: The URI of the store, with its timeout.

    Raises:
        sqlite3.Error: The file has another schema.
    """

    def __init__(self, file: Path, uri: str) -> None:
        timeout = re.search(r"\?timeout=([^&]+)", uri)
        self._uri, self._lock = uri, threading.RLock()
        self._connection = sqlite3.connect(
            f"file:{quote(str(file))}?{_opening_mode(file)}",
            uri=True,
            timeout=float(timeout[1]) if timeout else LOCK_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
        )
        # The connection and its cache reference each other, and the garbage collector is off.
        finalize(self, self._connection.close)
        try:
            if self._rows("select version_num from alembic_version") != [(REVISION,)]:
                raise sqlite3.DatabaseError("its schema is of another version")
            if self._rows("PRAGMA journal_mode") == [("wal",)]:
                self._rows(
                    "PRAGMA synchronous=NORMAL"
                )  # see `mlflows_own.relax_synchronous_writes`
        except BaseException:
            self.close()
            raise
        mlflows_own.CONNECTION_HOLDERS.add(self)

    def __getattr__(self, name: str) -> Any:
        """Return a method that this class does not have from MLflow's own client."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._mlflow, name)

    @cached_property
    def _mlflow(self) -> Any:
        """MLflow's own client, which is loaded for what this class does not answer."""
        return mlflows_own.make_client(self._uri)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query, one thread at a time."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def search_experiments(self, max_results: int | None = None) -> list[Experiment]:
        """Return the active experiments."""
        experiments = self._experiments(
            f"where {ACTIVE} order by last_update_time desc, experiment_id"
        )
        return experiments[:max_results]

    def get_experiment(self, experiment_id: str) -> Experiment:
        """Return an experiment, deleted or not."""
        experiments = self._experiments("where experiment_id = ?", [experiment_id])
        if not experiments:
            raise RefusedError(f"No Experiment with id={experiment_id} exists")
        return experiments[0]

    def get_experiment_by_name(self, name: str) -> Experiment | None:
        """Return an experiment, deleted or not; None where there is none of that name."""
        return next(iter(self._experiments("where name = ?", [name])), None)

    def _experiments(self, clauses: str, values: Sequence[Any] = ()) -> list[Experiment]:
        """Return the experiments that SQL clauses select, with their tags.

        Args:
            clauses: What follows the table's name in the query.
            values: The values of its question marks.
        """
        columns = "experiment_id, name, artifact_location, lifecycle_stage"
        rows = self._rows(f"select {columns} from experiments {clauses}", values)
        tags: dict[Any, dict[str, str]] = {row[0]: {} for row in rows}
        query = (
            f"select experiment_id, key, value from experiment_tags where experiment_id in ({IDS})"
        )
        for experiment, key, text in self._rows(query, [json.dumps([*tags])]):  # see `IDS`
            tags[experiment][key] = text
        return [Experiment._make([str(row[0]), *row[1:], tags[row[0]]]) for row in rows]

    def search_runs(
        self,
        experiment_ids: Sequence[str],
        filter_string: str = "",
        max_results: int = 1000,
        page_token: str | None = None,
        **options: Any,
    ) -> Any:
        """Return the active runs that match a filter, the latest first.

        MLflow's client answers a filter that `_terms` does not understand, and any other options.

        Args:
            experiment_ids: The ids of the experiments to search.
            filter_string: In the language of MLflow's search; empty for all runs.
            max_results: The largest number of runs of a page.
            page_token: The token of the page before; None for the first page.
            **options: Other arguments of MLflow's method.

        Returns:
            A list of runs, with the token of the next page where there are more.
        """
        terms = _terms(filter_string)
        if terms is None or options:
            options |= {"max_results": max_results, "page_token": page_token}
            return self._mlflow.search_runs(experiment_ids, filter_string, **options)
        conditions, values = [ACTIVE, f"experiment_id in ({IDS})"], [_json_integers(experiment_ids)]
        for field, key, operator, text in terms:
            if field == "attributes":
                conditions.append(f"{key} {operator} ?")
                values.append(text)
                continue
            # `_terms` accepts LIKE with `%` only, which asks whether the tag exists.
            value_condition = "value is not null" if operator == "LIKE" else f"value {operator} ?"
            conditions.append(
                f"run_uuid in (select run_uuid from tags where key = ? and {value_condition})"
            )
            values += [key] if operator == "LIKE" else [key, text]
        offset = int(page_token or 0)  # a token is the number of runs on the pages before
        condition = (
            f"{' and '.join(conditions)} order by start_time desc, run_uuid limit ? offset ?"
        )
        # One run more than the page holds tells whether there is a next page.
        page = Page(self._runs(condition, [*values, max_results + 1, offset]))
        if len(page) > max_results:
            del page[max_results:]
            page.token = str(offset + max_results)
        return page

    def get_run(self, run_id: str) -> Run:
        """Return a run, deleted or not."""
        runs = self._runs("run_uuid = ?", [run_id])
        if not runs:
            raise RefusedError(f"Run with id={run_id} not found")
        return runs[0]

    def _runs(self, condition: str, values: Sequence[Any]) -> list[Run]:
        """Return the runs that an SQL condition selects, with their data and inputs.

        Args:
            condition: What follows `where` in the query of the table of runs.
            values: The values of its question marks.
        """
        columns = (
            "run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, "
            "experiment_id"
        )
        with self._lock, self._snapshot():
            rows = self._rows(f"select {columns} from runs where {condition}", values)
            run_infos = [RunInfo._make([*row[:-1], str(row[-1])]) for row in rows]
            data = {run_info.run_id: RunData() for run_info in run_infos}
            inputs: dict[str, dict[str, DatasetInput]] = {run_id: {} for run_id in data}
            run_ids, of_these_runs = [json.dumps([*data])], f"where run_uuid in ({IDS})"
            for run_id, key, text in self._rows(
                f"select run_uuid, key, value from tags {of_these_runs}", run_ids
            ):
                data[run_id].tags[key] = text
            for run_id, key, text in self._rows(
                f"select run_uuid, key, value from params {of_these_runs}", run_ids
            ):
                data[run_id].params[key] = text
            query = "select run_uuid, key, value, timestamp, step, is_nan from latest_metrics"
            for run_id, key, value, *timestamp_and_step, is_nan in self._rows(
                f"{query} {of_these_runs}", run_ids
            ):
                point = Metric(key, math.nan if is_nan else value, *timestamp_and_step)
                data[run_id].metrics[key] = point.value
                data[run_id].last_points.append(point)
            for run_id, dataset_id, dataset, input_tags in self._inputs(run_ids):
                dataset_input = inputs[run_id].setdefault(dataset_id, DatasetInput(dataset, []))
                dataset_input.tags.extend(input_tags)
        return [
            Run(run_info, data[run_info.run_id], Inputs(list(inputs[run_info.run_id].values())))
            for run_info in run_infos
        ]

    def _inputs(self, run_ids: Sequence[str]) -> Iterator[tuple[str, str, Dataset, list[Param]]]:
        """Yield the data sets of runs, each as run id, data set id, data set and a list of tags.

        A data set with several tags is yielded once for each tag; each list has one tag or none.

        Args:
            run_ids: The ids as one JSON list, the only element of this sequence: see `IDS`.
        """
        query = (
            "select i.destination_id, d.dataset_uuid, d.name, d.digest, d.dataset_source_type, "
            "d.dataset_source, d.dataset_schema, d.dataset_profile, t.name, t.value from inputs i "
            "join datasets d on i.source_id = d.dataset_uuid "
            "left join input_tags t on t.input_uuid = i.input_uuid "
            f"where i.destination_type = 'RUN' and i.destination_id in ({IDS})"
        )
        for run_id, dataset_id, *columns, name, text in self._rows(query, run_ids):
            input_tags = [] if name is None else [Param(name, text)]
            yield run_id, dataset_id, Dataset(*columns), input_tags

    def get_metric_history(self, run_id: str, key: str) -> list[Metric]:
        """Return all points of a run's metric.

        Args:
            run_id: The id of the run.
            key: The key of the metric.

        Returns:
            The points by time, step and value; empty where the run has no such metric.
        """
        return [
            Metric(key, math.nan if is_nan else value, timestamp, step)
            for value, timestamp, step, is_nan in self._rows(HISTORY_QUERY, [run_id, key])
        ]

    def _folder(self, run_id: str) -> Path | None:
        """Return the folder of a run's artifacts; None where they are not on this machine."""
        return local_artifacts.folder(self.get_run(run_id).info.artifact_uri)

    def download_artifacts(self, run_id: str, path: str, dst_path: str | None = None) -> str:
        """Return the path of an artifact, which is downloaded if it is not on this machine.

        Args:
            run_id: The id of the run.
            path: The path of the artifact.
            dst_path: The folder that a download goes to; None for a new one.

        Returns:
            The path of the file.
        """
        folder = self._folder(run_id)
        if folder is None:
            return str(self._mlflow.download_artifacts(run_id, path, dst_path))
        return str(local_artifacts.find(folder, path))

    def list_artifacts(self, run_id: str, path: str | None = None) -> Any:
        """Return the files and folders in a folder of a run's artifacts.

        Args:
            run_id: The id of the run.
            path: The path of the folder; None for the topmost.

        Returns:
            Entries with a path, and whether it is a folder, as MLflow's client returns them.
        """
        folder = self._folder(run_id)
        if folder is None:
            return self._mlflow.list_artifacts(run_id, path)
        return local_artifacts.entries(folder, path or "")

    @contextmanager
    def _snapshot(self, begin: str = "begin") -> Iterator[None]:
        """Run the enclosed statements as one transaction; a nested context joins the outer one.

        Args:
            begin: SQLite's statement that begins it: `begin`, which locks nothing before the first
                statement needs it, or `begin immediate`.
        """
        if self._connection.in_transaction:
            yield
            return
        try:
            self._connection.execute(begin)
            yield
            self._connection.execute("commit")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise


def _terms(query: str) -> list[tuple[str, str, str, str]] | None:
    """Return the terms of a filter that are joined by ` and `.

    Args:
        query: A filter in the language of MLflow's search.

    Returns:
        Each term as field (`tags` or `attributes`), key, operator and text. None for a filter that
        is not written as this project's are: with other terms, another attribute than `status`, or
        `LIKE` for anything but the existence of a tag.
    """
    terms, position = [], 0
    while position < len(query):
        match = TERM.match(query, position)
        if not match:
            return None
        field, quoted, plain, operator, text = match.groups()
        key = quoted or plain
        if field == "attributes" and (key != "status" or operator == "LIKE"):
            return None
        if operator == "LIKE" and text != "%":
            return None
        terms.append((field, key, operator, text))
        position = match.end()
        if position < len(query):
            if not query.startswith(" and ", position):
                return None
            position += len(" and ")
    return terms


def _json_integers(ids: Sequence[str]) -> str:
    """Return ids of experiments as a JSON list of integers."""
    return json.dumps([int(experiment_id) for experiment_id in ids])
