"""The copy of a comparison in MLflow, made by MLflow's public client in a process of its own.

A comparison has a run in each of its experiments; below it each job has a run for its scheme, and
below that one for each step size. The run of a scheme is found again by two tags, the key of its
record and the id of the folder that wrote it, and it is ended last: a run that is not ended was cut
off, and is written anew. So a copy may be killed at any moment and made again.
"""

import json
import logging
import os
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from filelock import FileLock

from normbench import names
from normbench.datasets.values import UserError
from normbench.results.safe import clean
from normbench.results.store.comparison_files import FILE, Comparison, record_file, recorded
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord, RunRecord, is_finished, written_whole
from normbench.results.store.looks import look

COPIES = ".mlflow.json"  # the file in the folder of a comparison that says what was copied where
ARTIFACTS = "mlartifacts"  # the folder of artifacts, in the working folder
AUTO = "auto"  # runs of step sizes in comparisons of at most so many jobs
MAX_JOBS_WITH_STEPS = 30
PER_CALL = {"params": 100, "metrics": 1000}  # limits of MLflow
MAX_TAG_LENGTH = 8000  # characters that MLflow keeps
PAUSE_SECONDS, RETRY_SECONDS = 0.1, 5.0
TIMEOUT = 5.0  # seconds until a server answers, before the first job
PARALLEL_DOWNLOADS = 8
NICENESS = 5  # of the copy, so that jobs go first; at 10 it waits for minutes beside them
SQLITE = "sqlite:///"
BUSY_SECONDS = 60  # that SQLite waits for another process, such as one that makes its tables
PRAGMAS = (f"busy_timeout={1000 * BUSY_SECONDS}", "journal_mode=WAL", "synchronous=NORMAL")
STORE_VARIABLE = "MLFLOW_TRACKING_URI"
MLFLOW_VARIABLES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


@dataclass(frozen=True)
class Copying:
    """A copy that a second process makes.

    Attributes:
        uri: The URI of the store.
        process: The process; None where the comparison is copied already.
    """

    uri: str
    process: "subprocess.Popen[str] | None"

    def finish(self) -> str:
        """Wait for the copy, which ends once the comparison has ended.

        Returns:
            An empty text, or one line that says what is missing, why, and the remedy.
        """
        line = self.process.communicate()[0].strip() if self.process else ""
        is_cut_off = bool(self.process and self.process.returncode and not line)
        return _incomplete(self.uri, "it was cut off") if is_cut_off else line


def begin_copy(
    home: Path,
    comparison_id: str,
    uri: str,
    artifacts: str | None = ARTIFACTS,
    steps: bool | str = AUTO,
    again: bool = False,
) -> Copying:
    """Begin to copy a comparison, which may be running: each job is copied once it has a record.

    Args:
        home: The folder of comparisons and their records; it has the comparison's file.
        comparison_id: The id of the comparison.
        uri: The URI of MLflow's store.
        artifacts: The folder or the URI of the artifacts of new experiments; None lets MLflow
            choose, and a server always chooses.
        steps: Whether each step size has a run; `auto`: in comparisons of few jobs.
        again: Whether a comparison that was copied before is looked for in the store.

    Returns:
        The copy, whose `finish` waits for it.
    """
    uri, database = absolute(uri), database_file(uri)
    comparison = Comparison.read(home / comparison_id)
    is_copied = copies(comparison).get(clean.blot(uri), {}).get("jobs") == comparison.keys
    is_there = database is None or database.exists()
    if is_copied and is_there and comparison.has_ended and not again:
        return Copying(uri, None)
    arguments = json.dumps([str(home), comparison_id, artifacts, steps])
    process = subprocess.Popen(
        [sys.executable, "-m", "normbench.record.mlflow", arguments],
        env={**os.environ, STORE_VARIABLE: uri},  # others could read a password in the arguments
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is the command's
    )
    return Copying(uri, process)


def publish(home: Path, comparison_id: str, uri: str) -> None:
    """Copy a comparison, also if it was copied before; the arguments are those of `begin_copy`.

    Raises:
        ResultsError: The copy is not complete.
    """
    if line := begin_copy(home, comparison_id, uri, again=True).finish():
        raise ResultsError(line)


def absolute(uri: str) -> str:
    """Return the URI of a store, in which the path of a SQLite file is absolute."""
    database = database_file(uri)
    return f"{SQLITE}{database}{''.join(uri.partition('?')[1:])}" if database else uri


def is_server(uri: str) -> bool:
    """Return whether a URI is that of a server of MLflow's."""
    return uri.startswith(("http://", "https://"))


def database_file(uri: str) -> Path | None:
    """Return the file of a SQLite store; None for any other."""
    if not uri.startswith(SQLITE):
        return None
    return Path(uri.removeprefix(SQLITE).partition("?")[0]).expanduser().absolute()


def copies(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """Return what is known of the copies of a comparison, by the URI of the store.

    `jobs` are the keys of its jobs, empty until the copy is complete; `pages` are the addresses of
    its charts by experiment, without that of the server.
    """
    file = comparison.folder / COPIES
    contents: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return contents


def keep(
    comparison: Comparison,
    uri: str,
    jobs: Sequence[str] = (),
    pages: Mapping[str, str] | None = None,
) -> None:
    """Keep in the folder of a comparison what a store has of it; see `copies`."""
    contents = copies(comparison)
    contents[clean.blot(uri)] = {"jobs": list(jobs), "pages": dict(pages or {})}
    with written_whole(comparison.folder / COPIES) as draft:
        draft.write(json.dumps(contents).encode())


def check_store(uri: Any) -> None:
    """Raise `UserError` for a store that cannot be had, without loading MLflow.

    Args:
        uri: The setting `tracking.uri`.
    """
    try:
        if not isinstance(uri, str) or "://" not in uri:
            raise ValueError("it is no URI")
        if database := database_file(uri):
            with closing(sqlite3.connect(database, timeout=BUSY_SECONDS)) as connection:
                connection.execute("begin immediate")  # it can be written
        elif is_server(uri):
            _check_server(uri)
        else:
            import sqlalchemy

            sqlalchemy.create_engine(uri).connect().close()
    except Exception as error:  # of any class: each database driver has its own
        raise UserError(
            f"tracking.uri={clean.blot(str(uri))}: the store cannot be had ({_reason(error)}); "
            "name a file, such as tracking.uri=sqlite:///mlflow.db, or a server, such as "
            "tracking.uri=http://host:5000; tracking=none makes no copy"
        ) from error


def _check_server(server: str) -> None:
    """Raise OSError where a server is out of reach, refuses, fails or is none of MLflow's."""
    import requests

    user, password = map(os.environ.get, ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"))
    login = (user, password) if user and password else None
    address = f"{server.rstrip('/')}/api/2.0/mlflow/experiments/search?max_results=1"
    with suppress(requests.exceptions.SSLError):  # MLflow's settings may accept the certificate
        answer = requests.get(address, auth=login, timeout=TIMEOUT)
        if answer.status_code == 401 and not login:  # MLflow may find one in the user's files
            return
        if answer.status_code != 200:
            raise ConnectionError(f"error code {answer.status_code}")
        with suppress(ValueError):
            if isinstance(answer.json(), dict):
                return
        raise ConnectionError("it is no server of MLflow's")


class Copier:
    """Copies a comparison to a store.

    Args:
        folder: The folder of the comparison.
        uri: The URI of the store.
        artifacts: Where new experiments keep their artifacts; see `begin_copy`.
        steps: Whether each step size has a run; `auto`: in comparisons of few jobs.

    Attributes:
        comparison: The comparison, read anew by `copy_jobs`.
    """

    def __init__(
        self, folder: Path, uri: str, artifacts: str | None = ARTIFACTS, steps: bool | str = AUTO
    ) -> None:
        self.comparison = Comparison.read(folder)
        keep(self.comparison, uri)  # until it is complete: the next command completes it
        self.client = connect(uri)
        from mlflow import entities

        self.entities = entities
        self.folder, self.home, self.id = folder, folder.parent, folder.name
        self.uri, self.steps = uri, steps
        self.artifacts = None if is_server(uri) else artifacts
        if self.artifacts and "://" not in self.artifacts:
            self.artifacts = Path(self.artifacts).expanduser().absolute().as_uri()
        self.place = names.membership(self.id)  # the tag of a job's number
        self._copied: set[int] = set()  # numbers of jobs
        self._experiments: dict[str, str] = {}  # ids by name
        self._parents: dict[str, str] = {}  # the ids of the comparison's runs by experiment
        records = record_file(self.home, "").parent
        records.mkdir(exist_ok=True)
        self.lock = FileLock(records / ".mlflow.lock")
        with self.lock:  # no other process of this folder writes a run meanwhile
            file = records / ".mlflow-writer"
            if not file.exists():
                file.write_text(uuid4().hex)
            self.writer = names.WRITER.equals(file.read_text())
            user = os.environ.get("USER", "unknown")
            self.own_tags = {names.WRITER.key: file.read_text(), names.USER.key: user}

    def copy_jobs(self) -> None:
        """Copy the jobs that have a record."""
        self.comparison = Comparison.read(self.folder)
        for number, job in enumerate(self.comparison.jobs):
            if number not in self._copied and job.key and record_file(self.home, job.key).exists():
                with self.lock:
                    self._copy_job(number, job.key, job.experiment)
                self._copied.add(number)

    def _copy_job(self, number: int, key: str, experiment: str) -> None:
        """Copy a job; if the store has it, its runs get the tag of the comparison alone.

        Args:
            number: The number of the job in the comparison.
            key: The key of its record.
            experiment: The name of the experiment.
        """
        record, file = None, record_file(self.home, key)
        memberships = {self.place.key: str(number)}
        for run in self._runs(experiment, names.KEY.equals(key), self.writer):
            if run.info.status == "FAILED":  # the job may have run again, and succeeded
                record = JobRecord.load(file)
            runs = [*self._runs(experiment, names.PARENT.equals(run.info.run_id)), run]
            if run.info.status == "FINISHED" or (record and record.failure):
                for copied_run in runs:
                    if self.place.key not in copied_run.data.tags:
                        self.client.set_tag(copied_run.info.run_id, self.place.key, str(number))
                return
            prefix = names.membership("").key
            memberships |= {k: text for k, text in run.data.tags.items() if k.startswith(prefix)}
            for cut_off_run in runs:
                self.client.delete_run(cut_off_run.info.run_id)
        record = record or JobRecord.load(file)
        self._write(record, {names.KEY.key: key, **memberships}, file)

    def _write(self, record: JobRecord, tags: Mapping[str, str], file: Path) -> None:
        """Write the runs of a job; that of its scheme is ended last.

        Args:
            record: The record of the job.
            tags: The key of the record, and the job's places in comparisons.
            file: The file of the record.
        """
        entities, experiment = self.entities, record.experiment
        color = {names.COLOR.key: look(record.scheme.tags[names.NORMALIZER.key]).color}
        job = {names.JOB.key: f"{self.id}/{tags[self.place.key]}", **color, **tags}
        scheme = self._create(
            experiment, record.scheme, names.SCHEME, job, self._parent(experiment)
        )
        self._log(scheme, "params", [entities.Param(*param) for param in record.params.items()])
        if record.dataset:
            context = [entities.InputTag("mlflow.data.context", "training")]
            dataset = entities.Dataset(**record.dataset)
            self.client.log_inputs(scheme, [entities.DatasetInput(dataset, context)])
        is_small = len(self.comparison.jobs) <= MAX_JOBS_WITH_STEPS
        step_tags = {key: text for key, text in tags.items() if key != names.KEY.key} | color
        for step in record.steps if (is_small if self.steps == AUTO else self.steps) else ():
            run_id = self._create(experiment, step, names.STEP, step_tags, scheme)
            self.client.set_terminated(run_id)
        if record.failure:
            self.client.log_text(scheme, record.failure, "traceback.txt")
        self.client.log_artifact(scheme, str(file))
        self.client.set_terminated(scheme, "FAILED" if record.failure else "FINISHED")

    def _create(
        self, experiment: str, run: RunRecord, role: str, tags: Mapping[str, str], parent: str = ""
    ) -> str:
        """Create a run with its tags and metrics, which is running until it is ended.

        Args:
            experiment: The name of the experiment.
            run: The record of the run.
            role: `sweep`, `scheme` or `step`.
            tags: Further tags.
            parent: The id of the run above it; empty without one.

        Returns:
            The id of the run.
        """
        place = {names.ROLE.key: role, names.SWEEP_ID.key: self.id}
        place |= {names.PARENT.key: parent} if parent else {}
        every = {**run.tags, **tags, **self.own_tags, **place}
        all_tags = {key: text[:MAX_TAG_LENGTH] for key, text in every.items()}
        experiment_id = self._experiment(experiment)
        created = self.client.create_run(experiment_id, tags=all_tags, run_name=run.name)
        run_id, now = str(created.info.run_id), int(time.time() * 1000)
        metrics = [self.entities.Metric(key, value, now, at) for key, value, at in run.metrics]
        self._log(run_id, "metrics", metrics)
        return run_id

    def _log(self, run_id: str, kind: str, entries: list[Any]) -> None:
        """Log any number of `params` or `metrics` of a run."""
        for first in range(0, len(entries), PER_CALL[kind]):
            self.client.log_batch(run_id, **{kind: entries[first : first + PER_CALL[kind]]})

    def _parent(self, experiment: str) -> str:
        """Return the id of the comparison's run in an experiment; a missing one is created."""
        if experiment not in self._parents:
            terms = names.ROLE.equals(names.SWEEP), names.SWEEP_ID.equals(self.id), self.writer
            record = RunRecord(f"sweep {self.id}", self.comparison.run_tags)
            run = next(iter(self._runs(experiment, *terms)), None)
            self._parents[experiment] = (
                run.info.run_id if run else self._create(experiment, record, names.SWEEP, {})
            )
        return self._parents[experiment]

    def _experiment(self, name: str) -> str:
        """Return the id of an experiment; a missing one is created."""
        from mlflow.exceptions import MlflowException

        if name not in self._experiments:
            experiment = self.client.get_experiment_by_name(name)
            if experiment is None:
                place = f"{self.artifacts}/{clean.name(name)}" if self.artifacts else None
                with suppress(MlflowException):  # another process was first
                    self.client.create_experiment(name, artifact_location=place)
                experiment = self.client.get_experiment_by_name(name)
            self._experiments[name] = str(experiment.experiment_id)
        return self._experiments[name]

    def _runs(self, experiment: str, *terms: str) -> list[Any]:
        """Return the runs of an experiment for which all terms of a query of MLflow hold."""
        return list(search(self.client, [self._experiment(experiment)], *terms))

    def conclude(self) -> None:
        """Copy what belongs to the whole comparison: figures, report, descriptions and views."""
        from normbench.results.store.runs import of_comparisons

        sweep, pages = of_comparisons([self.comparison]) if self._copied else None, {}
        with self.lock:
            for experiment in dict.fromkeys(job.experiment for job in self.comparison.jobs):
                pages[experiment] = self._describe(sweep, experiment)
                self.client.set_terminated(self._parent(experiment), self.comparison.status)
        jobs = self.comparison.keys if self.comparison.has_ended else []
        keep(self.comparison, self.uri, jobs, pages)

    def _describe(self, sweep: Any, experiment: str) -> str:
        """Copy the comparison's files and describe its runs; return the address of its charts."""
        from normbench.results.pages import description, views

        parent, client = self._parent(experiment), self.client
        page = views.Page(self.id, self._experiment(experiment), parent)
        files = self.comparison.files.get(experiment, [])
        for name in (*files, FILE):
            client.log_artifact(parent, str(self.folder / name))
        if sweep is None or experiment not in sweep.experiments:  # no job has a record
            return page.charts()
        for key, text in views.tags(sweep, experiment, page).items():
            client.set_experiment_tag(page.experiment_id, key, text)
        pictures = [name for name in files if Path(name).match("melt*.png")]
        text = description.write(sweep, experiment, page, *pictures[:1])
        client.set_tag(parent, names.DESCRIPTION.key, text)
        old_text = client.get_experiment(page.experiment_id).tags.get(names.DESCRIPTION.key, "")
        if not old_text or description.SIGNED in old_text:  # otherwise a user wrote it
            client.set_experiment_tag(page.experiment_id, names.DESCRIPTION.key, text)
        self._color(sweep, experiment)
        return page.charts()

    def _color(self, sweep: Any, experiment: str) -> None:
        """Give the runs that the comparison wrote the colours of the figures.

        Args:
            sweep: The comparison's jobs of the experiment.
            experiment: The name of the experiment.
        """
        from normbench.results.pages import views

        colors = views.colors(sweep, experiment)
        own = names.ROLE.equals(names.SCHEME), names.SWEEP_ID.equals(self.id), self.writer
        for scheme in self._runs(experiment, *own):
            color = colors.get(scheme.data.tags[names.KEY.key])
            if color and color != scheme.data.tags.get(names.COLOR.key):
                steps = self._runs(experiment, names.PARENT.equals(scheme.info.run_id))
                for run in (scheme, *steps):
                    self.client.set_tag(run.info.run_id, names.COLOR.key, color)


def connect(uri: str) -> Any:
    """Return MLflow's client of a store; loading it takes 2 s."""
    for name, value in MLFLOW_VARIABLES.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):  # set here, since loading MLflow resets the levels
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient(tracking_uri=uri)


def search(client: Any, experiments: Iterable[str], *terms: str) -> Iterator[Any]:
    """Yield the runs of experiments for which all terms of a query hold, the latest first."""
    token = None
    while True:
        query = " and ".join(terms)
        page = client.search_runs(list(experiments), query, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def fetch(uri: str, home: Path, comparison_id: str | None = None) -> str:
    """Fetch a comparison and the records of its jobs from a store.

    Records of finished jobs stay, and so does a comparison that has gone on as long as its copy.

    Args:
        uri: The URI of the store.
        home: The folder of comparisons and their records.
        comparison_id: The id of the comparison; None for the latest.

    Returns:
        The id of the comparison.

    Raises:
        ResultsError: The store cannot be read or has no such comparison, or its files lie in a
            folder of another machine.
    """
    try:
        if "://" not in uri:
            raise ValueError("it is no URI, such as sqlite:///mlflow.db or http://host:5000")
        if database := database_file(uri):  # MLflow would write its tables into any file
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
                connection.execute("select 1 from experiments limit 1")
        elif is_server(uri):
            _check_server(uri)
        return _fetch(connect(absolute(uri)), home, comparison_id)
    except Exception as error:  # of any class: each database driver has its own
        raise ResultsError(f"--store {clean.blot(uri)}: {_reason(error)}") from error


def _fetch(client: Any, home: Path, comparison_id: str | None) -> str:
    """Fetch a comparison by a client; see `fetch`."""
    experiments = [entry.experiment_id for entry in client.search_experiments()]
    terms = [names.ROLE.equals(names.SWEEP), names.WRITER.exists]
    terms += [names.SWEEP_ID.equals(comparison_id)] if comparison_id else []
    # A run that is not ended has no file of its comparison yet.
    run = next(search(client, experiments, *terms, "attributes.status != 'RUNNING'"), None)
    if run is None:
        name = f"comparison {comparison_id}" if comparison_id else "comparison"
        raise ResultsError(f"holds no {name}; run normbench there first")
    comparison_id = str(run.data.tags[names.SWEEP_ID.key])
    writer = names.WRITER.equals(run.data.tags[names.WRITER.key])
    in_comparison = names.membership(comparison_id).exists
    schemes = search(client, experiments, names.ROLE.equals(names.SCHEME), writer, in_comparison)
    files = {
        scheme: record_file(home, clean.name(scheme.data.tags[names.KEY.key]))
        for scheme in schemes
        if scheme.info.status in ("FINISHED", "FAILED")
    }
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        list(pool.map(lambda entry: _download(client, *entry), files.items()))
    with TemporaryDirectory() as folder:
        _download(client, run, Path(folder) / FILE)
        arrived = Comparison.read(Path(folder))
    arrived.folder = home / clean.name(comparison_id)
    there = Comparison.read(arrived.folder) if (arrived.folder / FILE).exists() else None
    if there is None or (arrived.ended > there.ended and not there.is_running):
        arrived.write()  # last: a comparison that has its file is whole
    return comparison_id


def _download(client: Any, run: Any, file: Path) -> None:
    """Download an artifact of a run to a file of its name, unless that is a finished job.

    Raises:
        ResultsError: The artifact lies in a folder of another machine, or is gone.
    """
    if is_finished(file):
        return
    with TemporaryDirectory() as folder:
        try:
            artifact = client.download_artifacts(run.info.run_id, file.name, folder)
            content = Path(artifact).read_bytes()
        except Exception as error:  # of any class: each artifact library has its own
            raise ResultsError(
                f"{file.name} cannot be read from {clean.line(run.info.artifact_uri)}; a local "
                "folder can be read on its own machine only, in its old place"
            ) from error
    with written_whole(file) as draft:
        draft.write(content)


def copy(
    home: Path,
    comparison_id: str,
    uri: str,
    artifacts: str | None = ARTIFACTS,
    steps: bool | str = AUTO,
) -> str:
    """Copy a comparison until it has ended, and earlier ones whose copy was cut off.

    While the comparison is running, what fails is tried again. The arguments are those of
    `begin_copy`.

    Returns:
        An empty text, or one line that says what is missing, why, and the remedy.
    """
    copier, folder = None, home / comparison_id
    while True:
        is_running = Comparison.read(folder).is_running
        try:
            copier = copier or Copier(folder, uri, artifacts, steps)
            copier.copy_jobs()
            if not is_running:
                copier.conclude()
                for other in recorded(home):
                    is_cut_off = copies(other).get(clean.blot(uri), {}).get("jobs") == []
                    if is_cut_off and other.has_ended:
                        copier = Copier(other.folder, uri, artifacts, steps)
                        copier.copy_jobs()
                        copier.conclude()
                return ""
        except Exception as error:  # of any class: each database driver has its own
            if not is_running:
                traceback.print_exc()
                return _incomplete(uri, _reason(error))
            time.sleep(RETRY_SECONDS)
        time.sleep(PAUSE_SECONDS)


def _reason(error: BaseException) -> str:
    """Return why a store cannot be read or written, as a clause with its remedy."""
    text = str(error)
    if "database schema" in text:  # in MLflow's message on a file of another version
        return (
            f"a newer MLflow has upgraded it than {version('mlflow')}, which is installed: install "
            "the newer one, or name another store"
        )
    if "error code 401" in text:
        return (
            "401: the server knows no such user and password; set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD"
        )
    phrases = ("Connection refused", "timed out", "Name or service not known")
    return next((phrase.lower() for phrase in phrases if phrase in text), clean.first_line(error))


def _incomplete(uri: str, reason: str) -> str:
    """Return the line on a copy that is not complete."""
    return (
        f"tracking.uri={clean.blot(uri)}: the copy in MLflow is not complete ({reason}); "
        "the records are safe, and the next command completes it"
    )


def _prepare_sqlite(connections: list[Any]) -> None:
    """Let SQLite wait for the disk less often in this process, and collect its connections.

    By default it waits after each of some 40 transactions of a job. With a write-ahead log a killed
    process loses nothing. The last connection that is closed writes the log into the database.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    @event.listens_for(Engine, "connect")
    def set_pragmas(connection: Any, _: Any) -> None:
        """Set the pragmas of a new connection."""
        connections.append(connection)
        with suppress(sqlite3.Error):  # a file system without shared memory has no such log
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")


def main() -> None:
    """Make the copy that the command line names, and end at once with its exit code."""
    os.nice(NICENESS)
    home, comparison_id, artifacts, steps = json.loads(sys.argv[1])
    uri = os.environ[STORE_VARIABLE]
    connections: list[Any] = []
    if database_file(uri):
        _prepare_sqlite(connections)
    line = copy(Path(home), comparison_id, uri, artifacts, steps)
    for connection in connections:
        connection.close()
    print(line, flush=True)
    os._exit(1 if line else 0)  # Python's own exit takes a second with MLflow loaded


if __name__ == "__main__":
    main()
