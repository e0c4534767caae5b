"""A sweep all of whose jobs are recorded: none is prepared, and no data or scheme is loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normbench import names
from normbench.command.config.compose import JobSpec, check
from normbench.command.sweep.progress import Progress
from normbench.recording.resume import checkpoints
from normbench.recording.store.writer import Writer

MOST = 1000  # jobs that are looked for one by one


def find(specs: Iterable[JobSpec]) -> list[tuple[JobSpec, Any]] | None:
    """Return each job with the run that its request is recorded in; None unless all have one.

    No store is made. Raises `UserError` on a mistake in a setting.
    """
    found: list[tuple[JobSpec, Any]] = []
    for spec in specs:
        request = spec.request
        if request is None or len(found) == MOST or not spec.has_file():
            return None
        check(spec.plain)
        run = spec.writer().of_request(spec.experiment, request)
        if run is None:
            return None
        found.append((spec, run))
    return found


def take(
    found: Iterable[tuple[JobSpec, Any]], writer: Writer, sweep_id: str, folder: Path
) -> list[dict[str, Any]]:
    """Make recorded jobs those of a sweep, in order; return what became of each.

    folder: of the sweep.
    """
    outcomes: list[dict[str, Any]] = []
    jobs = list(found)
    for number, (spec, run) in enumerate(jobs):
        progress = Progress(f"job {number + 1} of {len(jobs)}: {spec.title}")
        writer.adopt(run.info.run_id, f"{sweep_id}/{number}")
        checkpoints.remove(folder.parent, run.data.tags[names.DESCENT.key])
        progress.end("reused")
        place = {"experiment": spec.experiment, "run_id": run.info.run_id}
        outcomes.append(place | {"failure": "", "reused": True})
    return outcomes
