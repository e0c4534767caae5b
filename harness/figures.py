"""Figures that are there already: a sweep all of whose jobs are reused need not draw them again."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.fingerprint import code_of
from harness.tracking import Writer

DRAWN = "drawn"  # the tag of a sweep's run: what its figures were drawn from, and by which code
FILES = "drawn_files"  # and the names of their files, as JSON


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
        words = json.dumps([jobs, code_of("results.conclusion")])
        self.digest = hashlib.sha256(words.encode()).hexdigest()

    def copied(self) -> dict[str, list[Path]] | None:
        """Return this sweep's files, copied from an equal sweep's; None where they are not there.

        Raises nothing: what cannot be copied is drawn.
        """
        if not self.reused:
            return None
        found: dict[str, list[Path]] = {}
        for experiment in self.parents:
            tags = self.writer.tags_of(experiment, DRAWN, self.digest)
            if tags is None:
                return None
            try:
                names = json.loads(tags[FILES])
                found[experiment] = [
                    Path(shutil.copy2(Path(tags["folder"]) / Path(name).name, self.folder))
                    for name in names
                ]
            except (OSError, KeyError, ValueError):
                return None
        return found

    def remember(self, written: Mapping[str, Sequence[Path]]) -> None:
        """Say on each experiment's sweep run what was drawn. Raises `StoreLostError`."""
        for experiment, parent in self.parents.items():
            names = json.dumps([file.name for file in written.get(experiment, ())])
            if len(names) < 5000:  # MLflow's limit of a tag
                self.writer.tag(parent, {DRAWN: self.digest, FILES: names})
