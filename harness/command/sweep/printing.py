"""The standard output: a command whose words go nowhere says so in one line."""

import os
import select
import sys
from collections.abc import Callable

LEFT = 141  # what a shell makes of a command that ended as its reader left: 128 and SIGPIPE


def told(command: Callable[[], int]) -> int:
    """Return the exit code of a command; 2 and one line where nothing can be printed.

    That is asked before the command starts. Where the reader of a pipe has left, as in
    `normbench results list | head`, nothing is said, and the code is that of other commands: 141.
    """
    try:
        _knock()
        try:
            code = command()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0
        _knock()
        return code
    except OSError as error:
        reason = lost(error)
        if reason is None:
            raise
        if reason:
            print(f"normbench: {reason}", file=sys.stderr)
        return 2 if reason else LEFT


def lost(error: OSError) -> str | None:
    """Return what to say of an error of the standard output, None for any other error.

    Nothing is said of a reader who has left. What is printed from here on is dropped.
    """
    try:
        _knock()
        if not (isinstance(error, BrokenPipeError) and _reader_left()):
            return None
    except OSError:
        pass
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return ""
    return (
        f"the standard output cannot be written ({error.strerror}); make room there, or send "
        "it elsewhere"
    )


def _reader_left() -> bool:
    """Return whether the standard output is a pipe that nobody reads."""
    asked = select.poll()  # to write nothing into such a pipe is no error
    asked.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in asked.poll(0))


def _knock() -> None:
    """Raise OSError where the standard output takes neither what is waiting nor anything else."""
    if sys.stdout is None or sys.stdout.closed:
        return
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # none, where a program has put something else in its place
        return
    os.write(number, b"")
