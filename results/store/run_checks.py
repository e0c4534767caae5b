"""The typed values of a run: what another program wrote, or damaged, is left out and named.

A store may be anybody's. Everything that is computed with has a type and a bound here, where the
entries of MLflow become a table; behind it, no reader asks again.
"""

import math
import sys
import zlib
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from normbench import names, settings
from normbench.results.safe import clean, files
from normbench.results.store.errors import ResultsError

LONGEST = {"parameter": 6000, "tag": 8000, "metric": 250}  # characters that MLflow takes
MOST = 2000  # entries of a kind that a run may have; the largest job has 300
SHOWN = 30  # characters of a value in a note
LAST = 1 << 40  # no iteration is as late
LISTED = 5  # runs that are named
ROLES = (names.SWEEP, names.SCHEME, names.STEP)
ITERATIONS = "iterations"
OF_A_JOB = (names.FIT_SECONDS, names.DESCENT_SECONDS, names.THEORY_SECONDS, names.STEPS_TRIED)


def readable(runs: Sequence[Any], experiments: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Return the runs that can be read, and a sentence for each that is left out.

    With a job's run, those of its steps are left out. experiments: their names, by their ids.
    """
    troubles = {run.info.run_id: _trouble(run, experiments) for run in runs}
    odd = {run_id: trouble for run_id, trouble in troubles.items() if trouble}
    kept = [
        run
        for run in runs
        if run.info.run_id not in odd
        and (
            run.data.tags.get(names.ROLE.key) != names.STEP
            or run.data.tags.get(names.PARENT.key) not in odd
        )
    ]
    return kept, [left_out(run_id, trouble) for run_id, trouble in odd.items()]


def whole(runs: Sequence[Any]) -> list[Any]:
    """Return runs without the jobs, and the steps, that were cut off while they were written."""
    cut = {
        run.info.run_id
        for run in runs
        if run.data.tags.get(names.ROLE.key) == names.SCHEME
        and run.info.status not in ("FINISHED", "FAILED")
    }
    return [
        run
        for run in runs
        if run.info.run_id not in cut
        and run.data.tags.get(names.PARENT.key) not in cut
        and not (run.data.tags.get(names.ROLE.key) == names.STEP and run.info.status != "FINISHED")
    ]


def left_out(run_id: str, trouble: str) -> str:
    """Return the sentence that names a run which cannot be read."""
    return f"{_run_left_out(run_id)}{trouble}. It was damaged, or is not normbench's."


def is_named(run_id: str, notes: Sequence[str]) -> bool:
    """Return whether one of some sentences from `left_out` names a run."""
    return any(note.startswith(_run_left_out(run_id)) for note in notes)


def _run_left_out(run_id: str) -> str:
    return f"Run {clean.line(run_id)} is left out: "


def listed(notes: Sequence[str]) -> list[str]:
    """Return the first of many sentences, and how many there are more."""
    rest = len(notes) - LISTED
    return [*notes[:LISTED], *([f"And {rest} more runs are left out."] if rest > 0 else [])]


def is_number(value: Any) -> bool:
    """Return whether a metric's value is one that normbench records: a finite number."""
    # MLflow stores infinity as the largest float.
    return isinstance(value, (int, float)) and -sys.float_info.max < value < sys.float_info.max


def history(points: Sequence[Any]) -> Sequence[Any]:
    """Return the points of a metric; none where one of them is not what normbench records."""
    whole = all(is_number(point.value) and 0 <= point.step < LAST for point in points)
    return points if whole else ()


def arrays(file: Path, run_id: str, name: str) -> dict[str, NDArray[Any]]:
    """Return a record's named arrays from its file; nothing in it is unpickled.

    Raises ResultsError for a file that is damaged, or unpacks to more than memory holds.
    """
    try:
        with files.packed(file) as stream, np.load(stream, allow_pickle=False) as parts:
            return {key: _cleaned(part) for key, part in parts.items()}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, MemoryError) as error:
        raise ResultsError(
            f"run {run_id}: its arrays/{name}.npz is damaged, or not normbench's "
            f"({clean.first_line(error)}); delete its comparison, or take the file from a copy"
        ) from error


def _cleaned(part: NDArray[Any]) -> NDArray[Any]:
    """Return an array; names in it, of features and classes, are cleaned."""
    if part.dtype.kind != "U":
        return part
    return np.array([clean.line(name) for name in part.flat], dtype=str).reshape(part.shape)


def _trouble(run: Any, experiments: Mapping[str, Any]) -> str:
    """Return why a run cannot be read; empty where it can be."""
    return next(_troubles(run, experiments), "")


def _troubles(run: Any, experiments: Mapping[str, Any]) -> Iterator[str]:
    info, data = run.info, run.data
    if not isinstance(experiments.get(info.experiment_id), str):
        yield "the name of its experiment is no text"
    if not isinstance(info.run_name or "", str) or len(info.run_name or "") > LONGEST["tag"]:
        yield "its name is no text, or too long"
    times = (info.start_time, info.start_time if info.end_time is None else info.end_time)
    if not all(isinstance(time, int) for time in times):
        yield "it has no time"
    yield from _texts("parameter", data.params)
    yield from _texts("tag", data.tags)
    if len(data.metrics) > MOST:
        yield f"it has {len(data.metrics)} metrics"
    for key, value in data.metrics.items():
        if not isinstance(key, str) or len(key) > LONGEST["metric"] or not is_number(value):
            yield f"its metric {_shown(key)} is {_shown(value)}"
    role = data.tags.get(names.ROLE.key)
    if role not in ROLES:
        yield f"its tag {names.ROLE.key} is {_shown(role)}"
    if role == names.SWEEP:
        yield from _of_sweep(data.tags)
    else:
        yield from _of_job(role, data.params, data.tags, data.metrics)


def _texts(kind: str, entries: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what is wrong with parameters or tags as texts."""
    if len(entries) > MOST:
        yield f"it has {len(entries)} {kind}s"
    for key, text in entries.items():
        if not isinstance(key, str) or not isinstance(text, str):
            yield f"its {kind} {_shown(key)} is no text"
        elif max(len(key), len(text)) > LONGEST[kind]:
            yield f"its {kind} {_shown(key)} has {len(text)} characters"


def _of_sweep(tags: Mapping[str, str]) -> Iterator[str]:
    jobs = tags.get(names.JOBS.key, "0")
    if not (jobs.isascii() and jobs.isdigit() and len(jobs) < 10):
        yield f"its tag {names.JOBS.key} is {_shown(jobs)}"


def _of_job(
    role: str, params: Mapping[str, str], tags: Mapping[str, str], metrics: Mapping[str, float]
) -> Iterator[str]:
    """Yield what is wrong with the entries of a scheme or a step that are computed with."""
    verdict, size = tags.get(names.VERDICT.key), tags.get(names.STEP_TAG.key)
    if (size is not None or role == names.STEP) and not _is_size(size):
        yield f"its tag {names.STEP_TAG.key} is {_shown(size)}"
    if not metrics.get(names.STEP_SIZE.key, 1.0) > 0:
        yield f"its metric {names.STEP_SIZE.key} is {_shown(metrics[names.STEP_SIZE.key])}"
    if role == names.STEP and names.STEP_SIZE.key not in metrics:
        yield f"it has no metric {names.STEP_SIZE.key}"
    if role == names.STEP or verdict == names.FAILED:
        return
    for key in (metric.key for metric in OF_A_JOB if metric.key not in metrics):
        yield f"it has no metric {key}"
    if ITERATIONS not in params:
        yield f"it has no parameter {ITERATIONS}"
    for key, text in params.items():
        check = _check_of(key)
        if check and not _holds(check, key, text):
            yield f"its parameter {key} is {_shown(text)}"


def _is_size(text: str | None) -> bool:
    """Return whether a text is a step size."""
    try:
        return text is not None and 0 < float(text) <= sys.float_info.max
    except ValueError:
        return False


def _check_of(key: str) -> Callable[[str, Any], Any] | None:
    """Return the check of a setting that is always a number; None for any other."""
    row = settings.find(key)
    check = row.check if row and row.name == key and type(row.default) in (int, float) else None
    return check if isinstance(check, partial) else None


def _holds(check: Callable[[str, Any], Any], key: str, text: str) -> bool:
    try:
        return math.isfinite(check(key, literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _shown(value: Any) -> str:
    """Return a value in a note, cut."""
    if value is None:
        return "not there"
    text = clean.line(repr(value[:SHOWN]) if isinstance(value, (str, bytes)) else f"{value!r}")
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}..."
