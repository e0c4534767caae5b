"""Check the standard output: a command whose output is lost reports that in one line."""

import errno
import os
import select
import sys
from collections.abc import Callable

# What a shell makes of a command that ended as its reader left: 128 and SIGPIPE.
READER_LEFT_CODE = 141
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a disk


def run_with_checked_output(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; 2 and one line where nothing can be printed.

    A full disk is one line, and the code 1.

    The output is checked before the command starts, and after it. Where the reader of a pipe has
    left, as in `normbench results list | head`, nothing is printed, and the code is the usual one
    of a shell: 141.

    Args:
        command: Prints, and returns its exit code or raises SystemExit.
    """
    try:
        _check_output()
        try:
            code = command()
        except SystemExit as system_exit:
            code = system_exit.code if isinstance(system_exit.code, int) else 0
        _check_output()
        return code
    except OSError as error:
        reason = describe_output_error(error)
        if reason is None and error.errno in FULL:
            line = f"normbench: {error.strerror}; the same command runs what is not recorded"
            print(line, file=sys.stderr)
            return 1
        if reason is None:
            raise
        if reason:
            print(f"normbench: {reason}", file=sys.stderr)
        return 2 if reason else READER_LEFT_CODE


def describe_output_error(error: OSError) -> str | None:
    """Return a message on an error of the standard output, None for any other error.

    Where it is an error of the standard output, later output is discarded.

    Args:
        error: An error that a command raised while it printed.

    Returns:
        The message; empty where the reader of a pipe has left, which is no mistake.
    """
    # The error is of the standard output if that still fails, or if its reader has left.
    try:
        _check_output()
        if not (isinstance(error, BrokenPipeError) and _reader_left()):
            return None
    except OSError:
        pass
    # Output that is still buffered goes nowhere, so that Python can flush it when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return ""
    return (
        f"the standard output cannot be written ({error.strerror}); make room there, or send "
        "it elsewhere"
    )


def _reader_left() -> bool:
    """Return whether the standard output is a pipe without a reader."""
    poll = select.poll()  # an empty write, as in `_check_output`, succeeds on such a pipe
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _check_output() -> None:
    """Raise OSError where the standard output accepts no buffered or no new output.

    Nothing is checked where it is closed; where it is no file, only that it takes its buffer.
    """
    if sys.stdout is None or sys.stdout.closed:
        return
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # none, where a program has put something else in its place
        return
    os.write(number, b"")
