"""Runs and what belongs to them, as MLflow's client gives and takes them: the same names."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """A point of a metric. timestamp: in ms."""

    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    """A parameter; also, by other names below, a tag."""

    key: str
    value: str


RunTag = InputTag = Param


@dataclass(frozen=True)
class Dataset:
    """A data set that runs were given."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((entry.name, getattr(self, entry.name)) for entry in fields(self))


class DatasetInput(NamedTuple):
    """A data set as one run was given it."""

    dataset: Dataset
    tags: list[Any]


class Inputs(NamedTuple):
    """What a run was given."""

    dataset_inputs: list[DatasetInput]


class RunInfo(NamedTuple):
    """A run's row. experiment_id: text, as in MLflow's own. Times are in ms."""

    run_id: str
    run_name: str
    user_id: str
    status: str
    start_time: int
    end_time: int | None
    lifecycle_stage: str
    artifact_uri: str
    experiment_id: str


@dataclass
class RunData:
    """A run's tags, parameters, and the last point of each metric."""

    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    last_points: list[Metric] = field(default_factory=list)


class Run(NamedTuple):
    """A run as a store has it."""

    info: RunInfo
    data: RunData
    inputs: Inputs


class Experiment(NamedTuple):
    """An experiment, with its tags."""

    experiment_id: str
    name: str
    artifact_location: str
    lifecycle_stage: str
    tags: dict[str, str]


class Page(list[Run]):
    """Some runs of a query; token: where the next ones begin, None for the last."""

    token: str | None = None
