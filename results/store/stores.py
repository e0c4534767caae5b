"""A store, asked what it is before MLflow opens it.

MLflow would make its tables in another program's database, and wait minutes for a server that says
nothing.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from normbench.results.safe import clean, secrets
from normbench.results.store import database as database_file
from normbench.results.store import mlflows_own, uris
from normbench.results.store.errors import ResultsError

DEFAULT_STORE = uris.EXAMPLE
UNAUTHORIZED = "error code 401"  # in the words of MLflow's client
REFUSED = (  # why, and the remedy
    "401: the server knows no such user and password",
    f"set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or write {secrets.ACCOUNT}",
)
MAX_REASON_LENGTH = 200  # characters
UNREACHABLE_PHRASES = (
    *("Connection refused", "Connection reset", "Connection aborted", "timed out"),
    *("Name or service not known", "No route to host"),
)
TIMEOUTS = (3.0, 5.0)  # seconds to reach a server, and until it answers


def connect(store: str) -> Any:
    """Return MLflow's client for a store that exists; raises ResultsError where it does not."""
    mlflows_own.settle(retries=2)
    store = absolute(store)
    try:
        database = uris.database(store)
        if database:
            refuse_strange(database, empty=False)
        elif uris.is_server(store):
            knock(store)
        return _ErrorReportingClient(database_file.client(store), store)
    except ResultsError:
        raise
    except Exception as error:  # whatever a driver raises
        raise _lost(store, error) from error


def absolute(store: str) -> str:
    """Return a store's URI, the path of a database in it absolute.

    Raises ResultsError for a URI of no store.
    """
    secrets.learn(store)
    if not store.strip():  # MLflow would make a store of its own
        raise ResultsError(f"--store: is empty; name a store, such as {uris.EXAMPLE}")
    try:
        return uris.absolute(store, Path.cwd())
    except ValueError as error:
        raise ResultsError(f"--store {secrets.blot_places(store)}: {error}") from None


def search(client: Any, query: str, max_runs: int | None = None, **options: Any) -> list[Any]:
    """Return the runs of a query in all experiments, the latest first.

    options: more of those that `search_runs` of MLflow's client takes.
    """
    ids = [entry.experiment_id for entry in client.search_experiments()]
    runs: list[Any] = []
    token = None
    while True:
        size = min(max_runs or 1000, 1000)
        page = client.search_runs(ids, query, max_results=size, page_token=token, **options)
        runs += page
        token = page.token
        if not token or (max_runs and len(runs) >= max_runs):
            return runs[:max_runs]


def artifact(client: Any, store: str, run_id: str, name: str, folder: str) -> Path:
    """Return the path of a run's artifact, found beside a database that was moved with it.

    folder: where it is downloaded to. Raises ResultsError where it cannot be read.
    """
    try:
        return Path(client.download_artifacts(run_id, name, folder))
    except ResultsError as error:
        recorded_uri = client.get_run(run_id).info.artifact_uri
        folder_beside = moved(store, recorded_uri)
        if folder_beside and (folder_beside / name).is_file():
            return folder_beside / name
        raise ResultsError(
            f"run {run_id}: its {name} cannot be read "
            f"({clean.first_line(error.__cause__ or error)}); "
            f"it was written to {clean.line(recorded_uri)}: move the folder of artifacts back "
            "there, or, as it was, beside the database"
        ) from error


def artifacts(client: Any, store: str, run: Any) -> list[str]:
    """Return the names of a run's artifacts, in order."""
    folder_beside = moved(store, run.info.artifact_uri)
    if folder_beside:
        return sorted(
            file.relative_to(folder_beside).as_posix()
            for file in folder_beside.rglob("*")
            if file.is_file()
        )
    file_names, folders = [], [""]
    while folders:
        entries = client.list_artifacts(run.info.run_id, folders.pop() or None)
        folders += [entry.path for entry in entries if entry.is_dir]
        file_names += [entry.path for entry in entries if not entry.is_dir]
    return sorted(file_names)


def moved(store: str, artifacts: str) -> Path | None:
    """Return where a run's artifacts are if they were moved together with their database.

    artifacts: the URI that the run was given. None where they never moved, are not there, or the
    database is no file.
    """
    database = uris.database(store)
    return (
        mlflows_own.moved_with_database(database, artifacts, mlflows_own.OF_RUN)
        if database
        else None
    )


def refuse_strange(database: Path, empty: bool) -> None:
    """Raise ValueError or OSError for a file that is no database, or that another program made.

    empty: whether it may hold nothing yet.
    """
    if not database.is_file():
        raise FileNotFoundError("there is no such database")
    try:
        address = f"file:{quote(str(database))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            query = "select name from sqlite_master where type = 'table'"
            tables = {name for (name,) in connection.execute(query)}
    except sqlite3.OperationalError:  # locked, or in a folder of another's: MLflow tells
        return
    except sqlite3.DatabaseError as error:
        raise ValueError(f"it is no database ({error})") from error
    if tables and mlflows_own.TABLE not in tables:
        raise ValueError("it is another program's database")
    if not tables and not empty:
        raise ValueError("it is an empty database")


def knock(server: str) -> None:
    """Raise ConnectionError where a server is not there, says nothing, or only that it fails."""
    import requests

    try:
        answer = requests.get(f"{server.rstrip('/')}/version", timeout=TIMEOUTS)
    except requests.exceptions.SSLError:  # MLflow has settings of its own for that
        return
    except (requests.RequestException, ValueError) as error:
        raise ConnectionError(reason_of(error)) from error
    if answer.status_code >= 500:
        raise ConnectionError(f"it answers with error code {answer.status_code}")


def reason_of(error: BaseException) -> str:
    """Return why a store cannot be reached, without the names of the library's parts."""
    text = str(error)
    for phrase in UNREACHABLE_PHRASES:
        if phrase in text:
            return phrase.lower()
    line = clean.first_line(error)
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}..."


class _ErrorReportingClient:
    """MLflow's client, whose errors are one line that names the store."""

    def __init__(self, client: Any, store: str) -> None:
        self._client, self._store = client, store

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def report_errors(*arguments: Any, **named: Any) -> Any:
            try:
                return call(*arguments, **named)
            except Exception as error:
                raise _lost(self._store, error) from error

        return report_errors


def _lost(store: str, error: Exception) -> ResultsError:
    why, remedy = reason_of(error), "run normbench there first, or name another store"
    if is_refused(error):
        why, remedy = REFUSED
    return ResultsError(f"--store {secrets.blot_places(store)}: cannot be read ({why}); {remedy}")


def is_refused(error: BaseException) -> bool:
    """Return whether a server wants to know who is there, and does not know this user."""
    return UNAUTHORIZED in str(error)
