"""The command `normbench`. A user's mistake is one line and exit code 2."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

NEEDED = ("hydra", "numpy", "mlflow")  # one of each: without a set-up none of them is there


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit 0, 1 where a job failed, 2 on a user's mistake, 130 on Ctrl-C.

    arguments: what stands behind `normbench` on the command line. `results ...` and `dashboard`
    read what is recorded; everything else is a comparison.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _refuse_without_libraries()
    from normbench.results import clean
    from normbench.results.garbage import collect_seldom

    clean.guard(*words)
    collect_seldom()
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last: a user's own package is found, and hides nothing
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
        if words and words[0] in ("results", "dashboard"):
            from normbench.command import results

            sys.exit(results.main(words[1:] if words[0] == "results" else words))
        _compare(words)
    except KeyboardInterrupt:
        print("normbench: stopped; the same command runs what is not recorded", file=sys.stderr)
        sys.exit(130)


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


def _compare(words: Sequence[str]) -> None:
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions come here whole, to be told in one line
    from normbench.engine.fast import kernels

    kernels.choose()
    import hydra
    from hydra.core.plugins import Plugins

    Plugins.instance()  # loads Hydra's own plugins anew; a subclass made before would be orphaned
    from normbench.choices import CONF
    from normbench.command.grid import hold_back
    from normbench.command.job import run_job
    from normbench.command.sweep import register

    words = [word for word in words if word not in ("-m", "--multirun")]  # every command is one
    shown = any(word.startswith("-") for word in words)  # such as --cfg job
    left, held = (words, []) if shown else hold_back(words)
    register(words, held)
    sys.argv = ["normbench", *left]
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(run_job)()
    except Exception as error:
        line, code = _told(error)
        if line is None:
            raise
        print(f"normbench: {line}", file=sys.stderr)
        sys.exit(code)


def _told(error: Exception) -> tuple[str | None, int]:
    """Return an error in one line, None for a bug (it keeps its traceback), and the exit code."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from normbench.command.errors import SweepError, one_line
    from normbench.recording.store import StoreLostError

    if isinstance(error, (SweepError, StoreLostError)):
        return " ".join(str(error).split()), 1
    if isinstance(error, (HydraException, OmegaConfBaseException, ValueError)):
        return one_line(error), 2
    return None, 1


if __name__ == "__main__":
    main()
