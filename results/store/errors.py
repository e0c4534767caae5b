"""The one error of the reader's: apart from `runs`, so that `--help` loads nothing heavy."""

from pathlib import Path


class ResultsError(LookupError):
    """What was asked for is not there or cannot be written: one line, exit code 2."""


class RefusedError(ValueError):
    """What MLflow refuses to write or to find, in its words, where it was not asked itself."""


def unwritable(folder: Path, error: OSError) -> ResultsError:
    """Return the error of a folder that takes no files."""
    return ResultsError(
        f"--out {folder}: cannot be written ({error.strerror}); "
        "name a folder that can, such as --out figures"
    )
