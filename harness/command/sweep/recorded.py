"""A sweep of recorded jobs only: no job is prepared, and no data or scheme is loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normbench import names
from normbench.command.config.compose import JobSpec, check
from normbench.command.sweep.progress import Progress
from normbench.recording.resume import checkpoints
from normbench.recording.store.writer import Writer

MAX_LOOKUPS = 1000  # jobs that are looked up one by one


def find_recorded(specs: Iterable[JobSpec]) -> list[tuple[JobSpec, Any]] | None:
    """Return each job with the run that its request is recorded in; None unless all have one.

    No store is created. Raises `UserError` on a mistake in a setting.
    """
    specs_and_runs: list[tuple[JobSpec, Any]] = []
    for spec in specs:
        request = spec.request
        if request is None or len(specs_and_runs) == MAX_LOOKUPS or not spec.has_file():
            return None
        check(spec.plain)
        run = spec.writer().of_request(spec.experiment, request)
        if run is None:
            return None
        specs_and_runs.append((spec, run))
    return specs_and_runs


def adopt_recorded(
    specs_and_runs: Iterable[tuple[JobSpec, Any]], writer: Writer, sweep_id: str, folder: Path
) -> list[dict[str, Any]]:
    """Make recorded jobs members of a sweep, in order; return the outcome of each.

    folder: of the sweep.
    """
    outcomes: list[dict[str, Any]] = []
    jobs = list(specs_and_runs)
    for number, (spec, run) in enumerate(jobs):
        progress = Progress(f"job {number + 1} of {len(jobs)}: {spec.title}")
        writer.adopt(run.info.run_id, f"{sweep_id}/{number}")
        checkpoints.remove(folder.parent, run.data.tags[names.DESCENT.key])
        progress.end("reused")
        run_location = {"experiment": spec.experiment, "run_id": run.info.run_id}
        outcomes.append(run_location | {"failure": "", "reused": True})
    return outcomes
