"""Runs as plain values, as they leave one store and come to another."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from normbench import names
from normbench.results.store import mlflows_own

ID = re.compile(r"[0-9a-f]{32}")  # of MLflow's for a run, the same in no two stores
SWEEP_WORD = re.compile(r"[\w.-]{1,250}", re.A)
Status = Literal["FINISHED", "FAILED", "KILLED"]
LONGEST_ARTIFACT = 200  # bytes of its name: a folder of the user's stands before it
SOURCE = {"name", "digest", "source_type", "source"}  # what MLflow's data set has at least
JOBS_FILE = "jobs.json"  # the one artifact that names runs by their ids
COUNTED = ("sweeps", names.JOBS.key, "runs", "values", "artifacts")  # in a file, and of an import
MEMBER = names.membership("").key
# What is true of a run in one store alone: its places on a machine, and who is above it.
OF_A_STORE = {
    *(names.FOLDER.key, names.PROCESS.key, names.DRAWN.key, names.DRAWN_FILES.key),
    *(names.DRAWN_FROM.key, names.DRAWN_IN.key),
    *(names.PARENT.key, names.ORIGIN.key),
}
Whole = Annotated[int, Field(gt=-(1 << 62), lt=1 << 62)]
Time = Annotated[int, Field(gt=0, lt=1 << 62)]  # MLflow takes 0 for now
Value = tuple[Whole, float, Whole]  # a step, a metric's value there, and when it was logged, in ms


@dataclass(frozen=True)
class RunCopy:
    """A run without its place in a store.

    origin: the id of the run that was recorded first, of which all others are copies. started,
    ended: in ms. inputs: MLflow's data sets, each with its tags. artifacts: their SHA-256 by name.
    """

    origin: str
    experiment: str
    name: str
    status: Status
    started: Time
    ended: Time
    tags: dict[str, str]
    params: dict[str, str]
    metrics: dict[str, list[Value]]
    inputs: list[dict[str, dict[str, str]]]
    artifacts: dict[str, str]

    @property
    def sweep(self) -> str:
        """The sweep that it belongs to."""
        return self.tags[names.SWEEP_ID.key]

    @property
    def members(self) -> dict[str, str]:
        """Its number in each sweep that it is a job of."""
        own = {key: text for key, text in self.tags.items() if key.startswith(MEMBER)}
        return {key.removeprefix(MEMBER): text for key, text in own.items()}

    @property
    def digest(self) -> str:
        """All that it says, as a text that is equal for equal runs, NaN included."""
        inputs = [[given["input"]["name"], given["input"]["digest"]] for given in self.inputs]
        # Of data sets of one name and digest MLflow keeps the description that came first.
        return json.dumps({**asdict(self), "inputs": sorted(inputs)}, sort_keys=True)

    def of(self, sweeps: Sequence[str]) -> "RunCopy":
        """Return a run that is a job of some sweeps alone."""
        left = {f"{MEMBER}{sweep}" for sweep in self.members if sweep not in sweeps}
        return replace(self, tags={k: text for k, text in self.tags.items() if k not in left})

    def called(self, sweeps: Mapping[str, str]) -> "RunCopy":
        """Return a run whose sweeps have other ids, by those that they had."""
        own = self.sweep
        tags = {key: text for key, text in self.tags.items() if not key.startswith(MEMBER)}
        tags |= {f"{MEMBER}{sweeps[sweep]}": number for sweep, number in self.members.items()}
        tags[names.SWEEP_ID.key] = sweeps[own]
        if names.JOB.key in tags:
            number = tags[names.JOB.key].rpartition("/")[2]
            tags[names.JOB.key] = f"{sweeps[own]}/{number}"
        name = self.name
        if self.tags[names.ROLE.key] == names.SWEEP and name == f"sweep {own}":
            name = f"sweep {sweeps[own]}"
        if tags.get(names.RUN_NAME.key) == self.name:
            tags[names.RUN_NAME.key] = name
        return replace(self, name=name, tags=tags)


@dataclass(frozen=True)
class JobCopy:
    """A job: its scheme's run, and its step sizes'."""

    scheme: RunCopy
    steps: list[RunCopy]

    @property
    def runs(self) -> list[RunCopy]:
        """All its runs."""
        return [self.scheme, *self.steps]

    def of(self, sweeps: Sequence[str]) -> "JobCopy":
        """Return a job of some sweeps alone; the first of them takes over what another ran."""
        runs = [run.of(sweeps) for run in self.runs]
        if self.scheme.sweep not in sweeps:
            members = runs[0].members
            heir = {names.SWEEP_ID.key: min(members)}
            runs = [replace(run, tags=run.tags | heir) for run in runs]
            runs[0].tags[names.JOB.key] = f"{min(members)}/{members[min(members)]}"
        return JobCopy(runs[0], runs[1:])


def text(copy: RunCopy | JobCopy | Mapping[str, Any]) -> bytes:
    """Return what is written of a copy."""
    plain = copy if isinstance(copy, Mapping) else asdict(copy)
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def job_of(content: bytes) -> JobCopy:
    """Return the job that was written; raises errors of `archive.STRANGE` for none."""
    job: JobCopy = _parsed(JobCopy, content)
    scheme = _checked(job.scheme, names.SCHEME)
    job = JobCopy(scheme, [_checked(step, names.STEP) for step in job.steps])
    if any((run.experiment, run.sweep) != (scheme.experiment, scheme.sweep) for run in job.steps):
        raise ValueError("a step is of another sweep than its job")
    return job


def sweep_of(content: bytes) -> RunCopy:
    """Return the sweep's run that was written; raises the same."""
    return _checked(_parsed(RunCopy, content), names.SWEEP)


def experiments_of(content: bytes) -> dict[str, dict[str, str]]:
    """Return the tags of experiments that were written, by their names; raises the same."""
    experiments: dict[str, dict[str, str]] = _parsed(dict[str, dict[str, str]], content)
    for name in experiments:
        mlflows_own.check_experiment(name)
    return experiments


def renamed(content: bytes, ids: Mapping[str, str]) -> bytes:
    """Return the text of `JOBS_FILE` with other ids of runs; one that is not known stays."""

    def other(match: re.Match[str]) -> str:
        return ids.get(match[0], match[0])

    return ID.sub(other, content.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _parsed(kind: Any, content: bytes) -> Any:
    """Return a value of a type from its JSON text, which may be anybody's."""
    try:
        found = TypeAdapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from error
    if any("\0" in text for text in _texts(json.loads(content))):
        raise ValueError("a text holds a mark that no database takes (NUL)")
    return found


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, its keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for entry in [*value, *(value.values() if isinstance(value, dict) else ())]:
            yield from _texts(entry)


def _checked(run: RunCopy, role: str) -> RunCopy:
    """Return a run without the tags of one store, once any store takes it as a run of the role."""
    tags = {key: text for key, text in run.tags.items() if key not in OF_A_STORE}
    if tags.setdefault(names.RUN_NAME.key, run.name) != run.name:
        raise ValueError("a run has two names")
    # SQLite takes -0.0 for 0.0.
    metrics = {
        key: [(step, value + 0.0, logged) for step, value, logged in points]
        for key, points in run.metrics.items()
    }
    run = replace(run, tags=tags, metrics=metrics)
    words = [run.sweep, *run.members]
    if run.tags[names.ROLE.key] != role or not all(map(SWEEP_WORD.fullmatch, words)):
        raise ValueError(f"a run is no {role}'s")
    if not ID.fullmatch(run.origin):
        raise ValueError("a run has no id")
    if not all(given["input"].keys() >= SOURCE and "tags" in given for given in run.inputs):
        raise ValueError("a data set has no name")
    mlflows_own.check_run(run.name, run.params, run.tags, run.inputs)
    for key, points in run.metrics.items():
        _check_points(key, points)
    _check_artifacts(sorted(run.artifacts))
    return run


def _check_points(key: str, points: Sequence[Value]) -> None:
    """Raise ValueError for a metric that a store would give back as another."""
    mlflows_own.check_metric(key)
    if any(math.isinf(value) or logged < 0 for _, value, logged in points):
        raise ValueError(f"the metric {key} has an infinite value, or one before 1970")
    alike = {(step, str(value), logged) for step, value, logged in points}
    of_one_step = max((step for step, _, _ in points), default=0) == 0
    if len(alike) < len(points) or (of_one_step and len(points) != 1):
        raise ValueError(f"the metric {key} has no value, or several of one step")


def _check_artifacts(artifacts: Sequence[str]) -> None:
    """Raise ValueError for names, sorted, that are not those of files in one folder."""
    if any(len(name.encode()) > LONGEST_ARTIFACT for name in artifacts):
        raise ValueError("the name of an artifact is too long")
    folders = {str(folder) for name in artifacts for folder in PurePosixPath(name).parents}
    if folders & {*artifacts}:
        raise ValueError("an artifact is a folder of another")
