"""The command `normbench`. A user's mistake is one line and exit code 2."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

REQUIRED_LIBRARIES = ("hydra", "numpy", "mlflow")  # missing before the setup


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit 0, 1 if a job failed, 2 on a mistake of the user, 130 on Ctrl-C.

    `results ...` and `dashboard` read recorded results; any other command is a comparison.

    Args:
        arguments: The arguments after `normbench` on the command line; those of the process if
            None.
    """
    command_words = list(sys.argv[1:] if arguments is None else arguments)
    _refuse_without_libraries()
    from normbench.command.entry import run

    sys.exit(run(command_words))


def _refuse_without_libraries() -> None:
    """Exit with one line where Python is too old, or where required libraries are missing."""
    missing = [name for name in REQUIRED_LIBRARIES if find_spec(name) is None]
    if not missing and sys.version_info >= (3, 11):
        return
    shortcoming = f"lacks {', '.join(missing)}" if missing else "is older than 3.11"
    print(
        f"normbench: {sys.executable} {shortcoming}; in the checkout, make setup and then "
        ". .venv/bin/activate (or, in an environment of Python 3.11, "
        "pip install -c constraints.txt .)",
        file=sys.stderr,
    )
    sys.exit(2)


if __name__ == "__main__":
    main()
