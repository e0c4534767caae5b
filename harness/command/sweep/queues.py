"""The launcher of a cluster's queue, through submitit: Slurm's, or processes here as a rehearsal.

One task of the queue may run several jobs. The command waits until every task has ended, for
whatever reason: a task has ended where its result exists, or where the queue no longer has it.
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

if TYPE_CHECKING:
    from submitit import Executor, Job

LOST = "lost"  # the failure of a job whose task ended without a result
MAX_TASKS = 1000  # handed over at a time: an array of Slurm's has 1,001 at most, as a rule
MAX_LISTED_TASKS = 10  # lost tasks that a message lists
REMEDY_OF_END = {  # the remedy for tasks with this end
    "timeout": "hydra.launcher.timeout_min gives a task more time",
    "out_of_memory": "hydra.launcher.mem_gb gives a task more memory",
}
CANCEL_SECONDS = 30.0  # that cancelled tasks have to end
# Seconds between two checks of the tasks, and between two lines about their states.
POLL_SECONDS, LINE_SECONDS = (0.5, 10.0)


class Queue(Launcher):
    """Submits the jobs of a sweep to a queue, and waits for them.

    Args:
        queue: `slurm`, or `local` for processes of this machine.
        jobs_per_task: The number of jobs that one task runs, in sequence.
        array_parallelism: The number of tasks that may run at once.
        resources: The resources of a task, by submitit's names; None leaves one to the cluster.
    """

    def __init__(
        self, queue: str, jobs_per_task: int, array_parallelism: int, **resources: Any
    ) -> None:
        self.queue, self.jobs_per_task, self.parallel = queue, jobs_per_task, array_parallelism
        self.resources = resources

    @property
    def max_accepted_jobs(self) -> int:
        """How many jobs it accepts at a time."""
        return MAX_TASKS * self.jobs_per_task

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Store what every task needs, and check the resources; Hydra calls it before `launch`.

        Raises `UserError` where Slurm would not run such a task.
        """
        self.context, self.function, self.config = hydra_context, task_function, config
        if self.queue == "slurm":
            slurm.check(self.resources)

    def launch(self, jobs: task.Batch) -> list[JobReturn]:  # type: ignore[override]
        """Run jobs in tasks of the queue, and wait for them; where that stops, cancel the tasks.

        Args:
            jobs: The number and the overrides of each job.

        Returns:
            The outcome of each job, in order; one whose task left no result has the failure `LOST`.
        """
        size = self.jobs_per_task
        batches = [jobs[first : first + size] for first in range(0, len(jobs), size)]
        # A folder that nobody else can write to: what is in it is unpickled.
        folder = Path(mkdtemp(prefix="tasks.", dir=Path(self.config.hydra.sweep.dir).absolute()))
        at_work: dict[Job[Any], task.Batch] = {}
        returns_by_job: dict[int, JobReturn] = {}
        try:
            for ended, end in self._run(batches, folder, at_work):
                returns_by_job |= _collect_returns(ended, end, at_work.pop(ended))
        except BaseException:
            self._cancel(at_work)
            raise
        finally:
            for file in folder.glob("*.pkl"):  # they hold all settings, passwords too
                file.unlink(missing_ok=True)
        return [returns_by_job[number] for number, _ in jobs]

    def _run(
        self, batches: list[task.Batch], folder: Path, at_work: "dict[Job[Any], task.Batch]"
    ) -> "Iterator[tuple[Job[Any], str]]":
        """Submit tasks, and yield each one as it ends.

        Args:
            batches: The jobs of each task.
            folder: Where the tasks leave their results and logs.
            at_work: The tasks that were submitted, with their jobs. Submitted tasks are added here;
                the caller removes each task that is yielded.

        Yields:
            The task, and how it ended; that is empty where it left a result.
        """
        executor = self._executor(folder)
        # Tasks in the queue at once: Slurm itself limits those that run.
        capacity = len(batches) if self.queue == "slurm" else self.parallel
        slurm_tasks, submitted, last_line_time = slurm.Tasks(), 0, time.monotonic()
        print(f"{len(batches)} tasks for {self.queue}; their logs: {folder}", file=sys.stderr)
        while submitted < len(batches) or at_work:
            new_batches = batches[submitted : submitted + capacity - len(at_work)]
            if new_batches:
                at_work |= zip(self._submit(executor, new_batches), new_batches)
                submitted += len(new_batches)
            # Before the files are listed: else a task that ends in between would seem lost.
            ends = {queue_task: self._ended(queue_task, slurm_tasks) for queue_task in at_work}
            result_files = set(os.listdir(folder))
            for queue_task in list(at_work):
                if queue_task.paths.result_pickle.name in result_files:
                    yield queue_task, ""
                elif ends[queue_task]:
                    yield queue_task, ends[queue_task]
            # A line on the states, now and then.
            if at_work and time.monotonic() - last_line_time > LINE_SECONDS:
                last_line_time = time.monotonic()
                states = slurm_tasks.describe_states(queue_task.job_id for queue_task in at_work)
                ended_count = submitted - len(at_work)
                print(
                    f"{ended_count} of {len(batches)} tasks have ended; {states}", file=sys.stderr
                )
            time.sleep(POLL_SECONDS if at_work else 0)  # 0: the next tasks can be submitted

    def _executor(self, folder: Path) -> "Executor":
        """Return submitit's executor, with the resources of a task.

        Args:
            folder: Where the tasks leave their results and logs.
        """
        from submitit import AutoExecutor

        python = f"{shlex.quote(sys.executable)} -u -m {task.__name__}"
        executor = AutoExecutor(folder, cluster=self.queue, **{f"{self.queue}_python": python})
        parameters = {key: value for key, value in self.resources.items() if value is not None}
        slurm_parameters = {
            f"slurm_{key}": parameters.pop(key) for key in slurm.NAME_SETTINGS if key in parameters
        }
        # Slurm begins the tasks of a lost node again: their recorded jobs must not be run again.
        requeue_parameters = {} if self.config.reuse else {"no-requeue": True}
        executor.update_parameters(
            **parameters,
            **slurm_parameters,
            name="normbench",
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallel,
            # Since Slurm 22.05 srun does not take it from sbatch.
            slurm_srun_args=[f"--cpus-per-task={self.resources['cpus_per_task']}"],
            # submitit has Slurm send a task a signal near its time limit, to start it again later;
            # CONT has no effect on a running task.
            slurm_additional_parameters={"signal": "CONT", **requeue_parameters},
        )
        return executor

    def _submit(self, executor: "Executor", batches: Sequence[task.Batch]) -> "list[Job[Any]]":
        """Submit a task for each batch and return them; raise `SweepError` if they are refused."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        # The arguments of `task.run` for each task; `map_array` takes them argument by argument.
        rows = [(self.context, self.function, self.config, batch) for batch in batches]
        try:
            with _task_environment():
                return executor.map_array(task.run, *zip(*rows))
        except (FailedJobError, FailedSubmissionError) as error:
            raise SweepError(
                f"hydra/launcher={self.queue}: took no tasks ({' '.join(str(error).split())}); "
                "fewer tasks are handed over at a time with a larger hydra.launcher.jobs_per_task"
            ) from error

    def _ended(self, queue_task: "Job[Any]", slurm_tasks: slurm.Tasks) -> str:
        """Return how a task has ended, such as `timeout`; empty as long as it has not."""
        if self.queue == "slurm":
            return slurm_tasks.ended(queue_task.job_id)
        return "ended" if queue_task.done() else ""

    def _cancel(self, tasks: "Iterable[Job[Any]]") -> None:
        """End running and pending tasks; wait up to `CANCEL_SECONDS` for those of this machine."""
        remaining = list(tasks)
        if self.queue == "slurm":
            slurm.cancel(queue_task.job_id for queue_task in remaining)
            return
        for queue_task in remaining:
            with suppress(ProcessLookupError):
                if not queue_task.done():
                    # submitit's process, which passes the signal on to the job.
                    os.kill(int(queue_task.job_id), signal.SIGTERM)
        # Each task saves its descent and leaves a result file before it ends.
        deadline = time.monotonic() + CANCEL_SECONDS
        while remaining and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            remaining = [queue_task for queue_task in remaining if not queue_task.done()]


def describe_lost(outcomes: Sequence[dict[str, Any]]) -> str:
    """Return which of a sweep's jobs are lost, how, and where their logs are; empty for none.

    Jobs are numbered from 1, and listed by the task that was lost with them.

    Args:
        outcomes: The outcomes of all jobs of the sweep, in order.
    """
    tasks: dict[str, list[str]] = {}  # the numbers of jobs by `reason`, which names the task
    lost_jobs = [
        (n, outcome) for n, outcome in enumerate(outcomes, 1) if outcome["failure"] == LOST
    ]
    for number, outcome in lost_jobs:
        tasks.setdefault(outcome["reason"], []).append(str(number))
    if not tasks:
        return ""
    task_texts = [f"{', '.join(numbers)} ({reason})" for reason, numbers in tasks.items()]
    remainder = (
        f", and those of {len(task_texts) - MAX_LISTED_TASKS} more tasks"
        if len(task_texts) > MAX_LISTED_TASKS
        else ""
    )
    folders = ", ".join({outcome["logs"]: None for _, outcome in lost_jobs})  # each once, in order
    remedies = [f"; {remedy}" for end, remedy in REMEDY_OF_END.items() if end in " ".join(tasks)]
    return (
        f"lost: job {', '.join(task_texts[:MAX_LISTED_TASKS])}{remainder}; logs in "
        f"{folders}{''.join(remedies)}"
    )


def _collect_returns(ended: "Job[Any]", end: str, batch: task.Batch) -> dict[int, JobReturn]:
    """Return the outcome of each job of a task that has ended, by the number of the job.

    Args:
        ended: The task.
        end: How the task ended without a result; empty where it left one.
        batch: The number and the overrides of each job of the task.
    """
    from submitit.core.utils import UncompletedJobError

    numbers = [number for number, _ in batch]
    if end:
        lost_outcome = {"failure": LOST, "key": "", "reused": False}
        lost_outcome |= {"reason": f"task {ended.job_id} {end}", "logs": str(ended.paths.folder)}
        # Copies, because `Sweep._launch` changes the outcome of a job that is recorded after all.
        return {number: _completed(dict(lost_outcome)) for number in numbers}
    try:
        outcomes = ended.result()
    except UncompletedJobError as bug:  # the caller raises it where it reads the outcome
        return {
            number: JobReturn(overrides=overrides, status=JobStatus.FAILED, _return_value=bug)
            for number, overrides in batch
        }
    return {number: _completed(outcome) for number, outcome in zip(numbers, outcomes)}


def _completed(outcome: dict[str, Any]) -> JobReturn:
    """Return an outcome as Hydra's launchers return it."""
    return JobReturn(status=JobStatus.COMPLETED, _return_value=outcome)


@contextmanager
def _task_environment() -> Iterator[None]:
    """Let tasks that are submitted in the context import the modules that this process imports.

    They inherit that Ctrl-C is ignored: the command alone handles it, and ends its tasks.
    """
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    # PYTHONSAFEPATH: Python puts no folder of its own choice before these.
    variables = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    previous_values = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for key, value in previous_values.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
