"""Write runs to MLflow: one for a sweep, one for each scheme, one for each step size."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from normbench import names
from normbench.datasets import UserError
from normbench.recording.store import places
from normbench.recording.store.connection import Store, StoreLostError
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs, mlflows_own, stores, uris
from normbench.results.store.job_records import Entry, JobRecord, RunRecord
from normbench.results.store.looks import look

METRICS_PER_CALL = 1000  # the limit of MLflow
ENTRIES_PER_CALL = 100  # parameters or tags, the limit of MLflow
Written = TypeVar("Written")
FINISHED, NOT_KILLED = "attributes.status = 'FINISHED'", "attributes.status != 'KILLED'"


class Writer:
    """Writes runs to one store. A method raises `StoreLostError` where the store stays away.

    Runs are returned as MLflow's client returns them, or the entities that stand in for them.

    Args:
        store: The store, which is opened.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.client = store.client
        self._entities = store.entities
        self._experiments: dict[str, str] = {}  # ids by name

    def start_sweep(self, experiment: str, sweep_id: str, tags: Mapping[str, str]) -> str:
        """Start the run of a sweep.

        Args:
            experiment: The name of the experiment, which is created if there is none.
            sweep_id: The id of the sweep.
            tags: The tags of the run.

        Returns:
            The id of the run.
        """
        run = RunRecord(f"sweep {sweep_id}", {**tags, names.SWEEP_ID.key: sweep_id})
        return self._create(experiment, run, names.SWEEP)

    def start_new_sweep(
        self, experiments: Sequence[str], preferred: str, tags: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        """Start the runs of a sweep under an unused id.

        Where the store has transactions, no other process can take the id meanwhile.

        Args:
            experiments: The names of the experiments, which are created if there are none.
            preferred: The preferred id, see `unused_sweep_id`.
            tags: The tags of the runs.

        Returns:
            The id of the sweep, and the id of its run in each experiment.
        """
        for name in experiments:  # a missing one is created before the transaction
            self._experiment(name)

        def start(writer: "Writer") -> tuple[str, dict[str, str]]:
            sweep_id = writer.unused_sweep_id(preferred)
            return sweep_id, {
                name: writer.start_sweep(name, sweep_id, tags) for name in experiments
            }

        return self._at_once(start)

    def unused_sweep_id(self, preferred: str) -> str:
        """Return an unused sweep id: the preferred one, or else that with the suffix `.2` or up."""
        number, candidate = 1, preferred
        while self._has_sweep(candidate):
            number += 1
            candidate = f"{preferred}.{number}"
        return candidate

    def _has_sweep(self, sweep_id: str) -> bool:
        """Return whether a run names a sweep; its own run may be deleted while its jobs stay."""
        queries = (names.SWEEP_ID.equals(sweep_id), names.membership(sweep_id).exists)
        return any(stores.search_runs(self.client, query, max_runs=1) for query in queries)

    def create_run(
        self, experiment: str, name: str, tags: Mapping[str, str], started: int | None = None
    ) -> str:
        """Create a run, which is running until `finish` ends it.

        Args:
            experiment: The name of the experiment, which is created if there is none.
            name: The name of the run.
            tags: The tags of the run, any number of them.
            started: The start of the run, in ms since 1970; now if None.

        Returns:
            The id of the run.
        """
        entries, experiment_id = list(tags.items()), self._experiment(experiment)
        run = self.client.create_run(experiment_id, started, dict(entries[:ENTRIES_PER_CALL]), name)
        for first in range(ENTRIES_PER_CALL, len(entries), ENTRIES_PER_CALL):
            self.tag(run.info.run_id, dict(entries[first : first + ENTRIES_PER_CALL]))
        return str(run.info.run_id)

    def finish(self, run_id: str, status: str = "FINISHED", ended: int | None = None) -> None:
        """End a run.

        Args:
            run_id: The id of the run.
            status: `FINISHED`, `FAILED` or `KILLED`.
            ended: The end of the run, in ms since 1970; now if None.
        """
        self.client.set_terminated(run_id, status, ended)

    def write(self, record: JobRecord) -> str:
        """Write the runs of a job: one for its scheme and, below it, one for each step size.

        The run of the scheme is finished last, so that an incomplete job is never FINISHED.

        Args:
            record: The record of the job.

        Returns:
            The id of the run of the scheme.

        Raises:
            StoreLostError: The runs cannot be written, or not read back.
        """
        self._experiment(record.experiment)  # a missing one is created before the transaction
        scheme, steps = self._at_once(lambda writer: writer._write_runs(record))
        statuses = dict.fromkeys(steps, "FINISHED")
        self._log_arrays(scheme, record.arrays)
        if record.failure:
            self.client.log_text(scheme, record.failure, "traceback.txt")
        statuses[scheme] = "FAILED" if record.failure else "FINISHED"
        self.finish(scheme, statuses[scheme])
        self.store.sync()
        self._read_back(scheme, statuses)
        return scheme

    def _write_runs(self, record: JobRecord) -> tuple[str, list[str]]:
        """Write the runs of a job without artifacts, and end those of its step sizes.

        Returns:
            The id of the run of the scheme, which is still running, and those of the step sizes.
        """
        scheme = self._create(record.experiment, record.scheme, names.SCHEME, record.parent)
        self.log_params(scheme, record.params)
        if record.dataset:
            self.log_input(scheme, record.dataset, {"mlflow.data.context": "training"})
        steps = []
        for step in record.steps:
            steps.append(self._create(record.experiment, step, names.STEP, scheme))
            self._log(steps[-1], step.metrics)
            self.finish(steps[-1])
        self._log(scheme, record.scheme.metrics)
        return scheme, steps

    def _at_once(self, write: Callable[["Writer"], Written]) -> Written:
        """Call a function that writes, in one transaction where the store has them.

        Args:
            write: Writes with the writer that it is given.

        Returns:
            The value of the function.
        """
        if not self.client.has_transactions:
            return write(self)

        def write_in_transaction(client: Any) -> Written:
            # The client of the transaction does not retry single calls: the whole is retried.
            writer = copy(self)
            writer.client = client
            return write(writer)

        written: Written = self.client.at_once(write_in_transaction)
        return written

    def _read_back(self, scheme: str, statuses: Mapping[str, str]) -> None:
        """Raise `StoreLostError` unless the store has the written runs with their statuses.

        Args:
            scheme: The id of the run of the scheme.
            statuses: The written status of each run by its id.
        """
        if self.store.statuses(list(statuses)) != statuses:
            with suppress(Exception):  # the remaining runs must not pass for a job
                self._end_steps(scheme)
                self.finish(scheme, "KILLED")
            raise StoreLostError(
                f"tracking.uri={self.store.safe_uri}: what was written cannot be read back; "
                "was the store removed?"
            )

    def find_by_fingerprint(self, experiment: str, fingerprint: str) -> str | None:
        """Find a finished run of a scheme by its fingerprint.

        Args:
            experiment: The name of the experiment.
            fingerprint: The fingerprint of the job.

        Returns:
            The id of the latest such run; None without one.
        """
        run = self._first_run(experiment, names.FINGERPRINT.equals(fingerprint), FINISHED)
        return str(run.info.run_id) if run else None

    def runs_of_descent(self, experiment: str, descent: str) -> list[Any]:
        """Return the finished runs of schemes with a descent digest.

        Args:
            experiment: The name of the experiment.
            descent: The digest.

        Returns:
            The runs as MLflow gives them, the latest first.
        """
        query = f"{names.DESCENT.equals(descent)} and {FINISHED}"
        return list(self.client.search_runs([self._experiment(experiment)], query))

    def has_grid(self, experiment: str, grid: str, descent: str) -> bool:
        """Return whether a finished run has this digest of its grid, and another descent.

        Args:
            experiment: The name of the experiment.
            grid: The digest of the descent without the settings `refine` and `shadows`.
            descent: The digest of the whole descent, which that run must not have.

        Returns:
            True where the same grid was descended with another `refine` or `shadows`.
        """
        another_descent = names.DESCENT.equals(descent).replace(" = ", " != ")  # a digest has no =
        return (
            self._first_run(experiment, names.GRID_DESCENT.equals(grid), another_descent, FINISHED)
            is not None
        )

    def run_of_request(self, experiment: str, request: str) -> Any:
        """Find a finished run of a scheme by its request.

        Args:
            experiment: The name of the experiment, which is not created.
            request: The digest of the settings, code and libraries of a job, see `request.digest`.

        Returns:
            The latest such run as MLflow gives it; None without one.
        """
        recorded_experiment = self.client.get_experiment_by_name(experiment)
        if recorded_experiment is None:
            return None
        query = f"{names.REQUEST.equals(request)} and {FINISHED}"
        runs = self.client.search_runs([recorded_experiment.experiment_id], query, max_results=1)
        return runs[0] if runs else None

    def has_ended_job(self, experiment: str, job: str) -> bool:
        """Return whether the store has a finished or failed job.

        Args:
            experiment: The name of the experiment.
            job: `<sweep>/<number>`.

        Returns:
            False for a job that was killed.
        """
        terms = (names.JOB.equals(job), names.ROLE.equals(names.SCHEME), NOT_KILLED)
        return self._first_run(experiment, *terms) is not None

    def _first_run(self, experiment: str, *terms: str) -> Any:
        """Return the latest run of an experiment for which all terms hold, None without one."""
        query = " and ".join(terms)
        runs = self.client.search_runs([self._experiment(experiment)], query, max_results=1)
        return runs[0] if runs else None

    def sweep_runs(self, sweep_id: str) -> dict[str, str]:
        """Return the ids of the runs of a sweep, by the ids of their experiments."""
        return {run.info.experiment_id: run.info.run_id for run in self._sweeps(sweep_id)}

    def ended_member(self, experiment: str, sweep_id: str, number: int) -> Any:
        """Find the run of a job that belongs to a sweep.

        Args:
            experiment: The name of the experiment.
            sweep_id: The id of the sweep.
            number: The number of the job in that sweep.

        Returns:
            The run as MLflow gives it; None unless it has ended, finished or failed.
        """
        terms = (names.membership(sweep_id).equals(str(number)), names.ROLE.equals(names.SCHEME))
        return self._first_run(experiment, *terms, NOT_KILLED, "attributes.status != 'RUNNING'")

    def adopt(self, scheme: str, job: str) -> None:
        """Make a recorded job a member of a further sweep, which reuses it.

        Args:
            scheme: The id of the run of its scheme.
            job: `<sweep>/<number>`, in the sweep that it joins.
        """
        sweep_id, _, number = job.rpartition("/")
        self.tag(scheme, {names.membership(sweep_id).key: number})

    def tags_of_sweep_with(
        self, experiment: str, tag: names.Tag, text: str
    ) -> dict[str, str] | None:
        """Return the tags of a finished sweep that has a tag with a value.

        Args:
            experiment: The name of the experiment.
            tag: The tag.
            text: Its value.

        Returns:
            All tags of the latest such sweep; None without one.
        """
        run = self._first_run(
            experiment, tag.equals(text), names.ROLE.equals(names.SWEEP), FINISHED
        )
        return dict(run.data.tags) if run else None

    def run(self, run_id: str) -> Any:
        """Return a run of the store."""
        return self.client.get_run(run_id)

    def has_run(self, run_id: str) -> bool:
        """Return whether the store has a run with that id; False also where the store is away."""
        return bool(self.store.statuses([run_id]))

    def end_abandoned(
        self, abandoned: Callable[[Mapping[str, str]], bool], status: str = "KILLED"
    ) -> int:
        """End the runs that are marked as running although the process of their sweep has ended.

        Args:
            abandoned: Returns whether that process has ended, from the tags of the sweep's run.
            status: The final status of the run of the sweep. An incomplete run of a job is KILLED,
                so that it does not pass for a recorded job.

        Returns:
            The number of runs that were ended.
        """
        running = self.search_runs("attributes.status = 'RUNNING'")
        ids = {run.data.tags.get(names.SWEEP_ID.key, "") for run in running} - {""}
        ids = set(filter(stores.is_quotable, ids))  # any other is of another program
        # The runs of a sweep in several experiments have the tags of one process.
        tags = {sweep_id: [run.data.tags for run in self._sweeps(sweep_id)] for sweep_id in ids}
        # A sweep whose own run was deleted has no tags, and its runs are left as they are.
        ended_sweeps = {
            sweep_id
            for sweep_id, tags_of_runs in tags.items()
            if tags_of_runs and abandoned(tags_of_runs[0])
        }
        abandoned_runs = [
            run for run in running if run.data.tags.get(names.SWEEP_ID.key) in ended_sweeps
        ]
        for run in abandoned_runs:
            role = run.data.tags.get(names.ROLE.key)
            if role == names.SCHEME:
                self._end_steps(run.info.run_id)
            self.finish(run.info.run_id, status if role == names.SWEEP else "KILLED")
        return len(abandoned_runs)

    def _end_steps(self, scheme: str) -> None:
        """Mark the finished steps of an incomplete job as KILLED; scheme: the id of its run."""
        for step in self.search_runs(f"{names.PARENT.equals(scheme)} and {FINISHED}"):
            self.finish(step.info.run_id, "KILLED")

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run.

        Args:
            run_id: The id of the run.
            path: The file.
            folder: The folder among the artifacts; empty for the topmost.
        """
        self.client.log_artifact(run_id, str(path), folder or None)

    def log_json(self, run_id: str, value: Any, name: str) -> None:
        """Log a value as a JSON artifact of a run.

        Args:
            run_id: The id of the run.
            value: A value that JSON can hold.
            name: The path of the artifact.
        """
        self.client.log_dict(run_id, value, name)

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of an existing run, ended or not.

        Args:
            run_id: The id of the run.
            tags: Texts by key; values that are there are replaced.
        """
        tag = self._entities.RunTag
        self.client.log_batch(run_id, tags=[tag(key, text) for key, text in tags.items()])

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return the tags of an experiment, which is created if there is none."""
        return dict(self.client.get_experiment(self._experiment(experiment)).tags)

    def tag_experiment(self, experiment: str, tags: Mapping[str, str]) -> None:
        """Set tags of an experiment; tags that are too long for the store are left out.

        Args:
            experiment: The name of the experiment, which is created if there is none.
            tags: Texts by key.
        """
        for key, text in tags.items():
            with suppress(*mlflows_own.refusals()):  # the value is too long
                self.client.set_experiment_tag(self._experiment(experiment), key, text)

    def runs_of_sweep(self, sweep_id: str) -> list[Any]:
        """Return the runs that a sweep wrote: of the sweep, of schemes and of step sizes."""
        return self.search_runs(names.SWEEP_ID.equals(sweep_id))

    def deleted_runs(self, sweep_id: str) -> list[Any]:
        """Return the runs of a sweep that are marked as deleted; none of a server, see `remove`."""
        if uris.is_server(self.store.uri):
            return []
        from mlflow.entities import ViewType

        query = names.SWEEP_ID.equals(sweep_id)
        return stores.search_runs(self.client, query, run_view_type=ViewType.DELETED_ONLY)

    def untag(self, run_id: str, keys: Iterable[str]) -> None:
        """Delete tags of a run.

        Args:
            run_id: The id of the run.
            keys: The keys of tags that the run has.
        """
        for key in keys:
            self.client.delete_tag(run_id, key)

    def remove(self, runs: Sequence[Any], deleted: Sequence[Any] = ()) -> str:
        """Delete runs with their artifacts.

        MLflow marks runs as deleted before they are removed. A server keeps deleted runs until
        `mlflow gc` is run there.

        Args:
            runs: The runs.
            deleted: Runs that are marked as deleted already.

        Returns:
            The reason why the store still has them as deleted runs, or an empty text.
        """
        served = uris.is_server(self.store.uri)
        for run in runs:
            if served and run.data.tags.get(names.ROLE.key) != names.STEP:  # steps have none
                self._remove_artifacts(run)
            self.client.delete_run(run.info.run_id)
        if served:
            return "the server keeps them as deleted runs, until mlflow gc is run there"
        try:
            for run in (*runs, *deleted):
                mlflows_own.remove_run(self.store.uri, run)
        except Exception as error:  # of any class: each artifact library has its own
            reason = clean.first_line(error)
            return f"they are deleted runs in MLflow, which could not be freed of them ({reason})"
        return ""

    def _remove_artifacts(self, run: Any) -> None:
        """Remove the artifacts of a run of a server; errors are ignored."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        with suppress(Exception):  # of any class: each artifact library has its own
            repository: Any = get_artifact_repository(run.info.artifact_uri, self.store.uri)
            repository.delete_artifacts()

    def _experiment(self, name: str) -> str:
        """Return the id of an experiment; a missing one is created.

        Raises:
            UserError: The experiment was deleted, or the folder of its artifacts cannot be written.
        """
        if name in self._experiments:
            return self._experiments[name]
        recorded_experiment = self.client.get_experiment_by_name(name)
        if recorded_experiment is None:
            folder = clean.name(name)
            location = f"{self.store.artifacts}/{folder}" if self.store.artifacts else None
            with suppress(*mlflows_own.refusals()):  # another process was first
                self.client.create_experiment(name, artifact_location=location)
            recorded_experiment = self.client.get_experiment_by_name(name)
        if recorded_experiment.lifecycle_stage != "active":  # MLflow keeps its name
            raise UserError(
                f"tracking.uri={self.store.safe_uri}: the experiment {name} was deleted there; "
                "restore it with mlflow experiments restore --experiment-id "
                f"{recorded_experiment.experiment_id}, or use another store, such as "
                "tracking.uri=sqlite:///other.db"
            )
        if self.store.database:  # its folder of artifacts may be another user's or machine's
            places.check_artifact_folder(
                self.store.safe_uri, name, str(recorded_experiment.artifact_location)
            )
        self._experiments[name] = str(recorded_experiment.experiment_id)
        return self._experiments[name]

    def _sweeps(self, sweep_id: str) -> list[Any]:
        """Return the runs of a sweep itself, one in each experiment."""
        return self.search_runs(
            f"{names.ROLE.equals(names.SWEEP)} and {names.SWEEP_ID.equals(sweep_id)}"
        )

    def search_runs(self, query: str) -> list[Any]:
        """Return the runs that a query matches."""
        return stores.search_runs(self.client, query)

    def _create(self, experiment: str, run: RunRecord, role: str, parent: str = "") -> str:
        """Create a run with the tags of its record, its role and its color, and return its id.

        Args:
            experiment: The name of the experiment.
            run: The record of the run; its metrics are not logged.
            role: `sweep`, `scheme` or `step`.
            parent: The id of the run above it; empty without one.
        """
        role_tags = {names.ROLE: role, names.RUN_NAME: run.name, names.USER: _user()}
        tags = {**run.tags, **{tag.key: text for tag, text in role_tags.items()}}
        if names.NORMALIZER.key in tags:
            tags[names.COLOR.key] = look(tags[names.NORMALIZER.key]).color
        if parent:
            tags[names.PARENT.key] = parent
        return self.create_run(experiment, run.name, tags)

    def _log(self, run_id: str, metrics: Sequence[Entry]) -> None:
        """Log metrics of a run, with the present time."""
        logged_at = int(time.time() * 1000)
        self.log_points(run_id, [(key, value, logged_at, step) for key, value, step in metrics])

    def log_points(self, run_id: str, points: Sequence[tuple[str, float, int, int]]) -> None:
        """Log points of metrics, any number of them.

        Args:
            run_id: The id of the run.
            points: Each with the name of the metric, its value, the time in ms since 1970, and the
                step.
        """
        for first in range(0, len(points), METRICS_PER_CALL):
            entries = [
                self._entities.Metric(*point) for point in points[first : first + METRICS_PER_CALL]
            ]
            self.client.log_batch(run_id, metrics=entries)

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Log parameters of a run, any number of them.

        Args:
            run_id: The id of the run.
            params: Texts by key.
        """
        entries = [self._entities.Param(key, text) for key, text in params.items()]
        for first in range(0, len(entries), ENTRIES_PER_CALL):
            self.client.log_batch(run_id, params=entries[first : first + ENTRIES_PER_CALL])

    def _log_arrays(self, run_id: str, arrays: Mapping[str, Mapping[str, Any]]) -> None:
        """Log arrays, `arrays[name][key]`, as artifacts `arrays/<name>.npz`."""
        if not arrays:
            return
        with TemporaryDirectory() as folder:
            for name, arrays_of_name in arrays.items():
                np.savez_compressed(Path(folder) / f"{name}.npz", **arrays_of_name)
            self.client.log_artifacts(run_id, folder, "arrays")

    def log_input(self, run_id: str, dataset: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Log the input data set of a run.

        Args:
            run_id: The id of the run.
            dataset: The fields of a data set in MLflow.
            tags: The tags of the input.
        """
        entities = self._entities
        input_tags = [entities.InputTag(*tag) for tag in tags.items()]
        dataset_input = entities.DatasetInput(entities.Dataset(**dataset), input_tags)
        self.client.log_inputs(run_id, datasets=[dataset_input])


@contextmanager
def refusals_as_user_errors(message: str) -> Iterator[None]:
    """Turn a refusal of MLflow inside the context into a `UserError` that begins with a message."""
    try:
        yield
    except mlflows_own.refusals() as error:
        raise UserError(f"{message} ({clean.first_line(error)})") from error


def input_of(run: Any) -> dict[str, str]:
    """Return the fields of the input data set of a run; empty without one."""
    inputs = dataset_inputs.of_run(run)
    return dataset_inputs.entries(inputs[0].dataset) if inputs else {}


def _user() -> str:
    """Return the name of the user; `unknown` without one."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
