"""One job of a sweep: taken from what is recorded, or run and recorded, whatever becomes of it."""

import os
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from normbench import names
from normbench.command.config import resolvers
from normbench.command.config.compose import JobSpec
from normbench.command.sweep import task
from normbench.command.sweep.file_reading import FileReading
from normbench.command.sweep.progress import Progress, left_of, reading
from normbench.datasets import UserError
from normbench.recording.resume import checkpoints, leftovers
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.writer import Writer
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord

if TYPE_CHECKING:  # they load scipy and scikit-learn
    from normbench.job import Shared
    from normbench.recording.store.records import Place


AGAIN = "; what is recorded of it has another refine or shadows, and was not reused"


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record the job of a composed config; see `run_spec`."""
    resolvers.register()
    return run_spec(JobSpec.of(config))


def run_spec(spec: JobSpec) -> dict[str, Any]:
    """Run and record one job, or take it from what is recorded; return what became of it.

    `failure` is empty, `user` (a mistake), `bug`, or `store` (not written, with its `reason`);
    `run_id` and `experiment` are those of the scheme's run; `reused` says that it was there.
    """
    from normbench.recording.resume import recovery

    resolvers.register()  # a launcher's process of its own knows nothing of them, or of secrets
    clean.guard(*spec.words)
    folder = spec.folder
    outcome = {"experiment": spec.experiment, "reused": False}
    try:
        ledger = recovery.read_ledger(folder / leftovers.LEDGER)
    except OSError:
        reason = f"hydra.sweep.dir={folder}: was removed while the comparison was at work"
        return outcome | {"failure": "store", "reason": reason, "run_id": ""}
    recovery.stop_orphan(folder, ledger)
    title = f"job {spec.number + 1} of {ledger['jobs']}: {spec.title}"
    whole = left_of(ledger.get("started", time.time()), spec.number, ledger["jobs"])
    progress = Progress(title, bar=os.getpid() == ledger["process"], whole=whole)
    try:
        writer = spec.writer()
    except ValueError as error:  # the sweep's own process could open it
        progress.end("not run: the store cannot be opened")
        return outcome | {"failure": "store", "reason": str(error), "run_id": ""}
    place = _place(spec, writer, ledger)
    with ExitStack() as others_wait, FileReading(title) as file_reading, progress:
        progress.first_done = file_reading.stop
        known, failure, record = _result(spec, writer, place, progress, others_wait)
        if record is None:
            _let_go(place, folder)
            progress.end("reused")
            return outcome | {"failure": "", "run_id": known, "reused": True}
        again = _again(spec, writer, place)
        progress.phase("writes the record")
        told = recovery.write_record(writer, place, record, folder, ledger)
    reason = told.get("reason") or record.scheme.tags.get(names.REASON.key, "")
    failure = told.get("failure", failure)
    if not failure:
        _let_go(place, folder)
    if failure == "store":  # whose reason the sweep tells once, at its end
        progress.end("not recorded: the store is away")
    else:
        progress.end(f"failed: {reason}" if failure else f"done{again}")
    return outcome | {"failure": failure} | told


def _let_go(place: "Place", folder: Path) -> None:
    """Remove what is kept of a descent that is recorded."""
    checkpoints.remove(folder.parent, place.tags[names.DESCENT.key])


def _again(spec: JobSpec, writer: Writer, place: "Place") -> str:
    """Say that a job is recorded which differs in what was looked for beside its grid."""
    grid, descent = (place.tags.get(tag.key) for tag in (names.GRID_DESCENT, names.DESCENT))
    if not spec.plain["reuse"] or grid is None or descent is None:
        return ""
    try:
        if writer.of_descent(spec.experiment, descent):
            return ""  # of which less was asked
        return AGAIN if writer.has_grid(spec.experiment, grid, descent) else ""
    except (StoreLostError, ResultsError):
        return ""


def _place(spec: JobSpec, writer: Writer, ledger: dict[str, Any]) -> "Place":
    """Return where a job's runs belong, and the tags that they share."""
    from normbench.recording.store.records import Place

    sweep_id = ledger["sweep_id"]
    tags = {
        **spec.tags,
        **task.place(),
        names.SWEEP_ID.key: sweep_id,
        names.JOB.key: f"{sweep_id}/{spec.number}",
        names.membership(sweep_id).key: str(spec.number),
    }
    parent = ledger["parents"][spec.experiment]
    return Place(writer.store.shown, spec.experiment, parent, spec.parameters(), tags)


def _result(
    spec: JobSpec,
    writer: Writer,
    place: "Place",
    progress: Progress,
    others_wait: ExitStack,
) -> tuple[str, str, JobRecord | None]:
    """Return the id of a recorded job that holds this one, the kind of failure, the new record.

    While others_wait is open, a job of the same descent in another process waits, to take this
    one's result.
    """
    from normbench.job import run
    from normbench.recording.store import records

    try:
        progress.phase("reads the data")
        job = spec.job()
        spec.settle(place.params, place.tags, job)
        request = None if job.dataset.notes else spec.request
        if request:
            place.tags[names.REQUEST.key] = request
        folders = spec.folder.parent
        descent = place.tags[names.DESCENT.key]
        if spec.plain["reuse"]:
            others_wait.enter_context(leftovers.only_one(descent, folders))
            known, judged = _recorded(writer, place)
            if known or judged:
                return known, "", judged
        progress.begin(job.settings.iterations, reading(job.dataset))
        every = spec.plain["checkpoint"]
        file = None if every is None else checkpoints.DescentFile(folders, descent, every)
        outcome = run(job, progress, _shared(), file, progress.phase)
        return "", "", records.of_outcome(place, job.dataset, outcome)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's code may raise anything, and leave by sys.exit
        failure = "user" if isinstance(error, (UserError, MemoryError)) else "bug"
        return "", failure, records.of_failure(place, error)


@cache
def _shared() -> "Shared":
    """Return what this process's jobs know of their data sets."""
    from normbench.job import Shared

    return Shared()


def _recorded(writer: Writer, place: "Place") -> tuple[str, JobRecord | None]:
    """Return the id of a finished job that holds this one, now of the sweep, or else this one.

    That is: from a descent that is recorded, judged by the job's own rules. Neither without a
    store: what the job finds is kept on disk.
    """
    from normbench.recording.reuse import lookup as reuse

    try:
        found = reuse.of_descent(writer, place)
        known = reuse.known(found, place)
        if known:
            writer.adopt(known, place.tags[names.JOB.key])
            if names.REQUEST.key in place.tags:
                writer.tag(known, {names.REQUEST.key: place.tags[names.REQUEST.key]})
            return known, None
        return "", reuse.judged_again(writer, found, place)
    except (StoreLostError, ResultsError):  # or with arrays that are gone
        return "", None
