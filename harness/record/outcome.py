"""Build the record of a job from its outcome, or from the error that ended it."""

import json
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.job import Outcome
from normbench.measures.contract import Findings
from normbench.record import thinned
from normbench.results.safe import clean
from normbench.results.store.job_records import Entry, JobRecord, RunRecord
from normbench.results.words import reasons, sentences
from normbench.verdicts.judging import Step

REASON_WITHOUT_BEST = {
    names.DIVERGED: "every step size diverged",
    names.BY_ROUNDING: "every step size diverged or is decided by rounding",
}
MAX_TEXT = 5000  # characters of a tag or parameter
MAX_SCHEMA = 200_000  # characters, some 3,500 features, in the record of every job


@dataclass(frozen=True)
class RecordHeader:
    """The header of a record: what is known of a job before it starts.

    Attributes:
        experiment: The name of the experiment.
        params: The parameters of the job.
        tags: The tags of the job.
        notes: What is said of its data before it runs.
    """

    experiment: str
    params: dict[str, Any]
    tags: dict[str, str]
    notes: tuple[str, ...] = ()


def of_outcome(header: RecordHeader, dataset: Dataset, outcome: Outcome) -> JobRecord:
    """Return the record of a job that ran.

    Args:
        header: The header of the record.
        dataset: The data set of the job.
        outcome: The outcome of the job.

    Returns:
        The record; every number in it is finite.
    """
    # Only a classification has the encoding of its classes, which the data may have decided.
    encoding = {"dataset.encoding": dataset.encoding} if dataset.classes else {}
    encoded_header = replace(header, params={**header.params, **encoding})
    return build_record(encoded_header, _dataset(dataset), outcome)


def build_record(header: RecordHeader, dataset: Mapping[str, str], outcome: Outcome) -> JobRecord:
    """Return the record of an outcome.

    Args:
        header: The header of the record.
        dataset: The fields of the dataset input in MLflow.
        outcome: The outcome of the job. Without a best step size, the verdict of the scheme is the
            mildest of its step sizes.

    Returns:
        The record, of plain values. The run of the scheme has the metrics of its best step size,
        those of the grid, and the findings.
    """
    tags = {**header.tags, **_texts(outcome.findings.tags)}
    metrics: list[Entry] = []
    shown_step_tags: dict[str, str] = {}
    if outcome.best is not None:
        best = outcome.steps[outcome.best]
        # Iterations to a target are those of the best step size for that target, in the findings.
        finding_keys = outcome.findings.metrics
        metrics += [entry for entry in _metrics(best) if entry[0] not in finding_keys]
        shown_step_tags = {
            names.VERDICT.key: best.verdict,
            names.STEP_TAG.key: f"{best.step_size:g}",
        }
        tags |= shown_step_tags
        tags |= {names.THINNED.key: "true"} if _is_thinned(best) else {}
    elif outcome.steps:  # no step size is ranked; `UNRANKED` lists these verdicts, mildest first
        verdict = min((step.verdict for step in outcome.steps), key=names.UNRANKED.index)
        tags |= {names.VERDICT.key: verdict, names.REASON.key: REASON_WITHOUT_BEST[verdict]}
    if outcome.steps:
        record = reasons.SchemeRecord(
            outcome.findings.metrics, {**outcome.findings.tags, **shown_step_tags}
        )
        tags[names.EXPLANATION.key] = _text(sentences.paragraph(reasons.explain_scheme(record)))
    if outcome.arrays:
        tags[names.RECORDED.key] = ",".join(outcome.arrays)
    verdicts = Counter(step.verdict for step in outcome.steps)
    metrics += _grid(outcome.steps)
    metrics += [
        (names.FIT_SECONDS.key, outcome.fit_seconds, 0),
        (names.DESCENT_SECONDS.key, outcome.descent_seconds, 0),
        *_finite([(names.SECONDS_A_STEP.key, outcome.seconds_a_step, 0)]),
        (names.STEPS_TRIED.key, len(outcome.steps), 0),
        (names.STEPS_DIVERGED.key, verdicts[names.DIVERGED], 0),
        (names.STEPS_BY_ROUNDING.key, verdicts[names.BY_ROUNDING], 0),
        *_findings(outcome.findings),
    ]
    name = header.tags[names.NORMALIZER.key]
    return JobRecord(
        experiment=header.experiment,
        params=_texts(header.params),
        scheme=RunRecord(name, tags, metrics),
        steps=[
            _step_record(name, header.tags, step, number == outcome.best)
            for number, step in enumerate(outcome.steps)
        ],
        dataset=dict(dataset),
        arrays=outcome.arrays,
        notes=[clean.sanitize(note) for note in header.notes],
    )


def of_failure(header: RecordHeader, error: BaseException) -> JobRecord:
    """Return the record of a failed job.

    Args:
        header: The header of the record.
        error: The error; its message becomes the reason, and its traceback an artifact.

    Returns:
        The record, without metrics; passwords in the traceback are blotted.
    """
    reason = _user_code_line(error) + (" ".join(str(error).split()) or type(error).__name__)
    if isinstance(error, MemoryError):
        reason = f"out of memory ({reason})"
    elif not isinstance(error, Exception):  # such as sys.exit()
        reason = f"{type(error).__name__}: {reason}"
    failure_tags = {
        names.VERDICT.key: names.FAILED,
        names.REASON.key: _text(reason),
        names.ERROR.key: type(error).__name__,
    }
    return JobRecord(
        experiment=header.experiment,
        params=_texts(header.params),
        scheme=RunRecord(header.tags[names.NORMALIZER.key], {**header.tags, **failure_tags}),
        failure=clean.sanitize("".join(traceback.format_exception(error))),
    )


def _user_code_line(error: BaseException) -> str:
    """Return where an error last passed through user code, as the beginning of a reason.

    User code is any `.py` file outside normbench, the standard library and `site-packages`.

    Returns:
        `<file>, line <number>: `; empty where the traceback has no user code.
    """
    location = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        module = str(frame.f_globals.get("__name__", "")).split(".")[0]
        is_library = "site-packages" in file.parts or module in sys.stdlib_module_names
        if module != "normbench" and not is_library and file.suffix == ".py":
            location = f"{file.name}, line {line}: "
    return location


def _texts(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters or tags as recorded texts."""
    return {key: _text(value) for key, value in params.items()}


def _text(value: Any) -> str:
    """Return a value as MLflow stores it: sanitized and truncated."""
    return clean.sanitize(str(value))[:MAX_TEXT]


def _step_record(name: str, tags: Mapping[str, str], step: Step, is_best: bool) -> RunRecord:
    """Return the record of the run of a step size.

    Args:
        name: The name of the normalizer.
        tags: The tags of the job.
        step: The judged step size.
        is_best: Whether it is the step size that represents the scheme.
    """
    size = f"{step.step_size:g}"
    step_tags = {
        names.STEP_TAG.key: size,
        names.VERDICT.key: step.verdict,
        names.BEST.key: str(is_best).lower(),
        names.FALLS.key: str(step.judgement.falls).lower(),
    }
    if step.reason:
        step_tags[names.REASON.key] = step.reason
    if _is_thinned(step):
        step_tags[names.THINNED.key] = "true"
    if len(step.verdicts) > 1:
        step_tags[names.START_VERDICTS.key] = ", ".join(step.verdicts)
    # The tags that identify a job belong to the run of its scheme alone.
    scheme_keys = [tag.key for tag in (names.FINGERPRINT, names.DESCENT)]
    shared_tags = {key: text for key, text in tags.items() if key not in scheme_keys}
    metrics = [(names.STEP_SIZE.key, step.step_size, 0), *_metrics(step)]
    # The values of the single starts, with the number of the start as the step of MLflow.
    metrics += _points(step.starts) if len(step.verdicts) > 1 else []
    return RunRecord(f"{name}, step {size}", {**shared_tags, **step_tags}, metrics)


def _dataset(dataset: Dataset) -> dict[str, str]:
    """Return the fields of the dataset input in MLflow; a schema over `MAX_SCHEMA` is left out."""
    profile = {
        "train_points": len(dataset.x),
        "test_points": len(dataset.x_test),
        "features": dataset.x.shape[1],
        "task": dataset.task,
        "classes": list(dataset.class_names),
    }
    columns = [
        {"type": "double", "name": clean.sanitize(name), "required": True}
        for name in dataset.feature_names
    ]
    schema = json.dumps({"mlflow_colspec": columns})
    return {
        "name": clean.sanitize(dataset.name),
        "digest": dataset.fingerprint[:36],  # the longest that MLflow takes
        "source_type": "normbench",
        "source": json.dumps({"source": clean.sanitize(dataset.source)}),
        "profile": json.dumps(profile),
        **({"schema": schema} if len(schema) <= MAX_SCHEMA else {}),
    }


def _metrics(step: Step) -> list[Entry]:
    """Return all metrics of a step size: histories, quartiles, final values and series.

    Only one start has thinned histories, and only several starts have quartiles. Values that are
    not finite are left out.
    """
    entries: list[Entry] = []
    thin = _is_thinned(step)
    for metric in names.HISTORIES:
        history: Any = step.histories.get(metric.key, ())
        entries += _points({metric.key: history}, thin)
        for index, quartile_name in enumerate(names.QUARTILES):
            if metric.key in step.quartiles:
                key = names.quartile(metric, quartile_name).key
                entries += _points({key: step.quartiles[metric.key][index]})
        if len(history):
            entries.append((names.final_metric(metric).key, float(history[-1]), 0))
    entries += _points(step.series, thin)
    return _finite(entries + [(key, value, 0) for key, value in step.metrics.items()])


def _grid(steps: Sequence[Step]) -> list[Entry]:
    """Return each ranked step size with its final cost and misclassifications, for charts.

    A step size is ranked unless its verdict is in `UNRANKED`. The logarithms of the step sizes are
    recorded, because MLflow has no logarithmic axis of a metric. The step of MLflow is the index of
    the step size in the grid.
    """
    entries: list[Entry] = []
    for index, step in enumerate(steps):
        if step.verdict not in names.UNRANKED:
            entries.append((names.GRID_STEP_SIZE.key, float(np.log10(step.step_size)), index))
            for metric in (names.TRAIN_COST, names.TRAIN_MISCLASSIFICATIONS):
                for final_value in step.histories.get(metric.key, [])[-1:]:  # none without it
                    entries.append((names.grid(metric).key, float(final_value), index))
    return _finite(entries)


def _findings(findings: Findings) -> list[Entry]:
    """Return the numbers and series of findings, and their seconds, as finite metrics."""
    entries: list[Entry] = [(key, value, 0) for key, value in findings.metrics.items()]
    for key, (steps, values) in findings.series.items():
        entries += [(key, float(value), int(step)) for step, value in zip(steps, values)]
    entries.append((names.THEORY_SECONDS.key, findings.seconds, 0))
    if findings.search_seconds > 1e-3:  # less is as good as no search
        entries.append((names.SEARCH_SECONDS.key, findings.search_seconds, 0))
    return _finite(entries)


def _finite(entries: list[Entry]) -> list[Entry]:
    """Return the entries with finite values, as Python's floats."""
    return [(key, float(value), step) for key, value, step in entries if np.isfinite(value)]


def _points(histories: Mapping[str, Any], thin: bool = False) -> Iterator[Entry]:
    """Yield the finite points of histories.

    Args:
        histories: Arrays by the key of their metric, one value an iteration (or a start).
        thin: Whether points of long histories are left out, see `thinned`.

    Yields:
        The key, the value, and the index of the value as the step of MLflow.
    """
    for key, history in histories.items():
        indices = np.flatnonzero(np.isfinite(history))
        if thin:
            indices = indices[thinned.thinned_indices(np.asarray(history)[indices])]
        for index in indices:
            yield key, float(history[index]), int(index)


def _is_thinned(step: Step) -> bool:
    """Return whether the histories of a step size are thinned in MLflow.

    With one start, the arrays of the job hold them in full. With several starts the histories are
    medians, which are recorded in MLflow alone.
    """
    longest = max(map(len, step.histories.values()), default=0)
    return longest > thinned.MAX_POINTS and len(step.verdicts) < 2
