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
from typing import Any, Generic, TypeVar

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


class PreparedCall(Generic[Value]):
    """A call made by a forked process, which loads what the call needs before it is asked.

    This process makes the call itself where it cannot fork, and where the other one fails.

    Args:
        prepare: Loads what the call needs; called in the forked process alone.
        call: The function, whose arguments and value can be pickled.
    """

    def __init__(self, prepare: Callable[[], object], call: Callable[..., Value]) -> None:
        self._call = call
        self._connection: Connection | None = None
        self._values: list[Value] = []  # the value of the call, once it is known
        if _cores() < 2:
            return
        context = get_context("fork")
        self._connection, child_connection = context.Pipe()
        self._child = context.Process(
            target=_serve, args=(self._connection, child_connection, prepare, call)
        )
        with _forking():
            self._child.start()
        child_connection.close()

    def begin(self, *arguments: Any) -> None:
        """Begin the call with its arguments."""
        self._arguments = arguments
        if self._connection is not None:
            with suppress(OSError):  # the process has ended: `result` makes the call
                self._connection.send(arguments)

    def result(self) -> Value:
        """Wait for the call that was begun, and return its value; raise what it raises."""
        if self._connection is not None and not self._values:
            with suppress(EOFError, OSError):  # the process has ended without a value
                self._values.append(self._connection.recv())
            self.end()
        if not self._values:
            self._values.append(self._call(*self._arguments))
        return self._values[0]

    def end(self) -> None:
        """End the forked process, whatever it does."""
        if self._connection is not None:
            self._child.kill()
            self._child.join()
            self._connection.close()
            self._connection = None


def _serve(
    parent_connection: Connection,
    connection: Connection,
    prepare: Callable[[], object],
    call: Callable[..., Any],
) -> None:
    """Make one call for the parent, and end this process, a forked one.

    An error ends it silently: the parent makes the call. It also ends where its parent has ended.

    Args:
        parent_connection: The parent's end of the pipe, which this process must not keep open.
        connection: Receives the arguments, and sends the value.
        prepare: Loads what the call needs.
        call: The function.
    """
    parent_connection.close()
    with suppress(BaseException):
        prepare()
        connection.send(call(*connection.recv()))
    os._exit(0)  # at once, without the clean-up at exit that belongs to the parent


@contextmanager
def _forking() -> Iterator[None]:
    """Block signals and Python's warnings while processes are forked.

    Ctrl-C reaches all processes of a terminal. The forked ones inherit the blocked signals and
    ignore it; this one ends them.
    """
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with warnings.catch_warnings():  # of Python 3.12: threads are not forked
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)


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
    try:
        with _forking():
            for _ in range(processes):
                receiver, sender = context.Pipe(duplex=False)
                receivers.append(receiver)
                child = context.Process(target=_send, args=(take, sender), daemon=True)
                child.start()
                children.append(child)
                sender.close()  # only the forked process sends: its end raises EOFError here
        yield receivers
    finally:
        for child in children:
            child.kill()
            child.join()


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
