"""The interface of the writer of MLflow, an instance of which callers pass in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from normbench import names


class Writer(Protocol):
    """Writes tags and files of runs and experiments; see `normbench.recording.store.writer`.

    Each method raises `StoreLostError` where the store is away.
    """

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of an existing run, which may have ended; tags: texts by key."""

    def tags_of_sweep_with(
        self, experiment: str, tag: names.Tag, text: str
    ) -> dict[str, str] | None:
        """Return all tags of the latest finished sweep run of an experiment with a tag and text.

        Args:
            experiment: The name of the experiment.
            tag: The tag.
            text: Its value.

        Returns:
            Texts by key; None where there is no such run.
        """

    def tag_experiment(self, experiment: str, tags: Mapping[str, str]) -> None:
        """Set tags of an experiment; one that the store refuses is left out.

        Args:
            experiment: The name of the experiment.
            tags: Texts by key.
        """

    def experiment_tags(self, experiment: str) -> dict[str, str]:
        """Return the tags of an experiment, by its name: texts by key."""

    def log_file(self, run_id: str, path: Path, folder: str = "") -> None:
        """Log a file as an artifact of a run.

        Args:
            run_id: The id of the run.
            path: The file, whose name the artifact gets.
            folder: The folder among the artifacts; empty for the topmost.
        """
