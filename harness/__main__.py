"""The command line: `python -m harness`. A user's mistake is one line and exit code 2."""

import os
import signal
import sys


def main() -> None:
    """Run the command; exit 0, 1 where a job failed, 2 on a user's mistake, 130 on Ctrl-C."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions come here whole, to be told in one line
    from harness import kernels

    kernels.choose()
    import hydra
    from hydra.core.plugins import Plugins
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    Plugins.instance()  # loads Hydra's own plugins anew; a subclass made before would be orphaned
    from harness.choices import CONF
    from harness.errors import one_line
    from harness.store import StoreLostError
    from harness.sweep import register, run_job

    register()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    sys.argv[0] = "python -m harness"
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(run_job)()
    except KeyboardInterrupt:
        print("normbench: stopped; what had finished is recorded", file=sys.stderr)
        sys.exit(130)
    except StoreLostError as error:
        print(f"normbench: {error}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        if not isinstance(error, (HydraException, OmegaConfBaseException, ValueError)):
            raise
        line = one_line(error)
        if line is None:
            raise
        print(f"normbench: {line}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
