"""The one writer to MLflow: a sweep's run, a scheme's run a job, a step's run a step size."""

import os
import sqlite3
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from datasets import Dataset, UserError
from harness.experiment import Outcome
from harness.findings import Findings
from harness.judging import Step

BATCH = 1000  # metrics a call, MLflow's limit


@dataclass(frozen=True)
class Store:
    """Where runs go: MLflow's tracking URI, and the folder or URI of the artifacts."""

    uri: str
    artifacts: str | None

    @classmethod
    def at(cls, uri: Any, artifacts: Any, folder: Path) -> "Store":
        """Return the store with paths made absolute against a folder."""
        if not isinstance(uri, str) or not uri:
            raise UserError(f"tracking.uri={uri}: must be a URI, such as sqlite:///mlflow.db")
        if uri.startswith("sqlite:///"):
            uri = f"sqlite:///{folder / uri.removeprefix('sqlite:///')}"
        if artifacts and "://" not in str(artifacts):
            artifacts = (folder / str(artifacts)).as_uri()
        return cls(uri, artifacts)

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store; None for any other."""
        prefix = "sqlite:///"
        return Path(self.uri.removeprefix(prefix)) if self.uri.startswith(prefix) else None

    @cached_property
    def client(self) -> Any:
        """MLflow's client. Raises `UserError` where the store cannot be opened."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ASYNC_LOGGING", "false")
        import logging

        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        try:
            if self.database:
                _initialize(self.database, self.artifacts)
            client = MlflowClient(tracking_uri=self.uri)
            client.search_experiments(max_results=1)
            return client
        except (MlflowException, OSError, sqlite3.Error, ImportError) as error:
            first = str(error).strip().splitlines()[0]
            raise UserError(
                f"tracking.uri={self.uri}: the store cannot be opened ({first}); "
                "give a URI that can be written, such as tracking.uri=sqlite:////tmp/mlflow.db"
            ) from error


def _initialize(database: Path, artifacts: str | None) -> None:
    """Make the database under a name of its own and link it to its place.

    Many processes may start on a fresh folder, and one may be interrupted: no one ever opens a
    database whose tables are half made.
    """
    if not database.parent.is_dir():
        raise FileNotFoundError(f"the folder {database.parent} does not exist")
    if database.exists():
        if not os.access(database, os.W_OK) or not os.access(database.parent, os.W_OK):
            raise PermissionError(f"{database} cannot be written")
        return
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    draft = database.with_name(f".{database.name}.{os.getpid()}")
    try:
        draft.touch()
        store = SqlAlchemyStore(  # type: ignore[no-untyped-call]
            f"sqlite:///{draft}", artifacts or str(database.parent)
        )
        store.engine.dispose()
        with sqlite3.connect(draft) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
        with suppress(FileExistsError):  # another process was first
            os.link(draft, database)
    finally:
        for leftover in database.parent.glob(f"{draft.name}*"):
            leftover.unlink()


class Writer:
    """Writes the runs of one sweep to one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.client = store.client

    def experiment(self, name: str) -> str:
        """Return the id of the experiment, made where it is missing."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            location = f"{self.store.artifacts}/{name}" if self.store.artifacts else None
            try:
                return str(self.client.create_experiment(name, artifact_location=location))
            except MlflowException:  # another process was first
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

    def start_sweep(self, experiment: str, sweep_id: str, tags: Mapping[str, str]) -> str:
        """Return the id of a new sweep run."""
        return self._create(
            self.experiment(experiment),
            f"sweep {sweep_id}",
            "sweep",
            {**tags, "sweep_id": sweep_id},
        )

    def finish(self, run_id: str, status: str = "FINISHED") -> None:
        """End a run."""
        self.client.set_terminated(run_id, status)

    def write_job(
        self,
        parent: str,
        params: Mapping[str, Any],
        tags: Mapping[str, str],
        dataset: Dataset,
        outcome: Outcome,
    ) -> str:
        """Write a job: its scheme run and, below it, a run for each step size; return its id.

        The scheme's run is finished last, so that a job that is not whole is not FINISHED.
        """
        encoding = {"dataset.encoding": dataset.encoding} if dataset.classes else {}
        scheme = self._start_scheme(parent, {**params, **encoding}, tags)
        self._log_input(scheme, dataset)
        for number, step in enumerate(outcome.steps):
            self._write_step(scheme, tags, step, best=number == outcome.best)
        self._log_arrays(scheme, outcome.arrays)
        if outcome.steps and outcome.best is None:
            self._tags(scheme, {"verdict": "diverged", "reason": "no step size stayed finite"})
        elif outcome.best is not None:
            best = outcome.steps[outcome.best]
            self._log(scheme, _metrics(best))
            self._tags(scheme, {"verdict": best.verdict, "step_size": f"{best.step_size:g}"})
        diverged = sum(step.verdict == "diverged" for step in outcome.steps)
        self._log(
            scheme,
            [
                ("time/fit_seconds", outcome.fit_seconds, 0),
                ("time/descent_seconds", outcome.descent_seconds, 0),
                ("final/steps_tried", len(outcome.steps), 0),
                ("final/steps_diverged", diverged, 0),
            ],
        )
        self._log_findings(scheme, outcome.findings)
        self.finish(scheme)
        return scheme

    def _log_findings(self, scheme: str, found: Findings) -> None:
        """Log theory and what the grid came to; a number that does not exist is left out."""
        entries = [(key, value, 0) for key, value in found.metrics.items()]
        for key, (steps, values) in found.series.items():
            entries += [(key, float(value), int(k)) for k, value in zip(steps, values)]
        entries.append(("time/theory_seconds", found.seconds, 0))
        if found.search_seconds > 1e-3:
            entries.append(("time/search_seconds", found.search_seconds, 0))
        self._log(scheme, _finite(entries))
        self._tags(scheme, {key: value[:5000] for key, value in found.tags.items()})

    def write_failure(
        self, parent: str, params: Mapping[str, Any], tags: Mapping[str, str], error: Exception
    ) -> str:
        """Write a job that failed: its parameters, its reason and its traceback; return its id."""
        scheme = self._start_scheme(parent, params, tags)
        reason = " ".join(str(error).split()) or type(error).__name__
        self._tags(
            scheme,
            {"verdict": "failed", "reason": reason[:5000], "error": type(error).__name__},
        )
        text = "".join(traceback.format_exception(error))
        self.client.log_text(scheme, text, "traceback.txt")
        self.finish(scheme, "FAILED")
        return scheme

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run."""
        self.client.log_artifact(run_id, str(path), folder or None)

    def _start_scheme(self, parent: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        run_id = self._create(
            self._experiment_of(parent), tags["normalizer"], "scheme", tags, parent
        )
        from mlflow.entities import Param

        entries = [Param(key, str(value)[:6000]) for key, value in params.items()]
        for first in range(0, len(entries), 100):
            self.client.log_batch(run_id, params=entries[first : first + 100])
        return run_id

    def _write_step(self, scheme: str, tags: Mapping[str, str], step: Step, best: bool) -> None:
        size = f"{step.step_size:g}"
        own = {"step_size": size, "verdict": step.verdict, "best": str(best).lower()}
        if step.reason:
            own["reason"] = step.reason
        own["falls"] = str(step.judgement.falls).lower()
        if len(step.verdicts) > 1:
            own["start_verdicts"] = " ".join(step.verdicts)
        run_id = self._create(
            self._experiment_of(scheme),
            f"{tags['normalizer']}, step {size}",
            "step",
            {**tags, **own},
            scheme,
        )
        self._log(run_id, [("step_size", step.step_size, 0), *_metrics(step), *_starts(step)])
        self.finish(run_id)

    def _create(
        self, experiment: str, name: str, role: str, tags: Mapping[str, str], parent: str = ""
    ) -> str:
        all_tags = {**tags, "role": role, "mlflow.runName": name, "mlflow.user": _user()}
        if parent:
            all_tags["mlflow.parentRunId"] = parent
        run_id = str(self.client.create_run(experiment, tags=all_tags, run_name=name).info.run_id)
        self._experiments[run_id] = experiment
        return run_id

    @cached_property
    def _experiments(self) -> dict[str, str]:
        return {}

    def _experiment_of(self, run_id: str) -> str:
        if run_id not in self._experiments:
            self._experiments[run_id] = self.client.get_run(run_id).info.experiment_id
        return self._experiments[run_id]

    def _tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])

    def _log(self, run_id: str, metrics: list[tuple[str, float, int]]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        entries = [Metric(key, float(value), now, step) for key, value, step in metrics]
        for first in range(0, len(entries), BATCH):
            self.client.log_batch(run_id, metrics=entries[first : first + BATCH])

    def _log_arrays(self, run_id: str, arrays: Mapping[str, Mapping[str, Any]]) -> None:
        """Log each record as `arrays/<name>.npz`, and their names as the tag `recorded`."""
        if not arrays:
            return
        with TemporaryDirectory() as folder:
            for name, parts in arrays.items():
                np.savez_compressed(Path(folder) / f"{name}.npz", **parts)
            self.client.log_artifacts(run_id, folder, "arrays")
        self._tags(run_id, {"recorded": ",".join(arrays)})

    def _log_input(self, run_id: str, dataset: Dataset) -> None:
        import json

        from mlflow.entities import Dataset as Entity
        from mlflow.entities import DatasetInput, InputTag

        profile = {
            "train_points": len(dataset.x),
            "test_points": len(dataset.x_test),
            "features": dataset.x.shape[1],
            "task": dataset.task,
            "classes": list(dataset.class_names),
        }
        entity = Entity(
            name=dataset.name,
            digest=dataset.fingerprint[:36],
            source_type="normbench",
            source=json.dumps({"source": dataset.source}),
            profile=json.dumps(profile),
        )
        tag = InputTag("mlflow.data.context", "training")
        self.client.log_inputs(run_id, datasets=[DatasetInput(entity, [tag])])


def _metrics(step: Step) -> list[tuple[str, float, int]]:
    """Return every metric of a step size: histories, quartiles and finals; all finite."""
    entries = list(_points(step.histories))
    for number, suffix in enumerate(("_q1", "_q3")):
        entries += _points({key + suffix: part[number] for key, part in step.quartiles.items()})
    for key, history in step.histories.items():
        if len(history):
            entries.append((f"final/{key.replace('/', '_')}", float(history[-1]), 0))
    if step.predicted is not None:
        entries += _points({"theory/predicted_cost": step.predicted})
    return entries + _finite([(key, value, 0) for key, value in step.metrics.items()])


def _starts(step: Step) -> list[tuple[str, float, int]]:
    """Return what each of several starts came to, numbered by the start; all finite."""
    if len(step.verdicts) < 2:
        return []
    return list(_points({f"start/{key}": values for key, values in step.starts.items()}))


def _finite(entries: list[tuple[str, float, int]]) -> list[tuple[str, float, int]]:
    return [entry for entry in entries if np.isfinite(entry[1])]


def _points(histories: Mapping[str, Any]) -> Iterator[tuple[str, float, int]]:
    for key, history in histories.items():
        for k in np.flatnonzero(np.isfinite(history)):
            yield key, float(history[k]), int(k)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
