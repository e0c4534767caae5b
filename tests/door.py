"""The one file of the tests that knows middle modules: a room that is rebuilt changes this file.

Tests import a cost, a scheme, an optimizer, `Job`, `run` and `Settings` by their own names, which
users and extensions share; all else of the program they ask for here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.choices import build, options
from normbench.costs.declaration import traits as traits
from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import write_map
from normbench.engine import linear, threads
from normbench.engine.descent import descend as descend
from normbench.engine.linear import Linear
from normbench.engine.network import Network
from normbench.engine.plan import Batches as Batches
from normbench.engine.plan import Plan
from normbench.engine.problem import Problem
from normbench.engine.scheme import Applied, apply_scheme, penalty_of
from normbench.engine.settings import Settings
from normbench.job import Job, Outcome, run, with_default_start
from normbench.job import PointsCache as Cache
from normbench.record.checkpoint import DescentFile as DescentFile
from normbench.record.outcome import RecordHeader, of_outcome
from normbench.results.store import memory
from normbench.results.store.comparison_files import Comparison, JobEntry, record_file
from normbench.results.store.job_records import JobRecord
from normbench.results.store.runs import Sweep as Sweep
from normbench.results.words.sentences import TEMPLATES as SENTENCES
from normbench.verdicts.search import step_size_of as step_size_of

TEMPLATES: Mapping[str, str] = SENTENCES  # of all sentences by their names


def judge(
    dataset: Any, cost: Any, scheme: str, settings: Settings, shared: Cache | None = None
) -> tuple[Job, Outcome]:
    """Return a job of gradient descent under a scheme by its name, and its outcome.

    Its start is that which `start=null` means. shared: what jobs on the same points need once.
    """
    normalizer = build("normalizer", options("normalizer", scheme))
    rule = build("optimizer", options("optimizer", "gradient_descent"))
    job = with_default_start(Job(dataset, cost, normalizer, rule, settings))
    return job, run(job, points_cache=shared)


def descend_again(job: Job, sizes: tuple[float, ...], **changes: Any) -> Outcome:
    """Return the outcome of a job at other step sizes, and at them alone."""
    settings = replace(job.settings, step_sizes=sizes, refine=False, theory="none")
    return run(replace(job, settings=replace(settings, **changes)))


def problem(cost: Any, x: Any, y: Any, classify: bool, l2: Any = 0.0, scores: int = 1) -> Problem:
    """Return the mean of a cost over points x (P, N), as a function of weights (R, C, N + 1).

    It can `evaluate(weights)`, which gives costs, misclassifications and the gradient, and has a
    `hessian(weights)` of the weights of one run, with its `matrix()` and its products `times`.
    `held_out(points, targets)` gives the problem of other points under the same model.
    """
    return Problem(Linear(leaves_out_class=True), cost, x, y, classify, scores, l2)


def penalty(l2: float, scheme: Any, x: Any) -> Any:
    """Return the penalty on the weights of the features x (P, N), under a fitted scheme."""
    applied = Applied(scheme, scheme.transform(x), x[:0], 0.0)
    return penalty_of(l2, "features", applied, x, np.float64)


def normalize(scheme: Any, x: Any, x_test: Any, dtype: Any, moments: Any = None) -> Any:
    """Return training and test points under a scheme that is fitted on training points x (P, N)."""
    data: Any = SimpleNamespace(x=x, x_test=x_test, fit_on="train")
    return apply_scheme(scheme, data, dtype, moments)[1:3]


def points_under(scheme: Any, x: Any, dtype: Any = "float64") -> Any:
    """Return points under a scheme that is fitted on them."""
    return normalize(scheme, x, np.empty((0, x.shape[1])), dtype)[0]


def mapped(x: Any) -> Any:
    """Return points as a memory map, as loaders return those of large files."""
    points = write_map([x], x.shape, x.dtype)
    if len(x):
        vars(points)["in_blocks"] = True
    return points


def plan(records: int, batches: Batches | None = None) -> Plan:
    """Return the plan of a descent: all points at each step, or batches."""
    return Plan(records, batches)


def network(
    model: Any, cost: Any, x: Any, targets: Any, classify: bool, scores: int, l2: float = 0.0
) -> Problem:
    """Return the mean of a cost over points (P, N), as a function of a network's weights (R, D)."""
    return Problem(Network(model), cost, x, targets, classify, scores, l2)


def layout(network: Problem) -> Any:
    """Return the layout of the weights of a network's problem."""
    return network.model.layout(network)


def share_work(monkeypatch: Any, points: int, row_bytes: int, count: int = 1) -> None:
    """Let problems read so many points at a time, and share them among threads, however few."""
    monkeypatch.setattr(linear, "BLOCK_BYTES", points * row_bytes)
    monkeypatch.setattr(linear, "PARALLEL_WORK", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: count)


def record_of(dataset: Any, outcome: Outcome, experiment: str, params: Any, tags: Any) -> JobRecord:
    """Return what is recorded of a job."""
    return of_outcome(RecordHeader(experiment, params, tags), dataset, outcome)


def keep(home: Path, sweep_id: str, command: str, records: Mapping[str, JobRecord]) -> Comparison:
    """Keep records by their keys as a comparison that has ended, and return it."""
    for key, record in records.items():
        record.save(record_file(home, key))
    jobs = [JobEntry(record.experiment, key) for key, record in records.items()]
    comparison = Comparison(home / sweep_id, command, "", jobs, {})
    comparison.end("finished")
    return comparison


def frame(rows: Sequence[Mapping[str, Any]]) -> Sweep:
    """Return rows of runs, made by hand, as a reader of a store sees them."""
    return Sweep("-", "s", pd.DataFrame(rows))


def compared(experiment: str, jobs: Sequence[tuple[str, Job, Outcome]]) -> Sweep:
    """Return jobs by their labels as a reader of a store sees their comparison."""
    records = []
    for label, job, outcome in jobs:
        params = {key: getattr(job.settings, key) for key in ("start", "iterations", "shadows")}
        own = {"normalizer": label}
        records.append(record_of(job.dataset, outcome, experiment, own | params, own))
    return memory.sweep(records, "", {})


def captioned(text: str) -> str:
    """Return the key of the metric that captions call by a text."""
    from normbench.results.report import captions

    metrics = {
        captions.CONDITION_TEXT: names.CONDITION,
        captions.COVARIANCE: names.COVARIANCE_CONDITION,
        captions.SHARPEST: names.SHARPNESS,
    }
    return str(metrics[text].key)


def explanation(data: Dataset, outcome: Outcome) -> str:
    """Return the explanation that is recorded of a job."""
    place = RecordHeader("of", {}, {"normalizer": "own"})
    return of_outcome(place, data, outcome).scheme.tags["explanation"]


def answer(sweep: Sweep, figures: Sequence[str]) -> Iterator[str]:
    """Yield each paragraph that is said of one experiment, and the captions of some figures."""
    from normbench.results.answer import cause, closing, fastest, theory_table
    from normbench.results.compare import heldout
    from normbench.results.report import captions, profile

    (experiment,) = sweep.experiments
    yield theory_table.explanation(sweep, experiment)
    yield from profile.notes([sweep])
    yield closing.ranking_paragraph(sweep, experiment)
    yield from fastest.answers(sweep, experiment, heldout.by_split(sweep))
    yield cause.cause(sweep, experiment)
    for figure in figures:
        yield captions.describe_figure(sweep, experiment, figure)
