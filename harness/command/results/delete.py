"""`normbench results delete`: delete recorded sweeps and their files.

A job that another sweep shares stays, and becomes that sweep's own.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normbench import names
from normbench.recording.resume import leftovers
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.results.pages import drawn
from normbench.results.safe import clean
from normbench.results.store import owner, stores
from normbench.results.store.errors import ResultsError

MEMBER = names.membership("").key


@dataclass(frozen=True)
class Selection:
    """The runs of some sweeps in MLflow: what goes, and what stays.

    Attributes:
        sweeps: The runs of the sweeps themselves.
        jobs: The runs of their jobs.
        steps: The runs of the step sizes of these jobs.
        heirs: For each of the jobs that another sweep shares, by the id of the job's run: the id of
            that sweep, and the id of that sweep's run, which becomes the parent.
        guests: The runs of jobs of other sweeps that these sweeps share.
        cut_off: The runs that an interrupted deletion has marked as deleted, but not removed.
    """

    sweeps: list[Any]
    jobs: list[Any]
    steps: list[Any]
    heirs: Mapping[str, tuple[str, str]]
    guests: list[Any]
    cut_off: list[Any]

    @property
    def runs_to_delete(self) -> list[Any]:
        """The runs to delete, children first."""
        steps = [run for run in self.steps if run.data.tags[names.PARENT.key] not in self.heirs]
        jobs = [run for run in self.jobs if run.info.run_id not in self.heirs]
        return [*steps, *jobs, *self.sweeps]

    @property
    def summary(self) -> str:
        """What is deleted, and what stays."""
        if self.cut_off and not self.runs_to_delete:
            return "the rest of a deletion that was cut off"
        jobs, stay = len(self.jobs) - len(self.heirs), len(self.heirs)
        summary = f"{jobs} job{'s' * (jobs != 1)}, with artifacts and figures"
        return f"{summary}; {stay} that other comparisons share stay" if stay else summary


def run(store: str, sweeps: Sequence[str], yes: bool) -> int:
    """Delete sweeps once the user has confirmed; return the exit code 0.

    Args:
        store: The URI of the store.
        sweeps: The ids of the sweeps.
        yes: Whether the user has confirmed already.

    Raises:
        ResultsError: A sweep does not exist or is running, or nobody can confirm.
    """
    stores.connect(store)  # refuses a store that does not exist, which a writer would create
    writer = Writer(Store.at(store, None, Path.cwd()))
    sweeps = list(dict.fromkeys(sweeps))
    selection = _select_runs(writer, sweeps)
    sweep_names = ", ".join(map(clean.line, sweeps))
    if not yes and not _confirm(f"delete {sweep_names}: {selection.summary}"):
        print("nothing is deleted")
        return 0
    deleted_ids = {run.info.run_id for run in selection.runs_to_delete}
    membership_tags = {names.membership(sweep).key for sweep in sweeps}
    for run in (*selection.guests, *selection.jobs, *selection.steps):
        if run.info.run_id not in deleted_ids:  # it stays, and leaves these sweeps
            writer.untag(run.info.run_id, membership_tags & set(run.data.tags))
    tags_of_jobs = {run.info.run_id: run.data.tags for run in selection.jobs}
    for job, (sweep, run) in selection.heirs.items():  # each job becomes its heir's
        number = tags_of_jobs[job][names.membership(sweep).key]
        heir_tags = {names.SWEEP_ID: sweep, names.PARENT: run, names.JOB: f"{sweep}/{number}"}
        writer.tag(job, {tag.key: text for tag, text in heir_tags.items()})
    for step in selection.steps:
        heir = selection.heirs.get(step.data.tags[names.PARENT.key])
        if heir:
            writer.tag(step.info.run_id, {names.SWEEP_ID.key: heir[0]})
    all_sweeps = writer.search_runs(names.ROLE.equals(names.SWEEP))
    # A figure that another sweep has drawn under the same name in the same folder stays.
    other_tags = [run.data.tags for run in all_sweeps if run.info.run_id not in deleted_ids]
    for sweep in selection.sweeps:  # before their tags, which name the files, are deleted
        _remove_drawn(sweep.data.tags, other_tags)
    note = writer.remove(selection.runs_to_delete, selection.cut_off)
    print(f"deleted {sweep_names}: {selection.summary}")
    if note:
        print(note)
    return 0


def _select_runs(writer: Writer, sweeps: Sequence[str]) -> Selection:
    """Return the runs of sweeps, with those that other sweeps share.

    Of several other sweeps that share a job, the first id is the heir.

    Args:
        writer: The writer to the store.
        sweeps: The ids of the sweeps.

    Raises:
        ResultsError: A sweep does not exist, or is running.
    """
    runs: dict[str, list[Any]] = {role: [] for role in (names.SWEEP, names.SCHEME, names.STEP)}
    guests, cut_off = [], []
    for sweep in sweeps:
        sweep_runs, deleted = [], []
        if stores.is_quotable(sweep):
            sweep_runs, deleted = writer.runs_of_sweep(sweep), writer.deleted_runs(sweep)
        if not sweep_runs and not deleted:
            raise ResultsError(
                f"comparison {clean.line(sweep)}: is not in {writer.store.safe_uri}; "
                "normbench results list shows them"
            )
        cut_off += deleted
        for run in sweep_runs:
            runs[run.data.tags[names.ROLE.key]].append(run)
        members = writer.search_runs(names.membership(sweep).exists)
        guests += [run for run in members if run.data.tags.get(names.SWEEP_ID.key) not in sweeps]
    leftovers.refuse_at_work(runs[names.SWEEP])
    runs_of_sweep: dict[str, dict[str, str]] = {}
    heirs: dict[str, tuple[str, str]] = {}
    for job in runs[names.SCHEME]:
        other_sweeps = [key.removeprefix(MEMBER) for key in job.data.tags if key.startswith(MEMBER)]
        for other_sweep in sorted(set(other_sweeps) - set(sweeps)):
            heir = runs_of_sweep.setdefault(other_sweep, writer.sweep_runs(other_sweep)).get(
                job.info.experiment_id
            )
            if heir:  # None where that sweep's own run was deleted
                heirs.setdefault(job.info.run_id, (other_sweep, heir))
    return Selection(
        runs[names.SWEEP], runs[names.SCHEME], runs[names.STEP], heirs, guests, cut_off
    )


def _confirm(question: str) -> bool:
    """Return whether the user confirms; raise ResultsError where there is no terminal."""
    if not sys.stdin.isatty():
        raise ResultsError(f"{question}: nobody can be asked here; add --yes")
    try:
        return input(f"{question}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        print()
        return False


def _remove_drawn(tags: Mapping[str, str], other_tags: Sequence[Mapping[str, str]]) -> None:
    """Remove the files that a sweep drew, and its folder where nothing else is in it.

    They stay if they are on another machine, or if another sweep is at work in the folder.

    Args:
        tags: The tags of the sweep's run, with the host, the folder and the files.
        other_tags: The tags of the runs of all other sweeps.
    """
    if tags.get(names.HOST.key) != owner.host() or names.FOLDER.key not in tags:
        return
    folder, lock = Path(tags[names.FOLDER.key]), None
    try:
        lock = leftovers.lock_folder(folder)
    except FileNotFoundError:  # no folder, or none that a sweep has locked: nobody is at work there
        pass
    except (OSError, ValueError):  # a UserError where a sweep has locked the folder
        print(f"{clean.line(str(folder))}: its files stay; another comparison is at work there")
        return
    with lock or nullcontext():
        drawn.remove(folder, tags, other_tags)
        leftovers.remove_ledger(folder, tags[names.SWEEP_ID.key], lock)
