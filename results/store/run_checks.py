"""Check the types and bounds of recorded values; unreadable runs are left out and named.

A store may come from anybody. Every value that is used in a computation is checked here, before
MLflow's runs become a table, so that no later reader has to check again.
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

MAX_LENGTHS = {"parameter": 6000, "tag": 8000, "metric": 250}  # characters that MLflow stores
MAX_ENTRIES = 2000  # params, tags or metrics of a run; the largest job has 300
MAX_VALUE_LENGTH = 30  # characters of a value in a message
MAX_ITERATION = 1 << 40  # beyond any real iteration
MAX_NAMED_RUNS = 5  # unreadable runs that are named one by one
ROLES = (names.SWEEP, names.SCHEME, names.STEP)
ITERATIONS_PARAMETER = "iterations"
JOB_METRICS = (names.FIT_SECONDS, names.DESCENT_SECONDS, names.THEORY_SECONDS, names.STEPS_TRIED)


def readable(runs: Sequence[Any], experiments: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Separate readable runs from others.

    Args:
        runs: Runs as MLflow's objects.
        experiments: The experiments' names, by their ids.

    Returns:
        The readable runs, and a sentence about each unreadable one. The step runs of an unreadable
        job are left out with it, without a sentence.
    """
    troubles = {run.info.run_id: _first_trouble(run, experiments) for run in runs}
    unreadable = {run_id: trouble for run_id, trouble in troubles.items() if trouble}
    readable_runs = [
        run
        for run in runs
        if run.info.run_id not in unreadable
        and (
            run.data.tags.get(names.ROLE.key) != names.STEP
            or run.data.tags.get(names.PARENT.key) not in unreadable
        )
    ]
    return readable_runs, [
        left_out_sentence(run_id, trouble) for run_id, trouble in unreadable.items()
    ]


def without_interrupted(runs: Sequence[Any]) -> list[Any]:
    """Return runs without the jobs and steps whose recording was interrupted.

    Args:
        runs: Runs as MLflow's objects.

    Returns:
        The completely recorded runs.
    """
    interrupted = {
        run.info.run_id
        for run in runs
        if run.data.tags.get(names.ROLE.key) == names.SCHEME
        and run.info.status not in ("FINISHED", "FAILED")
    }
    return [
        run
        for run in runs
        if run.info.run_id not in interrupted
        and run.data.tags.get(names.PARENT.key) not in interrupted
        # A step never fails: it is written once its descent is over.
        and not (run.data.tags.get(names.ROLE.key) == names.STEP and run.info.status != "FINISHED")
    ]


def left_out_sentence(run_id: str, trouble: str) -> str:
    """Return the sentence about an unreadable run.

    Args:
        run_id: The run.
        trouble: Why it cannot be read, as a clause.

    Returns:
        The sentence.
    """
    return f"{_run_left_out(run_id)}{trouble}. It was damaged, or is not normbench's."


def is_named(run_id: str, notes: Sequence[str]) -> bool:
    """Return whether one of some sentences from `left_out_sentence` names a run.

    Args:
        run_id: The id of the run.
        notes: The sentences.

    Returns:
        Whether the run was left out.
    """
    return any(note.startswith(_run_left_out(run_id)) for note in notes)


def _run_left_out(run_id: str) -> str:
    """Return the beginning of the sentence about an unreadable run."""
    return f"Run {clean.line(run_id)} is left out: "


def first_sentences(notes: Sequence[str]) -> list[str]:
    """Return the first `MAX_NAMED_RUNS` sentences and, if there are more, one that counts them."""
    unnamed_count = len(notes) - MAX_NAMED_RUNS
    return [
        *notes[:MAX_NAMED_RUNS],
        *([f"And {unnamed_count} more runs are left out."] if unnamed_count > 0 else []),
    ]


def is_number(value: Any) -> bool:
    """Return whether a metric's value is finite, as all that normbench records are."""
    # MLflow stores infinity as the largest float.
    return isinstance(value, (int, float)) and -sys.float_info.max < value < sys.float_info.max


def history(points: Sequence[Any]) -> Sequence[Any]:
    """Return the points of a metric; none where normbench cannot have recorded all of them."""
    is_valid = all(is_number(point.value) and 0 <= point.step < MAX_ITERATION for point in points)
    return points if is_valid else ()


def arrays(file: Path, run_id: str, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record; nothing in its file is unpickled.

    Args:
        file: The record's file.
        run_id: The run, for the message of an error.
        name: The record's name, likewise.

    Returns:
        The arrays by name.

    Raises:
        ResultsError: The file is damaged, or its arrays do not fit into memory.
    """
    try:
        with (
            files.open_compressed_arrays(file) as stream,
            np.load(stream, allow_pickle=False) as archive,
        ):
            return {key: _cleaned(array) for key, array in archive.items()}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, MemoryError) as error:
        raise ResultsError(
            f"run {run_id}: its arrays/{name}.npz is damaged, or not normbench's "
            f"({clean.first_line(error)}); delete its comparison, or take the file from a copy"
        ) from error


def _cleaned(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array with its texts, the names of features and classes, sanitized."""
    if array.dtype.kind != "U":
        return array
    return np.array([clean.recorded_line(name) for name in array.flat], dtype=str).reshape(
        array.shape
    )


def _first_trouble(run: Any, experiments: Mapping[str, Any]) -> str:
    """Return the first reason why a run cannot be read; empty where it can."""
    return next(_troubles(run, experiments), "")


def _troubles(run: Any, experiments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a run cannot be read, as clauses.

    Each check relies on the earlier ones, so that only the first reason may be taken.

    Args:
        run: The run as MLflow's object.
        experiments: The experiments' names, by their ids.
    """
    run_info, data = run.info, run.data
    if not isinstance(experiments.get(run_info.experiment_id), str):
        yield "the name of its experiment is no text"
    if (
        not isinstance(run_info.run_name or "", str)
        or len(run_info.run_name or "") > MAX_LENGTHS["tag"]
    ):
        yield "its name is no text, or too long"
    # A run that has not ended has no end: its start is checked alone.
    times = (
        run_info.start_time,
        run_info.start_time if run_info.end_time is None else run_info.end_time,
    )
    if not all(isinstance(time, int) for time in times):
        yield "it has no time"
    yield from _troubles_of_texts("parameter", data.params)
    yield from _troubles_of_texts("tag", data.tags)
    if len(data.metrics) > MAX_ENTRIES:
        yield f"it has {len(data.metrics)} metrics"
    for key, value in data.metrics.items():
        if not isinstance(key, str) or len(key) > MAX_LENGTHS["metric"] or not is_number(value):
            yield f"its metric {_abbreviate(key)} is {_abbreviate(value)}"
    role = data.tags.get(names.ROLE.key)
    if role not in ROLES:
        yield f"its tag {names.ROLE.key} is {_abbreviate(role)}"
    if role == names.SWEEP:
        yield from _troubles_of_sweep(data.tags)
    else:
        yield from _troubles_of_job(role, data.params, data.tags, data.metrics)


def _troubles_of_texts(field: str, entries: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the clauses about params or tags that are no texts, too long or too many.

    Args:
        field: `parameter` or `tag`.
        entries: Texts by key.
    """
    if len(entries) > MAX_ENTRIES:
        yield f"it has {len(entries)} {field}s"
    for key, text in entries.items():
        if not isinstance(key, str) or not isinstance(text, str):
            yield f"its {field} {_abbreviate(key)} is no text"
        elif len(key) > MAX_LENGTHS[field]:
            yield f"its {field} {_abbreviate(key)} has a name of {len(key)} characters"
        elif len(text) > MAX_LENGTHS[field]:
            yield f"its {field} {_abbreviate(key)} has {len(text)} characters"


def _troubles_of_sweep(tags: Mapping[str, str]) -> Iterator[str]:
    """Yield the clause about a sweep's number of jobs if it is no number."""
    jobs = tags.get(names.JOBS.key, "0")
    if not (jobs.isascii() and jobs.isdigit() and len(jobs) < 10):
        yield f"its tag {names.JOBS.key} is {_abbreviate(jobs)}"


def _troubles_of_job(
    role: str, params: Mapping[str, str], tags: Mapping[str, str], metrics: Mapping[str, float]
) -> Iterator[str]:
    """Yield the clauses about values of a scheme's or a step's run that computations use.

    A failed job has recorded none of the metrics and not all params, which are not checked then.

    Args:
        role: `scheme` or `step`.
        params: The params of the run, texts by key.
        tags: Its tags, texts by key.
        metrics: The last value of each metric.
    """
    verdict, size = tags.get(names.VERDICT.key), tags.get(names.STEP_TAG.key)
    # A scheme of which no step size is shown has no such tag; a step always has one.
    if (size is not None or role == names.STEP) and not _is_size(size):
        yield f"its tag {names.STEP_TAG.key} is {_abbreviate(size)}"
    if not metrics.get(names.STEP_SIZE.key, 1.0) > 0:  # 1.0: a missing one passes
        yield f"its metric {names.STEP_SIZE.key} is {_abbreviate(metrics[names.STEP_SIZE.key])}"
    if role == names.STEP and names.STEP_SIZE.key not in metrics:
        yield f"it has no metric {names.STEP_SIZE.key}"
    if role == names.STEP or verdict == names.FAILED:
        return
    missing_metrics = (metric.key for metric in JOB_METRICS if metric.key not in metrics)
    for key in missing_metrics:
        yield f"it has no metric {key}"
    if ITERATIONS_PARAMETER not in params:
        yield f"it has no parameter {ITERATIONS_PARAMETER}"
    for key, text in params.items():
        check = _check_of(key)
        if check and not _holds(check, key, text):
            yield f"its parameter {key} is {_abbreviate(text)}"


def _is_size(text: str | None) -> bool:
    """Return whether a text is a step size."""
    try:
        return text is not None and 0 < float(text) <= sys.float_info.max
    except ValueError:
        return False


def _check_of(key: str) -> Callable[[str, Any], Any] | None:
    """Return the check of a setting that is always a number; None for any other.

    Returns:
        A function of the setting's name and value that returns the checked value, or raises
        ValueError.
    """
    row = settings.find_setting(key)  # may be the row of the whole group
    # A setting whose default is None or a text may have values that are no numbers.
    check = row.check if row and row.name == key and type(row.default) in (int, float) else None
    return check if isinstance(check, partial) else None  # checks with bounds are partials


def _holds(check: Callable[[str, Any], Any], key: str, text: str) -> bool:
    """Return whether a setting's recorded text is a finite number that passes its check.

    Args:
        check: The check, from `_check_of`.
        key: The name of the setting.
        text: The recorded text.
    """
    try:
        return math.isfinite(check(key, literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError):
        return False


def _abbreviate(value: Any) -> str:
    """Return a value as text for a message, truncated; None, a missing one, as `not there`."""
    if value is None:
        return "not there"
    text = clean.line(
        repr(value[:MAX_VALUE_LENGTH]) if isinstance(value, (str, bytes)) else f"{value!r}"
    )
    return text if len(text) <= 2 * MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}..."
