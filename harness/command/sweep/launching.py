"""Run the jobs of a sweep in this process, in processes of joblib, or in a cluster's queue.

Joblib's processes get composed jobs: composing each job again, inside Hydra's own frame, took as
long as a small job.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Semaphore
from typing import Any

from normbench.command.config.compose import JobSpec
from normbench.command.garbage import collect_seldom, disable_collection
from normbench.command.sweep import orphans, sweep_job
from normbench.command.sweep.queues import Queue

Run = Callable[[JobSpec], dict[str, Any]]  # runs a job and returns its outcome, as `run_spec` does
Outcome = dict[str, Any] | Exception  # the outcome of a job, or the bug that it raised
IDLE_SECONDS = 300  # after which a process of joblib's ends


def run_in_sequence(run: Run, jobs: Iterable[JobSpec]) -> Iterator[Outcome]:
    """Run each job in this process, and yield its outcome."""
    return (_outcome(run, job) for job in jobs)


class Workers:
    """Joblib's processes, which load what jobs need while the command checks its settings.

    Args:
        processes: The number of processes; -1: one for each core.
        jobs: The number of jobs of the sweep; no more processes than jobs are prepared.
    """

    def __init__(self, processes: int, jobs: int) -> None:
        from joblib import effective_n_jobs
        from joblib.externals.loky import get_reusable_executor

        count = int(effective_n_jobs(processes))
        self._pool = get_reusable_executor(count, timeout=IDLE_SECONDS)
        # Limits the submitted calls that are not done, to fewer than the pool's queue holds.
        self._places = Semaphore(2 * count)
        self._futures: list[Any] = []
        with guarded_workers():
            for _ in range(min(count, jobs)):
                self._submit(_begin)  # a process starts with its first call

    def run(self, run: Run, jobs: Iterable[JobSpec]) -> Iterator[Outcome]:
        """Yield the outcome of each job, in order; raise BrokenProcessPool if a process dies."""
        with guarded_workers():
            futures = [self._submit(_run_in_worker, run, job) for job in jobs]
            for future in futures:
                yield future.result()

    def end(self) -> None:
        """Kill the processes, with the jobs that they run."""
        # The pool's thread would fail on a call that is not yet in its queue.
        while not all(future.running() or future.done() for future in self._futures):
            time.sleep(0.01)
        self._pool.shutdown(kill_workers=True)

    def _submit(self, *call: Any) -> Any:
        """Submit a call, and return its future; wait while too many calls are submitted.

        Args:
            call: The function, then its arguments.
        """
        self._places.acquire()
        future = self._pool.submit(*call)
        future.add_done_callback(lambda _: self._places.release())
        self._futures.append(future)
        return future


def run_in_queue(
    queue: Queue, jobs: Sequence[JobSpec], recorded_keys: Sequence[str | None]
) -> list[Outcome]:
    """Return the outcome of each job; a queue gets only jobs that are not recorded.

    Args:
        queue: The launcher of the queue.
        jobs: The jobs of the comparison.
        recorded_keys: The keys of their records; None for a job that is not recorded.

    Returns:
        The outcomes in the order of the jobs.
    """
    outcomes: dict[int, Outcome] = {
        job.number: sweep_job.reuse(job, key) for job, key in zip(jobs, recorded_keys) if key
    }
    # The overrides suffice: a task composes its jobs anew.
    unrecorded = [(job.number, list(job.overrides)) for job in jobs if job.number not in outcomes]
    for first in range(0, len(unrecorded), queue.max_accepted_jobs):
        batch = unrecorded[first : first + queue.max_accepted_jobs]
        for (number, _), returned in zip(batch, queue.launch(batch)):
            try:
                outcomes[number] = returned.return_value  # raises the bug of a failed task
            except Exception as bug:
                outcomes[number] = bug
    return [outcomes[job.number] for job in jobs]


def _outcome(run: Run, job: JobSpec) -> Outcome:
    """Return the outcome of a job, or the bug that it raised."""
    try:
        return run(job)
    except Exception as bug:
        return bug


def _run_in_worker(run: Run, job: JobSpec) -> Outcome:
    """Run a job in a process of joblib's; return its outcome, or the bug that it raised.

    Garbage is not collected before the first job of the process has loaded its libraries.
    """
    _begin()
    outcome = _outcome(run, job)
    collect_seldom()
    return outcome


@cache
def _begin() -> None:
    """Disable garbage collection and import what jobs need, once in a process."""
    disable_collection()
    for module in ("normbench.job", "normbench.record.outcome", "sklearn.preprocessing"):
        import_module(module)


@contextmanager
def guarded_workers() -> Iterator[None]:
    """Make joblib's processes ignore Ctrl-C and end with this process, from their first moment.

    It holds for processes that start in the context. The sweep handles Ctrl-C, and ends them;
    while they start, they would print a traceback.
    """
    from joblib.externals.loky.backend import fork_exec as loky

    start_process = loky.fork_exec

    def masked(command: list[str], *arguments: Any, **named: Any) -> Any:
        """Start a process, which inherits the blocked Ctrl-C and is watched by `orphans`."""
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return start_process(orphans.watched(command), *arguments, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    loky.fork_exec = masked
    try:
        yield
    finally:
        loky.fork_exec = start_process
