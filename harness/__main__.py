"""The command `normbench`. A user's mistake is one line and exit code 2."""

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec

NEEDED = ("hydra", "numpy", "mlflow")  # without a set-up none of these is there


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit 0, 1 where a job failed, 2 on a user's mistake, 130 on Ctrl-C.

    arguments: the words after `normbench` on the command line. `results ...` and `dashboard` read
    what is recorded; everything else is a comparison.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _refuse_without_libraries()
    from normbench.command.startup.garbage import collect_nothing_yet
    from normbench.command.sweep.printing import told
    from normbench.results.safe import clean

    clean.guard(*words)
    collect_nothing_yet()
    if not sys.warnoptions:  # of libraries; where one matters, a line of ours says so
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for the processes of a launcher
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last: a user's own package is found, and hides nothing
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
        code = told(lambda: _run(words))
    except KeyboardInterrupt:
        print("normbench: stopped; the same command runs what is not recorded", file=sys.stderr)
        sys.exit(130)
    sys.exit(code)


def _run(words: Sequence[str]) -> int:
    """Run the command of some words; return its exit code."""
    if words and words[0] in ("results", "dashboard"):
        from normbench.command.results import commands as results

        return results.main(words[1:] if words[0] == "results" else words)
    return _compare(words)


def _refuse_without_libraries() -> None:
    """Leave with one line where Python is too old, or nothing that normbench needs is installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing and sys.version_info >= (3, 11):
        return
    lack = f"lacks {', '.join(missing)}" if missing else "is older than 3.11"
    print(
        f"normbench: {sys.executable} {lack}; in the checkout, make setup and then "
        ". .venv/bin/activate (or, in an environment of Python 3.11, "
        "pip install -c constraints.txt .)",
        file=sys.stderr,
    )
    sys.exit(2)


def _compare(words: Sequence[str]) -> int:
    from normbench.command.startup import kernels

    kernels.choose()
    from normbench.command.sweep import line
    from normbench.command.sweep.sweep_job import run_job

    try:
        line.run(words, run_job)
    except Exception as error:
        told, code = _told(error)
        if told is None:
            raise
        print(f"normbench: {told}", file=sys.stderr)
        return code
    return 0


def _told(error: Exception) -> tuple[str | None, int]:
    """Return an error in one line, None for a bug (it keeps its traceback), and the exit code."""
    from normbench.command.config.errors import SweepError, one_line
    from normbench.recording.store.connection import StoreLostError

    if isinstance(error, (SweepError, StoreLostError)):
        return " ".join(str(error).split()), 1
    line = one_line(error)
    return line, 1 if line is None else 2


if __name__ == "__main__":
    main()
