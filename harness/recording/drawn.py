"""Figures that are there already: a sweep all of whose jobs are reused need not draw them again."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from normbench.recording.identity import code_of
from normbench.recording.writer import Writer
from normbench.results import names

TEMPLATE = Path(str(files("normbench.results"))) / "report.html.jinja"


class Known:
    """The figures of a sweep, by what they show: its jobs, in order, and the code that draws."""

    def __init__(
        self,
        writer: Writer,
        folder: Path,
        parents: Mapping[str, str],
        outcomes: Sequence[Mapping[str, Any]],
    ) -> None:
        self.writer, self.folder, self.parents = writer, folder, parents
        self.reused = all(outcome["reused"] for outcome in outcomes)
        jobs = [[outcome["experiment"], outcome["run_id"]] for outcome in outcomes]
        words = json.dumps([jobs, code_of("normbench.results.conclusion"), _content(TEMPLATE)])
        self.digest = hashlib.sha256(words.encode()).hexdigest()

    def copied(self) -> dict[str, list[Path]] | None:
        """Return this sweep's files, copied from an equal sweep's; None where they are not there.

        Nor where they are no more what that sweep drew. Raises nothing: what cannot be copied is
        drawn.
        """
        if not self.reused:
            return None
        found: dict[str, list[Path]] = {}
        for experiment in self.parents:
            tags = self.writer.tags_of(experiment, names.DRAWN, self.digest)
            if tags is None:
                return None
            try:
                drawn = {
                    Path(tags[names.FOLDER.key]) / Path(name).name: content
                    for name, content in json.loads(tags[names.DRAWN_FILES.key]).items()
                }
                if any(_content(file) != content for file, content in drawn.items()):
                    return None
                found[experiment] = [Path(shutil.copy2(file, self.folder)) for file in drawn]
            except (OSError, KeyError, ValueError, AttributeError):
                return None
        return found

    def remember(self, written: Mapping[str, Sequence[Path]]) -> None:
        """Say on each experiment's sweep run what was drawn. Raises `StoreLostError`."""
        for experiment, parent in self.parents.items():
            files = {file.name: _content(file) for file in written.get(experiment, ())}
            words = json.dumps(files)
            if len(words) < 5000:  # MLflow's limit of a tag
                self.writer.tag(
                    parent, {names.DRAWN.key: self.digest, names.DRAWN_FILES.key: words}
                )


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
