"""The one reader of MLflow: runs in, tidy tables out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import dataset_inputs as inputs
from normbench.results.store import owner, run_checks
from normbench.results.store import recorded_histories as histories
from normbench.results.store.errors import ResultsError
from normbench.results.store.filters import remedy
from normbench.results.store.rows import as_rows, as_table
from normbench.results.store.run_labels import labels
from normbench.results.store.stores import absolute, artifact, connect, search

HISTORIES = tuple(metric.key for metric in names.HISTORIES)
QUARTILES = tuple(
    names.quartile(metric, part).key for metric in names.HISTORIES for part in names.QUARTILES
)
OURS = names.SWEEP_ID.exists  # on a shared server, others may have a tag `role` as well
QUERY = "query"  # stands for the id of a sweep
Arrays = dict[str, NDArray[Any]]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Sweep:
    """Runs as they stand in a store: those of one sweep, or those that a query found.

    Attributes:
        runs: One row a run: run_id, experiment, role, name, status, seconds, label, `tags.*`,
            `params.*`, and the last value of each metric under `metrics.*`.
        store: Where they are recorded.
        sweep_id: Of the sweep; `query` for what a query found.
        client: Of runs that no store holds.
        left_out: Sentences on runs that cannot be read.
    """

    store: str
    sweep_id: str
    runs: pd.DataFrame
    client: Any = None
    left_out: list[str] = field(default_factory=list)

    def of_role(self, role: str, experiment: str | None = None) -> pd.DataFrame:
        """Return the rows of one role, in one experiment or in all; not to be changed.

        They are taken out once: figures, tables and verdicts ask for the same ones again.
        """
        if experiment is None:
            return self.once(("role", role), lambda: self.runs[self.runs["role"] == role])
        rows = self.of_role(role)
        return self.once(("role", role, experiment), lambda: rows[rows["experiment"] == experiment])

    @property
    def is_query(self) -> bool:
        """Whether the runs are those of a query, of one sweep or of many."""
        return self.sweep_id == QUERY

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments that hold a job, in the order of their sweep runs."""
        roles = [self.of_role(role)["experiment"] for role in (names.SWEEP, names.SCHEME)]
        with_jobs = set(roles[1])
        return [name for name in dict.fromkeys([*roles[0], *roles[1]]) if name in with_jobs]

    @property
    def command(self) -> str:
        """The command that made the runs, without a password; of several, each on its own."""
        commands = self.of_role(names.SWEEP).get(names.COMMAND.column, pd.Series(dtype=str))
        return "; ".join(dict.fromkeys(commands.dropna()))

    def which_step(self, experiment: str | None = None) -> str:
        """Return which step stands for a scheme: its `best`, or, where one was chosen, `shown`."""
        return which_step(self.of_role(names.SCHEME, experiment))

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What has been made of the runs and is asked for again: see `once`."""
        return {}

    def only(self, experiment: str) -> "Sweep":
        """Return the part of the sweep that belongs to one experiment: itself where that is all."""
        own = self.runs["experiment"] == experiment
        if own.all():
            return self  # with what has been made of it
        return self.once(("only", experiment), lambda: replace(self, runs=self.runs[own]))

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return what make gives, made once for a key: tables, figures and sentences ask again.

        It is not to be changed.
        """
        if key not in self.kept:
            self.kept[key] = make()
        made: Made = self.kept[key]
        return made

    def of_scheme(self, name: str) -> "Sweep":
        """Return the sweep with one scheme alone, by its label, or by its normalizer.

        Raises ResultsError where there is none such.
        """
        schemes = self.of_role(names.SCHEME)
        if not {name} & {*schemes["label"], *schemes["normalizer"]}:
            there = ", ".join(dict.fromkeys(schemes["label"]))
            raise ResultsError(f"scheme {name}: is not in {self.sweep_id}; choose one of {there}")
        own = (self.runs["label"] == name) | (self.runs["normalizer"] == name)
        return replace(self, runs=self.runs[own | (self.runs["role"] == names.SWEEP)])

    def has_tag(self, experiment: str, tag: str) -> bool:
        """Return whether an experiment has a tag, such as that of a saved view of MLflow's page."""
        found = self._client.get_experiment_by_name(experiment)
        return found is not None and tag in found.tags

    @cached_property
    def _client(self) -> Any:
        return self.client or connect(self.store)

    def histories(self, runs: pd.DataFrame, metrics: Sequence[str] = HISTORIES) -> pd.DataFrame:
        """Return one row a run and iteration.

        Columns: run_id, experiment, normalizer, label, step_size, verdict, iteration, and each
        metric that one of the runs has.
        """
        known = self.once("histories", dict[tuple[str, str], pd.Series])
        return histories.table(self._client, runs, metrics, self._descent, known, self.left_out)

    def _descent(self, scheme: str) -> Arrays:
        """Return the arrays of a scheme's descent, which several figures need, read once."""
        return self.once(
            (names.DESCENT_ARRAYS, scheme), lambda: self._array(scheme, names.DESCENT_ARRAYS)
        )

    def series(self, run_id: str, metric: str) -> dict[int, float]:
        """Return a metric of one run, by its step: empty where the run has none of that name."""
        points = self._client.get_metric_history(run_id, metric)
        return {point.step: point.value for point in points}

    def arrays(self, runs: pd.DataFrame, name: str) -> dict[str, Arrays]:
        """Return a record's named arrays, by the label of each run that holds it.

        Raises ResultsError where the artifact store cannot be read.
        """
        holding = {
            row["label"]: row["run_id"]
            for row in as_rows(runs)
            if name in str(row.get(names.RECORDED.column, "")).split(",")
        }
        if name == names.DESCENT_ARRAYS:
            return {label: self._descent(run_id) for label, run_id in holding.items()}
        return {label: self._array(run_id, name) for label, run_id in holding.items()}

    def _array(self, run_id: str, name: str) -> Arrays:
        with TemporaryDirectory() as folder:
            file = artifact(self._client, self.store, run_id, f"arrays/{name}.npz", folder)
            return run_checks.arrays(file, run_id, name)


def which_step(schemes: pd.DataFrame) -> str:
    """Return `shown` where `shown_step` chose the step of one of the schemes, otherwise `best`."""
    return "shown" if "true" in set(schemes.get(names.STEP_CHOSEN.column, ())) else "best"


def last_sweep_ids(store: str) -> tuple[str, str]:
    """Return the ids of the sweep that started last, and of the last one that holds a job.

    Both are the same where no sweep holds a job. Raises ResultsError where there is no sweep.
    """
    client = connect(store)
    query = f"{names.ROLE.equals(names.SWEEP)} and {OURS}"
    for most in (1, None):  # nearly always the first one holds a job
        found = search(client, query, most)
        if not found:
            raise ResultsError(f"--store {store}: holds no comparison; run normbench first")
        ids = list(dict.fromkeys(str(run.data.tags[names.SWEEP_ID.key]) for run in found))
        for sweep_id in ids:
            if _holds_job(client, sweep_id):
                return ids[0], sweep_id
    return ids[0], ids[0]


def _holds_job(client: Any, sweep_id: str) -> bool:
    """Return whether a job of a sweep is recorded: one that it ran, or one that it took in."""
    job = f"{names.ROLE.equals(names.SCHEME)} and attributes.status != 'RUNNING'"
    job += " and attributes.status != 'KILLED'"
    members = (names.SWEEP_ID.equals(sweep_id), names.membership(sweep_id).exists)
    return any(search(client, f"{job} and {member}", most=1) for member in members)


def load(store: str, *sweeps: str) -> Sweep:
    """Load a sweep, with the jobs that it took from others; several as if they were one.

    Args:
        store: An MLflow store or server.
        *sweeps: Their ids.

    Raises:
        ResultsError: One of them is not there.
    """
    client = connect(store)
    runs = {
        run.info.run_id: run for sweep_id in sweeps for run in of_sweep(client, store, sweep_id)
    }
    one = sweeps[0] if len(sweeps) == 1 else ""
    return _sweep_of(client, list(runs.values()), absolute(store), one)


def of_sweep(client: Any, store: str, sweep_id: str) -> list[Any]:
    """Return a sweep's runs as MLflow has them, with the jobs that it took from others.

    Raises ResultsError where it is not there.
    """
    found: list[Any] = []
    if not {"'", "`"} & set(sweep_id):  # which no query can name
        found = [*search(client, names.SWEEP_ID.equals(sweep_id)), *_reused(client, sweep_id)]
    if not found:
        raise ResultsError(
            f"comparison {clean.line(sweep_id)}: is not in {clean.line(store)}; "
            "normbench results list shows them"
        )
    return found


def _reused(client: Any, sweep_id: str) -> list[Any]:
    """Return the scheme runs that a sweep took from others, and the step runs below them."""
    members = search(client, names.membership(sweep_id).exists)
    taken = {
        run.info.run_id: run for run in members if run.data.tags.get(names.SWEEP_ID.key) != sweep_id
    }
    found = list(taken.values())
    for other in sorted({run.data.tags.get(names.SWEEP_ID.key, "") for run in found}):
        steps = search(
            client, f"{names.ROLE.equals(names.STEP)} and {names.SWEEP_ID.equals(other)}"
        )
        found += [run for run in steps if run.data.tags.get(names.PARENT.key) in taken]
    return found


def query(store: str, where: str) -> Sweep:
    """Return the scheme runs that an MLflow filter finds, with their sweep and step runs.

    where: such as `params.dataset = 'digits' and tags.normalizer = 'standard'`. Raises
    ResultsError for a filter that MLflow refuses or that finds nothing.
    """
    client = connect(store)
    every = f"{names.ROLE.equals(names.SCHEME)} and {OURS}"
    try:
        schemes = search(client, f"{every} and {where}")
    except ResultsError as error:  # of the store, or of the filter, which the user wrote
        reason = clean.first_line(error.__cause__ or error)
        raise ResultsError(f"--where {where}: {reason}") from error
    if not schemes:
        others = search(client, every, most=1000)
        said = remedy(where, ({"params": run.data.params, "tags": run.data.tags} for run in others))
        raise ResultsError(clean.line(f"--where {where}: finds no scheme run in {store}; {said}"))
    known = {run.info.run_id for run in schemes}
    parents = {run.data.tags.get(names.PARENT.key) for run in schemes}
    runs = list(schemes)
    for sweep_id in sorted({run.data.tags[names.SWEEP_ID.key] for run in schemes}):
        for run in search(client, names.SWEEP_ID.equals(sweep_id)):
            of_scheme = run.data.tags.get(names.PARENT.key) in known
            if of_scheme or run.info.run_id in parents:
                runs.append(run)
    return _sweep_of(client, runs, absolute(store))


def held(client: Any, found: Sequence[Any], store: str, sweep_id: str) -> Sweep:
    """Return a sweep that a client of its own holds, all of whose runs were found."""
    return replace(_sweep_of(client, found, store, sweep_id), client=client)


def scheme(store: str, run_id: str) -> Sweep:
    """Return one scheme run and its step runs, by the scheme run's id."""
    client = connect(store)
    runs = [client.get_run(run_id), *search(client, names.PARENT.equals(run_id))]
    return _sweep_of(client, runs, absolute(store))


def _sweep_of(client: Any, found: Sequence[Any], store: str, sweep_id: str = "") -> Sweep:
    """Return runs as a sweep, or as what a query found, without those that cannot be read."""
    called = {entry.experiment_id: entry.name for entry in client.search_experiments()}
    runs, left_out = run_checks.readable(run_checks.whole(found), called)
    if left_out and not any(run.data.tags.get(names.ROLE.key) == names.SCHEME for run in runs):
        raise ResultsError(" ".join(run_checks.listed(left_out)))
    table = _table(runs, called, sweep_id)
    return Sweep(store, sweep_id or QUERY, table, left_out=run_checks.listed(left_out))


def _table(runs: Sequence[Any], called: Mapping[str, str], sweep_id: str) -> pd.DataFrame:
    """Return one row a run; of a sweep, its schemes by experiment, in the order of its jobs.

    called: the experiments' names, by their ids.
    """
    line = lru_cache(maxsize=None)(clean.line)  # most of what runs say, they say alike
    rows = [_row(run, line(called[run.info.experiment_id]), line) for run in runs]
    table = as_table(rows)
    table["place"] = pd.to_numeric(table.get(names.membership(sweep_id).column), errors="coerce")
    table["first"] = table.groupby("experiment")["place"].transform("min")
    # The runs of a job begin together.
    table["size"] = pd.to_numeric(table.get(names.STEP_TAG.column), errors="coerce")
    order = ["first", "place", "started", "size", "run_id"]
    return _labelled(table.sort_values(order, ignore_index=True, na_position="first"))


def sweeps(store: str) -> pd.DataFrame:
    """Return one row a sweep and experiment, the latest first.

    Columns: sweep, experiment, status, jobs, lacks (of a sweep that was cut off, the jobs that are
    not recorded; its command, given again, runs them), command.
    """
    client = connect(store)
    called = {entry.experiment_id: entry.name for entry in client.search_experiments()}
    every = search(client, f"{names.ROLE.equals(names.SWEEP)} and {OURS}")
    found, _ = run_checks.readable(every, called)
    rows = [
        {
            "sweep": run.data.tags[names.SWEEP_ID.key],
            "experiment": called[run.info.experiment_id],
            "status": _status(run),
            "jobs": run.data.tags.get(names.JOBS.key, ""),
            "lacks": _lacks(client, run),
            "command": clean.line(run.data.tags.get(names.COMMAND.key, "")),
        }
        for run in found
    ]
    return pd.DataFrame(rows, columns=["sweep", "experiment", "status", "jobs", "lacks", "command"])


def _status(sweep: Any) -> str:
    """Return the status of a sweep's run; KILLED where its process is no longer alive."""
    abandoned = sweep.info.status == "RUNNING" and owner.is_alive(sweep.data.tags) is False
    return "KILLED" if abandoned else str(sweep.info.status)


def tags_of(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the tags of a run, from its row."""
    tags = names.TAGS
    return {
        str(name).removeprefix(tags): str(value)
        for name, value in row.items()
        if str(name).startswith(tags) and pd.notna(value)
    }


def _lacks(client: Any, sweep: Any) -> str:
    """Return how many jobs of a sweep that was cut off are not recorded, in any experiment."""
    jobs = sweep.data.tags.get(names.JOBS.key, "")
    if sweep.info.status == "FINISHED" or not jobs.isdigit():
        return ""
    member = names.membership(sweep.data.tags[names.SWEEP_ID.key]).exists
    schemes = search(client, f"{names.ROLE.equals(names.SCHEME)} and {member}")
    there = [run for run in schemes if run.info.status in ("FINISHED", "FAILED")]
    return str(int(jobs) - len(there))


def _row(run: Any, experiment: str, line: Callable[[str], str]) -> dict[str, Any]:
    """Return a run as a row of the table; line: cleans what another may have written."""
    tags = {line(key): line(text) for key, text in run.data.tags.items()}
    params = {line(key): line(text) for key, text in run.data.params.items()}
    ended = run.info.end_time or run.info.start_time
    return {
        "run_id": run.info.run_id,
        "parent": tags.get(names.PARENT.key, ""),
        "experiment": experiment,
        "experiment_id": run.info.experiment_id,
        "role": tags.get(names.ROLE.key, ""),
        "name": line(run.info.run_name or ""),
        "status": run.info.status,
        "started": run.info.start_time,
        "seconds": (ended - run.info.start_time) / 1000,
        "normalizer": tags.get(names.NORMALIZER.key, ""),
        "verdict": tags.get(names.VERDICT.key, ""),
        "reason": tags.get(names.REASON.key, ""),
        "data": line(inputs.data(run)),
        **inputs.sizes(run),
        **{f"{names.TAGS}{key}": text for key, text in tags.items()},
        **{names.setting(key): text for key, text in params.items()},
        **{f"{names.METRICS}{line(key)}": value for key, value in run.data.metrics.items()},
    }


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Add each run's label; a step run has its scheme's, and the sizes of its scheme's data."""
    table["label"] = labels(table)
    if names.STEP_SIZE.column not in table:  # no step size is there: all failed, or were deleted
        table[names.STEP_SIZE.column] = np.nan
    known = table.set_index("run_id")
    steps = table["role"] == names.STEP
    for name in ("label", *inputs.SIZES):
        if name in table:
            table[name] = table[name].where(~steps, table["parent"].map(known[name]))
    return table
