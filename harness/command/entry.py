"""Run a command line: a comparison, or a command on recorded results."""

import os
import signal
import sys
import warnings
from collections.abc import Sequence

from normbench import interrupts
from normbench.command.garbage import disable_collection
from normbench.command.sweep.printing import run_with_checked_output
from normbench.results.safe import clean


def run(arguments: Sequence[str]) -> int:
    """Run the command after `normbench`; return the exit code.

    The code is 0, 1 where a job failed, 2 on a user's mistake, 130 on Ctrl-C, and 141 where the
    reader of the output has left (see `run_with_checked_output`).

    Args:
        arguments: The arguments after `normbench`.
    """
    clean.guard()
    disable_collection()
    if not sys.warnoptions:  # hide warnings of libraries; those that matter are printed as lines
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for the processes of a launcher
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        print("normbench: the working folder was removed; work in another one", file=sys.stderr)
        return 2
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last: a user's own package is found, and hides nothing
    try:
        interrupts.install_handlers(signal.SIGINT, signal.SIGTERM)
        return run_with_checked_output(lambda: _dispatch(arguments))
    except KeyboardInterrupt:
        print("normbench: stopped; the same command runs what is not recorded", file=sys.stderr)
        return 130


def _dispatch(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names, by default a comparison.

    An error of a comparison is printed in one line.

    Args:
        arguments: The arguments after `normbench`.

    Returns:
        The exit code.

    Raises:
        Exception: A bug, so that its traceback is seen; or `KeyboardInterrupt`, where a library
            made another error of a signal.
    """
    if arguments and arguments[0] in ("results", "dashboard"):
        from normbench.command.results import commands as results

        # `dashboard` is a command of `results` that may be typed without that word.
        return results.main(arguments[1:] if arguments[0] == "results" else arguments)
    # Help alone needs no Hydra; with overrides beside it, Hydra prints it.
    if list(arguments) in (["--help"], ["-h"]):
        from normbench.command.config import help as helping

        print(helping.text())
        return 0
    from normbench.command.sweep import line

    try:
        line.run(arguments)
    except Exception as error:
        interrupts.raise_if_interrupted(error)
        message, code = _describe_error(error)
        if message is None:
            raise
        print(f"normbench: {message}", file=sys.stderr)
        return code
    return 0


def _describe_error(error: Exception) -> tuple[str | None, int]:
    """Return the message of an error in one line, and the exit code.

    The message is None for a bug, which the caller raises again for its traceback.
    """
    from normbench.command.config.errors import SweepError, user_message

    if isinstance(error, SweepError):  # neither a mistake of the user nor a bug
        return " ".join(str(error).split()), 1
    message = user_message(error)
    exit_code = 1 if message is None else 2
    return message, exit_code
