"""The record of a job: one file, the truth of its result.

A record is a NumPy archive without pickle: `header`, JSON in UTF-8, and the arrays as
`<record>/<key>`.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

Entry = tuple[str, float, int]  # a metric's name, its value, its step
HEADER = "header"  # the member that holds all of a record but its arrays
FAILURE = "failure"  # a member of the record of a failed job alone
FORMAT = 1
MAX_BYTES = 1 << 34  # of a record, unpacked


@contextmanager
def written_whole(file: Path) -> Iterator[IO[bytes]]:
    """Yield a draft that takes the place of a file once the context ends without an error.

    A missing folder is created. Whatever ends the process, the file is there whole, or as it was.

    Raises:
        OSError: The file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.stem}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunRecord:
    """A run: its name, its tags and its metrics."""

    name: str
    tags: dict[str, str]
    metrics: list[Entry] = field(default_factory=list)

    @cached_property
    def series(self) -> dict[str, dict[int, float]]:
        """The values of each metric by step."""
        series: dict[str, dict[int, float]] = {}
        for key, value, step in self.metrics:
            series.setdefault(key, {})[step] = value
        return series


@dataclass(frozen=True)
class JobRecord:
    """A job: the run of its scheme, with one run for each step size.

    Attributes:
        experiment: The experiment's name.
        params: The settings.
        scheme: The scheme's run.
        steps: The runs of the step sizes.
        dataset: The fields of MLflow's dataset input.
        arrays: The arrays of each record that the setting `record` names.
        failure: The traceback of a job that failed.
        notes: What is said of the data before the job runs.
    """

    experiment: str
    params: dict[str, str]
    scheme: RunRecord
    steps: list[RunRecord] = field(default_factory=list)
    dataset: dict[str, str] = field(default_factory=dict)
    arrays: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)

    def save(self, file: Path) -> None:
        """Write the record to a file: whole, or not at all. A missing folder is created.

        Raises:
            OSError: The file cannot be written.
        """
        fields = {**vars(self), "arrays": {}, "scheme": asdict(self.scheme)}
        header = {"format": FORMAT, **fields, "steps": [asdict(step) for step in self.steps]}
        encoded = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        members: dict[str, Any] = {HEADER: encoded}
        members |= {FAILURE: np.empty(0)} if self.failure else {}
        members |= {
            f"{name}/{key}": array
            for name, named_arrays in self.arrays.items()
            for key, array in named_arrays.items()
        }
        with written_whole(file) as draft:
            np.savez_compressed(draft, **members)

    @classmethod
    def load(cls, file: Path) -> "JobRecord":
        """Return the record in a file that `save` wrote; its arrays are read when they are used.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no record of this format.
        """
        try:
            return cls._load(file)
        except OSError:
            raise
        except Exception as error:  # of any class: that of the first part that is not as written
            raise ValueError(f"{file}: is no record ({error})") from error

    @classmethod
    def _load(cls, file: Path) -> "JobRecord":
        """Return the record in a file, or raise an error of any class."""
        with ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ValueError("it is too large")
        with np.load(file, allow_pickle=False) as members:
            fields = json.loads(members[HEADER].tobytes())
            first_parts = dict.fromkeys(name.partition("/")[0] for name in members.files)
        records = tuple(name for name in first_parts if name not in (HEADER, FAILURE))
        if (number := fields.pop("format")) != FORMAT:
            raise ValueError(f"its format is {number}")
        scheme, *steps = (_run(run) for run in [fields["scheme"], *fields["steps"]])
        mappings = [fields["params"], fields["dataset"], *(run.tags for run in (scheme, *steps))]
        texts = [text for mapping in mappings for pair in mapping.items() for text in pair]
        texts += [fields["experiment"], fields["failure"], *fields["notes"]]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a text of it is none")
        stored = StoredArrays(file, records)
        return cls(**fields | {"scheme": scheme, "steps": steps, "arrays": stored})


def is_finished(file: Path) -> bool:
    """Return whether a file is the whole record of a job that did not fail."""
    try:
        with ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, BadZipFile):
        return False
    return f"{HEADER}.npy" in names and f"{FAILURE}.npy" not in names


@dataclass(frozen=True)
class StoredArrays(Mapping[str, Mapping[str, Any]]):
    """The arrays in the file of a record, which are read when they are used."""

    file: Path
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name not in self.names:
            raise KeyError(name)
        with np.load(self.file, allow_pickle=False) as members:
            keys = [key for key in members.files if key.startswith(f"{name}/")]
            return {key.partition("/")[2]: members[key] for key in keys}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _run(fields: Mapping[str, Any]) -> RunRecord:
    """Return a run from its fields in a header."""
    metrics = [(str(key), float(value), int(step)) for key, value, step in fields["metrics"]]
    return RunRecord(str(fields["name"]), dict(fields["tags"]), metrics)
