"""Work on several cores, in processes forked from this one: figures are drawn side by side.

A forked process has all that this one has loaded, and what it draws goes to files. Linux alone
forks safely beside the libraries' threads.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Generic, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")
MAX_PROCESSES = 8  # each copies the memory that it writes to
_forked_work: Callable[[Any], Any]  # of a forked process, from `_begin_work`


def map_forked(work: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
    """Return what `work` returns for each argument, computed by forked processes.

    Args:
        work: A function of one argument, whose values can be pickled.
        arguments: The arguments; each is taken by the process that is free first.

    Returns:
        The values, in the order of the arguments.

    Raises:
        BrokenProcessPool: A forked process was killed. An error of `work` is raised as it is.
    """
    processes = min(_cores(), len(arguments), MAX_PROCESSES)
    if processes < 2:  # nothing to share, or forking is not possible
        return [work(argument) for argument in arguments]
    # The forked processes inherit the function: only its arguments and values are pickled.
    with ProcessPoolExecutor(
        processes, get_context("fork"), initializer=_begin_work, initargs=(work,)
    ) as pool:
        with _forking():
            futures = [pool.submit(_work, argument) for argument in arguments]
        return [future.result() for future in futures]


def _begin_work(work: Callable[[Any], Any]) -> None:
    """Prepare a forked process for `_work`; it also ends where its parent has ended."""
    global _forked_work
    _forked_work = work
    Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    """Wait for the end of the parent, and end this process, a forked one."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(argument: Any) -> Any:
    """Return what the function that a forked process has inherited returns."""
    return _forked_work(argument)


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
