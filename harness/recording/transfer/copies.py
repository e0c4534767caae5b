"""Copies of runs as plain values, which move from one store to another."""

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

RUN_ID = re.compile(r"[0-9a-f]{32}")  # of MLflow; different in every store
SWEEP_WORD = re.compile(r"[\w.-]{1,250}", re.A)
Status = Literal["FINISHED", "FAILED", "KILLED"]
MAX_ARTIFACT_NAME = 200  # bytes: a folder of the user precedes it
REQUIRED_FIELDS = {"name", "digest", "source_type", "source"}  # of a data set in MLflow
JOBS_FILE = "jobs.json"  # the only artifact that has ids of runs
# What is counted of an export and of an import.
COUNT_NAMES = ("sweeps", names.JOBS.key, "runs", "values", "artifacts")
MEMBERSHIP_PREFIX = names.membership("").key
# Tags of a run that hold in one store alone: folders on a machine, and the parent run.
STORE_TAGS = {
    *(names.FOLDER.key, names.PROCESS.key, names.DRAWN.key, names.DRAWN_FILES.key),
    *(names.DRAWN_FROM.key, names.DRAWN_IN.key),
    *(names.PARENT.key, names.ORIGIN.key),
}
Integer = Annotated[int, Field(gt=-(1 << 62), lt=1 << 62)]
Time = Annotated[int, Field(gt=0, lt=1 << 62)]  # MLflow replaces 0 by the present time
Value = tuple[Integer, float, Integer]  # of a metric: step, value, and time of logging in ms


@dataclass(frozen=True)
class RunCopy:
    """A run without the facts of its store.

    Attributes:
        origin: The id of the original run, of which all others are copies.
        experiment: The name of the experiment.
        name: The name of the run.
        status: The status of the run.
        started: The start in ms.
        ended: The end in ms.
        tags: The tags.
        params: The parameters.
        metrics: The values of each metric.
        inputs: The data sets in MLflow, each as `{"input": fields, "tags": tags}`.
        artifacts: The SHA-256 of each artifact by name.
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
        """The sweep to which it belongs."""
        return self.tags[names.SWEEP_ID.key]

    @property
    def members(self) -> dict[str, str]:
        """Its job number in each sweep that has it."""
        member_tags = {
            key: text for key, text in self.tags.items() if key.startswith(MEMBERSHIP_PREFIX)
        }
        return {key.removeprefix(MEMBERSHIP_PREFIX): text for key, text in member_tags.items()}

    @property
    def content_text(self) -> str:
        """Its content as JSON text: equal runs have equal texts, even if they hold NaN."""
        # Of data sets with equal name and digest MLflow keeps the first description, so that the
        # other fields and the tags of an input may differ.
        inputs = [
            [dataset_input["input"]["name"], dataset_input["input"]["digest"]]
            for dataset_input in self.inputs
        ]
        return json.dumps({**asdict(self), "inputs": sorted(inputs)}, sort_keys=True)

    def restricted_to(self, sweeps: Sequence[str]) -> "RunCopy":
        """Return a copy without its memberships in other sweeps than these, by their ids."""
        removed_keys = {
            f"{MEMBERSHIP_PREFIX}{sweep}" for sweep in self.members if sweep not in sweeps
        }
        return replace(
            self, tags={key: text for key, text in self.tags.items() if key not in removed_keys}
        )

    def with_sweep_ids(self, sweeps: Mapping[str, str]) -> "RunCopy":
        """Return a copy with new ids of sweeps in its tags, and in the name of the run of a sweep.

        Args:
            sweeps: The new ids by the old ones, of all sweeps that the run names.
        """
        old_id = self.sweep
        # All tags but those of memberships, which are then added under the new ids.
        tags = {
            key: text for key, text in self.tags.items() if not key.startswith(MEMBERSHIP_PREFIX)
        }
        tags |= {
            f"{MEMBERSHIP_PREFIX}{sweeps[sweep]}": number for sweep, number in self.members.items()
        }
        tags[names.SWEEP_ID.key] = sweeps[old_id]
        if names.JOB.key in tags:
            job_number = tags[names.JOB.key].rpartition("/")[2]
            tags[names.JOB.key] = f"{sweeps[old_id]}/{job_number}"
        name = self.name
        if self.tags[names.ROLE.key] == names.SWEEP and name == f"sweep {old_id}":
            name = f"sweep {sweeps[old_id]}"
        if tags.get(names.RUN_NAME.key) == self.name:  # the tag repeats the name
            tags[names.RUN_NAME.key] = name
        return replace(self, name=name, tags=tags)


@dataclass(frozen=True)
class JobCopy:
    """A job: the run of its scheme, and the runs of its step sizes."""

    scheme: RunCopy
    steps: list[RunCopy]

    @property
    def runs(self) -> list[RunCopy]:
        """All its runs, the one of the scheme first."""
        return [self.scheme, *self.steps]

    def restricted_to(self, sweeps: Sequence[str]) -> "JobCopy":
        """Return a copy without its memberships in other sweeps than these.

        A job that none of the sweeps ran itself becomes the job of the first one, in the order of
        ids, that reused it.

        Args:
            sweeps: The ids of sweeps, at least one of which has the job.
        """
        runs = [run.restricted_to(sweeps) for run in self.runs]
        if self.scheme.sweep not in sweeps:  # the sweep that ran the job is left out
            job_numbers = runs[0].members
            first_sweep = min(job_numbers)
            sweep_tag = {names.SWEEP_ID.key: first_sweep}
            runs = [replace(run, tags=run.tags | sweep_tag) for run in runs]
            runs[0].tags[names.JOB.key] = f"{first_sweep}/{job_numbers[first_sweep]}"
        return JobCopy(runs[0], runs[1:])


def serialize(copy: RunCopy | JobCopy | Mapping[str, Any]) -> bytes:
    """Return the JSON text of a copy, or of a mapping of plain values, as bytes."""
    plain = copy if isinstance(copy, Mapping) else asdict(copy)
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def job_of(content: bytes) -> JobCopy:
    """Return a job from its JSON text, without the tags of the store that it comes from.

    Args:
        content: The text, which is not trusted.

    Raises:
        ValueError: The text is no job that a store would keep unchanged.
        KeyError: A run lacks a tag that every run of a job has. Other errors are among
            `archive.FILE_ERRORS`.
    """
    job: JobCopy = _parsed(JobCopy, content)
    scheme = _checked(job.scheme, names.SCHEME)
    job = JobCopy(scheme, [_checked(step, names.STEP) for step in job.steps])
    if any((run.experiment, run.sweep) != (scheme.experiment, scheme.sweep) for run in job.steps):
        raise ValueError("a step is of another sweep than its job")
    return job


def sweep_of(content: bytes) -> RunCopy:
    """Return the run of a sweep from its JSON text; errors as of `job_of`."""
    return _checked(_parsed(RunCopy, content), names.SWEEP)


def experiments_of(content: bytes) -> dict[str, dict[str, str]]:
    """Return the tags of experiments by name, from their JSON text; errors as of `job_of`."""
    experiments: dict[str, dict[str, str]] = _parsed(dict[str, dict[str, str]], content)
    for name in experiments:
        mlflows_own.check_experiment(name)
    return experiments


def replace_run_ids(content: bytes, ids: Mapping[str, str]) -> bytes:
    """Return the content of `JOBS_FILE` with new ids of runs; unknown ids stay.

    Args:
        content: The content, in which any 32 hexadecimal digits may be an id.
        ids: The new ids by the old ones.
    """

    def new_id(match: re.Match[str]) -> str:
        """Return the new id for a matched one."""
        return ids.get(match[0], match[0])

    # Bytes that are no UTF-8 become surrogates, and the same bytes again.
    decoded = content.decode(errors="surrogateescape")
    return RUN_ID.sub(new_id, decoded).encode(errors="surrogateescape")


def _parsed(value_type: Any, content: bytes) -> Any:
    """Return a value of a type from its JSON text, which is not trusted.

    Args:
        value_type: The type, which pydantic checks without conversions.
        content: The text.

    Raises:
        ValueError: The text is no JSON of such a value, or holds a NUL.
    """
    try:
        value = TypeAdapter(value_type).validate_json(content, strict=True)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from error
    # The second parse has every text, whatever the type of the value.
    if any("\0" in text for text in _texts(json.loads(content))):
        raise ValueError("a text holds a mark that no database takes (NUL)")
    return value


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value: those of all levels, keys of objects included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        keys_or_entries = [*value]
        entries = value.values() if isinstance(value, dict) else ()
        for entry in [*keys_or_entries, *entries]:
            yield from _texts(entry)


def _checked(run: RunCopy, role: str) -> RunCopy:
    """Return a run without the tags of its store; raise an error if it is not a valid run.

    A valid run has the role, and a store would return all of its values unchanged.

    Args:
        run: The run, which is not trusted.
        role: `sweep`, `scheme` or `step`.

    Raises:
        ValueError: The run is not valid.
        KeyError: The run has no tag of a sweep or of a role.
    """
    tags = {key: text for key, text in run.tags.items() if key not in STORE_TAGS}
    if tags.setdefault(names.RUN_NAME.key, run.name) != run.name:
        raise ValueError("a run has two names")
    # SQLite stores -0.0 as 0.0, and -0.0 + 0.0 is 0.0.
    metrics = {
        key: [(step, value + 0.0, logged) for step, value, logged in points]
        for key, points in run.metrics.items()
    }
    run = replace(run, tags=tags, metrics=metrics)
    sweep_ids = [run.sweep, *run.members]
    if run.tags[names.ROLE.key] != role or not all(map(SWEEP_WORD.fullmatch, sweep_ids)):
        raise ValueError(f"a run is no {role}'s")
    if not RUN_ID.fullmatch(run.origin):
        raise ValueError("a run has no id")
    if not all(
        dataset_input["input"].keys() >= REQUIRED_FIELDS and "tags" in dataset_input
        for dataset_input in run.inputs
    ):
        raise ValueError("a data set has no name")
    mlflows_own.check_run(run.name, run.params, run.tags, run.inputs)
    for key, points in run.metrics.items():
        _check_points(key, points)
    _check_artifacts(sorted(run.artifacts))
    return run


def _check_points(key: str, points: Sequence[Value]) -> None:
    """Raise ValueError for a metric that a store would not return unchanged.

    A metric is valid if it has a single point, or distinct points whose largest step is not 0. A
    reader takes a metric with the largest step 0 for a single point.

    Args:
        key: The name of the metric.
        points: Its points: step, value, and time of logging in ms.
    """
    mlflows_own.check_metric(key)
    if any(math.isinf(value) or logged < 0 for _, value, logged in points):
        raise ValueError(f"the metric {key} has an infinite value, or one before 1970")
    # As text, because NaN does not equal itself.
    distinct_points = {(step, str(value), logged) for step, value, logged in points}
    is_history = max((step for step, _, _ in points), default=0) != 0
    if len(distinct_points) < len(points) or not (is_history or len(points) == 1):
        raise ValueError(f"the metric {key} has no value, or several of one step")


def _check_artifacts(artifacts: Sequence[str]) -> None:
    """Raise ValueError for names that cannot be those of files in one folder and its subfolders."""
    if any(len(name.encode()) > MAX_ARTIFACT_NAME for name in artifacts):
        raise ValueError("the name of an artifact is too long")
    # All folders above an artifact; none of them may be an artifact itself.
    folders = {str(folder) for name in artifacts for folder in PurePosixPath(name).parents}
    if folders & {*artifacts}:
        raise ValueError("an artifact is a folder of another")
