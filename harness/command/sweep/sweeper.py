"""A sweep: its jobs are checked before any starts, share one parent run, and end in one table.

Heavy libraries are imported where they are needed, so that `--help` and `--cfg job` do without
them.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from normbench import names
from normbench.command.config import compose, hydra_settings, resolvers, study
from normbench.command.config.compose import JobSpec
from normbench.command.config.errors import SweepError, user_errors
from normbench.command.config.grid import Grid, notes_on_overridden, split_option_overrides
from normbench.command.garbage import collect_seldom
from normbench.command.sweep import hydras_own, launching, printing, recorded
from normbench.command.sweep.drawing import Drawing
from normbench.command.sweep.progress import report_phase
from normbench.command.sweep.queues import LOST, Queue, describe_lost
from normbench.command.sweep.specs import Specs
from normbench.command.sweep.sweep_job import run_spec
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import write_maps_to
from normbench.datasets.values import available_cores
from normbench.recording.resume import leftovers
from normbench.recording.store.places import suggested_path
from normbench.recording.store.provenance import describe_blas, provenance_tags
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.owner import LOCK

MAX_COMMAND_LENGTH = 8000  # characters of a tag, which MLflow keeps
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Sweep(Sweeper):
    """Checks the jobs of a sweep before it launches them, and concludes with one comparison."""

    # Set by `register` before Hydra creates the sweeper.
    arguments: Sequence[str] = ()  # the command line as it was typed
    option_overrides: Sequence[
        str
    ] = ()  # its options of choices, see `grid.split_option_overrides`

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
        """Check, run and conclude a sweep; Hydra calls it after `setup`.

        Args:
            arguments: The overrides that Hydra got, without the options of choices.

        Raises:
            SystemExit: Jobs failed; the code is that of `_conclude`.
            UserError: A setting is mistaken. Nothing is recorded.
            SweepError: Jobs are neither recorded nor failed.
        """
        assert self.config is not None
        HydraConfig.instance().set_config(self.config)
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        self.parents: dict[str, str] = {}  # the id of the sweep's run in each experiment
        self.lock: IO[str] | None = None  # of the folder
        self.new_folders: list[Path] = []  # created by this sweep, the innermost first
        self.workers: launching.Workers | None = None  # the processes of joblib
        self.drawing = Drawing()
        self.specs = Specs()
        # The job of the config without swept values: what is not swept, such as the store and the
        # figures, is the same for every job.
        self.spec = JobSpec.from_config(self.config)
        try:
            self.expected = study.expected_tag(self.config)
            self.figures = compose.figure_names(self.spec.plain_settings)
            params, options = split_option_overrides(self.params)
            with user_errors():
                # Of equal keys the last one counts: the command line replaces `self.params`.
                overrides = [*params, *arguments]
                option_overrides = [*options, *self.option_overrides]
                grid = Grid(self.loader, self.config, overrides, option_overrides)
            # None unless every job is recorded. If all are, no data are loaded, and no job runs.
            recorded_runs = recorded.find_recorded(self._numbered_specs(grid))
            if recorded_runs is None:
                self._prepare_processes(len(grid.jobs))
                phase = report_phase("before the first job", "reads data and checks settings")
                write_maps_to(self.folder)
                with phase:
                    experiments = self._check(grid)
                self._start(experiments, len(grid.jobs))
                outcomes = self._launch(grid)
            else:
                self._print_notes(grid)
                experiments = list(dict.fromkeys(spec.experiment for spec, _ in recorded_runs))
                self._start(experiments, len(grid.jobs))
                outcomes = [self._adopt(grid, spec, run) for spec, run in recorded_runs]
            code = self._conclude(outcomes)
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            self.drawing.end()
        if code:
            raise SystemExit(code)

    def _check(self, grid: Grid) -> list[str]:
        """Return the names of the sweep's experiments, once every override can run in some job.

        Every swept setting is checked by its own rule, and one job of every combination of choices
        is built. Where an override is a mistake in all of its jobs, the mistake is raised, and
        nothing is recorded. Where overrides are only a mistake together, the jobs that have them
        fail, and the others run.
        """
        experiments: dict[str, None] = {}  # the keys, in order and each once
        notes: dict[str, None] = {}  # likewise, on the data sets
        fitting: set[str] = set()  # overrides of jobs that can be built
        mistakes: dict[tuple[str, ...], UserError] = {}  # by the overrides of a combination
        for choices, job_overrides in grid.representatives(
            compose.overrides_wrong_in_first_job(grid)
        ).items():
            try:
                spec = self.specs.get(grid, job_overrides)
                experiments[spec.experiment] = None
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
        return list(experiments)

    def _print_notes(self, grid: Grid, notes: Iterable[str] = ()) -> None:
        """Print notes on the overrides of the command, and the given notes on the data."""
        for note in (*notes_on_overridden(self.arguments), *grid.notes(), *notes):
            print(note, file=sys.stderr)

    def _start(self, experiments: Sequence[str], jobs: int) -> None:
        """Open the store, create a sweep run in each experiment, and write the ledger.

        The ledger is a file in the sweep's folder with what its jobs have to know of the sweep.

        Args:
            experiments: The names of the experiments.
            jobs: The number of jobs.

        Raises:
            UserError: The folder cannot be written.
            SweepError: It cannot be written any more, after the store was opened.
        """
        assert self.config is not None
        try:
            self.new_folders = [
                folder for folder in (self.folder, *self.folder.parents) if not folder.exists()
            ]
            # Locked and released: a folder that cannot be used fails before a store is made.
            leftovers.lock_new_folder(self.folder).close()
            self.writer = self.spec.writer()
            recovered = leftovers.tidy(self.writer, self.folder.parent)
            with leftovers.only_one(leftovers.NO_DESCENT, self.folder.parent):
                pass  # checks that the file of this lock can be written
            self.lock = leftovers.lock_new_folder(self.folder)
        except OSError as error:
            raise UserError(
                f"hydra.sweep.dir={self.folder}: cannot be written "
                f"({error.filename}: {error.strerror}); "
                f"name a folder that can, such as hydra.sweep.dir={suggested_path('sweep')}"
            ) from error
        if recovered:
            print(f"logged {recovered} jobs that an earlier command had kept", file=sys.stderr)
        # The id stands in MLflow's tags and queries: letters and digits, dots and dashes alone.
        preferred_id = re.sub(r"[^\w.-]", "_", self.folder.name, flags=re.A)
        tags = {names.COMMAND.key: _command_text(self.arguments), names.JOBS.key: str(jobs)}
        tags |= self.expected
        tags |= leftovers.owner_tags(self.folder)
        tags |= {**provenance_tags(), names.BLAS.key: describe_blas()}
        self.sweep_id, self.parents = self.writer.start_new_sweep(experiments, preferred_id, tags)
        ledger = {
            "sweep_id": self.sweep_id,
            "parents": self.parents,
            "jobs": jobs,
            "process": os.getpid(),
            "started": time.time(),
        }
        try:
            (self.folder / leftovers.LEDGER).write_text(json.dumps(ledger))
        except OSError as error:
            raise SweepError(f"{self.folder}: cannot be written ({error.strerror})") from error

    def _prepare_processes(self, jobs: int) -> None:
        """Divide the cores among the processes of a launcher, and start those of joblib."""
        assert self.config is not None
        _share_threads(self.config)
        processes = self.config.hydra.launcher.get("n_jobs")  # only joblib's launcher has it
        if processes is not None and not isinstance(self.launcher, Queue):
            self.workers = launching.Workers(processes, jobs)

    def _launch(self, grid: Grid) -> list[dict[str, Any]]:
        """Run every job; return the outcomes in order, as `run_spec` does.

        A job whose task of a queue was lost gets its outcome from the store, if it had ended. A bug
        outside a job's own work is raised once all jobs have ended, and `SweepError` where a
        launcher's process was killed.
        """
        collect_seldom()
        try:
            job_returns = self._run_jobs(grid)
        except BrokenProcessPool as error:
            raise SweepError(
                "a job's process was killed, perhaps for want of memory; the same command runs "
                "what is not recorded (with hydra.launcher.n_jobs=1 one job has all the memory)"
            ) from error
        for job_overrides, job_return in zip(grid.jobs, job_returns):
            if isinstance(job_return, Exception):
                print(
                    f"the job of {clean.line(shlex.join(job_overrides))} has a bug", file=sys.stderr
                )
                raise job_return
        # All of them: a bug was raised above.
        outcomes = [
            job_return for job_return in job_returns if not isinstance(job_return, Exception)
        ]
        for number, outcome in enumerate(outcomes):
            if outcome["failure"] == LOST:
                outcome |= self._find_ended(number)
        with suppress(OSError):  # not empty: the next command writes these jobs to the store
            (self.folder / leftovers.PENDING).rmdir()
        return outcomes

    def _run_jobs(self, grid: Grid) -> list[launching.Outcome]:
        """Run every job: in a queue, in worker processes, or here one after the other.

        A queue gets only jobs that are not recorded; the others are made members of this sweep by
        `_adopt`. Elsewhere a job finds out for itself whether it is recorded.

        Args:
            grid: The jobs of the sweep.

        Returns:
            The outcome of each job in order, or the bug that it raised.
        """
        assert self.config is not None
        jobs = self._numbered_specs(grid)
        if isinstance(self.launcher, Queue):
            return launching.run_in_queue(self.launcher, list(jobs), partial(self._adopt, grid))
        if self.workers is None:
            return launching.run_in_sequence(run_spec, jobs)
        return self.workers.run(run_spec, jobs)

    def _numbered_specs(self, grid: Grid) -> Iterator[JobSpec]:
        """Yield the jobs of a grid, each with its number and the folder of this sweep."""
        for number, job_overrides in enumerate(grid.jobs):
            yield replace(self.specs.get(grid, job_overrides), number=number, folder=self.folder)

    def _adopt(self, grid: Grid, spec: JobSpec, run: Any) -> dict[str, Any]:
        """Add a recorded job to this sweep; return its outcome.

        Args:
            grid: The jobs of the sweep.
            spec: The job.
            run: MLflow's run of the recorded job.
        """
        writer, jobs = self.writer, len(grid.jobs)
        return recorded.adopt_recorded(spec, run, writer, self.sweep_id, self.folder, jobs)

    def _find_ended(self, number: int) -> dict[str, Any]:
        """Return the outcome of a job that ended before its task was lost, from the store.

        It is empty for a job that had not ended.
        """
        for experiment in self.parents:
            run = self.writer.ended_member(experiment, self.sweep_id, number)
            if run is not None:
                tags, own_job = run.data.tags, f"{self.sweep_id}/{number}"
                # As `sweep_job._compute` tells the user's mistakes from bugs.
                is_mistake = tags.get(names.ERROR.key) in ("UserError", "MemoryError")
                failed = ("user" if is_mistake else "bug") if run.info.status == "FAILED" else ""
                return {
                    "failure": failed,
                    "reason": tags.get(names.REASON.key, ""),
                    "run_id": run.info.run_id,
                    # A run that this sweep has adopted has the job of the sweep that wrote it.
                    "reused": tags[names.JOB.key] != own_job,
                    "experiment": experiment,
                }
        return {}

    def _stop(self, error: BaseException) -> None:
        """End the processes and runs of a sweep that stops early; its jobs stay recorded.

        New folders are removed if nothing was recorded.

        Args:
            error: What stops the sweep.
        """
        if self.workers is not None:
            self.workers.end()
        if not self.parents:  # nothing is recorded: nothing stays
            with suppress(OSError):
                if self.new_folders:
                    (self.folder / LOCK).unlink(missing_ok=True)
                for folder in self.new_folders:  # the first that is not empty ends the loop
                    folder.rmdir()
            return
        # Stopped from outside, or by an error.
        status = "KILLED" if isinstance(error, (KeyboardInterrupt, SystemExit)) else "FAILED"
        with suppress(Exception):  # the next command does it
            self.writer.end_abandoned(self._is_mine, status)

    def _is_mine(self, tags: Any) -> bool:
        """Return whether a run with these tags was started from this sweep's folder."""
        return bool(tags.get(names.FOLDER.key) == str(self.folder))

    def _conclude(self, outcomes: list[dict[str, Any]]) -> int:
        """Draw and print the comparison, end the sweep's runs; return the exit code.

        Args:
            outcomes: The outcome of every job, in order.

        Returns:
            0; 2 if jobs failed, all by a user's mistake; 1 if some failed otherwise.

        Raises:
            SweepError: Jobs are neither recorded nor failed, or the results cannot be written.
        """
        from normbench.results.pages.drawn import RecordedFigures
        from normbench.results.pages.publishing import attach, publish
        from normbench.results.report.terminal import present
        from normbench.results.store.runs import load

        if self.lock and not leftovers.is_held(self.lock, self.folder):
            print(f"{self.folder}: was removed while the comparison was at work", file=sys.stderr)
        self._check_recorded(outcomes)
        failures = [outcome for outcome in outcomes if outcome["failure"]]
        reused = sum(outcome["reused"] for outcome in outcomes)
        if reused:
            print(f"reused {reused} of {len(outcomes)}")
        # Each experiment's run of the sweep lists its jobs, in order.
        for experiment, parent in self.parents.items():
            jobs = [
                {"run_id": outcome["run_id"], "reused": outcome["reused"]}
                for outcome in outcomes
                if outcome["experiment"] == experiment
            ]
            self.writer.log_json(parent, jobs, "jobs.json")
        figure_cache = RecordedFigures(
            self.writer, self.folder, self.parents, outcomes, self.figures
        )
        # A folder that the user names gets its files, whoever drew them first.
        has_own_folder = any(argument.startswith("hydra.sweep.dir=") for argument in self.arguments)
        files = figure_cache.files(copy=has_own_folder)  # drawn by an equal sweep; None without one
        output_error: str | None = None
        try:
            with report_phase("all jobs are done", "writes tables, figures and the report"):
                sweep = load(self.writer.store.uri, self.sweep_id)
                write_files = self.drawing.begin(sweep, self.folder, self.figures, files)
                publish(self.writer, sweep, self.parents)
                try:
                    written = present(sweep, write_files)
                    print(end="", flush=True)
                except OSError as error:
                    output_error = printing.describe_output_error(error)
                    if output_error is None:
                        raise
                    # As in `normbench | head`: the output is lost, but the figures are drawn.
                    written = write_files()
        except ResultsError as error:
            self._check_recorded(outcomes)
            message = str(error.args[0]).removeprefix("--out ")
            raise SweepError(
                f"{message}; every job is recorded: normbench results draws them"
            ) from error
        attach(self.writer, sweep, written, self.parents)
        # By these tags a later sweep of equal jobs finds the figures.
        figure_cache.tag_runs(written, sweep)
        status = "FAILED" if len(failures) == len(outcomes) else "FINISHED"
        for parent in self.parents.values():
            self.writer.finish(parent, status)
        # What a repeated call has left: the first one may have reached the server.
        self.writer.end_abandoned(self._is_mine)
        self._check_recorded(outcomes)  # again: the store may have been deleted meanwhile
        if files is not None and not has_own_folder:  # the figures are in an equal sweep's folder
            leftovers.remove_ledger(self.folder, self.sweep_id, self.lock)
        if output_error:
            raise SweepError(f"{output_error}; every job is recorded: normbench results draws them")
        if not failures:
            return 0
        return 2 if all(outcome["failure"] == "user" for outcome in failures) else 1

    def _check_recorded(self, outcomes: Sequence[dict[str, Any]]) -> None:
        """Raise `SweepError` unless the runs of all jobs are in the store.

        The message has the reason, and how many of the missing jobs are kept in the folder.
        """
        run_ids = [outcome["run_id"] for outcome in outcomes if outcome["run_id"]]
        recorded_ids = self.writer.store.statuses(list(dict.fromkeys(run_ids)))
        missing = [
            number
            for number, outcome in enumerate(outcomes)
            if outcome["run_id"] not in recorded_ids
        ]
        if not missing:
            return
        reasons = [outcome["reason"] for outcome in outcomes if outcome["failure"] == "store"]
        store_note = (
            f"tracking.uri={self.writer.store.safe_uri}: what was recorded is there no more"
        )
        jobs = len(outcomes)
        # One reason: lost tasks, a store that did not answer, or runs that are gone.
        reports = [describe_lost(outcomes) or (reasons[0] if reasons else store_note)]
        pending_count = sum(
            (self.folder / leftovers.PENDING / f"{number}.npz").is_file() for number in missing
        )
        if pending_count:
            reports.append(
                f"{pending_count} of {jobs} jobs are kept in {self.folder} and logged by the next "
                "command"
            )
        if pending_count < len(missing):
            reports.append(
                f"{len(missing) - pending_count} of {jobs} jobs are neither recorded nor kept: "
                "the same command runs them again"
            )
        raise SweepError("; ".join(reports))


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
    """Return a command as its tag records it; a long one ends in ` ...` for its last words.

    Args:
        arguments: The command line after `normbench`.
    """
    # Passwords are blotted before the words are quoted, so that the command can be read again.
    words = [shlex.quote(clean.line(argument)) for argument in arguments]
    text = " ".join(["normbench", *words])
    if len(text) <= MAX_COMMAND_LENGTH:
        return text
    text, omission = "normbench", " ..."
    for word in words:
        if len(f"{text} {word}{omission}") > MAX_COMMAND_LENGTH:
            break
        text = f"{text} {word}"
    return text + omission


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
