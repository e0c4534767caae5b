"""What an earlier command left: histories that the store would not take, and runs left running."""

import errno
import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from normbench import names
from normbench.datasets.dataset import UserError
from normbench.recording.resume import checkpoints
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.writer import Writer
from normbench.results.safe import clean, files
from normbench.results.store import owner
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord

LEDGER = "sweep.json"  # in the sweep's folder: what its jobs have to know, under every launcher
LARGEST_LEDGER = 1 << 28  # bytes
PENDING = "pending"  # the folder, in a sweep's, of records that are not yet in the store
NO_JOB = "0"  # stands for the fingerprint of a job that has none
REFUSED = ".refused"  # the suffix of a record that no store will take


def hold(folder: Path) -> IO[str]:
    """Return the open, locked file that says that the sweep of a folder lives; keep it.

    Raises `UserError` where another sweep is at work in that folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return lock(folder, create=True)
    except FileNotFoundError:  # the folder, or its lock, was deleted with another sweep
        folder.mkdir(parents=True, exist_ok=True)
        return lock(folder, create=True)


def lock(folder: Path, create: bool = False) -> IO[str]:
    """Return the open, locked file of a folder of sweeps.

    create: whether the file is made where there is none. Raises `UserError` where a sweep is at
    work in that folder, FileNotFoundError where there is no file, or none any more, OSError where
    it cannot be opened.
    """
    flags = os.O_RDWR | (os.O_CREAT if create else 0)
    file = os.fdopen(files.open_descriptor(folder / owner.LOCK, flags), "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError(
            f"hydra.sweep.dir={folder}: another comparison is at work there; wait for it, or name "
            "another folder"
        ) from None
    if not is_held(file, folder):  # it was removed before it was locked
        file.close()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / owner.LOCK))
    return file


def is_held(file: IO[str], folder: Path) -> bool:
    """Return whether a folder still has the lock that was taken in it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(folder / owner.LOCK))
    except OSError:
        return False


def remove_ledger(folder: Path, sweep_id: str, lock: IO[str] | None) -> None:
    """Remove a sweep's ledger from its folder, and the folder where nothing else is in it.

    lock: of the folder, held; it goes with the ledger. Another sweep's ledger stays.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads(files.read_bounded(folder / LEDGER, LARGEST_LEDGER))["sweep_id"] == sweep_id:
            (folder / LEDGER).unlink()
            if lock:
                (folder / owner.LOCK).unlink()
    with suppress(OSError):
        folder.rmdir()


def refuse_at_work(sweeps: Iterable[Any]) -> None:
    """Raise ResultsError where one of some sweeps, by their own runs, is still at work."""
    for run in sweeps:
        folder = Path(run.data.tags.get(names.FOLDER.key, ""))
        if run.info.status == "RUNNING" and owner.lives(folder):
            sweep = clean.line(run.data.tags[names.SWEEP_ID.key])
            raise ResultsError(f"comparison {sweep}: is at work; stop it, or wait for it")


def home(folder: Path) -> dict[str, str]:
    """Return the tags by which a later command finds out whether a sweep still lives."""
    return {
        names.HOST.key: owner.host(),
        names.PROCESS.key: str(os.getpid()),
        names.FOLDER.key: str(folder),
    }


@contextmanager
def only_one(fingerprint: str, folders: Path, wait: bool = True) -> Iterator[bool]:
    """Let one process at a time, of all that write below a folder, run a job of a fingerprint.

    All lock one file, each job a byte of its own in it. Gives False, without wait, where another
    process has the job.
    """
    place = int(fingerprint[:15], 16)
    folders.mkdir(parents=True, exist_ok=True)
    mine = files.open_descriptor(
        folders / f".jobs.{os.getuid()}", os.O_RDWR | os.O_CREAT, mode=0o600
    )
    with os.fdopen(mine, "r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
        except BlockingIOError:
            yield False
            return
        yield True


def tidy(writer: Writer, folders: Path) -> int:
    """End what was left running, then write what waits below a folder of sweeps.

    Return how many jobs were written. A record that cannot be read, or that the store refuses,
    is set aside and told of. Raises `StoreLostError` where the store still takes nothing.
    """
    folders.mkdir(parents=True, exist_ok=True)
    checkpoints.tidy(folders)
    writer.end_abandoned(lambda tags: owner.is_alive(tags) is False)  # finished or not
    written = 0
    for folder in sorted(entry for entry in folders.iterdir() if _has_records(entry)):
        try:
            held = hold(folder)
        except UserError:  # that sweep lives
            continue
        except OSError as error:
            print(f"{folder}: its records are left as they are ({error})", file=sys.stderr)
            continue
        with held:  # nobody waits for it: `only_one` keeps a job from being run and written at once
            written += sum(_recover(writer, file, folders) for file in _waiting(folder))
    return written


def _has_records(folder: Path) -> bool:
    """Return whether a folder is a sweep's, in which records may wait; no link counts."""
    try:
        kinds = [os.lstat(path).st_mode for path in (folder, folder / PENDING, folder / LEDGER)]
    except OSError:
        return False
    return stat.S_ISDIR(kinds[0]) and stat.S_ISDIR(kinds[1]) and stat.S_ISREG(kinds[2])


def _waiting(folder: Path) -> list[Path]:
    """Return the records that wait in a sweep's folder; what was cut off on its way there goes."""
    for draft in (folder / PENDING).glob("*.draft"):
        with suppress(OSError):  # no file
            draft.unlink()
    return sorted((folder / PENDING).glob("*.npz"))


def _recover(writer: Writer, file: Path, folders: Path) -> bool:
    """Write the record of a file, unless it is written; return whether it had to be."""
    try:
        record = JobRecord.load(file)
        if record.store != writer.store.shown:
            return False
        with only_one(
            record.scheme.tags.get(names.FINGERPRINT.key, NO_JOB), folders, wait=False
        ) as mine:
            if not mine:  # who runs it writes it, and a later command lets go of this record
                return False
            done = _is_written(writer, record)
            if not done:
                parent = record.parent if writer.knows(record.parent) else ""
                writer.write(JobRecord(**{**vars(record), "parent": parent}))
    except StoreLostError:
        raise
    except Exception as error:  # it must not stop the commands to come
        aside, words = file.with_suffix(REFUSED), clean.first_line(error)
        with suppress(OSError):  # in a folder that we may not write to it stays
            file = file.replace(aside)
        print(f"{file}: could not be logged and is set aside ({words})", file=sys.stderr)
        return False
    with suppress(OSError):
        file.unlink()
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
