"""The one file of the tests that knows middle modules: a room that is rebuilt changes this file.

Tests import a cost, a scheme, an optimizer, `Job`, `run` and `Settings` by their own names, which
users and extensions share; all else of the program they ask for here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from normbench import names
from normbench.choices import build, options
from normbench.costs.declaration import traits as traits
from normbench.engine.settings import Settings
from normbench.job import Job, Outcome, run, with_default_start
from normbench.job import PointsCaches as Caches
from normbench.recording.resume.leftovers import owner_tags
from normbench.recording.store.connection import Store
from normbench.recording.store.records import RecordHeader, of_outcome
from normbench.recording.store.writer import Writer
from normbench.results.answer import cause, fastest, theory_table
from normbench.results.answer import closing as answers
from normbench.results.compare import heldout
from normbench.results.pages.drawn import RecordedFigures
from normbench.results.report import captions, profile
from normbench.results.store import memory
from normbench.results.store.job_records import JobRecord
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import TEMPLATES as SENTENCES
from normbench.verdicts.refinement import step_size_of as step_size_of

# Templates of all sentences by their names, and what captions call metrics.
TEMPLATES: Mapping[str, str] = SENTENCES
CAPTIONED = {
    captions.CONDITION_TEXT: names.CONDITION,
    captions.COVARIANCE: names.COVARIANCE_CONDITION,
    captions.SHARPEST: names.SHARPNESS,
}


def judge(
    dataset: Any, cost: Any, scheme: str, settings: Settings, shared: Caches | None = None
) -> tuple[Job, Outcome]:
    """Return a job of gradient descent under a scheme by its name, and its outcome.

    Its start is that which `start=null` means. shared: what jobs on the same points need once.
    """
    normalizer = build("normalizer", options("normalizer", scheme))
    rule = build("optimizer", options("optimizer", "gradient_descent"))
    job = with_default_start(Job(dataset, cost, normalizer, rule, settings))
    return job, run(job, shared=shared)


def descend_again(job: Job, sizes: tuple[float, ...], **changes: Any) -> Outcome:
    """Return the outcome of a job at other step sizes, and at them alone."""
    settings = replace(job.settings, step_sizes=sizes, refine=False, theory="none")
    return run(replace(job, settings=replace(settings, **changes)))


def writer(place: Any) -> Writer:
    """Return what writes to a store of `tests.stores`."""
    return Writer(Store.at(place.uri, place.artifacts, Path.cwd()))


def record_of(
    dataset: Any, outcome: Outcome, experiment: str, parent: str, params: Any, tags: Any
) -> JobRecord:
    """Return what is recorded of a job."""
    return of_outcome(RecordHeader("-", experiment, parent, params, tags), dataset, outcome)


def own_folder(folder: Path) -> dict[str, str]:
    """Return the tags that tell whose run writes to a folder."""
    return owner_tags(folder)


def tag_figures(writer: Writer, folder: Path, run_id: str, name: str, files: list[Path]) -> None:
    """Record which files were drawn of an experiment."""
    RecordedFigures(writer, folder, {name: run_id}, []).tag_runs({name: files})


def frame(rows: Sequence[Mapping[str, Any]]) -> Sweep:
    """Return rows of runs, made by hand, as a reader of a store sees them."""
    return Sweep("-", "s", pd.DataFrame(rows))


def compared(experiment: str, jobs: Sequence[tuple[str, Job, Outcome]]) -> Sweep:
    """Return jobs by their labels as a reader of a store sees their comparison."""
    records = []
    for label, job, outcome in jobs:
        params = {key: getattr(job.settings, key) for key in ("start", "iterations", "shadows")}
        own = {"normalizer": label}
        records.append(record_of(job.dataset, outcome, experiment, "-", own | params, own))
    return memory.sweep(records, {})


def answer(sweep: Sweep, figures: Sequence[str]) -> Iterator[str]:
    """Yield each paragraph that is said of one experiment, and the captions of some figures."""
    (experiment,) = sweep.experiments
    yield theory_table.explanation(sweep, experiment)
    yield from profile.notes([sweep])
    yield answers.ranking_paragraph(sweep, experiment)
    yield from fastest.answers(sweep, experiment, heldout.by_split(sweep))
    yield cause.cause(sweep, experiment)
    for figure in figures:
        yield captions.describe_figure(sweep, experiment, figure)
