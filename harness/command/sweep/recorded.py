"""Reuse recorded jobs: where all jobs of a sweep are recorded, no data and no scheme is loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normbench import names
from normbench.command.config.compose import JobSpec, check_settings
from normbench.command.sweep.progress import Progress
from normbench.recording.resume import checkpoints
from normbench.recording.store.writer import Writer

MAX_LOOKUPS = 1000  # jobs that are looked for one by one


def find_recorded(specs: Iterable[JobSpec]) -> list[tuple[JobSpec, Any]] | None:
    """Look up the recorded runs of jobs; None unless every job has one.

    Args:
        specs: The jobs. The search stops at the first job that is not recorded, at `MAX_LOOKUPS`
            jobs, and where the store is no existing file: none is created.

    Returns:
        Each job with MLflow's run of its scheme.

    Raises:
        UserError: A setting is mistaken.
    """
    specs_and_runs: list[tuple[JobSpec, Any]] = []
    for spec in specs:
        if len(specs_and_runs) == MAX_LOOKUPS or not spec.store_file_exists():
            return None
        run = find_run(spec)
        if run is None:
            return None
        specs_and_runs.append((spec, run))
    return specs_and_runs


def find_run(spec: JobSpec) -> Any:
    """Return MLflow's run of an equal recorded job, found by its request; None without one.

    A request is the digest of all that determines a job's record, see `JobSpec.request_digest`.
    Raises `UserError` on a mistake in a setting.
    """
    request = spec.request_digest
    if request is None:
        return None
    check_settings(spec.plain_settings)
    return spec.writer().run_of_request(spec.experiment, request)


def adopt_recorded(
    spec: JobSpec, run: Any, writer: Writer, sweep_id: str, folder: Path, jobs: int
) -> dict[str, Any]:
    """Make a recorded job a member of a sweep, and print so; return its outcome.

    Args:
        spec: The job as the sweep has it.
        run: MLflow's run of the recorded job.
        writer: The writer to the store.
        sweep_id: The id of the sweep.
        folder: The folder of the sweep.
        jobs: The number of jobs of the sweep.

    Returns:
        The outcome, as `run_spec` returns it.
    """
    progress = Progress(f"job {spec.number + 1} of {jobs}: {spec.title}")
    writer.adopt(run.info.run_id, f"{sweep_id}/{spec.number}")
    # What an interrupted command had saved of this descent is of no more use.
    checkpoints.remove(folder.parent, run.data.tags[names.DESCENT.key])
    progress.end("reused")
    run_location = {"experiment": spec.experiment, "run_id": run.info.run_id}
    return run_location | {"failure": "", "reused": True}
