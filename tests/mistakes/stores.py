"""Stores that are none, servers that are away, forbid, fail or talk nonsense."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.mistakes.bench import Case, typed

AWAY = "http://127.0.0.1:9"  # where nobody listens
NOTES = "no database\n" * 400


BODIES = {
    "html": (200, b"<html>welcome</html>"),
    "json": (200, b'[1, 2, {"experiments": 3}]'),
    "forbidden": (403, b'{"error_code": "PERMISSION_DENIED", "message": "not for you"}'),
    "failing": (500, b"Traceback (most recent call last):\n  ...\n" * 20),
    "missing": (404, b""),
}


class Answer(BaseHTTPRequestHandler):
    """A server that is none of MLflow's; the first part of an address says what it answers."""

    ended = threading.Event()

    def _answer(self) -> None:
        kind = self.path.split("/")[1]
        if kind == "silent":
            self.ended.wait()
            return
        code, body = BODIES[kind]
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = _answer  # noqa: N815

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[str]:
    """Yield the address of such a server, as long as it is open."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    served.daemon_threads = True
    Answer.ended.clear()
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_address[1]}"
    Answer.ended.set()
    served.shutdown()
    served.server_close()
    thread.join()


def text(*words: str) -> Callable[[Path], list[str]]:
    """Return words in which FILE is a text file by the name of a database."""

    def made(folder: Path) -> list[str]:
        (folder / "notes.db").write_text(NOTES)
        return [word.replace("FILE", f"sqlite:///{folder / 'notes.db'}") for word in words]

    return made


def another(*words: str) -> Callable[[Path], list[str]]:
    """Return words in which FILE is another program's database."""

    def made(folder: Path) -> list[str]:
        with sqlite3.connect(folder / "others.db") as connection:
            connection.execute("create table mine (a)")
        connection.close()
        return [word.replace("FILE", f"sqlite:///{folder / 'others.db'}") for word in words]

    return made


def damaged(*words: str) -> Callable[[Path], list[str]]:
    """Return words in which FILE is a database of which little is left."""

    def made(folder: Path) -> list[str]:
        with sqlite3.connect(folder / "mlflow.db") as connection:
            connection.executescript(
                "create table experiments (a); create table runs (b); "
                "insert into runs select hex(randomblob(50000))"
            )
        connection.close()
        content = (folder / "mlflow.db").read_bytes()
        (folder / "mlflow.db").write_bytes(content[:5000])
        return [word.replace("FILE", f"sqlite:///{folder / 'mlflow.db'}") for word in words]

    return made


def house(folder: Path) -> list[str]:
    """Return words that import a text."""
    (folder / "notes.db").write_text(NOTES)
    return ["results", "import", str(folder / "notes.db")]


MOVING = (
    Case(
        "an export of nothing",
        typed("results", "export", "a.zip"),
        ("a.zip: names no comparison",),
    ),
    Case(
        "an export of all and one",
        typed("results", "export", "--all", "a", "a.zip"),
        ("--all leaves no comparison to name",),
    ),
    Case(
        "an export of none",
        typed("results", "export", "a", "a.zip", "--folder", "none"),
        ("comparison a: is not in none",),
    ),
    Case("an import of nothing", typed("results", "import", "a.zip"), ("a.zip: cannot be read",)),
    Case("an import of a text", house, ("notes.db: cannot be read",)),
    Case("a deletion of none", typed("results", "delete", "a", "--yes"), ("a: is not in outputs",)),
    Case(
        "results of no home", typed("results", "--folder", "none"), ("none: holds no comparison",)
    ),
)


WRITE, READ = ("tracking.uri=FILE",), ("results", "--store", "FILE")
CASES = (
    Case("a text for a store", text(*WRITE), ("notes.db", "not a database")),
    Case("a text for a store, to read", text(*READ), ("notes.db",)),
    Case("another's database, to read", another(*READ), ("others.db",)),
    Case("a damaged database, to read", damaged(*READ), ("mlflow.db",)),
    Case("a store of no kind", typed("tracking.uri=nothing://a"), ("tracking.uri=nothing://a",)),
    Case("none, to read", typed("results", "--store", "nothing://a"), ("--store nothing://a",)),
    Case("no address", typed("tracking.uri=http://"), ("tracking.uri=http://",)),
    Case("a store in no folder", typed("tracking.uri=sqlite:///none/a.db"), ("tracking.uri=",)),
    Case("a folder for a store", typed("tracking.uri=sqlite:///."), ("tracking.uri=",)),
    Case("a list for a store", typed("tracking.uri=[1]"), ("tracking.uri=[1]",)),
    Case("no store", typed("tracking.uri=null"), ("tracking.uri=",)),
    *MOVING,
)
SLOW = (
    Case("no server", typed(f"tracking.uri={AWAY}"), (AWAY, "connection refused")),
    Case("no server, to read", typed("results", "--store", AWAY), (AWAY, "connection refused")),
    Case("no PostgreSQL", typed("tracking.uri=postgresql+psycopg://127.0.0.1:9/a"), ("refused",)),
)
ANSWERS = {
    "html": "it is no server of MLflow's",
    "json": "it is no server of MLflow's",
    "forbidden": "error code 403",
    "failing": "error code 500",
    "missing": "error code 404",
    "silent": "timed out",
}
