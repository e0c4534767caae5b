"""Sweeps leave a store: their runs, histories and artifacts go into one file."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from normbench import names
from normbench.recording.resume import leftovers
from normbench.recording.transfer import copies
from normbench.recording.transfer.archive import Pack, packed
from normbench.recording.transfer.copies import OF_A_STORE, JobCopy, RunCopy, Value
from normbench.results.pages import view
from normbench.results.pages.description import SIGNED
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs, mlflows_own, saved_views, stores
from normbench.results.store.errors import ResultsError
from normbench.results.store.run_checks import without_interrupted
from normbench.results.store.runs import of_sweep, sweeps

EXPERIMENTS = "experiments.json"
SWEEPS, JOBS, ARTIFACTS = "sweeps/", "jobs/", "artifacts/"  # before the members of a file
Keep = Callable[[str, Path], str]  # keeps a run's artifact, by its name; returns its SHA-256
Tell = Callable[[int], None]  # hears how many jobs are done


def all_sweeps(store: str) -> list[str]:
    """Return the ids of every sweep of a store. Raises ResultsError where there is none."""
    found = list(dict.fromkeys(sweeps(store)["sweep"]))
    if not found:
        raise ResultsError(f"--store {clean.line(store)}: holds no comparison; run normbench first")
    return found


class Export:
    """Some sweeps of a store, with the jobs that they took from others, as they go into a file.

    Raises ResultsError where one is not there or is at work.
    """

    def __init__(self, store: str, sweeps: Sequence[str]) -> None:
        self.store, self.sweeps = stores.absolute(store), list(dict.fromkeys(sweeps))
        self.client = stores.connect(self.store)
        known = {entry.experiment_id: entry for entry in self.client.search_experiments()}
        runs: dict[str, Any] = {}
        for sweep in self.sweeps:
            runs |= {run.info.run_id: run for run in of_sweep(self.client, store, sweep)}
        self.own = [run for run in runs.values() if _role(run) == names.SWEEP]
        leftovers.refuse_at_work(self.own)
        found = without_interrupted(list(runs.values()))
        self.jobs = [run for run in found if _role(run) == names.SCHEME]
        self.steps: dict[str, list[Any]] = {run.info.run_id: [] for run in self.jobs}
        for run in found:
            if _role(run) == names.STEP:
                self.steps.get(run.data.tags.get(names.PARENT.key, ""), []).append(run)
        self.experiments = {key: known[key] for key in {run.info.experiment_id for run in found}}

    def write(self, file: Path, overwrite: bool, tell: Tell) -> dict[str, int]:
        """Write the file; return what is in it, counted. Raises `UserError`, ResultsError."""
        counts = dict.fromkeys(copies.COUNTED, 0)
        about = {"sweeps": self.sweeps, "counts": counts}
        with packed(file, overwrite, about) as pack:
            tags = {entry.name: self._tags(entry) for entry in self.experiments.values()}
            pack.add(EXPERIMENTS, copies.text(tags))
            for number, run in enumerate(self.jobs):
                steps = sorted(self.steps[run.info.run_id], key=lambda step: step.info.start_time)
                job = JobCopy(self._run(run, pack), [self._run(step, pack) for step in steps])
                job = job.of(self.sweeps)
                pack.add(f"{JOBS}{job.scheme.origin}.json", copies.text(job))
                count(counts, job.runs)
                counts[names.JOBS.key] += 1
                tell(number + 1)
            for run in self.own:
                copy = self._run(run, pack)
                pack.add(f"{SWEEPS}{copy.origin}.json", copies.text(copy))
                count(counts, [copy])
            counts["sweeps"] = len(self.sweeps)
        return counts

    def _run(self, run: Any, pack: Pack) -> RunCopy:
        folder = f"{ARTIFACTS}{origin(run)}/"

        def keep(name: str, file: Path) -> str:
            if name == copies.JOBS_FILE and _role(run) == names.SWEEP:
                origins = {job.info.run_id: origin(job) for job in self.jobs}
                return pack.add(f"{folder}{name}", copies.renamed(file.read_bytes(), origins))
            return pack.add_file(f"{folder}{name}", file)

        recorded = str(run.data.tags.get(names.RECORDED.key, "")).split(",")
        due = [f"arrays/{word}.npz" for word in recorded if word and _role(run) == names.SCHEME]
        every = dict.fromkeys([*stores.artifacts(self.client, self.store, run), *due])
        experiment = self.experiments[run.info.experiment_id].name
        return read(self.client, self.store, run, experiment, every, keep)

    def _tags(self, experiment: Any) -> dict[str, str]:
        """Return an experiment's tags but those that are made anew: of sweeps, and signed notes."""
        return {
            key: text
            for key, text in experiment.tags.items()
            if key not in self._views and not (key == names.DESCRIPTION.key and SIGNED in text)
        }

    @cached_property
    def _views(self) -> set[str]:
        """The tags of the views of all sweeps of the store."""
        roles = (names.SCHEME, names.STEP)
        known = {
            view.view_id(sweep, role) for sweep in sweeps(self.store)["sweep"] for role in roles
        }
        return {f"{saved_views.VIEW}{key}" for key in known}


def count(counts: dict[str, int], runs: Sequence[RunCopy]) -> None:
    """Add some runs to what is counted."""
    counts["runs"] += len(runs)
    counts["values"] += sum(len(points) for run in runs for points in run.metrics.values())
    counts["artifacts"] += sum(len(run.artifacts) for run in runs)


def origin(run: Any) -> str:
    """Return the id of the run that was recorded first, of which a run may be a copy."""
    return str(run.data.tags.get(names.ORIGIN.key, run.info.run_id))


def read(
    client: Any, store: str, run: Any, experiment: str, artifacts: Iterable[str], keep: Keep
) -> RunCopy:
    """Return a run as a store has it, with some artifacts of it, each of which is kept.

    A sweep that was cut off is KILLED. Raises ResultsError where an artifact cannot be read.
    """
    found = {}
    for name in artifacts:
        with TemporaryDirectory() as folder:
            found[name] = keep(name, stores.artifact(client, store, run.info.run_id, name, folder))
    points = mlflows_own.last_points(run)
    return RunCopy(
        origin(run),
        experiment,
        run.info.run_name,
        run.info.status if run.info.status in ("FINISHED", "FAILED") else "KILLED",
        run.info.start_time,
        run.info.end_time or run.info.start_time,
        {key: text for key, text in run.data.tags.items() if key not in OF_A_STORE},
        dict(run.data.params),
        {key: _history(client, run, key, last) for key, last in points.items()},
        [
            {
                "input": dataset_inputs.entries(entry.dataset),
                "tags": {tag.key: tag.value for tag in entry.tags},
            }
            for entry in dataset_inputs.of_run(run)
        ],
        found,
    )


def _history(client: Any, run: Any, key: str, last: Value) -> list[Value]:
    """Return all values of a metric; one whose last step is 0 is a single number."""
    if last[0] == 0:
        return [last]
    points = client.get_metric_history(run.info.run_id, key)
    return sorted((point.step, point.value, point.timestamp) for point in points)


def digest(name: str, file: Path) -> str:
    """Return the SHA-256 of an artifact, which is not kept."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _role(run: Any) -> str:
    return str(run.data.tags.get(names.ROLE.key, ""))
