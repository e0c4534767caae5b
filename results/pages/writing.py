"""What these pages ask of the writer of MLflow, which is handed in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from normbench import names


class Writer(Protocol):
    """Tags and files of runs and experiments; see `normbench.recording.store.writer`."""

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run that is there, ended or not."""

    def tags_of(self, experiment: str, tag: names.Tag, text: str) -> dict[str, str] | None:
        """Return the tags of an experiment's finished sweep run that has a tag, else None."""

    def tag_experiment(self, experiment: str, tags: Mapping[str, str]) -> None:
        """Set tags of an experiment; one that the store refuses is left out."""

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return the tags of an experiment."""

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run."""
