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
    """Return what `work` returns for each argument; forked processes take their share.

    What a forked process fails at, this one does again, and raises its error.

    Args:
        work: A function of one argument, whose values can be pickled.
        arguments: The arguments; each is taken by the process that is free first.

    Returns:
        The values, in the order of the arguments.
    """
    processes = min(_cores(), len(arguments), MAX_PROCESSES)
    if processes < 2:
        return [work(argument) for argument in arguments]
    taken = get_context("fork").Value("i", 0)

    def take() -> Iterator[tuple[int, Value]]:
        """Yield the values of the arguments that no other process has taken, with their places."""
        while True:
            with taken.get_lock():
                place = taken.value
                taken.value += 1
            if place >= len(arguments):
                return
            yield place, work(arguments[place])

    with _forked(take, processes - 1) as receivers:
        values = dict(take())
        for receiver in receivers:
            with suppress(EOFError):  # it has ended
                while True:
                    place, value = receiver.recv()
                    values[place] = value
    return [
        values[place] if place in values else work(argument)
        for place, argument in enumerate(arguments)
    ]


@contextmanager
def _forked(take: Callable[[], Iterator[Any]], processes: int) -> Iterator[list[Connection]]:
    """Fork processes that send what they take; end those that are left."""
    context = get_context("fork")
    receivers, children = [], []
    # Ctrl-C reaches all processes of a terminal: this one ends the others.
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
            sender.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        yield receivers
    finally:
        for child in children:
            child.kill()
            child.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)


def _send(take: Callable[[], Iterator[Any]], sender: Connection) -> None:
    """Send what a forked process takes, until something fails: the other process does it again."""
    parent = os.getppid()
    with suppress(BaseException):
        for item in take():
            sender.send(item)
            if os.getppid() != parent:
                break
    os._exit(0)


def _cores() -> int:
    """Return the cores that this process may use, fewer where OMP_NUM_THREADS says so.

    One in a process of a pool, which may start no others.
    """
    if sys.platform != "linux" or current_process().daemon:
        return 1
    cores = len(os.sched_getaffinity(0))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores
