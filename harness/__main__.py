"""The command line: `python -m harness`. A user's mistake is one line and exit code 2."""

import os
import signal
import sys

from results.garbage import collect_seldom


def main() -> None:
    """Run the command; exit 0, 1 where a job failed, 2 on a user's mistake, 130 on Ctrl-C."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
        _run()
    except KeyboardInterrupt:
        print("normbench: stopped; what had finished is recorded", file=sys.stderr)
        sys.exit(130)


def _run() -> None:
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions come here whole, to be told in one line
    from harness import kernels

    kernels.choose()
    import hydra
    from hydra.core.plugins import Plugins

    Plugins.instance()  # loads Hydra's own plugins anew; a subclass made before would be orphaned
    from harness.choices import CONF
    from harness.job import run_job
    from harness.sweep import register

    register()
    sys.argv[0] = "python -m harness"
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

    from harness.errors import SweepError, one_line
    from harness.store import StoreLostError

    if isinstance(error, (SweepError, StoreLostError)):
        return " ".join(str(error).split()), 1
    if isinstance(error, (HydraException, OmegaConfBaseException, ValueError)):
        return one_line(error), 2
    return None, 1


if __name__ == "__main__":
    collect_seldom()
    main()
