"""The runs of comparisons: a tidy table, and the histories and arrays of their records."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import comparison_files, filters
from normbench.results.store import recorded_histories as histories
from normbench.results.store.comparison_files import Comparison
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord
from normbench.results.store.rows import as_rows
from normbench.results.store.run_table import tabulate

HISTORY_KEYS = tuple(metric.key for metric in names.HISTORIES)
QUARTILE_KEYS = tuple(
    names.quartile(metric, quantile).key
    for metric in names.HISTORIES
    for quantile in names.QUARTILES
)
QUERY = "query"  # takes the place of a sweep's id
Arrays = dict[str, NDArray[Any]]  # the arrays of one record by key
Cached = TypeVar("Cached")


@dataclass(frozen=True)
class Sweep:
    """The runs of one comparison, of several or of a query.

    Attributes:
        store: Where the comparison is recorded: its copy in MLflow, or else its home.
        sweep_id: The comparison's id; `query` for the runs of several.
        runs: One row a run, see `run_table.tabulate`.
        records: The records of the jobs by the ids of their scheme runs.
        left_out: One sentence about each record that cannot be read.
        comparisons: The comparisons that the runs are of.
    """

    store: str
    sweep_id: str
    runs: pd.DataFrame
    records: Mapping[str, JobRecord] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

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

    def histories(self, runs: pd.DataFrame, metrics: Sequence[str] = HISTORY_KEYS) -> pd.DataFrame:
        """Return the histories of runs.

        Args:
            runs: Rows of `runs`.
            metrics: The names of the metrics.

        Returns:
            One row a run and iteration. Columns: run_id, experiment, normalizer, label, step_size,
            verdict, iteration, and each metric that one of the runs has.
        """
        return histories.table(runs, metrics, self._series, self._descent)

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
        return self._series(run_id).get(metric, {})

    def _series(self, run_id: str) -> dict[str, dict[int, float]]:
        """Return the values of each metric of a run by step."""
        key, _, number = run_id.partition(".")
        record = self.records[key]
        return (record.steps[int(number)] if number else record.scheme).series

    def arrays(self, runs: pd.DataFrame, name: str) -> dict[str, Arrays]:
        """Return the arrays of a record.

        Args:
            runs: Rows of `runs`.
            name: The record, such as `descent`: a word of the setting `record`.

        Returns:
            The arrays by key, of each run that has this record by its label.

        Raises:
            ResultsError: The record cannot be read.
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
        try:
            return dict(self.records[run_id].arrays[name])
        except (OSError, KeyError, ValueError, BadZipFile, MemoryError) as error:
            raise ResultsError(
                f"record {run_id}: its {name} cannot be read ({clean.first_line(error)})"
            ) from error


def which_step(schemes: pd.DataFrame) -> str:
    """Return `shown` if `shown_step` chose the step size of a scheme, otherwise `best`."""
    return "shown" if "true" in set(schemes.get(names.STEP_CHOSEN.column, ())) else "best"


def load(home: Path, *sweeps: str) -> Sweep:
    """Load a comparison; several as if they were one.

    Args:
        home: The folder of comparisons and their records.
        *sweeps: The ids of the comparisons.

    Returns:
        Their runs.

    Raises:
        ResultsError: A comparison is not there, or cannot be read.
    """
    return of_comparisons(comparison_files.select(home, sweeps))


def of_comparisons(chosen: Sequence[Comparison]) -> Sweep:
    """Return the runs of comparisons of one home; a record that cannot be read is named."""
    in_order = sorted(chosen, key=lambda comparison: comparison.started)
    records: dict[str, JobRecord] = {}
    left_out: list[str] = []
    for comparison in in_order:
        for key in set(comparison.keys) - set(records):
            try:
                records[key] = JobRecord.load(comparison_files.record_file(comparison.home, key))
            except (OSError, ValueError) as error:
                left_out.append(f"A job is left out: {clean.first_line(error)}.")
    return sweep_of(in_order, records, left_out)


def sweep_of(
    chosen: Sequence[Comparison], records: Mapping[str, JobRecord], left_out: Sequence[str] = ()
) -> Sweep:
    """Return the runs of comparisons, from the records of their jobs by key.

    Args:
        chosen: The comparisons, in order.
        records: The records of their jobs; jobs without one are left out.
        left_out: What is said of records that cannot be read.
    """
    first = chosen[0]
    sweep_id = first.id if len(chosen) == 1 else QUERY
    store = first.tracking or str(first.home)
    return Sweep(
        store, sweep_id, tabulate(chosen, records), records, tuple(left_out), tuple(chosen)
    )


def split_command(command: str) -> list[str]:
    """Return the words of a recorded command; none where its quotes are open."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def load_query(home: Path, where: str) -> Sweep:
    """Return the scheme runs that a filter selects, with their step runs.

    Args:
        home: The folder of comparisons and their records.
        where: The filter, such as `params.dataset = 'digits' and tags.normalizer = 'standard'`.

    Returns:
        The runs.

    Raises:
        ResultsError: The filter cannot be read, or no run matches it.
    """
    chosen = comparison_files.recorded(home)
    if not chosen:
        raise comparison_files.empty_home(home)
    every = of_comparisons(chosen)
    jobs = every.of_role(names.SCHEME)
    records = {key: every.records[key] for key in filters.select(jobs, where)["run_id"]}
    if not records:
        suggestion = filters.remedy(jobs, where)
        raise ResultsError(clean.line(f"--where {where}: finds no job in {home}; {suggestion}"))
    return replace(sweep_of(every.comparisons, records, every.left_out), sweep_id=QUERY)


def sweeps(home: Path) -> pd.DataFrame:
    """Return the comparisons of a home, the latest first.

    Args:
        home: The folder of comparisons and their records.

    Returns:
        One row a comparison and experiment. Columns: sweep, experiment, status, jobs, lacks (how
        many jobs are not done; the same command runs them), command.

    Raises:
        ResultsError: There is none.
    """
    rows = []
    every = comparison_files.recorded(home)
    if not every:
        raise comparison_files.empty_home(home)
    for comparison in every:
        lacks = len(comparison.jobs) - len(comparison.keys)
        rows += [
            {
                "sweep": comparison.id,
                "experiment": experiment,
                "status": comparison.status,
                "jobs": len(comparison.jobs),
                "lacks": str(lacks) if lacks else "",
                "command": clean.recorded_line(comparison.command),
            }
            for experiment in dict.fromkeys(job.experiment for job in comparison.jobs)
        ]
    return pd.DataFrame(rows, columns=["sweep", "experiment", "status", "jobs", "lacks", "command"])
