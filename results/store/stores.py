"""Connect to a store: its kind and state are checked before MLflow opens it.

MLflow alone would create its tables in another program's database, and would wait minutes for a
server that does not answer.
"""

import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from normbench.results.safe import clean
from normbench.results.store import database as database_file
from normbench.results.store import mlflows_own, uris
from normbench.results.store.errors import ResultsError

ALEMBIC_TABLE = "alembic_version"  # the revision of the schema
DEFAULT_STORE = uris.URI_EXAMPLE
UNAUTHORIZED = "error code 401"  # in the messages of MLflow's client
REFUSED_ACCESS = (  # the reason and the remedy of such an error
    "401: the server knows no such user and password",
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or write ~/.mlflow/credentials",
)
MAX_REASON_LENGTH = 200  # characters
UNREACHABLE_PHRASES = (
    *("Connection refused", "Connection reset", "Connection aborted", "timed out"),
    *("Name or service not known", "No route to host"),
)
TIMEOUTS = (3.0, 5.0)  # seconds to connect to a server, and until it answers


def connect(store: str) -> Any:
    """Connect to an existing store.

    Args:
        store: The URI of an MLflow store or server.

    Returns:
        MLflow's client, or one with the same methods.

    Raises:
        ResultsError: The store is missing, empty, another program's or out of reach.
    """
    mlflows_own.set_environment(retries=2)
    store = absolute(store)
    try:
        database = uris.database(store)
        if database:
            refuse_foreign_database(database, empty=False)
        elif uris.is_server(store):
            knock(store)
        return _ErrorReportingClient(database_file.client(store), store)
    except ResultsError:
        raise
    except Exception as error:  # each database driver has its own errors
        raise _lost(store, error) from error


def absolute(store: str) -> str:
    """Return the URI of a store with an absolute path.

    Args:
        store: The URI as the user wrote it.

    Returns:
        The URI; only that of a SQLite file changes.

    Raises:
        ResultsError: It is not the URI of a store.
    """
    if not store.strip():  # MLflow would create a default store
        raise ResultsError(f"--store: is empty; name a store, such as {uris.URI_EXAMPLE}")
    try:
        return uris.absolute(store, Path.cwd())
    except ValueError as error:
        raise ResultsError(f"--store {clean.blot(store)}: {error}") from None


def search_runs(client: Any, query: str, max_runs: int | None = None, **options: Any) -> list[Any]:
    """Return the runs of a query in all experiments, the latest first.

    Args:
        client: MLflow's client.
        query: MLflow's filter.
        max_runs: The largest number of runs; None for all.
        **options: Further options of the client's `search_runs`.

    Returns:
        The runs.
    """
    ids = [entry.experiment_id for entry in client.search_experiments()]
    runs: list[Any] = []
    token = None
    while True:
        size = min(max_runs or 1000, 1000)  # a page of MLflow's default size, or fewer runs
        page = client.search_runs(ids, query, max_results=size, page_token=token, **options)
        runs += page
        token = page.token
        if not token or (max_runs and len(runs) >= max_runs):
            return runs[:max_runs]


def is_quotable(text: str) -> bool:
    """Return whether a filter of MLflow can quote a text; it can quote all ids of normbench."""
    return not {"'", "`"} & set(text)


def artifact(client: Any, store: str, run_id: str, name: str, folder: str) -> Path:
    """Return the path of a run's artifact, also if the artifacts moved with their database.

    Args:
        client: MLflow's client.
        store: The store's URI.
        run_id: The run.
        name: The artifact's path within those of the run.
        folder: Where a remote artifact is downloaded to.

    Returns:
        The path of the file.

    Raises:
        ResultsError: The artifact cannot be read.
    """
    try:
        return Path(client.download_artifacts(run_id, name, folder))
    except ResultsError as error:  # the artifacts may have moved with their database
        recorded_uri = client.get_run(run_id).info.artifact_uri
        folder_beside = moved_artifacts(store, recorded_uri)
        if folder_beside and (folder_beside / name).is_file():
            return folder_beside / name
        raise ResultsError(
            f"run {run_id}: its {name} cannot be read "
            f"({clean.first_line(error.__cause__ or error)}); "
            f"it was written to {clean.line(recorded_uri)}: move the folder of artifacts back "
            "there, or, as it was, beside the database"
        ) from error


def artifacts(client: Any, store: str, run: Any) -> list[str]:
    """Return the sorted names of a run's artifacts.

    Args:
        client: The client of the store.
        store: The URI of the store. If a database was moved with its artifacts, they are looked
            for beside it.
        run: The run as MLflow gives it.

    Returns:
        Paths, with `/` between folders.
    """
    folder_beside = moved_artifacts(store, run.info.artifact_uri)
    if folder_beside:
        return sorted(
            file.relative_to(folder_beside).as_posix()
            for file in folder_beside.rglob("*")
            if file.is_file()
        )
    file_names, folders = [], [""]
    while folders:
        # The topmost folder, with an empty name here, is None for MLflow.
        entries = client.list_artifacts(run.info.run_id, folders.pop() or None)
        folders += [entry.path for entry in entries if entry.is_dir]
        file_names += [entry.path for entry in entries if not entry.is_dir]
    return sorted(file_names)


def moved_artifacts(store: str, artifacts: str) -> Path | None:
    """Return the present folder of a run's artifacts if it was moved together with the database.

    Args:
        store: The store's URI.
        artifacts: The artifacts' URI, as the run records it.

    Returns:
        The folder beside the database; None where the artifacts did not move, are missing, or the
        database is not a file.
    """
    database = uris.database(store)
    return (
        mlflows_own.moved_with_database(database, artifacts, mlflows_own.OF_RUN)
        if database
        else None
    )


def refuse_foreign_database(database: Path, empty: bool) -> None:
    """Refuse a file that is not a database of MLflow's, or is one of a newer MLflow.

    Args:
        database: The file.
        empty: Whether a database without tables is accepted.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no database, or another program's, or the installed MLflow cannot read it.
    """
    if not database.is_file():
        raise FileNotFoundError("there is no such database")
    try:
        address = f"file:{quote(str(database))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            query = "select name from sqlite_master where type = 'table'"
            tables = {name for (name,) in connection.execute(query)}
            query = "select version_num from alembic_version"
            revisions = connection.execute(query).fetchall() if ALEMBIC_TABLE in tables else []
    except sqlite3.OperationalError:  # locked, or not readable: MLflow reports it
        return
    except sqlite3.DatabaseError as error:
        raise ValueError(f"it is no database ({error})") from error
    if tables and mlflows_own.EXPERIMENTS_TABLE not in tables:
        raise ValueError("it is another program's database")
    if not tables and not empty:
        raise ValueError("it is an empty database")
    if any(not mlflows_own.has_revision(revision) for (revision,) in revisions):
        raise ValueError(
            "a newer MLflow has upgraded it, and MLflow "
            f"{version('mlflow')}, which is installed, cannot read it"
        )


def knock(server: str) -> None:
    """Raise ConnectionError if a server is out of reach, does not answer, or has an internal error.

    Args:
        server: The URI of the server.
    """
    import requests

    try:
        answer = requests.get(f"{server.rstrip('/')}/version", timeout=TIMEOUTS)
    except requests.exceptions.SSLError:  # MLflow's own settings may accept the certificate
        return
    except (requests.RequestException, ValueError) as error:  # ValueError: the URI is invalid
        raise ConnectionError(reason_of(error)) from error
    # Any other answer, such as one that asks for a password, shows that the server is there.
    if answer.status_code >= 500:
        raise ConnectionError(f"it answers with error code {answer.status_code}")


def reason_of(error: BaseException) -> str:
    """Return why a store cannot be reached, as a clause without the internals of the library."""
    text = str(error)
    for phrase in UNREACHABLE_PHRASES:
        if phrase in text:
            return phrase.lower()
    line = clean.first_line(error)
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}..."


class _ErrorReportingClient:
    """MLflow's client whose methods raise `ResultsError`, one line that names the store."""

    def __init__(self, client: Any, store: str) -> None:
        self._client, self._store = client, store

    def __getattr__(self, name: str) -> Any:
        """Return a method of the client under a wrapper that translates its errors."""
        call = getattr(self._client, name)

        def report_errors(*arguments: Any, **keywords: Any) -> Any:
            """Call the method of the client, and translate its errors."""
            try:
                return call(*arguments, **keywords)
            except Exception as error:
                raise _lost(self._store, error) from error

        return report_errors


def _lost(store: str, error: Exception) -> ResultsError:
    """Return the user's error, with the reason and the remedy, for a store that cannot be read."""
    reason, remedy = reason_of(error), "run normbench there first, or name another store"
    if is_refused(error):
        reason, remedy = REFUSED_ACCESS
    return ResultsError(f"--store {clean.blot(store)}: cannot be read ({reason}); {remedy}")


def is_refused(error: BaseException) -> bool:
    """Return whether a server asks for authentication and rejected this user's."""
    return UNAUTHORIZED in str(error)
