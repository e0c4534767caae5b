"""Measures of a finished job: numbers, series and arrays, in modules by topic."""

import importlib
import pkgutil
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.values import UserError, check_choice
from normbench.engine.settings import Settings
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure, OfStep, Series
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
    measure_by_record = {measure.record: measure for measure in measures() if measure.record}
    troubles = []
    if settings.shown_point >= len(dataset.x):
        troubles.append(
            f"shown_point={settings.shown_point}: {dataset.name} has {len(dataset.x)} training "
            f"points, counted from 0; choose one up to {len(dataset.x) - 1}"
        )
    for name in settings.record:  # every mistake is collected, and told at once
        try:
            measure = measure_by_record[check_choice("record", name, list(measure_by_record))]
            if measure.of_descent and settings.iterations == 0:
                raise UserError(
                    f"record={name}: is of a descent, and iterations=0 makes none; "
                    f"set iterations or leave {name} out"
                )
            measure.check(dataset, scheme)
        except UserError as error:
            troubles.append(str(error))
    if troubles:
        raise UserError("; ".join(troubles))


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
    metrics: dict[str, float] = {}
    tags: dict[str, str] = {}
    series: dict[str, Series] = {}
    arrays: dict[str, dict[str, Any]] = {}
    of_steps: dict[int, OfStep] = {}
    follows: dict[str, str] = {}
    notes = [*_job_notes(job, settings)]
    seconds = {False: 0.0, True: 0.0}  # by whether a setting requested the measure
    for measure in _applicable_measures(job, settings):
        tick = time.perf_counter()
        # A measure in `record` is drawn, and takes points in memory.
        findings = measure.take(job.shown_points if measure.record else job)
        is_requested = bool(measure.record or (measure.on_request and findings.metrics))
        seconds[is_requested] += time.perf_counter() - tick
        metrics |= findings.metrics
        tags |= findings.tags
        series |= findings.series
        notes += findings.notes
        arrays.setdefault(measure.record or names.DESCENT_ARRAYS, {}).update(findings.arrays)
        for number, (step_metrics, step_series) in findings.of_steps.items():
            others = of_steps.get(number, OfStep({}, {}))
            of_steps[number] = OfStep(
                {**others.metrics, **step_metrics}, {**others.series, **step_series}
            )
        logged = (*findings.metrics, *findings.tags, *findings.series)
        follows |= dict.fromkeys(logged, measure.depends_on)
        # The name in `record` stands for all arrays of a measure.
        if findings.arrays and measure.record:
            follows[measure.record] = measure.depends_on
        elif measure.depends_on:
            follows |= dict.fromkeys(findings.arrays, measure.depends_on)
    if notes:
        follows[names.NOTE.key] = ""  # the notes stay true under other rules of judging
        tags[names.NOTE.key] = "; ".join(notes)
    if arrays.get(names.DESCENT_ARRAYS):
        arrays[names.DESCENT_ARRAYS][FOLLOWS] = np.array([*follows.items()])
    merged = Findings(
        metrics,
        tags,
        series,
        of_steps=of_steps,
        depends_on=follows,
        seconds=seconds[False],
        search_seconds=seconds[True],
    )
    record_names = (*settings.record, names.DESCENT_ARRAYS)  # in the order that the user wrote
    return merged, {name: arrays[name] for name in record_names if arrays.get(name)}


def _applicable_measures(job: FinishedJob, settings: Settings) -> Iterator[Measure]:
    """Yield the measures that are wanted and that a job may have."""
    descent = job.judged_descent
    for measure in measures():
        is_wanted = not measure.record or measure.record in settings.record
        lacks_best = measure.depends_on == BEST_STEP and descent and descent.best is None
        if is_wanted and not lacks_best and not (measure.of_descent and descent is None):
            yield measure


def _job_notes(job: FinishedJob, settings: Settings) -> Iterator[str]:
    """Yield notes on what theory left out for the size of the job, and on points not shown."""
    descent = job.judged_descent
    if descent and descent.theory.note:
        yield descent.theory.note
    if descent and settings.theory != "none":
        is_solved = descent.least.is_solved
        left_out = sizes.left_out(settings.theory, descent.train, job.dataset.x, is_solved)
        if descent.plain and descent.theory.threshold and descent.at_start.directions is None:
            left_out.append("windows")
        if left_out:
            yield f"{', '.join(left_out)} {sizes.LEFT_OUT}"
    if settings.record and len(job.shown_points.z) < len(job.z):
        yield f"{len(job.shown_points.z)} of {len(job.z)} points are shown, drawn at random"
