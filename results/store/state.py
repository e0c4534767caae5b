"""The state of a comparison: running, stopped or ended. No other module decides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.safe import clean
from normbench.results.store import owner, runs
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.run_table import tags_of
from normbench.results.store.runs import Sweep


class Phase(Enum):
    """The phase of a comparison; its value is a sentence's predicate, empty for one that ended.

    The order matters: of the phases of a sweep in several experiments, the first one stands for it.
    """

    RUNNING = "is still running ({count} done)"
    STOPPED = "was stopped ({count} done); the same command runs the rest"
    UNKNOWN = (  # it was started on another machine
        "has not ended ({count} done): whether it still runs on {host} cannot be told from here"
    )
    IMPORTED = (  # its end was not imported
        "is not complete in this store ({count}); if its import was cut off, the same import "
        "finishes it"
    )
    EMPTIED = "has no jobs in this store any more: they were deleted"
    ENDED = ""


COMPLETE = "was stopped after its last job: every job is recorded, and nothing runs again"


@dataclass(frozen=True)
class State:
    """The progress of a comparison.

    Attributes:
        sweep_id: The sweep.
        phase: Whether it runs, was stopped or has ended.
        done: How many of its jobs are recorded.
        jobs: How many jobs it plans; None where that is not recorded.
        host: The machine that runs it.
    """

    sweep_id: str
    phase: Phase
    done: int
    jobs: int | None = None
    host: str = ""

    @property
    def predicate(self) -> str:
        """The predicate of a sentence about the comparison; empty for one that ended."""
        if self.phase is Phase.STOPPED and self.done == self.jobs:
            return COMPLETE
        # "3 of 10 jobs", or "3 jobs" where the planned number is not recorded.
        number = self.done if self.jobs is None else self.jobs
        total_prefix = "" if self.jobs is None else f"{self.done} of "
        count = f"{total_prefix}{number} job{'s' * (number != 1)}"
        return self.phase.value.format(count=count, host=self.host or "another machine")

    @property
    def sentence(self) -> str:
        """The sentence about the comparison that is shown; empty for one that ended."""
        return f"This comparison {self.predicate}." if self.predicate else ""


def state_of(sweep: Sweep, sweep_id: str = "") -> State:
    """Return the state of a sweep.

    Args:
        sweep: The loaded runs, of one sweep or of several.
        sweep_id: Which of several sweeps; `sweep.sweep_id` by default.

    Returns:
        Its state; `ENDED` where the sweep itself has no run.
    """
    sweep_id = sweep_id or sweep.sweep_id
    schemes, parents = as_rows(sweep.of_role(names.SCHEME)), as_rows(sweep.of_role(names.SWEEP))
    member = names.membership(sweep_id).column
    # Jobs that the sweep ran, and those that it reused.
    done = sum(
        row.get(names.SWEEP_ID.column) == sweep_id or not pd.isna(row.get(member, np.nan))
        for row in schemes
    )
    rows = [row for row in parents if row.get(names.SWEEP_ID.column) == sweep_id]
    if not rows:  # no run of the sweep itself: never recorded, or deleted
        return State(sweep_id, Phase.ENDED, done)
    tags = [tags_of(row) for row in rows]  # of the sweep's run in each experiment
    count = tags[0].get(names.JOBS.key, "")
    jobs = int(count) if count.isdigit() else None
    phases = [_phase(run_tags, row["status"], done, jobs) for run_tags, row in zip(tags, rows)]
    # The first in the order of `Phase` stands for the sweep.
    phase = next((candidate for candidate in Phase if candidate in phases), Phase.ENDED)
    return State(sweep_id, phase, done, jobs, clean.recorded_line(tags[0].get(names.HOST.key, "")))


def _phase(tags: dict[str, str], status: str, done: int, jobs: int | None) -> Phase:
    """Return the phase of a sweep in one experiment.

    Args:
        tags: The tags of the sweep's run.
        status: The status of that run in MLflow.
        done: How many of the sweep's jobs are recorded, in all experiments.
        jobs: How many it plans; None where that is not recorded.
    """
    if status == "RUNNING":  # also the status of a sweep whose process was killed
        alive = owner.is_alive(tags)
        if alive is None:  # an imported sweep has no tag of a folder, whose lock would answer
            return Phase.IMPORTED if names.ORIGIN.key in tags else Phase.UNKNOWN
        return Phase.RUNNING if alive else Phase.STOPPED
    # A sweep has failed if all of its jobs failed, or if an error stopped it.
    if status == "KILLED" or (status == "FAILED" and (jobs is None or done < jobs)):
        return Phase.STOPPED
    return Phase.ENDED if done else Phase.EMPTIED


def read(store: str, sweep_ids: Sequence[str] = ()) -> tuple[Sweep, list[str]]:
    """Load sweeps, together with sentences about their state.

    Args:
        store: An MLflow store or server.
        sweep_ids: The sweeps; without any, the last sweep with a recorded job.

    Returns:
        The sweeps as one, and the sentences.

    Raises:
        ResultsError: No job is recorded; the message tells the state.
    """
    notes: list[str] = []
    ids = list(dict.fromkeys(sweep_ids))
    if not ids:
        started_id, shown_id = runs.last_sweep_ids(store)
        if shown_id != started_id:  # the last sweep has no recorded job
            newer = state_of(runs.load(store, started_id)).predicate
            notes.append(
                f"The last comparison, {started_id}, {newer}. "
                f"Shown is {shown_id}, the last one that has results."
            )
        ids = [shown_id]
    sweep = runs.load(store, *ids)
    states = [state_of(sweep, sweep_id) for sweep_id in ids]
    # Without a job of any of them there is nothing to show.
    if sweep.of_role(names.SCHEME).empty:
        raise ResultsError(
            "; ".join(
                f"comparison {clean.line(sweep_state.sweep_id)}: has no results yet; "
                f"it {sweep_state.predicate or 'has no jobs'}"
                for sweep_state in states
            )
        )
    return sweep, [*notes, *sweep.left_out, *sentences(states)]


def sentences(states: Sequence[State]) -> list[str]:
    """Return one sentence about each comparison that has not ended.

    Args:
        states: The states of the comparisons that are shown.

    Returns:
        The sentences; one of several comparisons is named by its id.
    """
    if len(states) == 1:
        return [states[0].sentence] if states[0].sentence else []
    return [
        f"Comparison {sweep_state.sweep_id} {sweep_state.predicate}."
        for sweep_state in states
        if sweep_state.predicate
    ]
