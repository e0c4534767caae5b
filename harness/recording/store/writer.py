"""The one writer to MLflow: a sweep's run, a scheme's run a job, a step's run a step size."""

import os
import subprocess
import sys
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

BATCH = 1000  # metrics a call, MLflow's limit
# mlflow gc, for runs that are deleted; the store's URI may hold a password, so it is no argument.
FREE = (
    "import os, sys; from mlflow.cli import gc; "
    "uri = os.environ['STORE']; "
    "gc(['--backend-store-uri', uri, '--tracking-uri', uri, '--run-ids', sys.argv[1]])"
)
FEW = 100  # parameters and tags a call, likewise
Written = TypeVar("Written")
FINISHED, NOT_KILLED = "attributes.status = 'FINISHED'", "attributes.status != 'KILLED'"


class Writer:
    """Writes runs to one store. Raises `StoreLostError` where the store stays away."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.client = store.client
        self._entities = store.entities
        self._experiments: dict[str, str] = {}  # their ids by their names

    def start_sweep(self, experiment: str, sweep_id: str, tags: Mapping[str, str]) -> str:
        """Return the id of a new sweep run."""
        run = RunRecord(f"sweep {sweep_id}", {**tags, names.SWEEP_ID.key: sweep_id})
        return self._create(experiment, run, names.SWEEP)

    def free_id(self, wanted: str) -> str:
        """Return an id that no sweep of the store has: the one that is wanted, or numbered."""
        number, tried = 1, wanted
        while self._sweeps(tried):
            number += 1
            tried = f"{wanted}.{number}"
        return tried

    def begin(
        self, experiment: str, name: str, tags: Mapping[str, str], started: int | None = None
    ) -> str:
        """Return the id of a new run, which begins now or began at a time in ms."""
        entries, place = list(tags.items()), self._experiment(experiment)
        run = self.client.create_run(place, started, dict(entries[:FEW]), name)
        for first in range(FEW, len(entries), FEW):
            self.tag(run.info.run_id, dict(entries[first : first + FEW]))
        return str(run.info.run_id)

    def finish(self, run_id: str, status: str = "FINISHED", ended: int | None = None) -> None:
        """End a run, now or at a time in ms."""
        self.client.set_terminated(run_id, status, ended)

    def write(self, record: JobRecord) -> str:
        """Write a job: its scheme's run and, below it, a run for each step size; return its id.

        The scheme's run is finished last, so that a job that is not whole is not FINISHED. Raises
        `StoreLostError` where what was written cannot be read back.
        """
        self._experiment(record.experiment)
        scheme, steps = self._at_once(lambda writer: writer._write_runs(record))
        written = dict.fromkeys(steps, "FINISHED")
        self._log_arrays(scheme, record.arrays)
        if record.failure:
            self.client.log_text(scheme, record.failure, "traceback.txt")
        written[scheme] = "FAILED" if record.failure else "FINISHED"
        self.finish(scheme, written[scheme])
        self.store.settle()
        self._read_back(scheme, written)
        return scheme

    def _write_runs(self, record: JobRecord) -> tuple[str, list[str]]:
        """Write a job's runs without artifacts; return the ids of the scheme's and the steps'."""
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
        """Return what a function gives that writes, in one transaction where the store has them."""
        if not self.client.has_transactions:
            return write(self)

        def inside(client: Any) -> Written:
            writer = copy(self)
            writer.client = client
            return write(writer)

        result: Written = self.client.at_once(inside)
        return result

    def _read_back(self, scheme: str, written: Mapping[str, str]) -> None:
        """Raise `StoreLostError` where the store has not what was written: the job is not there."""
        if self.store.statuses(list(written)) != written:
            with suppress(Exception):  # what is there is not taken for a job
                self._end_steps(scheme)
                self.finish(scheme, "KILLED")
            raise StoreLostError(
                f"tracking.uri={self.store.shown}: what was written cannot be read back; "
                "was the store removed?"
            )

    def find(self, experiment: str, fingerprint: str) -> str | None:
        """Return the id of a finished scheme run of a fingerprint, None where there is none."""
        run = self._first(experiment, names.FINGERPRINT.equals(fingerprint), FINISHED)
        return str(run.info.run_id) if run else None

    def of_descent(self, experiment: str, descent: str) -> list[Any]:
        """Return the finished scheme runs of a descent, the latest first."""
        query = f"{names.DESCENT.equals(descent)} and {FINISHED}"
        return list(self.client.search_runs([self._experiment(experiment)], query))

    def has_grid(self, experiment: str, grid: str, descent: str) -> bool:
        """Return whether a finished scheme run has this digest of its grid, and another descent."""
        other = names.DESCENT.equals(descent).replace(" = ", " != ")
        return self._first(experiment, names.GRID_DESCENT.equals(grid), other, FINISHED) is not None

    def of_request(self, experiment: str, request: str) -> Any:
        """Return the latest finished scheme run of a request, None where there is none."""
        there = self.client.get_experiment_by_name(experiment)
        if there is None:
            return None
        query = f"{names.REQUEST.equals(request)} and {FINISHED}"
        found = self.client.search_runs([there.experiment_id], query, max_results=1)
        return found[0] if found else None

    def holds(self, experiment: str, job: str) -> bool:
        """Return whether a job of a sweep, `<sweep>/<number>`, is written, finished or failed."""
        terms = (names.JOB.equals(job), names.ROLE.equals(names.SCHEME), NOT_KILLED)
        return self._first(experiment, *terms) is not None

    def _first(self, experiment: str, *terms: str) -> Any:
        """Return the latest run of an experiment for which all terms hold, None without one."""
        query = " and ".join(terms)
        found = self.client.search_runs([self._experiment(experiment)], query, max_results=1)
        return found[0] if found else None

    def sweep_runs(self, sweep_id: str) -> dict[str, str]:
        """Return the ids of a sweep's own runs by the ids of their experiments."""
        return {run.info.experiment_id: run.info.run_id for run in self._sweeps(sweep_id)}

    def ended_member(self, experiment: str, sweep_id: str, number: int) -> Any:
        """Return the run of a sweep's job, its own or one that it took in; None unless it ended."""
        terms = (names.membership(sweep_id).equals(str(number)), names.ROLE.equals(names.SCHEME))
        return self._first(experiment, *terms, NOT_KILLED, "attributes.status != 'RUNNING'")

    def adopt(self, scheme: str, job: str) -> None:
        """Make a recorded job one of a sweep's: `<sweep>/<number>`."""
        sweep_id, _, number = job.rpartition("/")
        self.tag(scheme, {names.membership(sweep_id).key: number})

    def tags_of(self, experiment: str, tag: names.Tag, text: str) -> dict[str, str] | None:
        """Return the tags of an experiment's finished sweep run that has a tag, else None."""
        run = self._first(experiment, tag.equals(text), names.ROLE.equals(names.SWEEP), FINISHED)
        return dict(run.data.tags) if run else None

    def run(self, run_id: str) -> Any:
        """Return a run of the store."""
        return self.client.get_run(run_id)

    def knows(self, run_id: str) -> bool:
        """Return whether the store has a run of that id."""
        return bool(self.store.statuses([run_id]))

    def end_abandoned(
        self, abandoned: Callable[[Mapping[str, str]], bool], status: str = "KILLED"
    ) -> int:
        """End every run that is left running by a sweep that has ended; return how many.

        abandoned: says of a sweep that it has ended, from the tags of its run. status: of the
        sweep's own run; a job's, half written, is KILLED, so that it does not pass for one that
        is written.
        """
        running = self.search("attributes.status = 'RUNNING'")
        ids = {run.data.tags.get(names.SWEEP_ID.key, "") for run in running} - {""}
        tags = {sweep_id: [run.data.tags for run in self._sweeps(sweep_id)] for sweep_id in ids}
        gone = {sweep_id for sweep_id, of_runs in tags.items() if of_runs and abandoned(of_runs[0])}
        left = [run for run in running if run.data.tags.get(names.SWEEP_ID.key) in gone]
        for run in left:
            role = run.data.tags.get(names.ROLE.key)
            if role == names.SCHEME:
                self._end_steps(run.info.run_id)
            self.finish(run.info.run_id, status if role == names.SWEEP else "KILLED")
        return len(left)

    def _end_steps(self, scheme: str) -> None:
        """Let no step of a job that was cut off pass for one of a job that is whole."""
        for step in self.search(f"{names.PARENT.equals(scheme)} and {FINISHED}"):
            self.finish(step.info.run_id, "KILLED")

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run."""
        self.client.log_artifact(run_id, str(path), folder or None)

    def log_json(self, run_id: str, value: Any, name: str) -> None:
        """Log a value as a JSON artifact of a run."""
        self.client.log_dict(run_id, value, name)

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run that is there, ended or not."""
        tag = self._entities.RunTag
        self.client.log_batch(run_id, tags=[tag(key, text) for key, text in tags.items()])

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return the tags of an experiment."""
        return dict(self.client.get_experiment(self._experiment(experiment)).tags)

    def tag_experiment(self, experiment: str, tags: Mapping[str, str]) -> None:
        """Set tags of an experiment; one that the store refuses, for its length, is left out."""
        for key, text in tags.items():
            with suppress(*mlflows_own.refusals()):
                self.client.set_experiment_tag(self._experiment(experiment), key, text)

    def of_sweep(self, sweep_id: str) -> list[Any]:
        """Return the runs that a sweep wrote: its own, its jobs', their step sizes'."""
        return self.search(names.SWEEP_ID.equals(sweep_id))

    def deleted_of(self, sweep_id: str) -> list[Any]:
        """Return a sweep's runs that a file still holds as deleted ones; a server keeps them."""
        if uris.is_server(self.store.uri):
            return []
        from mlflow.entities import ViewType

        query = names.SWEEP_ID.equals(sweep_id)
        return stores.search(self.client, query, run_view_type=ViewType.DELETED_ONLY)

    def untag(self, run_id: str, keys: Iterable[str]) -> None:
        """Take tags from a run."""
        for key in keys:
            self.client.delete_tag(run_id, key)

    def remove(self, runs: Sequence[Any], deleted: Sequence[Any] = ()) -> str:
        """Delete runs, with artifacts; return why the store is not yet free of them, or nothing.

        deleted: runs that are marked as such already. A server keeps deleted runs: its own
        `mlflow gc` takes them away.
        """
        served = uris.is_server(self.store.uri)
        ids = [run.info.run_id for run in (*runs, *deleted)]
        for run in runs:
            if served and run.data.tags.get(names.ROLE.key) != names.STEP:  # which has none
                self._remove_artifacts(run)
            self.client.delete_run(run.info.run_id)
        if served:
            return "the server keeps them as deleted runs, until mlflow gc is run there"
        for first in range(0, len(ids), BATCH):
            done = subprocess.run(
                [sys.executable, "-c", FREE, ",".join(ids[first : first + BATCH])],
                env={**os.environ, "STORE": self.store.uri},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                reason = clean.line((done.stderr.strip().splitlines() or ["no reason given"])[-1])
                return (
                    f"they are deleted runs in MLflow, which could not be freed of them ({reason})"
                )
        return ""

    def _remove_artifacts(self, run: Any) -> None:
        """Remove a run's artifacts through the server; what it refuses, its `mlflow gc` takes."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        with suppress(Exception):  # whatever the library of a kind of place raises
            place: Any = get_artifact_repository(run.info.artifact_uri, self.store.uri)
            place.delete_artifacts()

    def _experiment(self, name: str) -> str:
        """Return the id of the experiment, made where it is missing."""
        if name in self._experiments:
            return self._experiments[name]
        found = self.client.get_experiment_by_name(name)
        if found is None:
            folder = clean.name(name)
            location = f"{self.store.artifacts}/{folder}" if self.store.artifacts else None
            with suppress(*mlflows_own.refusals()):  # another process was first
                self.client.create_experiment(name, artifact_location=location)
            found = self.client.get_experiment_by_name(name)
        if self.store.database:
            places.refuse_left(self.store.shown, name, str(found.artifact_location))
        self._experiments[name] = str(found.experiment_id)
        return self._experiments[name]

    def _sweeps(self, sweep_id: str) -> list[Any]:
        return self.search(
            f"{names.ROLE.equals(names.SWEEP)} and {names.SWEEP_ID.equals(sweep_id)}"
        )

    def search(self, query: str) -> list[Any]:
        """Return the runs of a query."""
        return stores.search(self.client, query)

    def _create(self, experiment: str, run: RunRecord, role: str, parent: str = "") -> str:
        own = {names.ROLE: role, names.RUN_NAME: run.name, names.USER: _user()}
        tags = {**run.tags, **{tag.key: text for tag, text in own.items()}}
        if names.NORMALIZER.key in tags:
            tags[names.COLOR.key] = look(tags[names.NORMALIZER.key]).color
        if parent:
            tags[names.PARENT.key] = parent
        return self.begin(experiment, run.name, tags)

    def _log(self, run_id: str, metrics: Sequence[Entry]) -> None:
        now = int(time.time() * 1000)
        self.log_points(run_id, [(key, value, now, step) for key, value, step in metrics])

    def log_points(self, run_id: str, points: Sequence[tuple[str, float, int, int]]) -> None:
        """Log metrics, each as its name, value, time in ms, and step."""
        for first in range(0, len(points), BATCH):
            entries = [self._entities.Metric(*point) for point in points[first : first + BATCH]]
            self.client.log_batch(run_id, metrics=entries)

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Log parameters."""
        entries = [self._entities.Param(key, text) for key, text in params.items()]
        for first in range(0, len(entries), FEW):
            self.client.log_batch(run_id, params=entries[first : first + FEW])

    def _log_arrays(self, run_id: str, arrays: Mapping[str, Mapping[str, Any]]) -> None:
        """Log each record as `arrays/<name>.npz`."""
        if not arrays:
            return
        with TemporaryDirectory() as folder:
            for name, parts in arrays.items():
                np.savez_compressed(Path(folder) / f"{name}.npz", **parts)
            self.client.log_artifacts(run_id, folder, "arrays")

    def log_input(self, run_id: str, dataset: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Log a data set that a run was given, as the entries of MLflow's."""
        kinds = self._entities
        own = [kinds.InputTag(*tag) for tag in tags.items()]
        given = kinds.DatasetInput(kinds.Dataset(**dataset), own)
        self.client.log_inputs(run_id, datasets=[given])


@contextmanager
def refused(words: str) -> Iterator[None]:
    """Turn what MLflow refuses to write into a `UserError` that begins with some words."""
    try:
        yield
    except mlflows_own.refusals() as error:
        raise UserError(f"{words} ({clean.first_line(error)})") from error


def input_of(run: Any) -> dict[str, str]:
    """Return the entries of the data set that a run of MLflow's was given; empty without one."""
    inputs = dataset_inputs.of_run(run)
    return dataset_inputs.entries(inputs[0].dataset) if inputs else {}


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
