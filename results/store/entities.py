"""Runs, experiments and their parts, with the attributes of MLflow's own classes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """A point of a metric; its timestamp is in ms."""

    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    """A param; `RunTag` and `InputTag` have the same fields."""

    key: str
    value: str


RunTag = InputTag = Param


@dataclass(frozen=True)
class Dataset:
    """A data set."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None = None
    profile: str | None = None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((entry.name, getattr(self, entry.name)) for entry in fields(self))


class DatasetInput(NamedTuple):
    """A data set as the input of one run, with its tags."""

    dataset: Dataset
    tags: list[Any]


class Inputs(NamedTuple):
    """The inputs of a run."""

    dataset_inputs: list[DatasetInput]


class RunInfo(NamedTuple):
    """The metadata of a run; times are in ms, and the experiment's id is text."""

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
    """A run as MLflow's client returns it."""

    info: RunInfo
    data: RunData
    inputs: Inputs


class Experiment(NamedTuple):
    """An experiment with its tags."""

    experiment_id: str
    name: str
    artifact_location: str
    lifecycle_stage: str
    tags: dict[str, str]


class Page(list[Run]):
    """A page of a query's runs; its token asks for the next page, None after the last."""

    token: str | None = None
