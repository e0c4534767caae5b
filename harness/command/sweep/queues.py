"""The launcher of a cluster's queue, through submitit: Slurm's, or processes here as a rehearsal.

Several jobs may be one task of the queue. The command waits until every task has ended, whatever
ended it: a task is over where its result is there, or where the queue has it no more.
"""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from normbench.command.config.errors import SweepError
from normbench.command.sweep import slurm, task
from normbench.results.store import uris

if TYPE_CHECKING:
    from submitit import Executor, Job

LOST = "lost"  # the failure of a job whose task ended without a result
MOST_TASKS = 1000  # handed over at a time: an array of Slurm's has 1,001 at most, as a rule
TOLD = 10  # lost tasks that are told one by one
MORE = {  # what helps the tasks that ended so
    "timeout": "hydra.launcher.timeout_min gives a task more time",
    "out_of_memory": "hydra.launcher.mem_gb gives a task more memory",
}
PATIENCE = 30.0  # seconds, for tasks that were told to end
LOOK, SAY = 0.5, 10.0  # seconds between two looks, and between two lines about them


class Queue(Launcher):
    """Hands the jobs of a sweep to a queue, and waits for them.

    queue: `slurm` or `local`. jobs_per_task: jobs that one task does, one after the other.
    array_parallelism: tasks at once. resources: what a task takes, by submitit's names.
    """

    def __init__(
        self, queue: str, jobs_per_task: int, array_parallelism: int, **resources: Any
    ) -> None:
        self.queue, self.jobs_per_task, self.parallel = queue, jobs_per_task, array_parallelism
        self.resources = resources

    @property
    def at_once(self) -> int:
        """How many jobs it takes at a time."""
        return MOST_TASKS * self.jobs_per_task

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Take what every job needs. Raises `UserError` where Slurm would not run such a task."""
        self.context, self.function, self.config = hydra_context, task_function, config
        if self.queue == "slurm":
            slurm.check(self.resources)
            uri = str(config.tracking.uri)
            if uris.kind(uri) == "sqlite":
                print(
                    f"tracking.uri={uri}: SQLite is for tasks of one machine; where Slurm has "
                    "several, name a server: tracking=server tracking.uri=http://host:5000",
                    file=sys.stderr,
                )

    def launch(self, jobs: task.Batch) -> list[JobReturn]:  # type: ignore[override]
        """Return what became of each job; of one whose task left no result, that it is `LOST`."""
        size = self.jobs_per_task
        batches = [jobs[first : first + size] for first in range(0, len(jobs), size)]
        # A folder that nobody else can write to: what is in it is unpickled.
        folder = Path(mkdtemp(prefix="tasks.", dir=Path(self.config.hydra.sweep.dir).absolute()))
        at_work: dict[Job[Any], task.Batch] = {}
        found: dict[int, JobReturn] = {}
        try:
            for ended, why in self._run(batches, folder, at_work):
                found |= _returned(ended, why, at_work.pop(ended))
        except BaseException:
            self._cancel(at_work)
            raise
        finally:
            for file in folder.glob("*.pkl"):  # they hold all settings, passwords too
                file.unlink(missing_ok=True)
        return [found[number] for number, _ in jobs]

    def _run(
        self, batches: list[task.Batch], folder: Path, at_work: "dict[Job[Any], task.Batch]"
    ) -> "Iterator[tuple[Job[Any], str]]":
        """Yield each task as it ends, and how, if without a result; at_work: who has not yet."""
        executor = self._executor(folder)
        room = len(batches) if self.queue == "slurm" else self.parallel
        said, begun, told = slurm.Tasks(), 0, time.monotonic()
        print(f"{len(batches)} tasks for {self.queue}; their logs: {folder}", file=sys.stderr)
        while begun < len(batches) or at_work:
            some = batches[begun : begun + room - len(at_work)]
            if some:
                at_work |= zip(self._submitted(executor, some), some)
                begun += len(some)
            # Asked first: what ends after that is seen at the next look.
            why = {one: self._ended(one, said) for one in at_work}
            there = set(os.listdir(folder))
            for one in list(at_work):
                if one.paths.result_pickle.name in there:
                    yield one, ""
                elif why[one]:
                    yield one, why[one]
            if at_work and time.monotonic() - told > SAY:
                told = time.monotonic()
                left = said.shown(one.job_id for one in at_work)
                done = begun - len(at_work)
                print(f"{done} of {len(batches)} tasks have ended; {left}", file=sys.stderr)
            time.sleep(LOOK if at_work else 0)

    def _executor(self, folder: Path) -> "Executor":
        """Return submitit's executor, with what a task takes."""
        from submitit import AutoExecutor

        python = f"{shlex.quote(sys.executable)} -u -m {task.__name__}"
        executor = AutoExecutor(folder, cluster=self.queue, **{f"{self.queue}_python": python})
        given = {key: value for key, value in self.resources.items() if value is not None}
        own = {f"slurm_{key}": given.pop(key) for key in slurm.WORDS if key in given}
        # Slurm begins the tasks of a lost node again: their recorded jobs must not be run again.
        again = {} if self.config.reuse else {"no-requeue": True}
        executor.update_parameters(
            **given,
            **own,
            name="normbench",
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallel,
            # Since Slurm 22.05 srun does not take it from sbatch.
            slurm_srun_args=[f"--cpus-per-task={self.resources['cpus_per_task']}"],
            # submitit has a task told near its end, and then begun again: this signal says nothing.
            slurm_additional_parameters={"signal": "CONT", **again},
        )
        return executor

    def _submitted(self, executor: "Executor", batches: Sequence[task.Batch]) -> "list[Job[Any]]":
        """Return new tasks. Raises `SweepError` where the queue does not take them."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        rows = [(self.context, self.function, self.config, batch) for batch in batches]
        try:
            with _as_tasks_begin():
                return executor.map_array(task.run, *zip(*rows))
        except (FailedJobError, FailedSubmissionError) as error:
            raise SweepError(
                f"hydra/launcher={self.queue}: took no tasks ({' '.join(str(error).split())}); "
                "fewer tasks are handed over at a time with a larger hydra.launcher.jobs_per_task"
            ) from error

    def _ended(self, one: "Job[Any]", said: slurm.Tasks) -> str:
        """Return how a task has ended, empty as long as it has not."""
        if self.queue == "slurm":
            return said.ended(one.job_id)
        return "ended" if one.done() else ""

    def _cancel(self, tasks: "Iterable[Job[Any]]") -> None:
        """End tasks that are at work or wait; those of this machine are waited for."""
        left = list(tasks)
        if self.queue == "slurm":
            slurm.cancel(one.job_id for one in left)
            return
        for one in left:
            with suppress(ProcessLookupError):
                if not one.done():
                    os.kill(int(one.job_id), signal.SIGTERM)  # which it hands on to its job
        until = time.monotonic() + PATIENCE  # each keeps what it has, and leaves a file
        while left and time.monotonic() < until:
            time.sleep(LOOK)
            left = [one for one in left if not one.done()]


def lost(outcomes: Sequence[dict[str, Any]]) -> str:
    """Return which of a sweep's jobs are lost, how, and where their logs are; empty: none is."""
    tasks: dict[str, list[str]] = {}
    gone = [(n, outcome) for n, outcome in enumerate(outcomes, 1) if outcome["failure"] == LOST]
    for number, outcome in gone:
        tasks.setdefault(outcome["reason"], []).append(str(number))
    if not tasks:
        return ""
    told = [f"{', '.join(numbers)} ({reason})" for reason, numbers in tasks.items()]
    more = f", and those of {len(told) - TOLD} more tasks" if len(told) > TOLD else ""
    folders = ", ".join({outcome["logs"]: None for _, outcome in gone})
    remedies = [f"; {words}" for why, words in MORE.items() if why in " ".join(tasks)]
    return f"lost: job {', '.join(told[:TOLD])}{more}; logs in {folders}{''.join(remedies)}"


def _returned(ended: "Job[Any]", why: str, batch: task.Batch) -> dict[int, JobReturn]:
    """Return what became of each job of a task; why: how it ended, where it left no result."""
    from submitit.core.utils import UncompletedJobError

    numbers = [number for number, _ in batch]
    if why:
        nothing = {"failure": LOST, "run_id": "", "reused": False, "experiment": ""}
        nothing |= {"reason": f"task {ended.job_id} {why}", "logs": str(ended.paths.folder)}
        return {number: _done(dict(nothing)) for number in numbers}
    try:
        outcomes = ended.result()
    except UncompletedJobError as bug:
        return {
            number: JobReturn(overrides=words, status=JobStatus.FAILED, _return_value=bug)
            for number, words in batch
        }
    return {number: _done(outcome) for number, outcome in zip(numbers, outcomes)}


def _done(outcome: dict[str, Any]) -> JobReturn:
    return JobReturn(status=JobStatus.COMPLETED, _return_value=outcome)


@contextmanager
def _as_tasks_begin() -> Iterator[None]:
    """Let what is started here find the modules that this process finds, and no others.

    Ctrl-C is for the command alone, which ends its tasks.
    """
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    given = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    before = {key: os.environ.get(key) for key in given}
    os.environ.update(given)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
