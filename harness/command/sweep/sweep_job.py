"""One job of a sweep: reused, or run and recorded, whatever its outcome."""

import os
import time
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from normbench import interrupts, names
from normbench.command.config import resolvers
from normbench.command.config.compose import JobSpec
from normbench.command.sweep import task
from normbench.command.sweep.progress import Progress, estimate_seconds_left
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import write_maps_to
from normbench.recording.resume import checkpoints, leftovers
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.writer import Writer
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord

if TYPE_CHECKING:  # they load scipy and scikit-learn
    from normbench.job import PointsCache
    from normbench.recording.store.records import RecordHeader


NOT_REUSED_NOTE = "; what is recorded of it has another refine or shadows, and was not reused"


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record the job of a composed config; see `run_spec`."""
    resolvers.register()
    return run_spec(JobSpec.from_config(config))


def run_spec(spec: JobSpec) -> dict[str, Any]:
    """Run and record one job, or reuse a recorded one; return its outcome.

    Args:
        spec: The job, with its number in the sweep and the sweep's folder, which has the ledger.

    Returns:
        `failure` is empty, `user` (a mistake), `bug`, or `store` (not written, with its `reason`).
        `run_id` and `experiment` are those of the scheme's run. `reused` is whether it was recorded
        already.
    """
    from normbench.recording.resume import recovery

    resolvers.register()  # a launcher's process of its own does not know them
    clean.guard()
    folder = spec.folder
    outcome = {"experiment": spec.experiment, "reused": False}
    try:
        ledger = recovery.read_ledger(folder / leftovers.LEDGER)
    except OSError:
        reason = f"hydra.sweep.dir={folder}: was removed while the comparison was at work"
        return outcome | {"failure": "store", "reason": reason, "run_id": ""}
    recovery.stop_orphan(folder, ledger)
    title = f"job {spec.number + 1} of {ledger['jobs']}: {spec.title}"
    # False in a process of joblib or a task of a queue, which prints lines, and no bar.
    is_sweeps_process = os.getpid() == ledger["process"]
    # Of jobs side by side, those before this one are not finished.
    jobs_done = spec.number if is_sweeps_process else 0
    # A sweep whose ledger has no start is taken to start now.
    sweep_seconds_left = estimate_seconds_left(
        ledger.get("started", time.time()), jobs_done, ledger["jobs"]
    )
    progress = Progress(title, bar=is_sweeps_process, total_seconds_left=sweep_seconds_left)
    try:
        writer = spec.writer()
    except ValueError as error:  # the sweep's own process could open it
        progress.end("not run: the store cannot be opened")
        return outcome | {"failure": "store", "reason": str(error), "run_id": ""}
    header = _make_header(spec, writer, ledger)
    # `exclusive` keeps the lock of `_compute` until the record is written.
    write_maps_to(folder)
    with ExitStack() as exclusive, progress:
        known_run, failure, record = _compute(spec, writer, header, progress, exclusive)
        if record is None:
            _remove_checkpoint(header, folder)
            progress.end("reused")
            return outcome | {"failure": "", "run_id": known_run, "reused": True}
        rerun_note = _explain_rerun(spec, writer, header)
        progress.phase("writes the record")
        written = recovery.write_record(writer, header, record, folder, ledger)
    # A failure of the writing counts more than one of the job.
    reason = written.get("reason") or record.scheme.tags.get(names.REASON.key, "")
    failure = written.get("failure", failure)
    if not failure:
        _remove_checkpoint(header, folder)
    if failure == "store":  # the sweep prints the reason once, at its end
        progress.end("not recorded: the store is away")
    else:
        progress.end(f"failed: {reason}" if failure else f"done{rerun_note}")
    return outcome | {"failure": failure} | written


def _remove_checkpoint(header: "RecordHeader", folder: Path) -> None:
    """Remove the checkpoint of a recorded descent."""
    checkpoints.remove(folder.parent, header.tags[names.DESCENT.key])


def _explain_rerun(spec: JobSpec, writer: Writer, header: "RecordHeader") -> str:
    """Return a note where the same job is recorded with another refine or shadows, else nothing.

    Args:
        spec: The job, which was not reused.
        writer: The writer to the store.
        header: The header of the job's record; it lacks the digests of a job that failed early.
    """
    grid, descent = (header.tags.get(tag.key) for tag in (names.GRID_DESCENT, names.DESCENT))
    # Without `reuse`, nothing recorded was looked for.
    if not spec.plain_settings["reuse"] or grid is None or descent is None:
        return ""
    try:
        if writer.runs_of_descent(spec.experiment, descent):
            return ""  # the descent is the same: that job requested fewer measures
        return NOT_REUSED_NOTE if writer.has_grid(spec.experiment, grid, descent) else ""
    except (StoreLostError, ResultsError):
        return ""


def _make_header(spec: JobSpec, writer: Writer, ledger: dict[str, Any]) -> "RecordHeader":
    """Return the header of a job's record: where its runs belong, parameters, and shared tags.

    Args:
        spec: The job.
        writer: The writer to the store.
        ledger: The ledger of the sweep, with its id and the ids of its runs in MLflow.
    """
    from normbench.recording.store.records import RecordHeader

    sweep_id = ledger["sweep_id"]
    tags = {
        **spec.tags,
        **task.find_log_tags(),
        names.SWEEP_ID.key: sweep_id,
        names.JOB.key: f"{sweep_id}/{spec.number}",
        names.membership(sweep_id).key: str(spec.number),
    }
    parent = ledger["parents"][spec.experiment]
    return RecordHeader(writer.store.safe_uri, spec.experiment, parent, spec.parameters(), tags)


def _compute(
    spec: JobSpec,
    writer: Writer,
    header: "RecordHeader",
    progress: Progress,
    exclusive: ExitStack,
) -> tuple[str, str, JobRecord | None]:
    """Build and run a job, or reuse a recorded one, whatever happens.

    Args:
        spec: The job.
        writer: The writer to the store.
        header: The header of the job's record; the job's identity is added to its tags in place.
        progress: Reports the phases and iterations of the job.
        exclusive: Gets a lock: while it is open, a job of the same descent in another process
            waits, to reuse this one.

    Returns:
        The id of the run of a recorded job that is reused as it is, otherwise an empty text; the
        kind of failure, `user` or `bug`, or an empty text; and the new record, which is None only
        where there is such an id.
    """
    from normbench.job import run
    from normbench.recording.store import records

    try:
        progress.phase("reads the data")
        job = spec.job()
        spec.add_identity(header.params, header.tags, job)
        # A job that is found by its request loads no data, so that notes on them would be lost.
        request = None if job.dataset.notes else spec.request_digest
        if request:
            header.tags[names.REQUEST.key] = request
        folders = spec.folder.parent
        descent = header.tags[names.DESCENT.key]
        if spec.plain_settings["reuse"]:
            exclusive.enter_context(leftovers.only_one(descent, folders))
            known_run, judged_record = _reuse_recorded(writer, header)
            if known_run or judged_record:
                return known_run, "", judged_record
        progress.begin(job.settings.records)
        checkpoint_seconds = spec.plain_settings["checkpoint"]
        descent_file = (
            None
            if checkpoint_seconds is None
            else checkpoints.DescentFile(folders, descent, checkpoint_seconds)
        )
        outcome = run(job, progress, _shared(job.dataset), descent_file, progress.phase)
        return "", "", records.of_outcome(header, job.dataset, outcome)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's code may raise anything, and leave by sys.exit
        interrupts.raise_if_interrupted(error)
        failure = "user" if isinstance(error, (UserError, MemoryError)) else "bug"
        return "", failure, records.of_failure(header, error)


@lru_cache(maxsize=4)  # as many as data sets that are kept
def _shared(data: Dataset) -> "PointsCache":
    """Return what this process's jobs on the same points share."""
    from normbench.job import PointsCache

    return PointsCache(data.x)


def _reuse_recorded(writer: Writer, header: "RecordHeader") -> tuple[str, JobRecord | None]:
    """Look for a recorded job that makes this one unnecessary, and add an equal one to the sweep.

    Args:
        writer: The writer to the store.
        header: The header of this job's record, with the digests of its identity.

    Returns:
        The id of the run of the equal job, or else an empty text; and the record of a recorded
        descent that is judged by this job's rules, or None. Neither is found while the store is
        away, or where recorded arrays are gone.
    """
    from normbench.recording.reuse import lookup as reuse

    try:
        descent_runs = reuse.find_runs_of_descent(writer, header)
        known_run = reuse.find_equal_run(descent_runs, header)
        if known_run:
            writer.adopt(known_run, header.tags[names.JOB.key])
            # The next equal job finds that run by this request, without its data.
            if names.REQUEST.key in header.tags:
                writer.tag(known_run, {names.REQUEST.key: header.tags[names.REQUEST.key]})
            return known_run, None
        return "", reuse.rejudge_recorded(writer, descent_runs, header)
    except (StoreLostError, ResultsError):
        return "", None
