"""Stores that are none, servers that are away, forbid, fail or talk nonsense."""

import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.mistakes.bench import Case, typed
from tests.recording.test_archive import members, written

AWAY = "http://127.0.0.1:9"  # where nobody listens
NOTES = "no database\n" * 400
# More than any file may hold, but not a hundred times as large as the file.
LARGE = {"artifacts/x": bytes(1 << 26) + random.Random(0).randbytes(1 << 20)}


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


def house(
    *words: str, changed: dict[str, bytes] | None = None, **manifest: object
) -> Callable[[Path], list[str]]:
    """Return words in which HOUSE is a file of an export.

    changed: members that are others; manifest: what of it says another.
    """

    def made(folder: Path) -> list[str]:
        file = written(folder / "house.zip", members(changed), manifest)
        (folder / "notes.db").write_text(NOTES)
        there = {"HOUSE": str(file), "NOTES": str(folder / "notes.db")}
        return [there.get(word, word) for word in words]

    return made


IMPORT = ("results", "import", "HOUSE", "--store")
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
        "an export of no store",
        typed("results", "export", "a", "a.zip", "--store", "sqlite:///none.db"),
        ("none.db", "no such database"),
    ),
    Case("an import of nothing", typed("results", "import", "a.zip"), ("a.zip: cannot be read",)),
    Case("an import of a text", house("results", "import", "NOTES"), ("is no whole file of",)),
    Case("an import of a newer", house("results", "import", "HOUSE", format=2), ("of format 2",)),
    Case("an import to no folder", house(*IMPORT, "sqlite:///none/a.db"), ("does not exist",)),
    Case(
        "an import whose artifacts go nowhere",
        house("results", "import", "HOUSE", "--artifacts", "/dev/null/a"),
        ("--artifacts",),
    ),
)


def delete(store: str) -> Callable[[Path], list[str]]:
    """Return words that delete a sweep of a store."""
    return typed("results", "delete", "a", "--yes", "--store", store)


WRITE, READ = ("tracking.uri=FILE",), ("results", "--store", "FILE")
CASES = (
    Case("a text for a store", text(*WRITE), ("notes.db", "not a database")),
    Case("a text for a store, to read", text(*READ), ("notes.db", "it is no database")),
    Case("a text, to list", text("results", "list", "--store", "FILE"), ("it is no database",)),
    Case("a text, to serve", text("dashboard", "--store", "FILE"), ("it is no database",)),
    Case("another's database", another(*WRITE), ("others.db", "another program's")),
    Case("another's database, to read", another(*READ), ("others.db", "another program's")),
    Case("a damaged database", damaged(*WRITE), ("mlflow.db",)),
    Case("a damaged database, to read", damaged(*READ), ("mlflow.db",)),
    Case("no database, to read", typed("results", "--store", "sqlite:///none.db"), ("none.db",)),
    Case("a store of no kind", typed("tracking.uri=nothing://a"), ("tracking.uri=nothing://a",)),
    Case("none, to read", typed("results", "--store", "nothing://a"), ("--store nothing://a",)),
    Case("no address", typed("tracking.uri=http://"), ("tracking.uri=http://",)),
    Case("no address, to read", typed("results", "--store", "http://"), ("--store http://",)),
    Case("an empty name, to read", typed("results", "--store", ""), ("--store: is empty",)),
    Case("a store in no folder", typed("tracking.uri=sqlite:///none/a.db"), ("does not exist",)),
    Case("a folder for a store", typed("tracking.uri=sqlite:///."), ("tracking.uri=",)),
    Case("a store in memory", typed("tracking.uri=sqlite://"), ("must name a file",)),
    Case("none, to delete", delete("sqlite:///none.db"), ("--store", "no such database")),
    Case("in memory, to delete", delete("sqlite://"), ("--store sqlite://: must name a file",)),
    Case("a setting of a store", typed("tracking.uri='sqlite:///a.db?mode=ro'"), ("is timeout",)),
    Case("a setting, to import", house(*IMPORT, "sqlite:///a.db?mode=ro"), ("is timeout",)),
    Case(
        "a setting, to serve",
        typed("dashboard", "--store", "sqlite:///a.db?mode=ro"),
        ("--store sqlite:///a.db?mode=ro", "is timeout"),
    ),
    Case("a list for a store", typed("tracking.uri=[1]"), ("tracking.uri=[1]",)),
    Case("no store", typed("tracking.uri=null"), ("tracking.uri=",)),
    Case(
        "artifacts of no kind",
        typed("tracking.artifacts=nothing://a"),
        ("tracking.artifacts=nothing://a",),
    ),
    Case("artifacts nowhere", typed("tracking.artifacts=/proc/a"), ("tracking.artifacts=",)),
    Case("artifacts in a file", typed("tracking.artifacts=/dev/null/a"), ("tracking.artifacts=",)),
    *MOVING,
)
SLOW = (  # a server that is away is asked again for a second
    Case(
        "a large import of more than its runs have",
        house("results", "import", "HOUSE", changed=LARGE),
        ("it holds more than its runs tell of",),
    ),
    Case("an import to no server", house(*IMPORT, AWAY), (f"--store {AWAY}", "refused")),
    Case("no server", typed(f"tracking.uri={AWAY}"), (AWAY, "connection refused")),
    Case("no server, to read", typed("results", "--store", AWAY), (AWAY, "connection refused")),
    Case("no PostgreSQL", typed("tracking.uri=postgresql+psycopg://127.0.0.1:9/a"), ("refused",)),
)
ANSWERS = {
    "html": "not in a valid JSON format",
    "json": "not in a valid JSON format",
    "forbidden": "not for you",
    "failing": "error code 500",
    "missing": "404",
    "silent": "timed out",
}
