"""What is written of a job: plain values, which wait on disk while the store cannot be reached."""

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
from normbench.recording.store import thinned
from normbench.results.safe import clean, secrets
from normbench.results.store.job_records import Entry, JobRecord, RunRecord
from normbench.verdicts.judging import Step

NONE_BEST = {
    names.DIVERGED: "every step size diverged",
    names.BY_ROUNDING: "every step size diverged or is decided by rounding",
}
LONGEST = 5000  # characters of a tag
LONGEST_SCHEMA = 200_000  # characters, some 3,500 features: every record of a job carries it


@dataclass(frozen=True)
class Place:
    """Where a job's runs belong, and what is known of it before it starts."""

    store: str
    experiment: str
    parent: str
    params: dict[str, Any]
    tags: dict[str, str]


def of_outcome(place: Place, dataset: Dataset, outcome: Outcome) -> JobRecord:
    """Return what is written of a job that ran; every number in it is finite."""
    encoding = {"dataset.encoding": dataset.encoding} if dataset.classes else {}
    told = replace(place, params={**place.params, **encoding})
    return written(told, _dataset(dataset), outcome)


def written(place: Place, dataset: Mapping[str, str], outcome: Outcome) -> JobRecord:
    """Return what is written of an outcome; dataset: the entries of MLflow's dataset input."""
    tags = {**place.tags, **_texts(outcome.findings.tags)}
    metrics: list[Entry] = []
    if outcome.best is not None:
        best = outcome.steps[outcome.best]
        # When a scheme reaches a target is told of its own best step size for it, in the findings.
        own = outcome.findings.metrics
        metrics += [entry for entry in _metrics(best) if entry[0] not in own]
        tags |= {names.VERDICT.key: best.verdict, names.STEP_TAG.key: f"{best.step_size:g}"}
        tags |= {names.THINNED.key: "true"} if _is_thinned(best) else {}
    elif outcome.steps:
        verdict = min((step.verdict for step in outcome.steps), key=names.UNRANKED.index)
        tags |= {names.VERDICT.key: verdict, names.REASON.key: NONE_BEST[verdict]}
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
    name = place.tags[names.NORMALIZER.key]
    return JobRecord(
        place.store,
        place.experiment,
        place.parent,
        _texts(place.params),
        RunRecord(name, tags, metrics),
        [
            _step(name, place.tags, step, number == outcome.best)
            for number, step in enumerate(outcome.steps)
        ],
        dict(dataset),
        outcome.arrays,
    )


def of_failure(place: Place, error: BaseException) -> JobRecord:
    """Return what is written of a job that failed: its reason and its traceback."""
    reason = _own_line(error) + (" ".join(str(error).split()) or type(error).__name__)
    if isinstance(error, MemoryError):
        reason = f"out of memory ({reason})"
    elif not isinstance(error, Exception):  # such as sys.exit()
        reason = f"{type(error).__name__}: {reason}"
    own = {
        names.VERDICT.key: names.FAILED,
        names.REASON.key: _text(reason),
        names.ERROR.key: type(error).__name__,
    }
    return JobRecord(
        place.store,
        place.experiment,
        place.parent,
        _texts(place.params),
        RunRecord(place.tags[names.NORMALIZER.key], {**place.tags, **own}),
        failure=clean.sanitize("".join(traceback.format_exception(error))),
    )


def _own_line(error: BaseException) -> str:
    """Return the line of the user's own code that an error came from; empty where none did."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        module = str(frame.f_globals.get("__name__", "")).split(".")[0]
        theirs = "site-packages" in file.parts or module in sys.stdlib_module_names
        if module != "normbench" and not theirs and file.suffix == ".py":
            found = f"{file.name}, line {line}: "
    return found


def _texts(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as they are recorded; numbers, which results are computed with, as such."""
    return {
        key: _text(
            value if isinstance(value, (int, float)) else secrets.blot_setting(key, str(value))
        )
        for key, value in params.items()
    }


def _text(value: Any) -> str:
    """Return what MLflow is told of a value: cleaned, and cut to its limit."""
    return clean.sanitize(str(value))[:LONGEST]


def _step(name: str, tags: Mapping[str, str], step: Step, best: bool) -> RunRecord:
    size = f"{step.step_size:g}"
    own = {
        names.STEP_TAG.key: size,
        names.VERDICT.key: step.verdict,
        names.BEST.key: str(best).lower(),
        names.FALLS.key: str(step.judgement.falls).lower(),
    }
    if step.reason:
        own[names.REASON.key] = step.reason
    if _is_thinned(step):
        own[names.THINNED.key] = "true"
    if len(step.verdicts) > 1:
        own[names.START_VERDICTS.key] = ", ".join(step.verdicts)
    # What makes a run the job's own is its scheme's alone.
    digests = (names.FINGERPRINT, names.DESCENT, names.GRID_DESCENT, names.REQUEST)
    own_alone = [tag.key for tag in (*digests, names.JOB)]
    shared = {key: text for key, text in tags.items() if key not in own_alone}
    metrics = [(names.STEP_SIZE.key, step.step_size, 0), *_metrics(step)]
    metrics += _points(step.starts) if len(step.verdicts) > 1 else []  # of each, by its number
    return RunRecord(f"{name}, step {size}", {**shared, **own}, metrics)


def _dataset(dataset: Dataset) -> dict[str, str]:
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
        "digest": dataset.fingerprint[:36],
        "source_type": "normbench",
        "source": json.dumps({"source": clean.sanitize(dataset.source)}),
        "profile": json.dumps(profile),
        **({"schema": schema} if len(schema) <= LONGEST_SCHEMA else {}),
    }


def _metrics(step: Step) -> list[Entry]:
    """Return every metric of a step size: histories, quartiles and finals."""
    entries: list[Entry] = []
    thin = _is_thinned(step)
    for metric in names.HISTORIES:
        history: Any = step.histories.get(metric.key, ())
        entries += _points({metric.key: history}, thin)
        for number, part in enumerate(names.QUARTILES):
            if metric.key in step.quartiles:
                key = names.quartile(metric, part).key
                entries += _points({key: step.quartiles[metric.key][number]})
        if len(history):
            entries.append((names.final(metric).key, float(history[-1]), 0))
    entries += _points(step.series, thin)
    return _finite(entries + [(key, value, 0) for key, value in step.metrics.items()])


def _grid(steps: Sequence[Step]) -> list[Entry]:
    """Return where each step size that stayed finite ends, so that a chart can show the grid.

    By its power of ten: MLflow has no logarithmic axis over a metric.
    """
    entries: list[Entry] = []
    for number, step in enumerate(steps):
        if step.verdict not in names.UNRANKED:
            entries.append((names.GRID_STEP_SIZE.key, float(np.log10(step.step_size)), number))
            for metric in (names.TRAIN_COST, names.TRAIN_MISCLASSIFICATIONS):
                for value in step.histories.get(metric.key, [])[-1:]:
                    entries.append((names.grid(metric).key, float(value), number))
    return _finite(entries)


def _findings(found: Findings) -> list[Entry]:
    """Return theory and what the grid came to; a number that does not exist is left out."""
    entries: list[Entry] = [(key, value, 0) for key, value in found.metrics.items()]
    for key, (steps, values) in found.series.items():
        entries += [(key, float(value), int(k)) for k, value in zip(steps, values)]
    entries.append((names.THEORY_SECONDS.key, found.seconds, 0))
    if found.search_seconds > 1e-3:
        entries.append((names.SEARCH_SECONDS.key, found.search_seconds, 0))
    return _finite(entries)


def _finite(entries: list[Entry]) -> list[Entry]:
    return [(key, float(value), step) for key, value, step in entries if np.isfinite(value)]


def _points(histories: Mapping[str, Any], thin: bool = False) -> Iterator[Entry]:
    for key, history in histories.items():
        finite = np.flatnonzero(np.isfinite(history))
        kept = finite[thinned.places(np.asarray(history)[finite])] if thin else finite
        for k in kept:
            yield key, float(history[k]), int(k)


def _is_thinned(step: Step) -> bool:
    """Return whether MLflow gets some of a step's histories: of one start, all are kept as arrays.

    Of several starts the histories are medians, which are kept nowhere else.
    """
    longest = max(map(len, step.histories.values()), default=0)
    return longest > thinned.MOST and len(step.verdicts) < 2
