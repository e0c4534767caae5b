"""The record of a job, which can be saved to a file while the store is out of reach."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from normbench.results.safe import files

Entry = tuple[str, float, int]  # a metric's name, its value, its step
HEADER_NAME = "words"  # the archive member that holds all of a record but its arrays, as JSON


@dataclass(frozen=True)
class RunRecord:
    """A run: its name, its tags and its metrics."""

    name: str
    tags: dict[str, str]
    metrics: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class JobRecord:
    """A job: the run of its scheme, with one child run for each step size.

    Attributes:
        store: The URI of the store that it is written to, without a password.
        experiment: The experiment's name.
        parent: The id of the sweep's run.
        params: The settings.
        scheme: The scheme's run.
        steps: The runs of the step sizes.
        dataset: The fields of MLflow's dataset input.
        arrays: The arrays of each record that the setting `record` names.
        failure: The traceback of a job that failed.
    """

    store: str
    experiment: str
    parent: str
    params: dict[str, str]
    scheme: RunRecord
    steps: list[RunRecord] = field(default_factory=list)
    dataset: dict[str, str] = field(default_factory=dict)
    arrays: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failure: str = ""

    def save(self, file: Path) -> None:
        """Write the record to a file atomically; the file's folder is created if missing.

        Raises:
            OSError: The file cannot be written.
        """
        file.parent.mkdir(parents=True, exist_ok=True)
        runs = {"scheme": vars(self.scheme), "steps": [vars(step) for step in self.steps]}
        header = {**vars(self), **runs, "arrays": {}}  # arrays are members of their own
        members: dict[str, Any] = {HEADER_NAME: np.array(json.dumps(header))}
        members |= {
            f"{name}/{key}": array
            for name, named_arrays in self.arrays.items()
            for key, array in named_arrays.items()
        }
        draft = file.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        with draft.open("xb") as stream:
            np.savez(stream, **members)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)

    @classmethod
    def load(cls, file: Path) -> "JobRecord":
        """Return the record in a file that `save` wrote; nothing in it is unpickled or evaluated.

        A file with other contents raises an error of any type. Each name of `np.savez` is
        `<record>/<key>` of an array, or `HEADER_NAME`.
        """
        arrays: dict[str, dict[str, Any]] = {}
        with (
            files.open_stored_arrays(file) as stream,
            np.load(stream, allow_pickle=False) as archive,
        ):
            header = json.loads(str(archive[HEADER_NAME]))
            for name in [name for name in archive.files if name != HEADER_NAME]:
                record_name, _, key = name.partition("/")
                arrays.setdefault(record_name, {})[key] = archive[name]
        runs = [
            RunRecord(run["name"], run["tags"], [tuple(metric) for metric in run["metrics"]])
            for run in [header["scheme"], *header["steps"]]
        ]
        return cls(**header | {"scheme": runs[0], "steps": runs[1:], "arrays": arrays})
