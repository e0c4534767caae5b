"""`normbench results rejudge`: a recorded sweep judged by other rules, as a sweep of its own.

What is recorded stays as it is. The new sweep's id follows from the old one's and the rules, so
that the same command finishes what was interrupted.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from normbench import names
from normbench.datasets import UserError
from normbench.recording.resume import leftovers
from normbench.recording.reuse import lookup as reuse
from normbench.recording.reuse import rejudge
from normbench.recording.reuse.identity import job_of
from normbench.recording.reuse.recorded import Recorded
from normbench.recording.store.connection import Store
from normbench.recording.store.records import Place
from normbench.recording.store.writer import Writer, input_of
from normbench.results.pages.publishing import attach, publish
from normbench.results.report.terminal import present
from normbench.results.safe import clean
from normbench.results.store import state
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep, load
from normbench.verdicts.convergence import Rules

RULES = tuple(f"{rejudge.RULE}{field.name}" for field in fields(Rules))
# What a new run takes over from the job's old one, and a new sweep from the old sweep.
OF_A_JOB = (names.DATASET, names.COST, names.NORMALIZER, names.OPTIMIZER, names.DESCENT)
OF_A_SWEEP = (names.COMMIT, names.GIT_DIRTY, names.BLAS)


def run(store: str, old: Sweep, rules: Mapping[str, Any], folder: Path | None) -> int:
    """Judge a sweep's jobs by rules, from `rules_of`, and end as a sweep does; return 0.

    folder: where figures and report go. Raises ResultsError where the sweep is still at work,
    `StoreLostError`.
    """
    if (now := state.of(old)).phase is state.Phase.RUNNING:
        raise ResultsError(f"sweep {clean.line(old.sweep_id)}: {now.predicate}; wait for it")
    if old.of_role(names.SWEEP).empty:
        raise ResultsError(f"sweep {clean.line(old.sweep_id)}: its own run was deleted")
    work = _Work(Writer(Store.at(store, None, Path.cwd())), old, rules)
    folder = folder or (Path("outputs") / work.sweep_id).absolute()
    with leftovers.hold(folder):
        parents = work.start(folder)
        for number, row in enumerate(as_rows(old.of_role(names.SCHEME))):
            work.take_in(number, row, parents[row["experiment"]])
        found = load(store, work.sweep_id)
        publish(work.writer, found, parents)
        written = present(found, folder)
        attach(work.writer, found, written, parents)
        for parent in parents.values():
            work.writer.finish(parent)
    return 0


def rules_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the rules that words give, by their settings.

    words: such as `rules.tail=0.2`. Raises `UserError` for words that are no rules.
    """
    told = {}
    for word in words:
        key, given, text = word.partition("=")
        if not given or key not in RULES:
            raise UserError(
                f"{word}: is no rule; give some of {', '.join(RULES)} with a value, "
                "such as rules.tail=0.2"
            )
        told[key] = rejudge.literal(text)
    rejudge.rules_of(told)
    return dict(sorted(told.items()))


@dataclass(frozen=True)
class _Work:
    """What there is to do: the jobs of an old sweep, judged by rules, as a new sweep."""

    writer: Writer
    old: Sweep
    rules: Mapping[str, Any]

    @property
    def told(self) -> str:
        """The rules as words."""
        return " ".join(f"{key}={value}" for key, value in self.rules.items())

    @property
    def sweep_id(self) -> str:
        """The new sweep's id."""
        return f"{self.old.sweep_id}.{hashlib.sha256(self.told.encode()).hexdigest()[:8]}"

    def start(self, folder: Path) -> dict[str, str]:
        """Return the new sweep's run in each experiment: that of a call before this, or a new one.

        What that call was cut off in is ended.
        """
        self.writer.end_abandoned(lambda tags: tags.get(names.FOLDER.key) == str(folder))
        there = self.writer.sweep_runs(self.sweep_id)
        parents = {}
        for experiment in self.old.experiments:
            row = self.old.of_role(names.SWEEP, experiment).iloc[0].dropna().to_dict()
            known = there.get(row["experiment_id"])
            tags = {**self._tags(row), **leftovers.home(folder)}
            parents[experiment] = known or self.writer.start_sweep(experiment, self.sweep_id, tags)
        return parents

    def _tags(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the tags of a new sweep's run, from the row of the old one."""
        versions = names.version("").column
        own = [tag.column for tag in OF_A_SWEEP if tag.column in row]
        own += [str(key) for key in row if str(key).startswith(versions)]
        command = f"normbench results rejudge {self.old.sweep_id} {self.told}"
        return {
            names.COMMAND.key: clean.line(command),
            names.JOBS.key: str(len(self.old.of_role(names.SCHEME))),
            names.REJUDGED.key: self.told,
            **{key.removeprefix(names.TAGS): str(row[key]) for key in own},
        }

    def take_in(self, number: int, row: Mapping[str, Any], parent: str) -> None:
        """Make a job one of the new sweep's: a run that the rules have judged, where there can be.

        Otherwise as it was judged then. One whose arrays are damaged is named and left out.
        """
        if self.writer.ended_member(row["experiment"], self.sweep_id, number):
            return
        run = Recorded(self.old, row["run_id"])
        place = self._place(run, number, parent)
        known, record = self._known(run, place), None
        if not known:
            try:
                record = rejudge.rejudged(run, place, input_of(self.writer.run(run.run_id)))
            except ResultsError as error:
                print(f"{clean.line(str(error))}; it is left out", file=sys.stderr)
                return
        if record is None:
            self.writer.adopt(known or run.run_id, place.tags[names.JOB.key])
            return
        lacks_theory = len(run.steps) < len(record.steps)  # runs of steps were deleted
        if lacks_theory or reuse.lacks(record.scheme.tags, place.params):
            record.scheme.tags.pop(names.FINGERPRINT.key, None)
        self.writer.write(record)

    def _known(self, run: Recorded, place: Place) -> str | None:
        """Return the id of a run that needs no judging: a failed one, or one by these rules."""
        if run.row["verdict"] == names.FAILED:
            return run.run_id
        return reuse.known(reuse.of_descent(self.writer, place), place)

    def _place(self, run: Recorded, number: int, parent: str) -> Place:
        """Return where a job's new run belongs, with the rules among its parameters."""
        params = {**run.params, **self.rules}
        tags = {tag.key: run.row[tag.column] for tag in OF_A_JOB if tag.column in run.row}
        if names.DESCENT.key in tags:  # a job that failed early has none
            tags[names.FINGERPRINT.key] = job_of(tags[names.DESCENT.key], params)
        tags |= {
            names.SWEEP_ID.key: self.sweep_id,
            names.JOB.key: f"{self.sweep_id}/{number}",
            names.membership(self.sweep_id).key: str(number),
        }
        return Place(self.writer.store.shown, run.row["experiment"], parent, params, tags)
