"""Reuse recorded jobs: where all jobs of a sweep are recorded, no data and no scheme is loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normbench import names
from normbench.command.config.compose import JobSpec, check
from normbench.command.sweep.progress import Progress
from normbench.recording.resume import checkpoints
from normbench.recording.store.writer import Writer

MAX_LOOKUPS = 1000  # jobs that are looked for one by one


def find_recorded(specs: Iterable[JobSpec]) -> list[tuple[JobSpec, Any]] | None:
    """Return each job with the run that its request is recorded in; None unless all have one.

    No store is made. Raises `UserError` on a mistake in a setting.
    """
    specs_and_runs: list[tuple[JobSpec, Any]] = []
    for spec in specs:
        if len(specs_and_runs) == MAX_LOOKUPS or not spec.has_file():
            return None
        run = run_of(spec)
        if run is None:
            return None
        specs_and_runs.append((spec, run))
    return specs_and_runs


def run_of(spec: JobSpec) -> Any:
    """Return the run that a job's request is recorded in, None where there is none.

    Raises `UserError` on a mistake in a setting.
    """
    request = spec.request
    if request is None:
        return None
    check(spec.plain)
    return spec.writer().of_request(spec.experiment, request)


def adopt_recorded(
    spec: JobSpec, run: Any, writer: Writer, sweep_id: str, folder: Path, jobs: int
) -> dict[str, Any]:
    """Make a recorded job a member of a sweep; return its outcome.

    folder, jobs: of the sweep.
    """
    progress = Progress(f"job {spec.number + 1} of {jobs}: {spec.title}")
    writer.adopt(run.info.run_id, f"{sweep_id}/{spec.number}")
    checkpoints.remove(folder.parent, run.data.tags[names.DESCENT.key])
    progress.end("reused")
    run_location = {"experiment": spec.experiment, "run_id": run.info.run_id}
    return run_location | {"failure": "", "reused": True}
