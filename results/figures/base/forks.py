"""Work on several cores, in processes forked from this one: figures are drawn side by side.

A forked process has all that this one has loaded, and what it draws goes to files. Linux alone
forks safely beside the libraries' threads.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")
MAX_PROCESSES = 8  # each copies the memory that it writes to


def map_forked(work: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
    """Return what `work` returns for each argument, computed by this process and forked ones.

    If a forked process fails at an argument, this process repeats the work and raises the error.

    Args:
        work: A function of one argument, whose values can be pickled.
        arguments: The arguments; each is taken by the process that is free first.

    Returns:
        The values, in the order of the arguments.
    """
    processes = min(_cores(), len(arguments), MAX_PROCESSES)
    if processes < 2:  # nothing to share, or forking is not possible
        return [work(argument) for argument in arguments]
    # Shared by all processes: the number of arguments that are taken, and the next one's index.
    taken_count = get_context("fork").Value("i", 0)

    def take() -> Iterator[tuple[int, Value]]:
        """Work on one argument after another that no process has taken; yield index and value."""
        while True:
            with taken_count.get_lock():
                index = taken_count.value
                taken_count.value += 1
            if index >= len(arguments):
                return
            yield index, work(arguments[index])

    with _forked(take, processes - 1) as receivers:
        values = dict(take())  # the share of this process
        for receiver in receivers:
            with suppress(EOFError):  # raised when the forked process has ended
                while True:
                    index, value = receiver.recv()
                    values[index] = value
    # An argument without a value is one at which a forked process failed.
    return [
        values[index] if index in values else work(argument)
        for index, argument in enumerate(arguments)
    ]


@contextmanager
def _forked(take: Callable[[], Iterator[Any]], processes: int) -> Iterator[list[Connection]]:
    """Fork processes that work on arguments; kill those that still run when the context ends.

    Args:
        take: works on arguments until none is left, and yields each one's index and value.
        processes: the number of processes.

    Yields:
        For each process, the connection from which these pairs are received.
    """
    context = get_context("fork")
    receivers, children = [], []
    # Ctrl-C reaches all processes of a terminal. The forked ones inherit the blocked signals and
    # ignore it; this one ends them.
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        for _ in range(processes):
            receiver, sender = context.Pipe(duplex=False)
            receivers.append(receiver)
            child = context.Process(target=_send, args=(take, sender), daemon=True)
            with warnings.catch_warnings():  # of Python 3.12: threads are not forked
                warnings.simplefilter("ignore", DeprecationWarning)
                child.start()
            children.append(child)
            sender.close()  # only the forked process sends: its end raises EOFError here
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        yield receivers
    finally:
        for child in children:
            child.kill()
            child.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)


def _send(take: Callable[[], Iterator[Any]], sender: Connection) -> None:
    """Send all that `take` yields to the parent, and end this process, a forked one.

    An error ends the process silently: the parent repeats the work and raises the error. The
    process also ends if its parent has ended.
    """
    parent = os.getppid()
    with suppress(BaseException):
        for item in take():
            sender.send(item)
            if os.getppid() != parent:  # the parent has ended
                break
    os._exit(0)  # at once, without the clean-up at exit that belongs to the parent


def _cores() -> int:
    """Return the number of cores that this process may use, at most OMP_NUM_THREADS if it is set.

    The number is 1 in a process of a pool, which may not start others, and outside of Linux.
    """
    if sys.platform != "linux" or current_process().daemon:
        return 1
    cores = len(os.sched_getaffinity(0))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    # A limit of 0, or one that is no whole number, is ignored.
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores
