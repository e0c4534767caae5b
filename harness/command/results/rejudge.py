"""`normbench results rejudge`: judge a recorded sweep by other rules, as a sweep of its own.

The recorded sweep stays unchanged. The new sweep's id depends on the old one's and the rules, so
that the same command completes what was interrupted.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from normbench import names
from normbench.datasets import UserError
from normbench.recording.resume import leftovers
from normbench.recording.reuse import lookup as reuse
from normbench.recording.reuse import rejudge
from normbench.recording.reuse.identity import job_digest
from normbench.recording.reuse.recorded import RecordedRun
from normbench.recording.store.connection import Store
from normbench.recording.store.records import RecordHeader
from normbench.recording.store.writer import Writer, input_of
from normbench.results.pages.publishing import attach, publish
from normbench.results.report import files
from normbench.results.report.terminal import present
from normbench.results.safe import clean
from normbench.results.store import state
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep, load
from normbench.verdicts.convergence import Rules

RULE_NAMES = tuple(f"{rejudge.RULE_PREFIX}{field.name}" for field in fields(Rules))
# The tags that a new run copies from the job's old run, and a new sweep from the old sweep.
JOB_TAGS = (
    names.DATASET,
    names.COST,
    names.NORMALIZER,
    names.OPTIMIZER,
    names.DESCENT,
    names.STANDS_IN,
)
SWEEP_TAGS = (names.COMMIT, names.GIT_DIRTY, names.BLAS)


def run(store: str, old: Sweep, rules: Mapping[str, Any], folder: Path | None) -> int:
    """Judge a sweep's jobs by rules as a new sweep, and conclude as a sweep does; return 0.

    Args:
        store: The URI of the store.
        old: The recorded sweep.
        rules: The rules by their settings, from `parse_rules`.
        folder: Where figures and report go; None for `outputs/ID`.

    Raises:
        ResultsError: The sweep is still running or has no jobs, its own run was deleted in an
            experiment, or none of its jobs can be judged again.
        StoreLostError: The store does not answer any more.
    """
    if (store_state := state.state_of(old)).phase is state.Phase.RUNNING:
        raise ResultsError(
            f"comparison {clean.line(old.sweep_id)}: {store_state.predicate}; wait for it"
        )
    if old.of_role(names.SCHEME).empty:
        raise ResultsError(f"comparison {clean.line(old.sweep_id)}: has no jobs to judge")
    if set(old.experiments) - set(old.of_role(names.SWEEP)["experiment"]):
        raise ResultsError(f"comparison {clean.line(old.sweep_id)}: its own run was deleted")
    work = _Rejudgement(Writer(Store.at(store, None, Path.cwd())), old, rules)
    folder = folder or (Path("outputs") / work.sweep_id).absolute()
    with leftovers.lock_new_folder(folder):
        parents = work.start(folder)
        for number, row in enumerate(as_rows(old.of_role(names.SCHEME))):
            work.add_job(number, row, parents[row["experiment"]])
        new_sweep = load(store, work.sweep_id)
        if new_sweep.of_role(names.SCHEME).empty:
            work.writer.remove([work.writer.run(parent) for parent in parents.values()])
            raise ResultsError(
                f"comparison {clean.line(old.sweep_id)}: none of its jobs can be judged again"
            )
        # In an experiment all of whose jobs are left out there is nothing to describe.
        described = {experiment: parents[experiment] for experiment in new_sweep.experiments}
        publish(work.writer, new_sweep, described)
        written = present(new_sweep, partial(files.write, new_sweep, folder, is_complete=True))
        attach(work.writer, new_sweep, written, parents)
        for parent in parents.values():
            work.writer.finish(parent)
    return 0


def parse_rules(assignments: Sequence[str]) -> dict[str, Any]:
    """Return rules by their settings, sorted: the new sweep's id depends on their order.

    Args:
        assignments: The rules as typed, such as `rules.tail=0.2`.

    Raises:
        UserError: An argument is no rule, or a value is out of its range.
    """
    rules = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator or key not in RULE_NAMES:
            raise UserError(
                f"{assignment}: is no rule; give some of {', '.join(RULE_NAMES)} with a value, "
                "such as rules.tail=0.2"
            )
        rules[key] = rejudge.literal(text)
    rejudge.rules_of(rules)
    return dict(sorted(rules.items()))


@dataclass(frozen=True)
class _Rejudgement:
    """The jobs of an old sweep, judged by rules, as a new sweep.

    Attributes:
        writer: The writer to the store.
        old: The old sweep, which stays unchanged.
        rules: The rules by their settings, such as `rules.tail`.
    """

    writer: Writer
    old: Sweep
    rules: Mapping[str, Any]

    @property
    def rules_text(self) -> str:
        """The rules as text."""
        return " ".join(f"{key}={value}" for key, value in self.rules.items())

    @property
    def sweep_id(self) -> str:
        """The new sweep's id."""
        return f"{self.old.sweep_id}.{hashlib.sha256(self.rules_text.encode()).hexdigest()[:8]}"

    def start(self, folder: Path) -> dict[str, str]:
        """Return the id of the new sweep's run in each experiment, an earlier call's or a new one.

        Runs that the earlier call left unfinished are ended.

        Args:
            folder: The folder of the new sweep.
        """
        self.writer.end_abandoned(lambda tags: tags.get(names.FOLDER.key) == str(folder))
        started_runs = self.writer.sweep_runs(self.sweep_id)
        parents = {}
        for experiment in self.old.experiments:
            # A tag that the run lacks is missing in its row.
            row = self.old.of_role(names.SWEEP, experiment).iloc[0].dropna().to_dict()
            started_run = started_runs.get(row["experiment_id"])
            tags = {**self._tags(row), **leftovers.owner_tags(folder)}
            parents[experiment] = started_run or self.writer.start_sweep(
                experiment, self.sweep_id, tags
            )
        return parents

    def _tags(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the tags of a new sweep's run.

        Args:
            row: The row of the old sweep's run, whose commit and versions are copied: the descents
                were made with those.
        """
        versions = names.version("").column
        columns = [tag.column for tag in SWEEP_TAGS if tag.column in row]
        columns += [str(key) for key in row if str(key).startswith(versions)]
        command = f"normbench results rejudge {self.old.sweep_id} {self.rules_text}"
        return {
            names.COMMAND.key: clean.line(command),
            names.JOBS.key: str(len(self.old.of_role(names.SCHEME))),
            names.REJUDGED.key: self.rules_text,
            **{key.removeprefix(names.TAGS): str(row[key]) for key in columns},
        }

    def add_job(self, number: int, row: Mapping[str, Any], parent: str) -> None:
        """Add a job of the old sweep to the new one, judged by the rules.

        A run that these rules have judged already becomes a member of the new sweep without a copy,
        and so does the old run of a job that failed or had no descent. A job that an earlier,
        interrupted command has added is skipped. One whose arrays are damaged is reported and left
        out.

        Args:
            number: The number of the job in the new sweep.
            row: The row of the job's run in the table of the old sweep.
            parent: The id of the new sweep's run in the experiment of the job.
        """
        if self.writer.ended_member(row["experiment"], self.sweep_id, number):
            return
        run = RecordedRun(self.old, row["run_id"])
        header = self._make_header(run, number, parent)
        known_run, record = self._find_known(run, header), None
        if not known_run:
            try:
                record = rejudge.rejudge_run(run, header, input_of(self.writer.run(run.run_id)))
            except ResultsError as error:
                print(f"{clean.line(str(error))}; it is left out", file=sys.stderr)
                return
        if record is None:  # reused as it is: nothing is written
            self.writer.adopt(known_run or run.run_id, header.tags[names.JOB.key])
            return
        # What the deleted runs of steps had recorded cannot be restored, nor can requested arrays.
        # Without its fingerprint, such an incomplete run is not reused for an equal job.
        has_lost_steps = len(run.steps) < len(record.steps)
        if has_lost_steps or reuse.lost_request(record.scheme.tags, header.params):
            record.scheme.tags.pop(names.FINGERPRINT.key, None)
        self.writer.write(record)

    def _find_known(self, run: RecordedRun, header: RecordHeader) -> str | None:
        """Return the id of a run that needs no judging: failed, or judged by these rules.

        Args:
            run: The old run of the job, which is returned where it failed.
            header: The header of the job's new record.

        Returns:
            The id; None where the job has to be judged.
        """
        if run.row["verdict"] == names.FAILED:
            return run.run_id
        return reuse.find_equal_run(reuse.find_runs_of_descent(self.writer, header), header)

    def _make_header(self, run: RecordedRun, number: int, parent: str) -> RecordHeader:
        """Return the header of a job's new record, with the rules among its parameters.

        Args:
            run: The old run of the job.
            number: The number of the job in the new sweep.
            parent: The id of the new sweep's run in the experiment of the job.
        """
        params = {**run.params, **self.rules}
        tags = {tag.key: run.row[tag.column] for tag in JOB_TAGS if tag.column in run.row}
        if names.DESCENT.key in tags:  # a job that failed early has none
            tags[names.FINGERPRINT.key] = job_digest(tags[names.DESCENT.key], params)
        tags |= {
            names.SWEEP_ID.key: self.sweep_id,
            names.JOB.key: f"{self.sweep_id}/{number}",
            names.membership(self.sweep_id).key: str(number),
        }
        return RecordHeader(self.writer.store.safe_uri, run.row["experiment"], parent, params, tags)
