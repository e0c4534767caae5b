"""Import sweeps from a file of another store: complete, checked, and each of them once.

An imported run gets a new id, and a tag with its original id. A run with that tag, or the original
run itself, is not written again. A job or a sweep is FINISHED once all of it was read back, so that
the same import again completes one that was interrupted.
"""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from normbench import names
from normbench.datasets.values import UserError, format_gigabytes, refuse_larger
from normbench.recording.store import writer as writing
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.writer import Writer
from normbench.recording.transfer import copies, exporting
from normbench.recording.transfer.archive import Unpacked, file_errors_as_user_errors
from normbench.recording.transfer.copies import COUNT_NAMES, JOBS_FILE, JobCopy, RunCopy
from normbench.recording.transfer.exporting import (
    ARTIFACTS,
    EXPERIMENTS_FILE,
    JOBS_FOLDER,
    SWEEPS,
    ReportJobs,
)
from normbench.results.pages import description
from normbench.results.pages.publishing import describe
from normbench.results.store import stores
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep, load

ENDED_STATUSES = ("FINISHED", "FAILED")  # of a job
MEMORY_FACTOR = 20  # bytes of memory for a byte of the text of a job


class Contents:
    """The checked contents of an export file.

    Jobs are read again when they are needed, because all of them may not fit into memory.

    Args:
        file: The file.

    Raises:
        UserError: The file has anything else than consistent sweeps and jobs.
    """

    def __init__(self, file: Unpacked) -> None:
        self.file = file
        self.used = {EXPERIMENTS_FILE}  # names of members that are read, or that a run names
        self.sweeps: list[RunCopy] = []  # the runs of the sweeps themselves
        self.jobs: list[str] = []  # names of members
        self._named: set[str] = set()  # the sweeps that runs name
        with file_errors_as_user_errors(file.file):
            self.experiments = copies.experiments_of(file.content(EXPERIMENTS_FILE))
            origins: set[str] = set()
            for name in sorted(file.members):
                if name.startswith((SWEEPS, JOBS_FOLDER)):
                    self._register(name, origins)
            self.sweeps.sort(key=lambda copy: (copy.sweep, copy.started))
            sweep_experiments = {(copy.sweep, copy.experiment) for copy in self.sweeps}
            # Members that no run names, or two runs of one sweep in one experiment.
            if self.used != file.members.keys() or len(sweep_experiments) != len(self.sweeps):
                raise ValueError("it holds more than its runs tell of")
            if not self._named <= self.ids:
                raise ValueError("a run is of a sweep that is not there")

    @property
    def ids(self) -> set[str]:
        """The ids of the sweeps."""
        return {copy.sweep for copy in self.sweeps}

    def refuse_full(self, folder: Path) -> None:
        """Raise `UserError` where the disk of a folder has no room for the contents."""
        required = sum(member["bytes"] for member in self.file.members.values())
        if folder.is_dir() and required > (free := shutil.disk_usage(folder).free):
            raise UserError(
                f"{self.file.file}: takes {format_gigabytes(required)} of the disk, where "
                f"{format_gigabytes(free)} are free; make room, or name another store"
            )

    def job(self, name: str) -> JobCopy:
        """Return a job by the name of its member."""
        return copies.job_of(self.file.content(name))

    def _register(self, name: str, origins: set[str]) -> None:
        """Register the sweep or job of a member, and check that no run is in another member.

        Args:
            name: The name of the member.
            origins: The origins of the runs of all members so far, extended by those of this one.

        Raises:
            UserError: The job would take more memory than there is.
            ValueError: The member is no consistent sweep or job. Other errors are among
                `archive.FILE_ERRORS`.
        """
        size = MEMORY_FACTOR * self.file.members[name]["bytes"]
        refuse_larger(f"{self.file.file}", size, "import it on a machine with more")
        if name.startswith(SWEEPS):
            runs_of_member = [copies.sweep_of(self.file.content(name))]
            self.sweeps += runs_of_member
        else:
            runs_of_member = self.job(name).runs
            self.jobs.append(name)
        self.used.add(name)
        # The member of a sweep or job has the name `<origin>.json`.
        if Path(name).stem != runs_of_member[0].origin:
            raise ValueError("a run stands under another's name")
        for run in runs_of_member:
            self._named |= {run.sweep, *run.members}
            if run.origin in origins or run.experiment not in self.experiments:
                raise ValueError("a run is there twice, or of no experiment")
            origins.add(run.origin)
            for artifact, digest in run.artifacts.items():
                member = f"{ARTIFACTS}{run.origin}/{artifact}"
                if self.file.members[member]["sha256"] != digest:
                    raise ValueError("an artifact is another's")
                self.used.add(member)


class Import:
    """An import of the contents of a file into a store.

    Args:
        contents: The contents.
        writer: The writer to the store.
    """

    def __init__(self, contents: Contents, writer: Writer) -> None:
        self.contents, self.file, self.writer = contents, contents.file, writer
        self.reader = stores.connect(writer.store.uri)
        self.counts = dict.fromkeys(COUNT_NAMES, 0)  # of what is new in the store
        self.present_jobs = 0  # jobs that the store had
        self.written: list[str] = []  # ids of new runs
        self.jobs: dict[str, str] = {}  # the ids of imported runs of jobs, by origin
        # The ids of the runs of sweeps, by the id of the sweep in the store and the experiment.
        self.parents: dict[tuple[str, str], str] = {}
        self.due: list[RunCopy] = []  # runs of sweeps that are new or not complete
        self.loaded: dict[str, Sweep] = {}  # the last loaded sweep, by its id

    def run(self, report: ReportJobs) -> None:
        """Write the runs that the store does not have.

        Args:
            report: Called with the number of finished jobs.

        Raises:
            UserError: The store refuses the contents; all new runs are removed.
            StoreLostError: The store is away; the same import again completes it.
        """
        try:
            with writing.refusals_as_user_errors(
                f"{self.file.file}: the store refuses what it holds"
            ):
                query = f"{names.ORIGIN.exists} and {names.ROLE.column} != '{names.STEP}'"
                # The imported runs of jobs and sweeps in the store, by origin.
                self._imported = {
                    exporting.origin(run): run for run in self.writer.search_runs(query)
                }
                # The ids of the sweeps in the store, by those in the file.
                self.sweeps = {sweep: self._sweep_id(sweep) for sweep in sorted(self.contents.ids)}
                self._begin_sweeps()
                for number, name in enumerate(self.contents.jobs):
                    self._import_job(name)
                    report(number + 1)
                for sweep in self.due:
                    self._end(sweep)
                self.counts["sweeps"] = len({sweep.sweep for sweep in self.due})
        except UserError:
            with suppress(Exception):
                self.writer.remove([self.writer.run(run_id) for run_id in self.written])
            raise

    @property
    def new_ids(self) -> dict[str, str]:
        """The new ids of sweeps whose id another sweep of the store has, by the old ids."""
        return {sweep: new for sweep, new in self.sweeps.items() if sweep != new}

    def _find(self, origin: str) -> Any:
        """Return the run of the store with an origin: a copy, or the original; None without one."""
        if origin in self._imported or not self.writer.has_run(origin):
            return self._imported.get(origin)
        # The store has a run with the id of the original: the file was exported from this store.
        run = self.writer.run(origin)
        deleted = run.info.lifecycle_stage != "active"
        return None if deleted or names.SWEEP_ID.key not in run.data.tags else run

    def _sweep_id(self, sweep: str) -> str:
        """Return the id of a sweep in the store: its own, unless another sweep has it."""
        # A sweep has a run in each experiment; one that the store has tells the id.
        for copy in self.contents.sweeps:
            imported_run = self._find(copy.origin) if copy.sweep == sweep else None
            if imported_run:
                return str(imported_run.data.tags[names.SWEEP_ID.key])
        return self.writer.unused_sweep_id(sweep)

    def _begin_sweeps(self) -> None:
        """Begin the missing runs of sweeps, and set the tags that their experiments lack."""
        for name, tags in self.contents.experiments.items():
            recorded_tags = self.writer.experiment_tags(name)
            new_tags = {key: text for key, text in tags.items() if key not in recorded_tags}
            self.writer.tag_experiment(name, new_tags)
        for copy in self.contents.sweeps:
            renamed, imported_run = copy.with_sweep_ids(self.sweeps), self._find(copy.origin)
            run_id = imported_run.info.run_id if imported_run else self._begin_run(renamed, "")
            self.parents[renamed.sweep, copy.experiment] = run_id
            # A run that is still running is one whose import was interrupted.
            if imported_run is None or imported_run.info.status == "RUNNING":
                self.due.append(copy)

    def _import_job(self, name: str) -> None:
        """Write a job and read it back; a job that the store has joins the sweeps of the file.

        Args:
            name: The name of its member in the file.

        Raises:
            StoreLostError: The store is away, or has not what was written.
        """
        runs = [run.with_sweep_ids(self.sweeps) for run in self.contents.job(name).runs]
        origin = runs[0].origin
        present = self._find(origin)
        # An original run is never replaced; a copy is, if its import was interrupted.
        if present and (present.info.status in ENDED_STATUSES or origin not in self._imported):
            members = {
                f"{copies.MEMBERSHIP_PREFIX}{key}": text for key, text in runs[0].members.items()
            }
            new = {key: text for key, text in members.items() if key not in present.data.tags}
            if new:  # the memberships that the job lacks in this store
                self.writer.tag(present.info.run_id, new)
            self.jobs[origin] = present.info.run_id
            self.present_jobs += 1
            return
        if present:
            step_runs = self.writer.search_runs(names.PARENT.equals(present.info.run_id))
            self.writer.remove([*step_runs, present])
        scheme = self._begin_run(runs[0], self.parents.get((runs[0].sweep, runs[0].experiment), ""))
        ids = [scheme, *(self._begin_run(step, scheme) for step in runs[1:])]
        for run, run_id in [*zip(runs, ids)][::-1]:  # the run of the scheme last
            self._fill(run, run_id)
            self.writer.finish(run_id, run.status, run.ended)
        self.writer.store.sync()
        try:
            step_runs = self.writer.search_runs(names.PARENT.equals(scheme))
            stored_runs = {
                stored.info.run_id: stored for stored in (self.reader.get_run(scheme), *step_runs)
            }
            for run, run_id in zip(runs, ids):
                self._compare(run, run_id, stored_runs.get(run_id))
        except StoreLostError:
            with suppress(Exception):  # an incomplete job must not pass for a complete one
                self.writer.finish(scheme, "KILLED")
            raise
        self.jobs[origin] = scheme
        self.counts[names.JOBS.key] += 1
        exporting.count(self.counts, runs)

    def _begin_run(self, run: RunCopy, parent: str) -> str:
        """Create a run with its tags and those that only this store has, and return its id.

        Args:
            run: The run.
            parent: The id of the run above it in this store; empty without one.
        """
        store_tags = {
            names.ORIGIN.key: run.origin,
            **({names.PARENT.key: parent} if parent else {}),
        }
        run_id = self.writer.create_run(
            run.experiment, run.name, run.tags | store_tags, run.started
        )
        self.written.append(run_id)
        return run_id

    def _fill(self, run: RunCopy, run_id: str) -> RunCopy:
        """Write the content of a run beside its tags.

        Args:
            run: The run in the file.
            run_id: The id of the run in the store.

        Returns:
            The run as it is then stored. Its artifacts may differ from those of the file, because
            ids of runs are replaced in `JOBS_FILE`.
        """
        self.writer.log_params(run_id, run.params)
        logged_points: list[tuple[str, float, int, int]] = []
        for key, points in run.metrics.items():
            logged_points.extend((key, value, logged, step) for step, value, logged in points)
        self.writer.log_points(run_id, logged_points)
        for dataset_input in run.inputs:
            self.writer.log_input(run_id, dataset_input["input"], dataset_input["tags"])
        artifacts = {}
        for name in run.artifacts:
            with TemporaryDirectory() as folder:
                file = Path(folder) / Path(name).name
                self.file.extract(f"{ARTIFACTS}{run.origin}/{name}", file)
                # Origins in it become the ids of the runs in this store.
                if name == JOBS_FILE and run.tags[names.ROLE.key] == names.SWEEP:
                    file.write_bytes(copies.replace_run_ids(file.read_bytes(), self.jobs))
                artifacts[name] = exporting.digest_artifact(name, file)
                parent = Path(name).parent.as_posix()
                self.writer.log_file(run_id, file, "" if parent == "." else parent)
        return replace(run, artifacts=artifacts)

    def _compare(self, run: RunCopy, run_id: str, stored_run: Any) -> None:
        """Raise `StoreLostError` unless the stored run equals the written one, value by value.

        Args:
            run: The written run.
            run_id: The id of the run in the store, for the message.
            stored_run: The run as the store returns it; None where the store has none.
        """
        stored_copy = None
        if stored_run:
            stored_copy = exporting.copy_run(
                client=self.reader,
                store=self.writer.store.uri,
                run=stored_run,
                experiment=run.experiment,
                artifacts=run.artifacts,
                keep=exporting.digest_artifact,
            )
        if stored_copy is None or stored_copy.content_text != run.content_text:
            raise StoreLostError(
                f"--store {self.writer.store.safe_uri}: run {run_id} is not what {self.file.file} "
                "holds; the same import writes it again"
            )

    def _end(self, sweep: RunCopy) -> None:
        """Fill the run of a sweep, create its pages if it was concluded, end it and read it back.

        Args:
            sweep: The run of the sweep, as the file has it.
        """
        renamed = sweep.with_sweep_ids(self.sweeps)
        run_id = self.parents[renamed.sweep, sweep.experiment]
        renamed, note_key = self._fill(renamed, run_id), names.DESCRIPTION.key
        # A sweep that was concluded has a signed description.
        if description.SIGNED in renamed.tags.get(note_key, ""):
            self._describe(renamed, run_id)
            # `_compare` expects the new description.
            renamed.tags[note_key] = self.writer.run(run_id).data.tags[note_key]
        self.writer.finish(run_id, renamed.status, renamed.ended)
        self.writer.store.sync()
        self._compare(renamed, run_id, self.reader.get_run(run_id))
        exporting.count(self.counts, [renamed])

    def _describe(self, sweep: RunCopy, run_id: str) -> None:
        """Create the views and descriptions of a sweep again: they hold ids and links of the store.

        Descriptions that users wrote stay.

        Args:
            sweep: The run of the sweep, with its id in this store.
            run_id: The id of that run in this store.
        """
        if sweep.sweep not in self.loaded:
            self.loaded = {sweep.sweep: load(self.writer.store.uri, sweep.sweep)}
        loaded_sweep = self.loaded[sweep.sweep]
        describe(self.writer, loaded_sweep, sweep.experiment, run_id)
        for row in as_rows(loaded_sweep.of_role(names.SCHEME, sweep.experiment)):
            note = row.get(names.DESCRIPTION.column)
            # Reused from another sweep, or without a description (NaN).
            if row[names.SWEEP_ID.column] != sweep.sweep or not isinstance(note, str):
                continue
            if description.SIGNED in note:
                note_tags = {names.DESCRIPTION.key: description.of_scheme(row)}
                self.writer.tag(row["run_id"], note_tags)
