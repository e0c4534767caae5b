"""Keep a record on disk until the store has it, and end the processes of a killed sweep."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from normbench import interrupts, names
from normbench.recording.resume.leftovers import LEDGER, PENDING, REFUSED_SUFFIX
from normbench.recording.resume.orphans import end_with
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.records import RecordHeader, of_failure
from normbench.recording.store.writer import Writer
from normbench.results.store.job_records import JobRecord
from normbench.results.store.owner import is_locked

_last_ledger: dict[Path, tuple[int, dict[str, Any]]] = {}  # with the time at which it was written


def read_ledger(file: Path) -> dict[str, Any]:
    """Return the ledger of a sweep: the facts that its jobs need in every process, from JSON.

    The last ledger is kept in memory. It is read again if its file has changed, and returned as it
    was if its file has been removed.

    Args:
        file: The file `LEDGER` in the folder of the sweep.

    Raises:
        OSError: There is no such file, and this process has not read it before.
    """
    try:
        written_at = file.stat().st_mtime_ns
    except OSError:
        if file not in _last_ledger:
            raise
        return _last_ledger[file][1]
    if file not in _last_ledger or _last_ledger[file][0] != written_at:
        ledger = json.loads(file.read_text())
        _last_ledger.clear()
        _last_ledger[file] = written_at, ledger
    return _last_ledger[file][1]


def write_record(
    writer: Writer, header: RecordHeader, record: JobRecord, folder: Path, ledger: dict[str, Any]
) -> dict[str, Any]:
    """Write the record of a job; a copy stays on disk until it was read back from the store.

    Args:
        writer: The writer to the store.
        header: The header of the record.
        record: The record.
        folder: The folder of the sweep.
        ledger: The ledger of the sweep.

    Returns:
        The `run_id` of the job. If the record could not be written, also a `failure` with its
        `reason`: `bug` where the store refused the record and has a failed job instead, `store`
        where the store is away. The `run_id` is then empty, and a later command writes the copy.
    """
    number = record.scheme.tags[names.JOB.key].rpartition("/")[2]  # the tag is `<sweep>/<number>`
    file = folder / PENDING / f"{number}.npz"
    _save(record, file, ledger)
    stop_orphan(folder, ledger)
    outcome: dict[str, Any] = {}
    try:
        try:
            run_id = writer.write(record)
        except (StoreLostError, OSError):  # not a refusal: handled below
            raise
        except Exception as error:  # refused: a failed job is written; the file of the record stays
            interrupts.raise_if_interrupted(error)
            failed = of_failure(header, error)
            outcome = {"failure": "bug", "reason": failed.scheme.tags[names.REASON.key]}
            run_id = writer.write(failed)
            if file.is_file():
                file.replace(file.with_suffix(REFUSED_SUFFIX))
    except (StoreLostError, OSError) as error:
        if not file.is_file():
            _save(record, file, ledger)  # a full disk may have room again
        return {"failure": "store", "reason": str(error), "run_id": ""}
    file.unlink(missing_ok=True)
    return outcome | {"run_id": run_id}


def _save(record: JobRecord, file: Path, ledger: dict[str, Any]) -> None:
    """Save a record and, if it is missing, the ledger of its sweep on disk.

    An error, such as a full disk, is ignored: the record can still be written to the store.

    Args:
        record: The record.
        file: The file of the record, in the folder `PENDING` of the folder of the sweep.
        ledger: The ledger of the sweep.
    """
    try:
        record.save(file)
        ledger_file = file.parent.parent / LEDGER
        if not ledger_file.is_file():  # removed with its folder; later commands find records by it
            ledger_file.write_text(json.dumps(ledger))
    except OSError:
        file.with_suffix(".draft").unlink(missing_ok=True)


def stop_orphan(folder: Path, ledger: dict[str, Any]) -> None:
    """End this process if it is not the process of the sweep and the sweep was killed.

    A child of the sweep's process is watched from now on, and ends soon after that process. Any
    other process, which a launcher started, ends at once if the sweep is not alive. The next
    command writes the records that this process saved, and runs its other jobs again.

    Args:
        folder: The folder of the sweep.
        ledger: The ledger of the sweep.
    """
    if os.getpid() == ledger["process"]:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sweep handles Ctrl-C, and ends its processes
    if os.getppid() == ledger["process"]:
        end_with(ledger["process"])
    elif not is_locked(folder):
        os._exit(1)  # an exception would only bring the next job
