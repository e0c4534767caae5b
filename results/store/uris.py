"""Parse the URIs of stores, so that this package opens the same files as MLflow."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

URI_EXAMPLE = "sqlite:///mlflow.db"
SQLITE_PREFIX = "sqlite:///"
# Other URIs are parsed by SQLAlchemy, which takes 0.15 s to load.
PLAIN_FILE_URI = re.compile(rf"{SQLITE_PREFIX}[\w./-]+", re.ASCII)
MAX_TIMEOUT = 1e6  # seconds; SQLite counts milliseconds in 32 bits


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI without its driver: `sqlite`, `postgresql`, `http`."""
    return uri.partition(":")[0].partition("+")[0].lower()


def is_server(uri: str) -> bool:
    """Return whether a URI is that of MLflow's own server."""
    return scheme_of(uri) in ("http", "https")


def absolute(uri: str, folder: Path) -> str:
    """Return the URI of a store for MLflow, with the path of a SQLite file made absolute.

    Args:
        uri: The URI as the user wrote it; `~` at the start of a path is the user's home.
        folder: The folder that a relative path starts from.

    Returns:
        The URI.

    Raises:
        ValueError: A URI of SQLite names no file, or sets more than a timeout. The message has the
            rule and the remedy.
    """
    uri = uri.strip()
    if scheme_of(uri) != "sqlite":
        scheme, separator, address = uri.partition("://")
        return f"{scheme.lower()}{separator}{address}" if separator else uri
    if PLAIN_FILE_URI.fullmatch(uri):
        return of_file(os.path.abspath(folder / uri.removeprefix(SQLITE_PREFIX)))
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        url = None
    # After `sqlite://` with two slashes, the first segment of a path is a host.
    if url is None or url.host or url.port or url.username is not None:
        raise ValueError(
            f"is no URI of a SQLite file; write {URI_EXAMPLE} for a file in this folder, or "
            "sqlite:////folder/mlflow.db for an absolute path"
        )
    if url.drivername.lower() not in ("sqlite", "sqlite+pysqlite"):
        raise ValueError(f"must name Python's own driver of SQLite, or none; write {URI_EXAMPLE}")
    if not url.database or url.database == ":memory:" or "\0" in url.database:
        raise ValueError(f"must name a file, which other processes can open; write {URI_EXAMPLE}")
    timeout = url.query.get("timeout")  # a tuple, if it is set twice; refused by `_is_timeout`
    # A ? without a setting is refused, too: it may have been meant as a part of the path.
    if ("?" in uri and set(url.query) != {"timeout"}) or not _is_timeout(timeout):
        raise ValueError(
            "the one setting after ? is timeout, a number of seconds, once; "
            f"write {URI_EXAMPLE}?timeout=60, or no ? at all"
        )
    file = os.path.abspath(folder / os.path.expanduser(url.database))
    return of_file(file) + (f"?timeout={timeout}" if timeout else "")


def of_file(file: str | Path) -> str:
    """Return the URI of a SQLite file that SQLAlchemy parses back to the same path."""
    plain = f"{SQLITE_PREFIX}{file}"
    if PLAIN_FILE_URI.fullmatch(plain):
        return plain
    from sqlalchemy.engine import URL, make_url

    if make_url(plain).database == str(file):
        return plain
    # MLflow creates the folder of a path after sqlite:/// without decoding it; it creates none for
    # a URI with a driver.
    return URL.create("sqlite+pysqlite", database=str(file)).render_as_string()


def database(uri: str) -> Path | None:
    """Return the file of a SQLite store, from the URI that `absolute` returns; None for others."""
    if scheme_of(uri) != "sqlite":
        return None
    if PLAIN_FILE_URI.fullmatch(uri):
        return Path(uri.removeprefix(SQLITE_PREFIX))
    from sqlalchemy.engine import make_url

    return Path(str(make_url(uri).database))


def path_of(uri: str) -> Path:
    """Return the decoded path of a URI such as `file:///a%20b`, or of a plain path."""
    return Path(unquote(urlsplit(uri).path))


def _is_timeout(text: object) -> bool:
    """Return whether a text is a timeout in seconds for SQLite, or None for its default."""
    try:
        return text is None or 0 <= float(str(text)) <= MAX_TIMEOUT
    except ValueError:
        return False
