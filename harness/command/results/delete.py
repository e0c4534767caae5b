"""`normbench results delete`: recorded sweeps and what they drew, taken away for good.

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
class Found:
    """The runs of some sweeps in MLflow: what goes, and what stays.

    heirs: of a job that another sweep shares, by its id, that sweep and its run. guests: jobs of
    other sweeps that these took in. cut_off: runs that a deletion which was cut off has left.
    """

    sweeps: list[Any]
    jobs: list[Any]
    steps: list[Any]
    heirs: Mapping[str, tuple[str, str]]
    guests: list[Any]
    cut_off: list[Any]

    @property
    def going(self) -> list[Any]:
        """The runs that go, what is below first."""
        steps = [run for run in self.steps if run.data.tags[names.PARENT.key] not in self.heirs]
        jobs = [run for run in self.jobs if run.info.run_id not in self.heirs]
        return [*steps, *jobs, *self.sweeps]

    @property
    def words(self) -> str:
        """What goes, and what stays."""
        if self.cut_off and not self.going:
            return "the rest of a deletion that was cut off"
        jobs, stay = len(self.jobs) - len(self.heirs), len(self.heirs)
        said = f"{jobs} job{'s' * (jobs != 1)}, with artifacts and figures"
        return f"{said}; {stay} that other comparisons share stay" if stay else said


def run(store: str, sweeps: Sequence[str], yes: bool) -> int:
    """Delete sweeps once the user has agreed; return the exit code.

    Raises ResultsError for a sweep that is not there or is at work, and where nobody can be asked.
    """
    stores.connect(store)  # a writer would make a store that is not there
    writer = Writer(Store.at(store, None, Path.cwd()))
    sweeps = list(dict.fromkeys(sweeps))
    found = _found(writer, sweeps)
    called = ", ".join(map(clean.line, sweeps))
    if not yes and not _agreed(f"delete {called}: {found.words}"):
        print("nothing is deleted")
        return 0
    going = {run.info.run_id for run in found.going}
    own = {names.membership(sweep).key for sweep in sweeps}
    for run in (*found.guests, *found.jobs, *found.steps):
        if run.info.run_id not in going:
            writer.untag(run.info.run_id, own & set(run.data.tags))
    for job, (sweep, run) in found.heirs.items():  # with its step sizes it is the heir's
        writer.tag(job, {names.SWEEP_ID.key: sweep, names.PARENT.key: run})
    for step in found.steps:
        heir = found.heirs.get(step.data.tags[names.PARENT.key])
        if heir:
            writer.tag(step.info.run_id, {names.SWEEP_ID.key: heir[0]})
    every = writer.search(names.ROLE.equals(names.SWEEP))
    others = [run.data.tags for run in every if run.info.run_id not in going]
    for sweep in found.sweeps:  # before what says which files are theirs
        _take_away(sweep.data.tags, others)
    left = writer.remove(found.going, found.cut_off)
    print(f"deleted {called}: {found.words}")
    if left:
        print(left)
    return 0


def _found(writer: Writer, sweeps: Sequence[str]) -> Found:
    runs: dict[str, list[Any]] = {role: [] for role in (names.SWEEP, names.SCHEME, names.STEP)}
    guests, cut_off = [], []
    for sweep in sweeps:
        own, deleted = writer.of_sweep(sweep), writer.deleted_of(sweep)
        if not own and not deleted:
            raise ResultsError(
                f"comparison {clean.line(sweep)}: is not in {writer.store.shown}; "
                "normbench results list shows them"
            )
        cut_off += deleted
        for run in own:
            runs[run.data.tags[names.ROLE.key]].append(run)
        members = writer.search(names.membership(sweep).exists)
        guests += [run for run in members if run.data.tags.get(names.SWEEP_ID.key) not in sweeps]
    leftovers.refuse_at_work(runs[names.SWEEP])
    known: dict[str, dict[str, str]] = {}
    heirs: dict[str, tuple[str, str]] = {}
    for job in runs[names.SCHEME]:
        others = [key.removeprefix(MEMBER) for key in job.data.tags if key.startswith(MEMBER)]
        for other in sorted(set(others) - set(sweeps)):
            heir = known.setdefault(other, writer.sweep_runs(other)).get(job.info.experiment_id)
            if heir:
                heirs.setdefault(job.info.run_id, (other, heir))
    return Found(runs[names.SWEEP], runs[names.SCHEME], runs[names.STEP], heirs, guests, cut_off)


def _agreed(question: str) -> bool:
    """Return whether the user says yes."""
    if not sys.stdin.isatty():
        raise ResultsError(f"{question}: nobody can be asked here; add --yes")
    return input(f"{question}? [y/N] ").strip().lower() in ("y", "yes")


def _take_away(tags: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> None:
    """Remove what a sweep drew, and its folder where nothing else is in it.

    others: the tags of all other sweeps.
    """
    if tags.get(names.HOST.key) != owner.host() or names.FOLDER.key not in tags:
        return
    folder, lock = Path(tags[names.FOLDER.key]), None
    try:
        lock = leftovers.lock(folder)
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        print(f"{clean.line(str(folder))}: its files stay; another comparison is at work there")
        return
    with lock or nullcontext():
        drawn.remove(folder, tags, others)
        leftovers.remove_ledger(folder, tags[names.SWEEP_ID.key], lock)
