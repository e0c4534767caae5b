"""The command `normbench`. A user's mistake is one line and exit code 2."""

import sys
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
    from normbench.command.entry import run

    sys.exit(run(words))


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


if __name__ == "__main__":
    main()
