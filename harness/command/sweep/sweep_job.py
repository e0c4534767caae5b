"""One job of a comparison: found, judged again, or run; its record is a file, whatever happens."""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from normbench import interrupts, names
from normbench.command.config import resolvers
from normbench.command.config.compose import JobSpec
from normbench.command.sweep import task
from normbench.command.sweep.progress import Progress, estimate_seconds_left
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import write_maps_to
from normbench.record import checkpoint, folder
from normbench.results.safe import clean
from normbench.results.store.comparison_files import Comparison, record_file

if TYPE_CHECKING:  # they load scipy and scikit-learn
    from normbench.job import Job, PointsCache
    from normbench.record.outcome import RecordHeader
    from normbench.results.store.job_records import JobRecord


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record the job of a composed config in a task of a queue; see `run_spec`."""
    resolvers.register()
    spec = JobSpec.from_config(config)
    comparison = Comparison.read(spec.folder)
    if not comparison.is_running:
        sys.exit("the command was stopped; the same command runs what is not recorded")
    started = datetime.fromisoformat(comparison.started).timestamp()
    return run_spec(replace(spec, jobs=len(comparison.jobs), started=started))


def run_spec(spec: JobSpec) -> dict[str, Any]:
    """Run and record one job, or reuse a recorded one; return its outcome.

    Args:
        spec: The job, with its number in the comparison and the comparison's folder.

    Returns:
        `failure` is empty, `user` (a mistake), `bug`, or `disk` (not written, with its `reason`).
        `key` is that of its record. `reused` is whether it was recorded already.

    Raises:
        OSError: The folder of records cannot be written at all.
    """
    resolvers.register()  # a launcher's process of its own does not know them
    clean.guard()
    # False in a process of joblib or a task of a queue, which prints lines, and no bar.
    is_commands_process = os.getpid() == spec.process
    # Of jobs side by side, those before this one are not finished.
    jobs_done = spec.number if is_commands_process else 0
    seconds_left = estimate_seconds_left(spec.started, jobs_done, spec.jobs)
    title = f"job {spec.number + 1} of {spec.jobs}: {spec.title}"
    progress = Progress(title, bar=is_commands_process, total_seconds_left=seconds_left)
    write_maps_to(spec.folder)
    reuses = spec.plain_settings["reuse"]
    outcome = {"key": spec.keys.key, "reused": False, "failure": "", "reason": ""}
    # An equal job in another process waits here, to take this one's record.
    with folder.claim(spec.home, spec.keys) if reuses else nullcontext(), progress:
        recorded_key = folder.find(spec.home, spec.keys, spec.parameters()) if reuses else None
        if recorded_key is None:
            record, failure = _compute(spec, progress)
            progress.phase("writes the record")
            outcome |= {"failure": failure}
            outcome["reason"] = record.scheme.tags[names.REASON.key] if failure else ""
            try:
                record.save(record_file(spec.home, spec.keys.key))
            except OSError as error:
                reason = f"{spec.home}: cannot be written ({error.strerror or error})"
                outcome |= {"failure": "disk", "reason": reason}
    if recorded_key is not None:
        outcome |= {"key": recorded_key, "reused": True}
        progress.end("reused")
    else:
        progress.end(f"failed: {outcome['reason']}" if outcome["failure"] else "done")
    if not outcome["failure"]:
        checkpoint.remove(spec.home, spec.keys.descent)
    return outcome


def reuse(spec: JobSpec, key: str) -> dict[str, Any]:
    """Say that a job is recorded, and return its outcome, as `run_spec` does.

    Args:
        spec: The job.
        key: The key of the record that is reused.
    """
    checkpoint.remove(spec.home, spec.keys.descent)
    Progress(f"job {spec.number + 1} of {spec.jobs}: {spec.title}").end("reused")
    return {"key": key, "reused": True, "failure": "", "reason": ""}


def _compute(spec: JobSpec, progress: Progress) -> tuple["JobRecord", str]:
    """Judge a recorded job again, or build and run the job, whatever happens.

    Args:
        spec: The job.
        progress: Reports the phases and iterations of the job.

    Returns:
        The record; and the kind of failure, `user` or `bug`, or an empty text.
    """
    from normbench.job import run
    from normbench.record import outcome

    header = outcome.RecordHeader(
        spec.experiment, spec.recorded_parameters(), {**spec.record_tags, **task.find_log_tags()}
    )
    try:
        if spec.plain_settings["reuse"]:
            spec.check()
            if judged := folder.judge_again(spec.home, spec.keys, header):
                return judged, ""
        progress.phase("reads the data")
        job = spec.job()
        header = with_start(header, spec, job)
        progress.begin(job.settings.records)
        seconds = spec.plain_settings["checkpoint"]
        descent_file = (
            None
            if seconds is None
            else checkpoint.DescentFile(spec.home, spec.keys.descent, seconds)
        )
        ended = run(job, progress, _shared(job.dataset), descent_file, progress.phase)
        return outcome.of_outcome(header, job.dataset, ended), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's code may raise anything, and leave by sys.exit
        interrupts.raise_if_interrupted(error)
        failure = "user" if isinstance(error, (UserError, MemoryError)) else "bug"
        return outcome.of_failure(header, error), failure


def with_start(header: "RecordHeader", spec: JobSpec, job: "Job") -> "RecordHeader":
    """Return the header of a job's record with what the built job determines: start and notes."""
    params, tags = dict(header.params), dict(header.tags)
    if spec.plain_settings["start"] is None:
        params["start"] = job.settings.start
        # A network starts at `normal` anyway; with the linear model it stands in for
        # `same_function`, which the scheme has not.
        if job.settings.start == "normal" and job.model is None:
            tags[names.STANDS_IN.key] = "true"
    return replace(header, params=params, tags=tags, notes=job.notes)


@lru_cache(maxsize=4)  # as many as data sets that are kept
def _shared(data: Dataset) -> "PointsCache":
    """Return what this process's jobs on the same points share."""
    from normbench.job import PointsCache

    return PointsCache(data.x)
