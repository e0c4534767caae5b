"""The jobs of a sweep in this process, side by side in joblib's, or in a cluster's queue.

Joblib's are given jobs as they are composed: to compose each again, and Hydra's own frame around
it, took as long as a small job.
"""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from normbench.command.config.compose import JobSpec
from normbench.command.startup.garbage import collect_nothing_yet, collect_seldom
from normbench.command.sweep import recorded
from normbench.command.sweep.queues import Queue
from normbench.recording.resume import orphans

Take = Callable[[JobSpec, Any], dict[str, Any]]  # of a job, and the run that holds it
Run = Callable[[JobSpec], dict[str, Any]]
Outcome = dict[str, Any] | Exception  # of a job, or a bug


def one_by_one(run: Run, jobs: Iterable[JobSpec]) -> list[Outcome]:
    """Return what became of each job, run in this process."""
    return [_outcome(run, job) for job in jobs]


def side_by_side(run: Run, jobs: Iterable[JobSpec], processes: int) -> list[Outcome]:
    """Return what became of each job, run in so many processes; -1: in one a core."""
    from joblib import Parallel, delayed

    with guarded_workers():
        outcomes: list[Outcome] = Parallel(n_jobs=processes, backend="loky")(
            delayed(_beside)(run, job) for job in jobs
        )
    return outcomes


def in_queue(queue: Queue, jobs: Sequence[JobSpec], take: Take) -> list[Outcome]:
    """Return what became of each job; a queue gets those alone that are not recorded.

    take: makes a recorded one the sweep's.
    """
    runs = {job.number: recorded.run_of(job) for job in jobs}
    lacking = [(job.number, list(job.words)) for job in jobs if runs[job.number] is None]
    outcomes: dict[int, Outcome] = {
        job.number: take(job, runs[job.number]) for job in jobs if runs[job.number] is not None
    }
    for first in range(0, len(lacking), queue.at_once):
        some = lacking[first : first + queue.at_once]
        for (number, _), returned in zip(some, queue.launch(some)):
            try:
                outcomes[number] = returned.return_value
            except Exception as bug:
                outcomes[number] = bug
    return [outcomes[job.number] for job in jobs]


def _outcome(run: Run, job: JobSpec) -> Outcome:
    try:
        return run(job)
    except Exception as bug:
        return bug


def _beside(run: Run, job: JobSpec) -> Outcome:
    """Run a job in a process of joblib's, which looks for garbage as the command's own does."""
    _begin()
    outcome = _outcome(run, job)
    collect_seldom()
    return outcome


@cache
def _begin() -> None:
    collect_nothing_yet()


@contextmanager
def guarded_workers() -> Iterator[None]:
    """Let joblib's processes not hear Ctrl-C, and end with this one, from the first moment on.

    Ctrl-C is the sweep's, which ends them; while they begin, they would print a traceback.
    """
    from joblib.externals.loky.backend import fork_exec as loky

    plain = loky.fork_exec

    def masked(command: list[str], *arguments: Any, **named: Any) -> Any:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return plain(orphans.watched(command), *arguments, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    loky.fork_exec = masked
    try:
        yield
    finally:
        loky.fork_exec = plain
