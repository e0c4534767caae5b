"""What an earlier command left: histories that the store would not take, and runs left running.

A sweep holds a lock on a file in its folder as long as it lives; the system lets go of it
however the process ends.
"""

import fcntl
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from harness.records import JobRecord
from harness.tracking import Writer

LOCK = "lock"
PENDING = "pending"  # the folder, in a sweep's, of records that are not yet in the store


def hold(folder: Path) -> IO[str]:
    """Return the open, locked file that says that the sweep of a folder lives; keep it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def lives(folder: Path) -> bool:
    """Return whether the sweep of a folder is still at work."""
    try:
        with (folder / LOCK).open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def home(folder: Path) -> dict[str, str]:
    """Return the tags by which a later command finds out whether a sweep still lives."""
    return {"host": socket.gethostname(), "folder": str(folder)}


def tidy(writer: Writer, folders: Path) -> int:
    """End what was left running, then write what waits below a folder of sweeps.

    Return how many jobs were written. Raises `StoreLostError` where the store still takes nothing.
    """
    writer.end_abandoned(_abandoned)
    written = 0
    for file in sorted(folders.glob(f"*/{PENDING}/*.npz")):
        if not lives(file.parent.parent):
            written += _recover(writer, file)
    return written


def _recover(writer: Writer, file: Path) -> bool:
    record = JobRecord.load(file)
    if record.store != writer.store.shown:
        return False
    # The process may have ended between writing the job and letting go of its file.
    done = writer.holds(record.experiment, record.scheme.tags["job"])
    if not done:
        parent = record.parent if writer.knows(record.parent) else ""
        writer.write(JobRecord(**{**vars(record), "parent": parent}))
    file.unlink()
    return not done


def _abandoned(tags: Mapping[str, str]) -> bool:
    if tags.get("host") != socket.gethostname() or "folder" not in tags:
        return False
    return not lives(Path(tags["folder"]))
