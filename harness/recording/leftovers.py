"""What an earlier command left: histories that the store would not take, and runs left running.

A sweep holds a lock on a file in its folder as long as it lives; the system lets go of it
however the process ends.
"""

import fcntl
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from normbench.datasets.dataset import UserError
from normbench.recording.records import JobRecord
from normbench.recording.store import StoreLostError
from normbench.recording.writer import Writer
from normbench.results import names

LEDGER = "sweep.json"  # in the sweep's folder: what its jobs have to know, under every launcher
LOCK = "lock"
PENDING = "pending"  # the folder, in a sweep's, of records that are not yet in the store
REFUSED = ".refused"  # the suffix of a record that no store will take


def hold(folder: Path) -> IO[str]:
    """Return the open, locked file that says that the sweep of a folder lives; keep it.

    Raises `UserError` where another sweep is at work in that folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError(
            f"hydra.sweep.dir={folder}: another sweep is at work there; wait for it, or name "
            "another folder"
        ) from None
    return file


def lives(folder: Path) -> bool:
    """Return whether the sweep of a folder is still at work."""
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def home(folder: Path) -> dict[str, str]:
    """Return the tags by which a later command finds out whether a sweep still lives."""
    return {names.HOST.key: socket.gethostname(), names.FOLDER.key: str(folder)}


@contextmanager
def only_one(fingerprint: str, folders: Path) -> Iterator[None]:
    """Let one process at a time, of all that write below a folder, run a job of a fingerprint.

    All lock one file, each job a byte of its own in it.
    """
    place = int(fingerprint[:15], 16)
    with (folders / f".jobs.{os.getuid()}").open("a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
        yield


def tidy(writer: Writer, folders: Path) -> int:
    """End what was left running, then write what waits below a folder of sweeps.

    Return how many jobs were written. A record that cannot be read, or that the store refuses,
    is set aside and told of. Raises `StoreLostError` where the store still takes nothing.
    """
    with _alone(folders):
        writer.end_abandoned(_abandoned)
        written = 0
        for folder in sorted({file.parent.parent for file in folders.glob(f"*/{PENDING}/*")}):
            if not (folder / LEDGER).is_file():  # not a sweep's
                continue
            with _claimed(folder) as claimed:
                if claimed:
                    written += sum(_recover(writer, file) for file in _waiting(folder))
    return written


@contextmanager
def _alone(folders: Path) -> Iterator[None]:
    """Keep other commands from writing the same records, and from starting before they are."""
    folders.mkdir(parents=True, exist_ok=True)
    with (folders / f".{LOCK}.{os.getuid()}").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _claimed(folder: Path) -> Iterator[bool]:
    """Hold the folder of a sweep that is no more; False where the sweep lives."""
    try:
        file = hold(folder)
    except UserError:
        yield False
        return
    with file:
        yield True


def _waiting(folder: Path) -> list[Path]:
    """Return the records that wait in a sweep's folder; what was cut off on its way there goes."""
    for draft in (folder / PENDING).glob("*.draft"):
        draft.unlink()
    return sorted((folder / PENDING).glob("*.npz"))


def _recover(writer: Writer, file: Path) -> bool:
    try:
        record = JobRecord.load(file)
        if record.store != writer.store.shown:
            return False
        done = _is_written(writer, record)
        if not done:
            parent = record.parent if writer.knows(record.parent) else ""
            writer.write(JobRecord(**{**vars(record), "parent": parent}))
    except StoreLostError:
        raise
    except Exception as error:  # it must not stop the commands to come
        aside = file.with_suffix(REFUSED)
        file.replace(aside)
        words = (str(error).splitlines() or [type(error).__name__])[0]
        print(f"{aside}: could not be logged and is set aside ({words})", file=sys.stderr)
        return False
    file.unlink()
    with suppress(OSError):
        file.parent.rmdir()
    return not done


def _is_written(writer: Writer, record: JobRecord) -> bool:
    """Return whether the store has a job, or its equal, which then belongs to its sweep too.

    The process may have ended between writing the job and letting go of its file, or have been
    overtaken by another that ran the same job.
    """
    tags = record.scheme.tags
    if writer.holds(record.experiment, tags[names.JOB.key]):
        return True
    fingerprint = "" if record.failure else tags.get(names.FINGERPRINT.key, "")
    equal = writer.find(record.experiment, fingerprint) if fingerprint else None
    if equal:
        writer.adopt(equal, tags[names.JOB.key])
    return equal is not None


def _abandoned(tags: Mapping[str, str]) -> bool:
    """Return whether a sweep is no more.

    Its lock tells, from any machine that sees its folder; without the folder, its own machine.
    """
    folder = Path(tags.get(names.FOLDER.key, "/nowhere"))
    if (folder / LOCK).exists():
        return not lives(folder)
    return tags.get(names.HOST.key) == socket.gethostname() and names.FOLDER.key in tags
