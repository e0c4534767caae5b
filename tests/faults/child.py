"""The command line with a fault in it: `python -m tests.faults.child MOMENT ACTION ARGUMENTS`.

normbench knows nothing of it: methods are wrapped here before it starts.
"""

import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from normbench.command.sweep.progress import Progress
from normbench.engine.plan import Plan
from normbench.recording.resume import leftovers
from normbench.recording.store import connection as store
from normbench.recording.store.writer import Writer
from normbench.results.report import terminal as conclusion

# What is called at a moment, and which of its calls it is: the second of three jobs is struck.
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "tidying": (leftovers, "tidy", 1),
    "starting": (Writer, "start_sweep", 1),
    "descending": (Progress, "__call__", 30),
    "amid a pass": (Plan, "gradient", 30),
    "before writing": (Writer, "write", 2),
    "amid writing": (Writer, "_log", 5),
    "before its end": (Writer, "_log_arrays", 2),  # its runs are there, and the scheme's is running
    "standing": (store.Store, "statuses", 4),  # each job was read back: are they there at the end?
    "concluding": (conclusion, "present", 1),
}
AFTER = ("starting",)  # struck when the call is done: its run is there
DATABASE = Path("mlflow.db")
held: list[Any] = []


def lock() -> None:
    """Hold the database as another process would, for good."""
    held.append(sqlite3.connect(DATABASE, isolation_level=None))
    held[0].execute("BEGIN EXCLUSIVE")


def corrupt() -> None:
    """Cut off the database, and what waits beside it, after the first page."""
    for file in (DATABASE, Path("mlflow.db-wal")):
        if file.exists():
            os.truncate(file, 4096)


def end_server() -> None:
    """Kill the server whose process stands in a file, with its workers."""
    os.killpg(int(Path("server.pid").read_text()), signal.SIGKILL)


def fill() -> None:
    """Take all the room that there is on this file system."""
    file = os.open("filler", os.O_WRONLY | os.O_CREAT)
    for size in (1 << 16, 1 << 12, 1):
        with suppress(OSError):
            while os.write(file, b"\0" * size):
                pass
    os.close(file)


def remove_database() -> None:
    """Remove the database, which this process has open."""
    for file in (DATABASE, Path("mlflow.db-wal"), Path("mlflow.db-shm")):
        file.unlink(missing_ok=True)


def replace_database() -> None:
    """Remove it, and let another command make one in its place."""
    remove_database()
    store._initialize(DATABASE.absolute(), None)


def kill_soon() -> None:
    """Kill this process after some seconds of the environment; with those it started, or alone."""

    def kill() -> None:
        if os.environ.get("ALONE"):
            os.kill(os.getpid(), signal.SIGKILL)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    clock = threading.Timer(float(os.environ["SOON"]), kill)
    clock.daemon = True
    clock.start()


ACTIONS: dict[str, Callable[[], None]] = {
    "SIGINT": lambda: os.kill(os.getpid(), signal.SIGINT),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "lock": lock,
    "corrupt": corrupt,
    "end server": end_server,
    "fill": fill,
    "remove": remove_database,
    "replace": replace_database,
    "remove outputs": lambda: shutil.rmtree("outputs"),
    "kill soon": kill_soon,
}


def strike(moment: str, act: Callable[[], None]) -> None:
    """Wrap what is called at a moment, so that it is struck."""
    owner, name, number = MOMENTS[moment]
    number = int(os.environ.get("CALL", number))
    original, calls = getattr(owner, name), []

    def struck(*arguments: Any, **named: Any) -> Any:
        calls.append(name)
        if len(calls) != number:
            return original(*arguments, **named)
        if moment not in AFTER:
            act()
            return original(*arguments, **named)
        found = original(*arguments, **named)
        act()
        return found

    setattr(owner, name, struck)


def set_back(hours: float) -> None:
    """Let the clock be wrong, for us and for MLflow."""
    real = time.time
    time.time = lambda: real() - 3600 * hours


def main() -> None:
    """Strike, then be the command."""
    moment, action, *arguments = sys.argv[1:]
    store.PATIENCE = float(os.environ.get("PATIENCE", store.PATIENCE))
    if moment == "set back":
        set_back(float(action))
    else:
        strike(moment, ACTIONS[action])
    from normbench.__main__ import main as be_the_command

    be_the_command(arguments)


if __name__ == "__main__":
    main()
