"""Measures of a finished job: numbers, series and arrays, in modules by topic."""

import importlib
import pkgutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.values import UserError, check_choice
from normbench.engine.settings import Settings
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.theory import sizes

Arrays = Mapping[str, Mapping[str, Any]]
# Name of an array (n, 2) that is kept with the descent: the name of each finding, and what in the
# judging it depends on.
FOLLOWS = "follows"


@cache
def measures() -> tuple[Measure, ...]:
    """Return every `Measure` of the files of this room, in the order of their names and lines."""
    files = sorted(module_info.name for module_info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in files]
    values = [value for module in modules for value in vars(module).values()]
    return tuple(dict.fromkeys(value for value in values if isinstance(value, Measure)))


def without_descent(settings: Settings) -> bool:
    """Return whether a job fits and records only, with `iterations=0` and a `record`."""
    return bool(settings.record) and settings.iterations == 0


def check(settings: Settings, dataset: Dataset, scheme: Any) -> None:
    """Check that every measure in the setting `record` can be taken.

    Args:
        settings: The settings of the job.
        dataset: The data set.
        scheme: The scheme, not yet fitted.

    Raises:
        UserError: A measure cannot be taken, or `shown_point` names no training point.
    """
    if settings.shown_point >= len(dataset.x):
        raise UserError(
            f"shown_point={settings.shown_point}: {dataset.name} has {len(dataset.x)} training "
            f"points, counted from 0; choose one up to {len(dataset.x) - 1}"
        )
    measure_by_record = {measure.record: measure for measure in measures() if measure.record}
    for name in settings.record:
        measure = measure_by_record[check_choice("record", name, list(measure_by_record))]
        if measure.of_descent and settings.iterations == 0:
            raise UserError(
                f"record={name}: is of a descent, and iterations=0 makes none; "
                f"set iterations or leave {name} out"
            )
        measure.check(dataset, scheme)


def take(job: FinishedJob, settings: Settings) -> tuple[Findings, Arrays]:
    """Take all measures of a finished job.

    Args:
        job: The finished job.
        settings: Its settings.

    Returns:
        The merged findings of all measures, and the arrays of each measure by its name in the
        setting `record`. Arrays of measures without such a name are kept together under
        `names.DESCENT_ARRAYS`, with an array `FOLLOWS` of what each finding depends on.
    """
    arrays: dict[str, dict[str, Any]] = {}
    of_steps: dict[int, dict[str, Any]] = {}
    follows: dict[str, str] = {}
    merged, descent = Findings(notes=tuple(_job_notes(job, settings))), job.judged_descent
    for measure in measures():
        is_wanted = not measure.record or measure.record in settings.record
        lacks_best = measure.depends_on == BEST_STEP and descent and descent.best is None
        if not is_wanted or lacks_best or (measure.of_descent and descent is None):
            continue
        tick = time.perf_counter()
        # A measure in `record` is drawn, and takes points in memory.
        findings = measure.take(job.shown_points if measure.record else job)
        seconds = time.perf_counter() - tick
        is_requested = bool(measure.record or (measure.on_request and findings.metrics))
        merged = Findings(
            {**merged.metrics, **findings.metrics},
            {**merged.tags, **findings.tags},
            {**merged.series, **findings.series},
            notes=merged.notes + findings.notes,
            seconds=merged.seconds + seconds * (not is_requested),
            search_seconds=merged.search_seconds + seconds * is_requested,
        )
        arrays.setdefault(measure.record or names.DESCENT_ARRAYS, {}).update(findings.arrays)
        for number, step_findings in findings.of_steps.items():
            of_steps.setdefault(number, {}).update(step_findings)
        logged = [*findings.metrics, *findings.tags, *findings.series]
        if findings.arrays and measure.record:  # which stands for all arrays of a measure
            logged.append(measure.record)
        elif measure.depends_on:
            logged += findings.arrays
        follows |= dict.fromkeys(logged, measure.depends_on)
    tags = dict(merged.tags)
    if merged.notes:
        follows[names.NOTE.key] = ""  # the notes stay true under other rules of judging
        tags[names.NOTE.key] = "; ".join(merged.notes)
    if arrays.get(names.DESCENT_ARRAYS):
        arrays[names.DESCENT_ARRAYS][FOLLOWS] = np.array([*follows.items()])
    record_names = (*settings.record, names.DESCENT_ARRAYS)  # in the order that the user wrote
    return (
        replace(merged, tags=tags, notes=(), of_steps=of_steps, depends_on=follows),
        {name: arrays[name] for name in record_names if arrays.get(name)},
    )


def _job_notes(job: FinishedJob, settings: Settings) -> Iterator[str]:
    """Yield notes on what theory left out for the size of the job, and on points not shown."""
    descent = job.judged_descent
    if descent and descent.theory.note:
        yield descent.theory.note
    if descent and settings.theory != "none":
        is_solved = descent.least.is_solved
        left_out = sizes.left_out(settings.theory, descent.train, job.dataset.x, is_solved)
        if left_out:
            yield f"{', '.join(left_out)} {sizes.LEFT_OUT}"
    if settings.record and len(job.shown_points.z) < len(job.z):
        yield f"{len(job.shown_points.z)} of {len(job.z)} points are shown, drawn at random"
