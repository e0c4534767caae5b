"""The interface of the writer of MLflow, an instance of which callers pass in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from normbench import names


class Writer(Protocol):
    """Writes tags and files of runs and experiments; see `normbench.recording.store.writer`."""

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of an existing run, which may have ended."""

    def tags_of(self, experiment: str, tag: names.Tag, text: str) -> dict[str, str] | None:
        """Return the tags of an experiment's finished sweep run with this tag; None without one."""

    def tag_experiment(self, experiment: str, tags: Mapping[str, str]) -> None:
        """Set tags of an experiment; one that the store refuses is left out."""

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return the tags of an experiment."""

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run."""
