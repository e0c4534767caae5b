"""A comparison: its jobs are checked before any starts, each leaves a record, one table ends it.

Heavy libraries are imported where they are needed, so that `--help` and `--cfg job` do without
them.
"""

import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, read_write

from normbench import names
from normbench.command.config import compose, hydra_settings, resolvers, study
from normbench.command.config.compose import JobSpec
from normbench.command.config.errors import SweepError, user_errors
from normbench.command.config.grid import Grid, notes_on_overridden, split_option_overrides
from normbench.command.garbage import collect_seldom
from normbench.command.sweep import hydras_own, launching, printing
from normbench.command.sweep.drawing import Drawing
from normbench.command.sweep.progress import report_phase
from normbench.command.sweep.queues import LOST, Queue, describe_lost
from normbench.command.sweep.specs import Specs
from normbench.command.sweep.sweep_job import reuse, run_spec
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import write_maps_to
from normbench.datasets.values import available_cores
from normbench.record import checkpoint, folder, mlflow
from normbench.record.provenance import code_digest, describe_blas, provenance_tags
from normbench.results.safe import clean
from normbench.results.store import comparison_files
from normbench.results.store.comparison_files import Comparison, JobEntry, record_file
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord

NO_TRACKING = "none"  # in place of a store's URI: no copy is made
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Sweep(Sweeper):
    """Checks the jobs of a comparison before it launches them, and concludes with one table."""

    # Set by `register` before Hydra creates the sweeper.
    arguments: Sequence[str] = ()  # the command line as it was typed
    option_overrides: Sequence[str] = ()  # its part that `grid.split_option_overrides` splits off

    def __init__(
        self, params: dict[str, Any] | None = None, max_batch_size: int | None = None
    ) -> None:
        self.params = [f"{key}={value}" for key, value in (params or {}).items()]

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Store what Hydra composed, and create the launcher of a queue if the config names it."""
        self.loader, self.config = hydra_context.config_loader, config
        self.launcher = None
        if config.hydra.launcher.get("_target_") == hydra_settings.QUEUE:
            self.launcher = Plugins.instance().instantiate_launcher(
                hydra_context=hydra_context, task_function=task_function, config=config
            )

    def sweep(self, arguments: list[str]) -> Any:
        """Check, run and conclude a comparison; Hydra calls it after `setup`.

        Args:
            arguments: The overrides that Hydra got, without the options of choices.

        Raises:
            SystemExit: Jobs failed; the code is that of `_conclude`.
            UserError: A setting is mistaken. Nothing is recorded.
            SweepError: Jobs are neither recorded nor failed, or MLflow's copy could not be made.
        """
        assert self.config is not None
        HydraConfig.instance().set_config(self.config)
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        try:
            self.is_new_home = not self.folder.parent.exists()
        except OSError as error:  # of a name that is too long
            raise _unusable(self.folder.parent, error) from error
        self.has_records = any(record_file(self.folder.parent, "").parent.glob("*.npz"))
        self.comparison: Comparison | None = None  # once it is started
        self.copying: mlflow.Copying | None = None  # to MLflow
        self.lock: FileLock | None = None  # of its folder
        self.workers: launching.Workers | None = None  # the processes of joblib
        self.drawing = Drawing()
        self.specs = Specs()
        # The job of the config without swept values: what is not swept, such as the store and the
        # figures, is the same for every job.
        self.spec = JobSpec.from_config(self.config)
        try:
            self.expected = study.expected_tag(self.config)
            compose.check_sections(self.spec.plain_settings)
            self.figures = compose.figure_names(self.spec.plain_settings)
            params, options = split_option_overrides(self.params)
            with user_errors():
                # Of equal keys the last one counts: the command line replaces `self.params`.
                overrides = [*params, *arguments]
                option_overrides = [*options, *self.option_overrides]
                grid = Grid(self.loader, self.config, overrides, option_overrides)
            jobs, earlier = self._jobs(grid)
            recorded_keys = [self._find(job) for job in jobs]
            if earlier and not _has_only(earlier, jobs, recorded_keys):
                self._release()  # of other data or other code
                earlier = None
                jobs = [replace(job, folder=self.folder) for job in jobs]
            if None in recorded_keys:
                self._prepare_processes(len(jobs))
                phase = report_phase("before the first job", "reads data and checks settings")
                write_maps_to(jobs[0].folder)
                with phase:
                    self._check(grid)
            else:  # no data are loaded, and no job runs
                jobs[0].check()
                keys = {job.experiment: str(key) for job, key in zip(jobs, recorded_keys)}
                records = (JobRecord.load(record_file(jobs[0].home, keys[name])) for name in keys)
                notes = [note for record in records for note in record.notes]
                self._print_notes(grid, dict.fromkeys(notes))
            comparison = self._start(jobs, earlier, recorded_keys)
            outcomes = self._launch(jobs, recorded_keys, comparison)
            code = self._conclude(outcomes, comparison)
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            self.drawing.end()
            self._release()
        if code:
            raise SystemExit(code)

    def _jobs(self, grid: Grid) -> tuple[list[JobSpec], Comparison | None]:
        """Return the jobs of a grid, and the comparison that an equal command made, locked.

        The folder of the jobs is that of this comparison; without one, a new folder.
        """
        earlier = None
        if self.spec.plain_settings["reuse"]:
            earlier = self._earlier(_command_text(self.arguments), len(grid.jobs))
        place = earlier.folder if earlier else self.folder
        facts: dict[str, Any] = {"jobs": len(grid.jobs), "started": time.time()}
        facts |= {"folder": place, "process": os.getpid()}
        jobs = [
            replace(self.specs.get(grid, job_overrides), number=number, **facts)
            for number, job_overrides in enumerate(grid.jobs)
        ]
        return jobs, earlier

    def _earlier(self, command: str, jobs: int) -> Comparison | None:
        """Return the latest comparison of a command, and lock it; None where it is running."""
        for other in comparison_files.recorded(self.folder.parent):
            if other.command == command and len(other.jobs) == jobs:
                try:
                    self.lock = FileLock(other.folder / comparison_files.LOCK, timeout=0)
                    self.lock.acquire()
                    return Comparison.read(other.folder)
                except (OSError, ValueError):  # another process is at work on it, or deletes it
                    return None
        return None

    def _release(self) -> None:
        """Release the lock of the comparison's folder, if it is held."""
        if self.lock and self.lock.is_locked:
            Path(self.lock.lock_file).unlink(missing_ok=True)
            self.lock.release()

    def _find(self, job: JobSpec) -> str | None:
        """Return the key of a recorded job that makes a job unnecessary; None without one."""
        if not (self.has_records and job.plain_settings["reuse"]) or job.mistake:
            return None  # before the keys, for which the files of the data are read
        return folder.find(job.home, job.keys, job.parameters())

    def _check(self, grid: Grid) -> None:
        """Check that every override can run in some job.

        Every swept setting is checked by its own rule, and one job of every combination of choices
        is built. Where an override is a mistake in all of its jobs, the mistake is raised, and
        nothing is recorded. Where overrides are only a mistake together, the jobs that have them
        fail, and the others run.
        """
        notes: dict[str, None] = {}  # on the data sets: the keys, in order and each once
        fitting: set[str] = set()  # overrides of jobs that can be built
        mistakes: dict[tuple[str, ...], UserError] = {}  # by the overrides of a combination
        for choices, job_overrides in grid.representatives(
            compose.overrides_wrong_in_first_job(grid)
        ).items():
            try:
                spec = self.specs.get(grid, job_overrides)
                spec.check()
                self.drawing.prepare(self.figures)
                built_job = spec.job()
                notes.update(dict.fromkeys(built_job.notes))
                if not fitting:  # only the first job that can be built
                    from normbench.rehearsal import rehearse

                    rehearse(built_job)
                fitting.update(job_overrides)
            except UserError as error:
                mistakes[choices] = error
        for choices, mistake in mistakes.items():
            # No job can be built, or none that can has all overrides of this combination.
            if not fitting or not fitting.issuperset(choices):
                raise mistake
        self._print_notes(grid, notes)

    def _print_notes(self, grid: Grid, notes: Iterable[str] = ()) -> None:
        """Print notes on the overrides of the command, and the given notes on the data."""
        for note in (*notes_on_overridden(self.arguments), *grid.notes(), *notes):
            print(note, file=sys.stderr)

    def _start(
        self,
        jobs: Sequence[JobSpec],
        earlier: Comparison | None,
        recorded_keys: Sequence[str | None],
    ) -> Comparison:
        """Return the comparison, written and locked, and begin to copy it to MLflow.

        Args:
            jobs: The jobs.
            earlier: The comparison of an equal command, which is taken up again.
            recorded_keys: The keys of the jobs' records; None for a job that is not recorded.

        Raises:
            UserError: The folder or MLflow's store cannot be used.
        """
        tracking_settings = self.spec.plain_settings["tracking"]
        uri = tracking_settings["uri"]
        tracking = "" if uri == NO_TRACKING else "null" if uri is None else str(uri)
        place = jobs[0].folder
        try:
            if earlier is None:
                place.mkdir(parents=True, exist_ok=True)
                self.lock = FileLock(place / comparison_files.LOCK)
                self.lock.acquire()
            if tracking:
                mlflow.check_store(tracking)
                tracking = mlflow.absolute(tracking)
            checkpoint.tidy(place.parent)
            if earlier is None or None in recorded_keys:
                command = _command_text(self.arguments)
                entries = [JobEntry(job.experiment) for job in jobs]
                if earlier:  # a job that failed is to be done again
                    pairs = zip(entries, earlier.jobs, recorded_keys)
                    entries = [old if key and old.key else new for new, old, key in pairs]
                tags = {**self.expected, **provenance_tags(), names.BLAS.key: describe_blas()}
                earlier = Comparison(place, command, clean.blot(tracking), entries, tags)
                earlier.write()
            elif earlier.tracking != clean.blot(tracking):  # it was made in another place
                earlier.tracking = clean.blot(tracking)
                earlier.write()
        except OSError as error:
            raise _unusable(place.parent, error) from error
        self.comparison = earlier
        if tracking:
            artifacts, steps = tracking_settings["artifacts"], tracking_settings["steps"]
            self.copying = mlflow.begin_copy(place.parent, place.name, tracking, artifacts, steps)
        return earlier

    def _prepare_processes(self, jobs: int) -> None:
        """Divide the cores among the processes of a launcher, and start those of joblib."""
        assert self.config is not None
        _share_threads(self.config)
        processes = self.config.hydra.launcher.get("n_jobs")  # only joblib's launcher has it
        if processes is not None and not isinstance(self.launcher, Queue):
            self.workers = launching.Workers(processes, jobs)

    def _launch(
        self, jobs: Sequence[JobSpec], recorded_keys: Sequence[str | None], comparison: Comparison
    ) -> list[dict[str, Any]]:
        """Run every job; return the outcomes in order, as `run_spec` does.

        Args:
            jobs: The jobs.
            recorded_keys: The keys of their records; None for a job that is not recorded.
            comparison: Gets the keys of the jobs, as each of them is done.

        Raises:
            SweepError: A launcher's process was killed.
            Exception: A bug outside a job's own work, once all jobs have ended.
        """
        collect_seldom()
        ended: Iterable[launching.Outcome]
        if None not in recorded_keys:
            ended = (reuse(job, str(key)) for job, key in zip(jobs, recorded_keys))
        elif isinstance(self.launcher, Queue):
            # An earlier comparison, which is taken up again, has a folder of its own.
            with read_write(self.launcher.config.hydra):
                self.launcher.config.hydra.sweep.dir = str(comparison.folder)
            ended = launching.run_in_queue(self.launcher, jobs, recorded_keys)
        elif self.workers is not None:
            ended = self.workers.run(run_spec, jobs)
        else:
            ended = launching.run_in_sequence(run_spec, jobs)
        outcomes: list[dict[str, Any]] = []
        bugs: list[Exception] = []
        try:
            for job, outcome in zip(jobs, ended):
                if isinstance(outcome, Exception):
                    words = clean.line(shlex.join(job.overrides))
                    print(f"the job of {words} has a bug", file=sys.stderr)
                    bugs.append(outcome)
                    continue
                self.has_records = True
                if outcome["failure"] == LOST and (key := self._find(job)):
                    # Its task was lost after it.
                    outcome = {"key": key, "reused": False, "failure": "", "reason": ""}
                if outcome["failure"] not in (LOST, "disk"):
                    comparison.add(job.number, outcome["key"], outcome["reused"])
                outcomes.append(outcome)
        except BrokenProcessPool as error:
            raise SweepError(
                "a job's process was killed, perhaps for want of memory; the same command runs "
                "what is not recorded (with hydra.launcher.n_jobs=1 one job has all the memory)"
            ) from error
        if bugs:
            raise bugs[0]
        return outcomes

    def _stop(self, error: BaseException) -> None:
        """End the processes and the comparison that stops early; its jobs stay recorded.

        Nothing stays where it was not begun.

        Args:
            error: What stops it.
        """
        if self.workers is not None:
            self.workers.end()
        with suppress(OSError):
            if self.comparison is not None:
                is_stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
                if self.comparison.state == comparison_files.RUNNING:
                    self.comparison.end(
                        comparison_files.INTERRUPTED if is_stopped else comparison_files.FAILED
                    )
                return
            self._release()
            self.folder.rmdir()
            if self.is_new_home:
                self.folder.parent.rmdir()

    def _conclude(self, outcomes: list[dict[str, Any]], comparison: Comparison) -> int:
        """Draw and print the comparison, and write that it has ended; return the exit code.

        Args:
            outcomes: The outcome of every job, in order.
            comparison: The comparison.

        Returns:
            0; 2 if jobs failed, all by a user's mistake; 1 if some failed otherwise.

        Raises:
            SweepError: Jobs are neither recorded nor failed, the results cannot be written, or
                MLflow's copy could not be made.
        """
        from normbench.results.report.terminal import present
        from normbench.results.store.runs import load

        _refuse_missing(outcomes)
        failures = [outcome for outcome in outcomes if outcome["failure"]]
        reused = sum(outcome["reused"] for outcome in outcomes)
        if reused:
            print(f"reused {reused} of {len(outcomes)}")
        drawn = comparison.drawn_files(code_digest(), self.figures)
        output_error: str | None = None
        try:
            with report_phase("all jobs are done", "writes tables, figures and the report"):
                write_files = self.drawing.begin(comparison.folder, self.figures, drawn)
                try:
                    written = present(load(comparison.home, comparison.id), write_files)
                    print(end="", flush=True)
                except OSError as error:
                    output_error = printing.describe_output_error(error)
                    if output_error is None:
                        raise
                    # As in `normbench | head`: the output is lost, but the figures are drawn.
                    written = write_files()
        except ResultsError as error:
            message = str(error.args[0]).removeprefix("--out ")
            raise SweepError(
                f"{message}; every job is recorded: normbench results draws them"
            ) from error
        if drawn is None:
            comparison.keep_drawn(code_digest(), self.figures, written)
            is_failed = len(failures) == len(outcomes)
            comparison.end(comparison_files.FAILED if is_failed else comparison_files.FINISHED)
        if output_error:
            raise SweepError(f"{output_error}; every job is recorded: normbench results draws them")
        if self.copying and (copy_error := self.copying.finish()):
            raise SweepError(copy_error)
        if not failures:
            return 0
        return 2 if all(outcome["failure"] == "user" for outcome in failures) else 1


def _unusable(home: Path, error: OSError) -> UserError:
    """Return the error for a folder of comparisons that cannot be written."""
    return UserError(
        f"folder={home}: cannot be written ({error.strerror or error}); "
        f"name a folder that can, such as folder={Path.home() / 'normbench'}"
    )


def _has_only(
    comparison: Comparison, jobs: Sequence[JobSpec], recorded_keys: Sequence[str | None]
) -> bool:
    """Return whether a comparison has no other jobs than these, in this order.

    Args:
        comparison: The comparison.
        jobs: The jobs.
        recorded_keys: The keys of their records; None for a job that is not recorded.
    """
    return all(
        entry.key in (None, key, job.keys.key)
        for entry, job, key in zip(comparison.jobs, jobs, recorded_keys)
    )


def _refuse_missing(outcomes: Sequence[dict[str, Any]]) -> None:
    """Raise `SweepError` where jobs are neither recorded nor failed, with the reason."""
    missing = [outcome for outcome in outcomes if outcome["failure"] in (LOST, "disk")]
    if missing:
        reason = describe_lost(outcomes) or missing[0]["reason"]
        raise SweepError(
            f"{reason}; {len(missing)} of {len(outcomes)} jobs are not recorded: the same command "
            "runs them again"
        )


def register(arguments: Sequence[str], option_overrides: Sequence[str]) -> None:
    """Register the sweeper of a command line and the resolvers with Hydra.

    Args:
        arguments: The command line as typed.
        option_overrides: The overrides of options of choices, which Hydra does not get, see
            `grid.split_option_overrides`.
    """
    Sweep.arguments, Sweep.option_overrides = arguments, option_overrides
    hydras_own.register(Sweep, Queue)
    resolvers.register()


def _command_text(arguments: Sequence[str]) -> str:
    """Return a command as its comparison records it, so that it can be run again.

    Args:
        arguments: The command line after `normbench`.
    """
    # Passwords are blotted before the words are quoted, so that the command can be read again.
    words = [shlex.quote(clean.line(argument)) for argument in arguments]
    return " ".join(["normbench", *words])


def _share_threads(config: DictConfig) -> None:
    """Limit the threads of processes that start later, so that jobs in parallel share the cores.

    Joblib's jobs divide the cores of this machine; a task of a queue has `cpus_per_task`. Limits
    that the user has set in the environment stay.
    """
    launcher = config.hydra.launcher
    # Each launcher has one of the two settings, or none: jobs in sequence use all cores.
    processes, threads = (launcher.get(key) for key in ("n_jobs", "cpus_per_task"))
    if processes is not None:
        cores = available_cores()
        parallel_jobs = cores if processes < 0 else max(1, processes)
        threads = max(1, cores // parallel_jobs)
    if threads is not None:
        for name in THREADS:
            os.environ.setdefault(name, str(threads))
