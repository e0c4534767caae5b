"""Leftovers of earlier commands: records that wait on disk, and runs that are still running."""

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

# In the folder of a sweep while it is at work: the facts that its jobs need in every process.
LEDGER = "sweep.json"
MAX_LEDGER = 1 << 28  # bytes
PENDING = "pending"  # the subfolder of records that are not yet in the store
NO_DESCENT = "0"  # takes the place of the digest of a descent in `only_one`, for a job without one
REFUSED_SUFFIX = ".refused"  # the suffix of a record that the store refused


def lock_new_folder(folder: Path) -> IO[str]:
    """Lock the folder of a sweep; create the folder and its lock file if they are missing.

    Args:
        folder: The folder.

    Returns:
        The open lock file; the lock lasts until it is closed.

    Raises:
        UserError: Another sweep is at work in that folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return lock_folder(folder, create=True)
    except FileNotFoundError:  # the folder, or its lock, was deleted with another sweep
        folder.mkdir(parents=True, exist_ok=True)
        return lock_folder(folder, create=True)


def lock_folder(folder: Path, create: bool = False) -> IO[str]:
    """Lock the folder of a sweep.

    Args:
        folder: The folder, which must exist.
        create: Whether a missing lock file is created.

    Returns:
        The open lock file; the lock lasts until it is closed, or the process ends.

    Raises:
        UserError: A sweep is at work in that folder.
        FileNotFoundError: The lock file is missing, or was removed meanwhile.
        OSError: The lock file cannot be opened.
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
    """Return whether an open lock file is still that of its folder.

    Args:
        file: The open lock file.
        folder: The folder, which another process may have deleted, and created again.

    Returns:
        False where the folder has no lock file, or another one.
    """
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(folder / owner.LOCK))
    except OSError:
        return False


def remove_ledger(folder: Path, sweep_id: str, lock_file: IO[str] | None) -> None:
    """Remove the ledger of a sweep from its folder, and the folder if it is then empty.

    Args:
        folder: The folder of the sweep. The ledger of another sweep stays.
        sweep_id: The id of the sweep.
        lock_file: The open lock file of the folder, which is removed with the ledger; None if
            there is none.
    """
    # A ledger that is missing, cannot be read or is no ledger leaves the files as they are.
    with suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads(files.read_bounded(folder / LEDGER, MAX_LEDGER))["sweep_id"] == sweep_id:
            (folder / LEDGER).unlink()
            if lock_file:
                (folder / owner.LOCK).unlink()
    with suppress(OSError):
        folder.rmdir()


def refuse_at_work(sweeps: Iterable[Any]) -> None:
    """Raise ResultsError where a sweep is still at work.

    Args:
        sweeps: The runs of the sweeps themselves, as MLflow gives them.
    """
    for run in sweeps:
        folder = Path(run.data.tags.get(names.FOLDER.key, ""))
        # Without a lock that can be read here, `is_locked` is None, and the sweep is not refused.
        if run.info.status == "RUNNING" and owner.is_locked(folder):
            sweep = clean.line(run.data.tags[names.SWEEP_ID.key])
            raise ResultsError(f"comparison {sweep}: is at work; stop it, or wait for it")


def owner_tags(folder: Path) -> dict[str, str]:
    """Return the tags by which `owner.is_alive` tells whether the sweep of this process lives."""
    return {
        names.HOST.key: owner.host(),
        names.PROCESS.key: str(os.getpid()),
        names.FOLDER.key: str(folder),
    }


@contextmanager
def only_one(descent: str, folders: Path, wait: bool = True) -> Iterator[bool]:
    """Let only one of the processes that share a folder run a job of a descent at a time.

    All jobs of a user lock one file, and each descent locks its own byte of that file.

    Args:
        descent: The digest of the job's descent, or `NO_DESCENT`.
        folders: The folder of the folders of sweeps.
        wait: Whether to wait for another process that has the descent.

    Yields:
        True while this process has the descent; False if another process has it and `wait` is
        false.
    """
    offset = int(descent[:15], 16)  # 15 hexadecimal digits have 60 bits; a file offset has 63
    folders.mkdir(parents=True, exist_ok=True)
    lock_file = files.open_descriptor(
        folders / f".jobs.{os.getuid()}", os.O_RDWR | os.O_CREAT, mode=0o600
    )
    with os.fdopen(lock_file, "r+") as file:
        try:
            length = 1  # byte
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), length, offset)
        except BlockingIOError:
            yield False
            return
        yield True


def tidy(writer: Writer, folders: Path) -> int:
    """Remove old checkpoints, end the running runs of dead sweeps, and write waiting records.

    A record that cannot be read, or that the store refuses, is set aside with a message.

    Args:
        writer: The writer to the store.
        folders: The folder of the folders of sweeps.

    Returns:
        The number of jobs that were written.

    Raises:
        StoreLostError: The store is still away.
    """
    folders.mkdir(parents=True, exist_ok=True)
    checkpoints.tidy(folders)
    # None means that it is unknown whether a sweep is alive; its runs are left as they are.
    writer.end_abandoned(lambda tags: owner.is_alive(tags) is False)
    written = 0
    for folder in sorted(entry for entry in folders.iterdir() if _has_records(entry)):
        try:
            sweep_lock = lock_new_folder(folder)
        except UserError:  # that sweep lives
            continue
        except OSError as error:
            print(f"{folder}: its records are left as they are ({error})", file=sys.stderr)
            continue
        with sweep_lock:
            written += sum(_recover(writer, file, folders) for file in _waiting(folder))
    return written


def _has_records(folder: Path) -> bool:
    """Return whether a folder has a subfolder `PENDING` and a ledger; links do not count.

    Only such a folder is that of a sweep whose records may wait.
    """
    try:
        modes = [os.lstat(path).st_mode for path in (folder, folder / PENDING, folder / LEDGER)]
    except OSError:
        return False
    return stat.S_ISDIR(modes[0]) and stat.S_ISDIR(modes[1]) and stat.S_ISREG(modes[2])


def _waiting(folder: Path) -> list[Path]:
    """Return the waiting records of a sweep folder, and remove interrupted drafts."""
    for draft in (folder / PENDING).glob("*.draft"):
        with suppress(OSError):  # a folder of that name
            draft.unlink()
    return sorted((folder / PENDING).glob("*.npz"))


def _recover(writer: Writer, file: Path, folders: Path) -> bool:
    """Write a waiting record to the store unless the store has its job, and remove its file.

    Args:
        writer: The writer to the store.
        file: The file of the record.
        folders: The folder of the folders of sweeps.

    Returns:
        Whether the record was written. The file stays if the record is for another store, or if
        another process runs a job of the same descent; it gets the suffix `REFUSED_SUFFIX` if the
        record cannot be read or written.

    Raises:
        StoreLostError: The store is away.
    """
    try:
        record = JobRecord.load(file)
        if record.store != writer.store.safe_uri:
            return False
        descent = record.scheme.tags.get(names.DESCENT.key, NO_DESCENT)
        with only_one(descent, folders, wait=False) as is_owner:
            if not is_owner:  # that process writes the job; a later command removes this file
                return False
            has_job = _is_written(writer, record)
            if not has_job:
                # The run of the sweep may have been deleted in the meantime.
                parent = record.parent if writer.has_run(record.parent) else ""
                writer.write(JobRecord(**{**vars(record), "parent": parent}))
    except StoreLostError:
        raise
    except Exception as error:  # no record may stop later commands
        refused_file, reason = file.with_suffix(REFUSED_SUFFIX), clean.first_line(error)
        with suppress(OSError):  # the folder may be read-only
            file = file.replace(refused_file)
        print(f"{file}: could not be logged and is set aside ({reason})", file=sys.stderr)
        return False
    with suppress(OSError):
        file.unlink()
        file.parent.rmdir()  # fails while other records wait there
    return not has_job


def _is_written(writer: Writer, record: JobRecord) -> bool:
    """Return whether the store has the job of a record, or an equal job.

    The process may have ended between writing the job and removing its file, or another process may
    have run the same job first. An equal job is made a member of the sweep of the record.
    """
    tags = record.scheme.tags
    if writer.has_ended_job(record.experiment, tags[names.JOB.key]):
        return True
    # A failed job is written even if an equal job has succeeded.
    fingerprint = "" if record.failure else tags.get(names.FINGERPRINT.key, "")
    equal = writer.find_by_fingerprint(record.experiment, fingerprint) if fingerprint else None
    if equal:
        writer.adopt(equal, tags[names.JOB.key])
    return equal is not None
