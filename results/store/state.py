"""How far a comparison is: at work, stopped, or at its end; the one place that decides it."""

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
from normbench.results.store.runs import Sweep


class Phase(Enum):
    """What a comparison is doing, in words. Of one that ended there is nothing to tell."""

    RUNNING = "is still running ({count} done)"
    STOPPED = "was stopped ({count} done); the same command runs the rest"
    UNKNOWN = (  # another machine runs it, or did
        "has not ended ({count} done): whether it still runs on {host} cannot be told from here"
    )
    IMPORTED = (  # and has no end here
        "is not complete in this store ({count}); if its import was cut off, the same import "
        "finishes it"
    )
    EMPTIED = "has no jobs in this store any more: they were deleted"
    ENDED = ""


COMPLETE = "was stopped after its last job: every job is recorded, and nothing runs again"


@dataclass(frozen=True)
class State:
    """How far a comparison is. jobs: how many it plans, None where that is not recorded."""

    sweep_id: str
    phase: Phase
    done: int
    jobs: int | None = None
    host: str = ""

    @property
    def predicate(self) -> str:
        """What the comparison does, without its subject; empty for one that ended."""
        if self.phase is Phase.STOPPED and self.done == self.jobs:
            return COMPLETE
        number = self.done if self.jobs is None else self.jobs
        total_prefix = "" if self.jobs is None else f"{self.done} of "
        count = f"{total_prefix}{number} job{'s' * (number != 1)}"
        return self.phase.value.format(count=count, host=self.host or "another machine")

    @property
    def sentence(self) -> str:
        """What there is to tell of the comparison that is shown; empty for one that ended."""
        return f"This comparison {self.predicate}." if self.predicate else ""


def state_of(sweep: Sweep, sweep_id: str = "") -> State:
    """Return the state of a sweep, or of one of several that were loaded together."""
    sweep_id = sweep_id or sweep.sweep_id
    schemes, parents = as_rows(sweep.of_role(names.SCHEME)), as_rows(sweep.of_role(names.SWEEP))
    member = names.membership(sweep_id).column
    done = sum(
        row.get(names.SWEEP_ID.column) == sweep_id or not pd.isna(row.get(member, np.nan))
        for row in schemes
    )
    rows = [row for row in parents if row.get(names.SWEEP_ID.column) == sweep_id]
    if not rows:  # runs of no sweep, or of one whose own run was deleted
        return State(sweep_id, Phase.ENDED, done)
    tags = [runs.tags_of(row) for row in rows]
    count = tags[0].get(names.JOBS.key, "")
    jobs = int(count) if count.isdigit() else None
    phases = [_phase(run_tags, row["status"], done, jobs) for run_tags, row in zip(tags, rows)]
    # The first in the order of `Phase` stands for the sweep.
    phase = next((candidate for candidate in Phase if candidate in phases), Phase.ENDED)
    return State(sweep_id, phase, done, jobs, clean.line(tags[0].get(names.HOST.key, "")))


def _phase(tags: dict[str, str], status: str, done: int, jobs: int | None) -> Phase:
    """Return the phase of a sweep in one experiment. status: MLflow's, of its own run there."""
    if status == "RUNNING":
        if owner.is_this_process(tags):  # which concludes it: every job is done
            return Phase.ENDED
        alive = owner.is_alive(tags)
        if alive is None:
            return Phase.IMPORTED if names.ORIGIN.key in tags else Phase.UNKNOWN
        return Phase.RUNNING if alive else Phase.STOPPED
    # A sweep fails where all of its jobs did, or where an error stopped it.
    if status == "KILLED" or (status == "FAILED" and (jobs is None or done < jobs)):
        return Phase.STOPPED
    return Phase.ENDED if done else Phase.EMPTIED


def read(store: str, sweep_ids: Sequence[str] = ()) -> tuple[Sweep, list[str]]:
    """Return sweeps that hold a job, and what there is to tell of their state, in sentences.

    sweep_ids: none for the last sweep that holds a job. Raises ResultsError, which tells the
    state, where no job is recorded.
    """
    notes: list[str] = []
    ids = list(dict.fromkeys(sweep_ids))
    if not ids:
        started_id, shown_id = runs.last_sweep_ids(store)
        if shown_id != started_id:
            newer = state_of(runs.load(store, started_id)).predicate
            notes.append(
                f"The last comparison, {started_id}, {newer}. "
                f"Shown is {shown_id}, the last one that has results."
            )
        ids = [shown_id]
    sweep = runs.load(store, *ids)
    states = [state_of(sweep, sweep_id) for sweep_id in ids]
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
    """Return what there is to tell of the comparisons that are shown, in sentences."""
    if len(states) == 1:
        return [states[0].sentence] if states[0].sentence else []
    return [
        f"Comparison {sweep_state.sweep_id} {sweep_state.predicate}."
        for sweep_state in states
        if sweep_state.predicate
    ]
