"""Sweeps come to a store from a file of another: whole, checked, and none of them twice.

A run gets an id of this store's, and a tag with the one that it had: what is here with that tag, or
as that very run, is not written again. A job is FINISHED, and a sweep is, once all of it was read
back; so the same import again finishes what was cut off.
"""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from normbench import names
from normbench.datasets.values import UserError, format_gigabytes, refuse_larger
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.writer import Writer, refused
from normbench.recording.transfer import copies, exporting
from normbench.recording.transfer.archive import Unpacked, strange
from normbench.recording.transfer.copies import COUNTED, JOBS_FILE, JobCopy, RunCopy
from normbench.recording.transfer.exporting import ARTIFACTS, EXPERIMENTS, JOBS, SWEEPS, Tell
from normbench.results.pages import description
from normbench.results.pages.publishing import describe
from normbench.results.store import stores
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep, load

WHOLE = ("FINISHED", "FAILED")  # statuses of a job
TIMES = 20  # bytes of memory that a byte of a job's text takes


class Contents:
    """What a file of an export holds. Raises `UserError` for one that holds anything else."""

    def __init__(self, file: Unpacked) -> None:
        self.file, self.used = file, {EXPERIMENTS}
        self.sweeps: list[RunCopy] = []
        self.jobs: list[str] = []  # the names of their members
        self._named: set[str] = set()  # the sweeps that a run is of
        with strange(file.file):
            self.experiments = copies.experiments_of(file.content(EXPERIMENTS))
            runs: set[str] = set()
            for name in sorted(file.members):
                if name.startswith((SWEEPS, JOBS)):
                    self._take(name, runs)
            self.sweeps.sort(key=lambda copy: (copy.sweep, copy.started))
            places = {(copy.sweep, copy.experiment) for copy in self.sweeps}
            if self.used != file.members.keys() or len(places) != len(self.sweeps):
                raise ValueError("it holds more than its runs tell of")
            if not self._named <= self.ids:
                raise ValueError("a run is of a sweep that is not there")

    @property
    def ids(self) -> set[str]:
        """The ids of its sweeps."""
        return {copy.sweep for copy in self.sweeps}

    def refuse_full(self, folder: Path) -> None:
        """Raise `UserError` where a folder's disk has no room for them."""
        wanted = sum(member["bytes"] for member in self.file.members.values())
        if folder.is_dir() and wanted > (free := shutil.disk_usage(folder).free):
            raise UserError(
                f"{self.file.file}: takes {format_gigabytes(wanted)} of the disk, where "
                f"{format_gigabytes(free)} are free; make room, or name another store"
            )

    def job(self, name: str) -> JobCopy:
        """Return a job by the name of its member."""
        return copies.job_of(self.file.content(name))

    def _take(self, name: str, runs: set[str]) -> None:
        """Take note of a sweep or a job, whose runs must be in no other."""
        size = TIMES * self.file.members[name]["bytes"]
        refuse_larger(f"{self.file.file}", size, "import it on a machine with more")
        if name.startswith(SWEEPS):
            found = [copies.sweep_of(self.file.content(name))]
            self.sweeps += found
        else:
            found = self.job(name).runs
            self.jobs.append(name)
        self.used.add(name)
        if Path(name).stem != found[0].origin:
            raise ValueError("a run stands under another's name")
        for run in found:
            self._named |= {run.sweep, *run.members}
            if run.origin in runs or run.experiment not in self.experiments:
                raise ValueError("a run is there twice, or of no experiment")
            runs.add(run.origin)
            for artifact, digest in run.artifacts.items():
                member = f"{ARTIFACTS}{run.origin}/{artifact}"
                if self.file.members[member]["sha256"] != digest:
                    raise ValueError("an artifact is another's")
                self.used.add(member)


class Import:
    """A file's contents on their way into a store."""

    def __init__(self, contents: Contents, writer: Writer) -> None:
        self.contents, self.file, self.writer = contents, contents.file, writer
        self.reader = stores.connect(writer.store.uri)
        self.counts = dict.fromkeys(COUNTED, 0)
        self.known = 0  # jobs that were there
        self.written: list[str] = []  # ids of new runs
        self.jobs: dict[str, str] = {}  # the ids of jobs' runs here, by their origins
        self.parents: dict[tuple[str, str], str] = {}  # of sweeps' runs, by sweep and experiment
        self.due: list[RunCopy] = []  # sweeps that are not whole yet
        self.loaded: dict[str, Sweep] = {}  # the last that was

    def run(self, tell: Tell) -> None:
        """Write what is not there.

        Raises `UserError`, after which nothing new stays, and `StoreLostError`, after which the
        same import finishes it.
        """
        try:
            with refused(f"{self.file.file}: the store refuses what it holds"):
                every = f"{names.ORIGIN.exists} and {names.ROLE.column} != '{names.STEP}'"
                # The jobs' and sweeps' runs here that are copies, by what they are copies of.
                self._there = {exporting.origin(run): run for run in self.writer.search(every)}
                self.sweeps = {sweep: self._id(sweep) for sweep in sorted(self.contents.ids)}
                self._begin()
                for number, name in enumerate(self.contents.jobs):
                    self._bring(name)
                    tell(number + 1)
                for sweep in self.due:
                    self._end(sweep)
                self.counts["sweeps"] = len({sweep.sweep for sweep in self.due})
        except UserError:
            with suppress(Exception):
                self.writer.remove([self.writer.run(run_id) for run_id in self.written])
            raise

    @property
    def renamed(self) -> dict[str, str]:
        """The sweeps that have another id here, since another sweep has theirs."""
        return {sweep: new for sweep, new in self.sweeps.items() if sweep != new}

    def _find(self, origin: str) -> Any:
        """Return the run here that has an origin: a copy, or that very run; else None."""
        if origin in self._there or not self.writer.knows(origin):
            return self._there.get(origin)
        run = self.writer.run(origin)
        deleted = run.info.lifecycle_stage != "active"
        return None if deleted or names.SWEEP_ID.key not in run.data.tags else run

    def _id(self, sweep: str) -> str:
        """Return the id that a sweep has here: its own, unless another sweep has that."""
        for copy in self.contents.sweeps:
            there = self._find(copy.origin) if copy.sweep == sweep else None
            if there:
                return str(there.data.tags[names.SWEEP_ID.key])
        return self.writer.free_id(sweep)

    def _begin(self) -> None:
        """Begin the sweeps' runs that are not there, and tag new experiments."""
        for name, tags in self.contents.experiments.items():
            there = self.writer.experiment_tags(name)
            self.writer.tag_experiment(name, {k: v for k, v in tags.items() if k not in there})
        for copy in self.contents.sweeps:
            called, there = copy.called(self.sweeps), self._find(copy.origin)
            run_id = there.info.run_id if there else self._begin_run(called, "")
            self.parents[called.sweep, copy.experiment] = run_id
            if there is None or there.info.status == "RUNNING":
                self.due.append(copy)

    def _bring(self, name: str) -> None:
        """Write a job, unless it is there, and then make it one of the file's sweeps."""
        runs = [run.called(self.sweeps) for run in self.contents.job(name).runs]
        origin = runs[0].origin
        there = self._find(origin)
        if there and (there.info.status in WHOLE or origin not in self._there):
            members = {f"{copies.MEMBER}{key}": text for key, text in runs[0].members.items()}
            new = {key: text for key, text in members.items() if key not in there.data.tags}
            if new:
                self.writer.tag(there.info.run_id, new)
            self.jobs[origin] = there.info.run_id
            self.known += 1
            return
        if there:
            below = self.writer.search(names.PARENT.equals(there.info.run_id))
            self.writer.remove([*below, there])
        scheme = self._begin_run(runs[0], self.parents.get((runs[0].sweep, runs[0].experiment), ""))
        ids = [scheme, *(self._begin_run(step, scheme) for step in runs[1:])]
        for run, run_id in [*zip(runs, ids)][::-1]:  # the job's own run last
            self._fill(run, run_id)
            self.writer.finish(run_id, run.status, run.ended)
        self.writer.store.settle()
        try:
            below = self.writer.search(names.PARENT.equals(scheme))
            there = {found.info.run_id: found for found in (self.reader.get_run(scheme), *below)}
            for run, run_id in zip(runs, ids):
                self._compare(run, run_id, there.get(run_id))
        except StoreLostError:
            with suppress(Exception):  # it is not taken for one that is whole
                self.writer.finish(scheme, "KILLED")
            raise
        self.jobs[origin] = scheme
        self.counts[names.JOBS.key] += 1
        exporting.count(self.counts, runs)

    def _begin_run(self, run: RunCopy, parent: str) -> str:
        own = {names.ORIGIN.key: run.origin, **({names.PARENT.key: parent} if parent else {})}
        run_id = self.writer.begin(run.experiment, run.name, run.tags | own, run.started)
        self.written.append(run_id)
        return run_id

    def _fill(self, run: RunCopy, run_id: str) -> RunCopy:
        """Write what a run holds beside its tags; return it with the artifacts it has here."""
        artifacts, entries = {}, list[tuple[str, float, int, int]]()
        self.writer.log_params(run_id, run.params)
        for key, points in run.metrics.items():
            entries.extend((key, value, logged, step) for step, value, logged in points)
        self.writer.log_points(run_id, entries)
        for given in run.inputs:
            self.writer.log_input(run_id, given["input"], given["tags"])
        for name in run.artifacts:
            with TemporaryDirectory() as folder:
                file = Path(folder) / Path(name).name
                self.file.extract(f"{ARTIFACTS}{run.origin}/{name}", file)
                if name == JOBS_FILE and run.tags[names.ROLE.key] == names.SWEEP:
                    file.write_bytes(copies.renamed(file.read_bytes(), self.jobs))
                artifacts[name] = exporting.digest(name, file)
                parent = Path(name).parent.as_posix()
                self.writer.log_file(run_id, file, "" if parent == "." else parent)
        return replace(run, artifacts=artifacts)

    def _compare(self, run: RunCopy, run_id: str, found: Any) -> None:
        """Raise `StoreLostError` unless the store gives back, value by value, what was written.

        found: the run as it stands there.
        """
        place, kept = (self.reader, self.writer.store.uri), (run.artifacts, exporting.digest)
        there = exporting.read(*place, found, run.experiment, *kept) if found else None
        if there is None or there.digest != run.digest:
            raise StoreLostError(
                f"--store {self.writer.store.shown}: run {run_id} is not what {self.file.file} "
                "holds; the same import writes it again"
            )

    def _end(self, sweep: RunCopy) -> None:
        """Fill a sweep's run, make the pages of one that was concluded, and end it."""
        called = sweep.called(self.sweeps)
        run_id = self.parents[called.sweep, sweep.experiment]
        called, note = self._fill(called, run_id), names.DESCRIPTION.key
        if description.SIGNED in called.tags.get(note, ""):
            self._describe(called, run_id)
            called.tags[note] = self.writer.run(run_id).data.tags[note]
        self.writer.finish(run_id, called.status, called.ended)
        self.writer.store.settle()
        self._compare(called, run_id, self.reader.get_run(run_id))
        exporting.count(self.counts, [called])

    def _describe(self, sweep: RunCopy, run_id: str) -> None:
        """Save the views and write the notes of a sweep anew: they name its ids and links."""
        if sweep.sweep not in self.loaded:
            self.loaded = {sweep.sweep: load(self.writer.store.uri, sweep.sweep)}
        found = self.loaded[sweep.sweep]
        describe(self.writer, found, sweep.experiment, run_id)
        for row in as_rows(found.of_role(names.SCHEME, sweep.experiment)):
            note = row.get(names.DESCRIPTION.column)
            if row[names.SWEEP_ID.column] != sweep.sweep or not isinstance(note, str):
                continue
            if description.SIGNED in note:
                told = {names.DESCRIPTION.key: description.of_scheme(row)}
                self.writer.tag(row["run_id"], told)
