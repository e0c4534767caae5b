"""The copy in MLflow: stand-ins until it is there."""

from pathlib import Path


def absolute(uri: str) -> str:
    """Return the URI of a store, in which the path of a SQLite file is absolute."""
    path = Path(uri.removeprefix("sqlite:///")).absolute()
    return f"sqlite:///{path}" if uri.startswith("sqlite:///") else uri


def check_store(uri: str) -> None:
    """Check that a store can be had."""


def begin_copy(home: Path, comparison_id: str, uri: str) -> None:
    """Begin to copy a comparison in a second process."""


def finish() -> str:
    """Return what went wrong with the copy; empty where nothing did."""
    return ""


def publish(home: Path, comparison_id: str, uri: str) -> None:
    """Copy a comparison again."""


def fetch(uri: str, home: Path, comparison_id: str | None = None) -> None:
    """Fetch records and comparisons."""
