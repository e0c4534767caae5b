"""The one error of the reader's: apart from `runs`, so that `--help` loads nothing heavy."""


class ResultsError(LookupError):
    """What was asked for is not there or cannot be written: one line, exit code 2."""
