"""The errors of the reader, apart from `runs` so that `--help` loads no heavy library."""

from pathlib import Path


class ResultsError(LookupError):
    """A requested result is missing or cannot be written: one line for the user, exit code 2."""


def unwritable(folder: Path, error: OSError) -> ResultsError:
    """Return the user's error for an output folder that cannot be written.

    Args:
        folder: The folder.
        error: The system's error.

    Returns:
        The error, whose message has the remedy.
    """
    return ResultsError(
        f"--out {folder}: cannot be written ({error.strerror}); "
        "name a folder that can, such as --out figures"
    )
