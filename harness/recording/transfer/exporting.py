"""Export sweeps: their runs, histories and artifacts go into one file."""

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
from normbench.recording.transfer.copies import STORE_TAGS, JobCopy, RunCopy, Value
from normbench.results.pages import view
from normbench.results.pages.description import SIGNED
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs, mlflows_own, saved_views, stores
from normbench.results.store.errors import ResultsError
from normbench.results.store.run_checks import without_interrupted
from normbench.results.store.runs import of_sweep, sweeps

EXPERIMENTS_FILE = "experiments.json"
# Prefixes of the members of a file.
SWEEPS, JOBS_FOLDER, ARTIFACTS = "sweeps/", "jobs/", "artifacts/"
KeepArtifact = Callable[[str, Path], str]  # from name and file to the SHA-256
ReportJobs = Callable[[int], None]  # called with the number of finished jobs


def all_sweeps(store: str) -> list[str]:
    """Return the ids of all sweeps of a store.

    Args:
        store: The URI of the store.

    Raises:
        ResultsError: The store has no sweep.
    """
    sweep_ids = list(dict.fromkeys(sweeps(store)["sweep"]))
    if not sweep_ids:
        raise ResultsError(f"--store {clean.line(store)}: holds no comparison; run normbench first")
    return sweep_ids


class Export:
    """Sweeps of a store to be exported, with the jobs that they reused from other sweeps.

    Jobs whose recording was interrupted are left out.

    Args:
        store: The URI of the store.
        sweeps: The ids of the sweeps.

    Raises:
        ResultsError: A sweep is missing or at work.
    """

    def __init__(self, store: str, sweeps: Sequence[str]) -> None:
        self.store, self.sweeps = stores.absolute(store), list(dict.fromkeys(sweeps))
        self.client = stores.connect(self.store)
        experiments = {entry.experiment_id: entry for entry in self.client.search_experiments()}
        runs: dict[str, Any] = {}
        for sweep in self.sweeps:
            runs |= {run.info.run_id: run for run in of_sweep(self.client, store, sweep)}
        # The runs of the sweeps themselves, and below those of schemes, each of which is a job.
        self.sweep_runs = [run for run in runs.values() if _role(run) == names.SWEEP]
        leftovers.refuse_at_work(self.sweep_runs)
        complete_runs = without_interrupted(list(runs.values()))
        self.jobs = [run for run in complete_runs if _role(run) == names.SCHEME]
        self.steps: dict[str, list[Any]] = {run.info.run_id: [] for run in self.jobs}
        for run in complete_runs:
            if _role(run) == names.STEP:  # without its job, a step is dropped
                self.steps.get(run.data.tags.get(names.PARENT.key, ""), []).append(run)
        # Those of the runs alone: the store may have others.
        self.experiments = {
            key: experiments[key] for key in {run.info.experiment_id for run in complete_runs}
        }

    def write(self, file: Path, overwrite: bool, report: ReportJobs) -> dict[str, int]:
        """Write the file.

        Args:
            file: The file.
            overwrite: Whether an existing file is replaced.
            report: Called with the number of finished jobs.

        Returns:
            The numbers of sweeps, jobs, runs, values and artifacts in the file, by `COUNT_NAMES`.

        Raises:
            UserError: The file cannot be written.
            ResultsError: An artifact cannot be read.
        """
        counts = dict.fromkeys(copies.COUNT_NAMES, 0)
        # `packed` writes these fields last, when all is counted.
        header_fields = {"sweeps": self.sweeps, "counts": counts}
        with packed(file, overwrite, header_fields) as pack:
            tags = {entry.name: self._tags(entry) for entry in self.experiments.values()}
            pack.add(EXPERIMENTS_FILE, copies.serialize(tags))
            for number, run in enumerate(self.jobs):
                steps = sorted(self.steps[run.info.run_id], key=lambda step: step.info.start_time)
                job = JobCopy(
                    self._copy_run(run, pack), [self._copy_run(step, pack) for step in steps]
                )
                job = job.restricted_to(self.sweeps)
                pack.add(f"{JOBS_FOLDER}{job.scheme.origin}.json", copies.serialize(job))
                count(counts, job.runs)
                counts[names.JOBS.key] += 1
                report(number + 1)
            for run in self.sweep_runs:
                copy = self._copy_run(run, pack)
                pack.add(f"{SWEEPS}{copy.origin}.json", copies.serialize(copy))
                count(counts, [copy])
            counts["sweeps"] = len(self.sweeps)
        return counts

    def _copy_run(self, run: Any, pack: Pack) -> RunCopy:
        """Return a copy of a run as MLflow gives it, and add its artifacts to the file.

        The artifacts have the names `artifacts/<origin>/<name>` in the file.

        Args:
            run: The run.
            pack: The file that is being written.
        """
        folder = f"{ARTIFACTS}{origin(run)}/"

        def keep(name: str, file: Path) -> str:
            """Pack an artifact and return its SHA-256; ids in `JOBS_FILE` become origins."""
            if name == copies.JOBS_FILE and _role(run) == names.SWEEP:
                origins = {job.info.run_id: origin(job) for job in self.jobs}
                return pack.add(
                    f"{folder}{name}", copies.replace_run_ids(file.read_bytes(), origins)
                )
            return pack.add_file(f"{folder}{name}", file)

        array_names = str(run.data.tags.get(names.RECORDED.key, "")).split(",")
        array_files = [
            f"arrays/{array_name}.npz"
            for array_name in array_names
            if array_name and _role(run) == names.SCHEME
        ]
        # Recorded arrays are named too, so that a missing file is an error.
        artifact_names = dict.fromkeys(
            [*stores.artifacts(self.client, self.store, run), *array_files]
        )
        experiment = self.experiments[run.info.experiment_id].name
        return copy_run(self.client, self.store, run, experiment, artifact_names, keep)

    def _tags(self, experiment: Any) -> dict[str, str]:
        """Return the tags of an experiment as MLflow gives it, without what imports create again.

        An import creates the saved views, and a description that `pages.description` signed.
        """
        return {
            key: text
            for key, text in experiment.tags.items()
            if key not in self._views and not (key == names.DESCRIPTION.key and SIGNED in text)
        }

    @cached_property
    def _views(self) -> set[str]:
        """The keys of the tags that save the views of the sweeps of the store."""
        roles = (names.SCHEME, names.STEP)
        view_keys = {
            view.view_id(sweep, role) for sweep in sweeps(self.store)["sweep"] for role in roles
        }
        return {f"{saved_views.VIEW}{key}" for key in view_keys}


def count(counts: dict[str, int], runs: Sequence[RunCopy]) -> None:
    """Add runs to counts of runs, values and artifacts.

    Args:
        counts: The counts by these three names, changed in place.
        runs: The copied runs.
    """
    counts["runs"] += len(runs)
    counts["values"] += sum(len(points) for run in runs for points in run.metrics.values())
    counts["artifacts"] += sum(len(run.artifacts) for run in runs)


def origin(run: Any) -> str:
    """Return the id of the original run, of which a run may be a copy."""
    return str(run.data.tags.get(names.ORIGIN.key, run.info.run_id))


def copy_run(
    client: Any, store: str, run: Any, experiment: str, artifacts: Iterable[str], keep: KeepArtifact
) -> RunCopy:
    """Return a copy of a run of a store. The copy of an interrupted sweep is KILLED.

    A run without an end, of a sweep that was killed, ends at its start.

    Args:
        client: The client of the store.
        store: The URI of the store.
        run: The run.
        experiment: The name of its experiment.
        artifacts: The names of the artifacts that are read.
        keep: Called with the name and the file of each of these artifacts; returns its SHA-256.

    Raises:
        ResultsError: An artifact cannot be read.
    """
    digests = {}
    for name in artifacts:
        with TemporaryDirectory() as folder:
            digests[name] = keep(
                name, stores.artifact(client, store, run.info.run_id, name, folder)
            )
    last_points = mlflows_own.last_points(run)
    return RunCopy(
        origin=origin(run),
        experiment=experiment,
        name=run.info.run_name,
        status=run.info.status if run.info.status in ("FINISHED", "FAILED") else "KILLED",
        started=run.info.start_time,
        ended=run.info.end_time or run.info.start_time,
        tags={key: text for key, text in run.data.tags.items() if key not in STORE_TAGS},
        params=dict(run.data.params),
        metrics={key: _history(client, run, key, last) for key, last in last_points.items()},
        inputs=[
            {
                "input": dataset_inputs.entries(entry.dataset),
                "tags": {tag.key: tag.value for tag in entry.tags},
            }
            for entry in dataset_inputs.of_run(run)
        ],
        artifacts=digests,
    )


def _history(client: Any, run: Any, key: str, last: Value) -> list[Value]:
    """Return all values of a metric, in the order of their steps.

    Args:
        client: The client of the store.
        run: The run.
        key: The name of the metric.
        last: Its value of the largest step. Where that step is 0, it is the only one, and the store
            is not asked.
    """
    if last[0] == 0:
        return [last]
    points = client.get_metric_history(run.info.run_id, key)
    return sorted((point.step, point.value, point.timestamp) for point in points)


def digest_artifact(name: str, file: Path) -> str:
    """Return the SHA-256 of an artifact, without keeping it.

    Args:
        name: The path of the artifact, not used: this function is a `KeepArtifact`.
        file: The downloaded artifact.

    Returns:
        The digest, in hexadecimal digits.
    """
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _role(run: Any) -> str:
    """Return the role of a run."""
    return str(run.data.tags.get(names.ROLE.key, ""))
