"""Read runs from MLflow into tidy tables; no other module does."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import owner, run_checks, uris
from normbench.results.store import recorded_histories as histories
from normbench.results.store.errors import ResultsError
from normbench.results.store.filters import remedy
from normbench.results.store.rows import as_rows
from normbench.results.store.run_table import tabulate
from normbench.results.store.stores import (
    absolute,
    artifact,
    connect,
    is_quotable,
    search_runs,
)

HISTORY_KEYS = tuple(metric.key for metric in names.HISTORIES)
QUARTILE_KEYS = tuple(
    names.quartile(metric, quantile).key
    for metric in names.HISTORIES
    for quantile in names.QUARTILES
)
# A filter: on a shared server, other projects may use a tag `role` as well.
HAS_SWEEP_ID = names.SWEEP_ID.exists
READING_THREADS = 8  # requests to a server at once
QUERY = "query"  # takes the place of a sweep's id
Arrays = dict[str, NDArray[Any]]  # the arrays of one record by key
Cached = TypeVar("Cached")


@dataclass(frozen=True)
class Sweep:
    """The runs of one sweep, of several sweeps or of a query, as recorded in a store.

    Attributes:
        runs: One row a run: run_id, experiment, role, name, status, seconds, label, `tags.*`,
            `params.*`, and the last value of each metric under `metrics.*`.
        store: The URI of the store.
        sweep_id: The sweep's id; `query` for the runs of a query.
        client: The client of runs that are held in memory; None for those of a store.
        left_out: One sentence about each run that cannot be read.
    """

    store: str
    sweep_id: str
    runs: pd.DataFrame
    client: Any = None
    left_out: list[str] = field(default_factory=list)

    def of_role(self, role: str, experiment: str | None = None) -> pd.DataFrame:
        """Return the rows of one role; they are shared, so do not modify them.

        Args:
            role: `sweep`, `scheme` or `step`.
            experiment: The experiment; None for all.

        Returns:
            Those rows of `runs`.
        """
        if experiment is None:
            return self.get_or_compute(("role", role), lambda: self.runs[self.runs["role"] == role])
        rows = self.of_role(role)
        return self.get_or_compute(
            ("role", role, experiment), lambda: rows[rows["experiment"] == experiment]
        )

    @property
    def is_query(self) -> bool:
        """Whether the runs were selected by a query, or belong to several sweeps."""
        return self.sweep_id == QUERY

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments that hold a job, in the order of their sweep runs."""
        roles = [self.of_role(role)["experiment"] for role in (names.SWEEP, names.SCHEME)]
        with_jobs = set(roles[1])
        return [name for name in dict.fromkeys([*roles[0], *roles[1]]) if name in with_jobs]

    @property
    def command(self) -> str:
        """The command that made the runs, without passwords; several commands joined by `; `."""
        commands = self.of_role(names.SWEEP).get(names.COMMAND.column, pd.Series(dtype=str))
        return "; ".join(dict.fromkeys(commands.dropna()))

    def which_step(self, experiment: str | None = None) -> str:
        """Return which step size represents a scheme, `best` or `shown`; see `which_step`."""
        return which_step(self.of_role(names.SCHEME, experiment))

    @cached_property
    def cache(self) -> dict[Any, Any]:
        """Values computed from the runs, by key: see `get_or_compute`."""
        return {}

    def only(self, experiment: str) -> "Sweep":
        """Return the sweep with the runs of one experiment alone: itself if it has no other.

        Args:
            experiment: The name of the experiment.
        """
        in_experiment = self.runs["experiment"] == experiment
        if in_experiment.all():
            return self  # with its cache
        return self.get_or_compute(
            ("only", experiment), lambda: replace(self, runs=self.runs[in_experiment])
        )

    def get_or_compute(self, key: Any, compute: Callable[[], Cached]) -> Cached:
        """Return the cached value of a key; compute it on the first call.

        Args:
            key: Names the value.
            compute: Returns the value.

        Returns:
            The value; it is shared, so do not modify it.
        """
        if key not in self.cache:
            self.cache[key] = compute()
        cached: Cached = self.cache[key]
        return cached

    def of_scheme(self, name: str) -> "Sweep":
        """Return the sweep with the scheme and step runs of one scheme alone, and its sweep runs.

        Args:
            name: The label of a scheme, or a normalizer for all schemes with it.

        Raises:
            ResultsError: There is no such scheme.
        """
        schemes = self.of_role(names.SCHEME)
        if not {name} & {*schemes["label"], *schemes["normalizer"]}:
            labels = ", ".join(dict.fromkeys(schemes["label"]))
            raise ResultsError(f"scheme {name}: is not in {self.sweep_id}; choose one of {labels}")
        in_scheme = (self.runs["label"] == name) | (self.runs["normalizer"] == name)
        return replace(self, runs=self.runs[in_scheme | (self.runs["role"] == names.SWEEP)])

    def has_tag(self, experiment: str, tag: str) -> bool:
        """Return whether an experiment has a tag, such as that of a saved view.

        Args:
            experiment: The name of the experiment.
            tag: The key of the tag.

        Returns:
            False also where there is no such experiment.
        """
        recorded = self._client.get_experiment_by_name(experiment)
        return recorded is not None and tag in recorded.tags

    @cached_property
    def _client(self) -> Any:
        """The client that histories and arrays are read from: the given one, or the store's."""
        return self.client or connect(self.store)

    def histories(self, runs: pd.DataFrame, metrics: Sequence[str] = HISTORY_KEYS) -> pd.DataFrame:
        """Return the histories of runs.

        Args:
            runs: Rows of `runs`.
            metrics: The names of the metrics.

        Returns:
            One row a run and iteration. Columns: run_id, experiment, normalizer, label, step_size,
            verdict, iteration, and each metric that one of the runs has.
        """
        # An empty dictionary at first; `table` adds the histories that it reads.
        cache = self.get_or_compute("histories", dict[tuple[str, str], pd.Series])
        is_remote = self.client is None and uris.database(self.store) is None
        threads = READING_THREADS if is_remote else 1
        return histories.table(
            self._client, runs, metrics, self._descent, cache, self.left_out, threads
        )

    def _descent(self, scheme: str) -> Arrays:
        """Return the arrays of a scheme's descent, cached; scheme: the id of its run."""
        return self.get_or_compute(
            (names.DESCENT_ARRAYS, scheme), lambda: self._read_arrays(scheme, names.DESCENT_ARRAYS)
        )

    def series(self, run_id: str, metric: str) -> dict[int, float]:
        """Return a metric's values by step.

        Args:
            run_id: The id of the run.
            metric: The key of the metric.

        Returns:
            Values by step; empty where the run has no metric of that name.
        """
        points = self._client.get_metric_history(run_id, metric)
        return {point.step: point.value for point in points}

    def arrays(self, runs: pd.DataFrame, name: str) -> dict[str, Arrays]:
        """Return the arrays of a record.

        Args:
            runs: Rows of `runs`.
            name: The record, such as `descent`: a word of the setting `record`.

        Returns:
            The arrays by key, of each run that has this record by its label.

        Raises:
            ResultsError: The artifacts cannot be read.
        """
        ids_by_label = {
            row["label"]: row["run_id"]
            for row in as_rows(runs)
            if name in str(row.get(names.RECORDED.column, "")).split(",")
        }
        if name == names.DESCENT_ARRAYS:
            return {label: self._descent(run_id) for label, run_id in ids_by_label.items()}
        return {label: self._read_arrays(run_id, name) for label, run_id in ids_by_label.items()}

    def _read_arrays(self, run_id: str, name: str) -> Arrays:
        """Read the arrays of one record of a run; raise `ResultsError` where they cannot be."""
        with TemporaryDirectory() as folder:
            file = artifact(self._client, self.store, run_id, f"arrays/{name}.npz", folder)
            return run_checks.arrays(file, run_id, name)


def which_step(schemes: pd.DataFrame) -> str:
    """Return `shown` if `shown_step` chose the step size of a scheme, otherwise `best`."""
    return "shown" if "true" in set(schemes.get(names.STEP_CHOSEN.column, ())) else "best"


def last_sweep_ids(store: str) -> tuple[str, str]:
    """Return the ids of the last sweep, and of the last sweep with a recorded job.

    Args:
        store: An MLflow store or server.

    Returns:
        Both ids, which are equal where no sweep has a recorded job.

    Raises:
        ResultsError: There is no sweep.
    """
    client = connect(store)
    query = f"{names.ROLE.equals(names.SWEEP)} and {HAS_SWEEP_ID}"
    # The latest sweep nearly always has a job; all sweeps are read only where it has none.
    for max_runs in (1, None):
        sweep_runs = search_runs(client, query, max_runs)
        if not sweep_runs:
            raise ResultsError(f"--store {store}: holds no comparison; run normbench first")
        ids = list(dict.fromkeys(str(run.data.tags[names.SWEEP_ID.key]) for run in sweep_runs))
        for sweep_id in ids:
            if _holds_job(client, sweep_id):
                return ids[0], sweep_id
    return ids[0], ids[0]


def _holds_job(client: Any, sweep_id: str) -> bool:
    """Return whether a finished or failed job of a sweep is recorded: one that it ran or reused."""
    if not is_quotable(sweep_id):
        return False
    job = f"{names.ROLE.equals(names.SCHEME)} and attributes.status != 'RUNNING'"
    job += " and attributes.status != 'KILLED'"
    members = (names.SWEEP_ID.equals(sweep_id), names.membership(sweep_id).exists)
    return any(search_runs(client, f"{job} and {member}", max_runs=1) for member in members)


def load(store: str, *sweeps: str) -> Sweep:
    """Load a sweep with the jobs that it reused from others; several sweeps as if they were one.

    Args:
        store: An MLflow store or server.
        *sweeps: The ids of the sweeps.

    Returns:
        Their runs.

    Raises:
        ResultsError: A sweep is not recorded, or cannot be read.
    """
    client = connect(store)
    runs = {
        run.info.run_id: run for sweep_id in sweeps for run in of_sweep(client, store, sweep_id)
    }
    common_id = sweeps[0] if len(sweeps) == 1 else ""  # several sweeps are as those of a query
    return _sweep_of(client, list(runs.values()), absolute(store), common_id)


def of_sweep(client: Any, store: str, sweep_id: str) -> list[Any]:
    """Return a sweep's runs as MLflow's objects, with the jobs that it reused from others.

    Args:
        client: MLflow's client.
        store: The store's URI, for the message of an error.
        sweep_id: The sweep.

    Returns:
        The runs.

    Raises:
        ResultsError: The sweep is not recorded.
    """
    sweep_runs: list[Any] = []
    if is_quotable(sweep_id):
        sweep_runs = [
            *search_runs(client, names.SWEEP_ID.equals(sweep_id)),
            *_reused(client, sweep_id),
        ]
    if not sweep_runs:
        raise ResultsError(
            f"comparison {clean.line(sweep_id)}: is not in {clean.line(store)}; "
            "normbench results list shows them"
        )
    return sweep_runs


def split_command(command: str) -> list[str]:
    """Return the words of a recorded command; none where its quotes are open.

    Other programs may record such commands, and earlier versions of this one did where a secret
    stood in quotes.
    """
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _reused(client: Any, sweep_id: str) -> list[Any]:
    """Return the scheme runs that a sweep reused from others, and their step runs.

    The step runs carry the id of the sweep that wrote them alone, so all step runs of that sweep
    are searched.
    """
    members = search_runs(client, names.membership(sweep_id).exists)
    # Members that the sweep wrote itself are not reused.
    schemes = {
        run.info.run_id: run for run in members if run.data.tags.get(names.SWEEP_ID.key) != sweep_id
    }
    reused_runs = list(schemes.values())
    other_sweeps = {run.data.tags.get(names.SWEEP_ID.key, "") for run in reused_runs}
    for other_sweep in sorted(filter(is_quotable, other_sweeps)):
        steps = search_runs(
            client, f"{names.ROLE.equals(names.STEP)} and {names.SWEEP_ID.equals(other_sweep)}"
        )
        reused_runs += [run for run in steps if run.data.tags.get(names.PARENT.key) in schemes]
    return reused_runs


def load_query(store: str, where: str) -> Sweep:
    """Return the scheme runs that match an MLflow filter, with their sweep and step runs.

    Args:
        store: An MLflow store or server.
        where: The filter, such as `params.dataset = 'digits' and tags.normalizer = 'standard'`.

    Returns:
        The runs.

    Raises:
        ResultsError: MLflow refuses the filter, or no run matches it.
    """
    client = connect(store)
    all_schemes = f"{names.ROLE.equals(names.SCHEME)} and {HAS_SWEEP_ID}"
    try:
        found_schemes = search_runs(client, f"{all_schemes} and {where}")
    except ResultsError as error:  # the store cannot be read, or the filter is wrong
        reason = clean.first_line(error.__cause__ or error)
        raise ResultsError(f"--where {where}: {reason}") from error
    schemes = [
        run
        for run in run_checks.without_interrupted(found_schemes)
        if is_quotable(run.data.tags[names.SWEEP_ID.key])
    ]
    if not schemes:
        recorded_schemes = search_runs(client, all_schemes, max_runs=1000)
        suggestion = remedy(
            where, ({"params": run.data.params, "tags": run.data.tags} for run in recorded_schemes)
        )
        raise ResultsError(
            clean.line(f"--where {where}: finds no scheme run in {store}; {suggestion}")
        )
    scheme_ids = {run.info.run_id for run in schemes}
    parents = {run.data.tags.get(names.PARENT.key) for run in schemes}
    runs = list(schemes)
    for sweep_id in sorted({run.data.tags[names.SWEEP_ID.key] for run in schemes}):
        for run in search_runs(client, names.SWEEP_ID.equals(sweep_id)):
            # The steps of other schemes of the sweep are left out.
            is_step = run.data.tags.get(names.PARENT.key) in scheme_ids
            if is_step or run.info.run_id in parents:
                runs.append(run)
    return _sweep_of(client, runs, absolute(store))


def sweep_in_memory(client: Any, sweep_runs: Sequence[Any], store: str, sweep_id: str) -> Sweep:
    """Return a sweep whose runs are held in memory.

    Args:
        client: Answers like MLflow's client.
        sweep_runs: The runs of the sweep, of its schemes and of their steps.
        store: What the sweep names as its store.
        sweep_id: The id of the sweep.

    Returns:
        The sweep; it asks the client for histories and arrays.
    """
    return replace(_sweep_of(client, sweep_runs, store, sweep_id), client=client)


def load_scheme(store: str, run_id: str) -> Sweep:
    """Load one scheme run and its step runs.

    Args:
        store: The URI of the store.
        run_id: The id of the scheme's run.

    Returns:
        A sweep of that scheme alone.
    """
    client = connect(store)
    runs = [client.get_run(run_id), *search_runs(client, names.PARENT.equals(run_id))]
    return _sweep_of(client, runs, absolute(store))


def _sweep_of(client: Any, recorded: Sequence[Any], store: str, sweep_id: str = "") -> Sweep:
    """Return the readable ones of MLflow's runs as a `Sweep`.

    Runs whose recording was interrupted are left out without a sentence.

    Args:
        client: MLflow's client.
        recorded: The runs as MLflow's objects.
        store: The URI of the store.
        sweep_id: The sweep's id; empty for the runs of a query.

    Raises:
        ResultsError: No scheme run can be read, and some run cannot.
    """
    experiment_names = {entry.experiment_id: entry.name for entry in client.search_experiments()}
    # left_out: a sentence about each run that cannot be read.
    runs, left_out = run_checks.readable(run_checks.without_interrupted(recorded), experiment_names)
    if left_out and not any(run.data.tags.get(names.ROLE.key) == names.SCHEME for run in runs):
        raise ResultsError(" ".join(run_checks.first_sentences(left_out)))
    table = tabulate(runs, experiment_names, sweep_id)
    return Sweep(store, sweep_id or QUERY, table, left_out=run_checks.first_sentences(left_out))


def sweeps(store: str) -> pd.DataFrame:
    """Return the recorded sweeps, the latest first.

    Args:
        store: An MLflow store or server.

    Returns:
        One row a sweep and experiment. Columns: sweep, experiment, status, jobs, lacks (how many
        jobs of an interrupted sweep are not recorded; the same command runs them), command.
    """
    client = connect(store)
    experiment_names = {entry.experiment_id: entry.name for entry in client.search_experiments()}
    sweep_runs = search_runs(client, f"{names.ROLE.equals(names.SWEEP)} and {HAS_SWEEP_ID}")
    readable_runs, _ = run_checks.readable(sweep_runs, experiment_names)
    rows = [
        {
            "sweep": run.data.tags[names.SWEEP_ID.key],
            "experiment": experiment_names[run.info.experiment_id],
            "status": _status(run),
            "jobs": run.data.tags.get(names.JOBS.key, ""),
            "lacks": _lacks(client, run),
            "command": clean.recorded_line(run.data.tags.get(names.COMMAND.key, "")),
        }
        for run in readable_runs
    ]
    return pd.DataFrame(rows, columns=["sweep", "experiment", "status", "jobs", "lacks", "command"])


def _status(sweep: Any) -> str:
    """Return the status of a sweep's run; KILLED where its process is no longer alive.

    A sweep of which that is unknown stays RUNNING.
    """
    abandoned = sweep.info.status == "RUNNING" and owner.is_alive(sweep.data.tags) is False
    return "KILLED" if abandoned else str(sweep.info.status)


def _lacks(client: Any, sweep: Any) -> str:
    """Return how many jobs of an interrupted sweep are not recorded in any experiment.

    Args:
        client: MLflow's client.
        sweep: The sweep's run as MLflow's object.

    Returns:
        The number as text; empty for a finished sweep, or if the number of jobs is not known. A
        failed job is recorded; one whose recording was interrupted is not.
    """
    jobs, sweep_id = sweep.data.tags.get(names.JOBS.key, ""), sweep.data.tags[names.SWEEP_ID.key]
    if sweep.info.status == "FINISHED" or not jobs.isdigit() or not is_quotable(sweep_id):
        return ""
    member = names.membership(sweep_id).exists
    schemes = search_runs(client, f"{names.ROLE.equals(names.SCHEME)} and {member}")
    recorded_schemes = [run for run in schemes if run.info.status in ("FINISHED", "FAILED")]
    return str(int(jobs) - len(recorded_schemes))
