"""Measures of a finished job: numbers, series and arrays. Each file defines one measure."""

import importlib
import pkgutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.values import UserError, check_choice
from normbench.engine.settings import Settings
from normbench.measures.contract import (
    LINEAR,
    LINEAR_OR_CONVEX,
    NETWORK,
    Findings,
    FinishedJob,
    Measure,
    OfStep,
)
from normbench.results.words import reasons, sentences
from normbench.theory import sizes
from normbench.verdicts.judging import Step

Arrays = Mapping[str, Mapping[str, Any]]
# Name of an array (n, 2) that is kept with the descent: the name of each finding, and what in the
# judging it depends on.
FOLLOWS = "follows"
OF_OTHER_MODELS = {
    LINEAR: "is for model=linear, and these scores are not linear in the weights",
    LINEAR_OR_CONVEX: "is for model=linear, and these scores are not linear in the weights",
    NETWORK: "is for networks, such as model=mlp",
}


@cache
def measures() -> tuple[Measure, ...]:
    """Return the `MEASURE` of every file of this room that has one, in the order of file names."""
    files = sorted(module_info.name for module_info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in files]
    return tuple(module.MEASURE for module in modules if hasattr(module, "MEASURE"))


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
    findings_by_measure: list[tuple[Measure, Findings]] = []
    arrays: dict[str, Mapping[str, Any]] = {}
    seconds = {False: 0.0, True: 0.0}  # by whether a setting requested the measure
    for measure in _applicable_measures(job, settings):
        tick = time.perf_counter()
        # A measure in `record` is drawn, and takes points in memory.
        measure_findings = measure.take(job.shown_points if measure.record else job)
        seconds[measure.on_request] += time.perf_counter() - tick
        findings_by_measure.append((measure, measure_findings))
        if measure_findings.arrays:
            name = measure.record or names.DESCENT_ARRAYS
            arrays[name] = {**arrays.get(name, {}), **measure_findings.arrays}
    merged = _merged(findings_by_measure, job, seconds)
    if names.DESCENT_ARRAYS in arrays:
        arrays[names.DESCENT_ARRAYS] = {
            **arrays[names.DESCENT_ARRAYS],
            FOLLOWS: np.array([*merged.depends_on.items()]),
        }
    record_names = (*settings.record, names.DESCENT_ARRAYS)  # in the order that the user wrote
    return merged, {name: arrays[name] for name in record_names if name in arrays}


def _applicable_measures(job: FinishedJob, settings: Settings) -> Iterator[Measure]:
    """Yield the measures that are wanted and that apply to a job."""
    for measure in measures():
        if measure.record and measure.record not in settings.record:
            continue
        if measure.of_descent and job.judged_descent is None:
            continue
        if not measure.is_of_another_model(job) and measure.applies(job):
            yield measure


def _merged(
    findings_by_measure: list[tuple[Measure, Findings]],
    job: FinishedJob,
    seconds: Mapping[bool, float],
) -> Findings:
    """Return the findings of all measures as one, with the tags that summarize a descent.

    Args:
        findings_by_measure: Each measure with its findings.
        job: The finished job; only one with a descent gets the explanation.
        seconds: The seconds of the measures, by whether a setting requested them.
    """
    findings = [finding for _, finding in findings_by_measure]
    follows = {
        name: measure.depends_on
        for measure, finding in findings_by_measure
        for name in (
            *finding.metrics,
            *finding.tags,
            *finding.series,
            *_dependent_arrays(measure, finding),
        )
    }
    metrics = {key: value for finding in findings for key, value in finding.metrics.items()}
    tags = {key: value for finding in findings for key, value in finding.tags.items()}
    descent = job.judged_descent
    job_notes = [
        descent.theory.note if descent else "",
        _size_note(job),
        _sample_note(job, findings_by_measure),
        *(_other_model_notes(job) if descent else ()),
    ]
    notes = [
        note
        for note in (*job_notes, *(note for finding in findings for note in finding.notes))
        if note
    ]
    if notes:
        follows[names.NOTE.key] = ""  # the notes stay true under other rules of judging
        tags[names.NOTE.key] = "; ".join(notes)
    if descent:
        tags[names.EXPLANATION.key] = explained(metrics, tags, descent.steps, descent.best)
    return Findings(
        metrics,
        tags,
        {key: value for finding in findings for key, value in finding.series.items()},
        of_steps=_merge_steps(findings),
        depends_on=follows,
        seconds=seconds[False],
        search_seconds=seconds[True],
    )


def _merge_steps(findings: Sequence[Findings]) -> dict[int, OfStep]:
    """Return what all measures find about each step size, by its index in the grid."""
    merged: dict[int, OfStep] = {}
    for finding in findings:
        for number, (metrics, series) in finding.of_steps.items():
            other_metrics, other_series = merged.get(number, OfStep({}, {}))
            merged[number] = OfStep({**other_metrics, **metrics}, {**other_series, **series})
    return merged


def _dependent_arrays(measure: Measure, findings: Findings) -> Iterable[str]:
    """Return the names under which `FOLLOWS` keeps what the arrays of a measure depend on.

    For a measure in `record` it is that name, which stands for all its arrays. For another measure
    they are the names of its arrays, if these depend on the judging; else none.
    """
    if measure.record:
        return (measure.record,)
    return findings.arrays if measure.depends_on else ()


def _other_model_notes(job: FinishedJob) -> Iterator[str]:
    """Yield a note on each requested measure that is left out, since it is of another model."""
    requested = job.descent.settings.record
    for measure in measures():
        if measure.record in requested and measure.is_of_another_model(job):
            yield f"{measure.record}: {OF_OTHER_MODELS[measure.model_kind]}"


def _size_note(job: FinishedJob) -> str:
    """Return a note on what theory left out for the size of the job; or ""."""
    descent = job.judged_descent
    if descent is None or descent.settings.theory == "none":
        return ""
    theory, is_solved = descent.settings.theory, descent.least.is_solved
    left_out = sizes.left_out(theory, descent.train, job.dataset.x, is_solved)
    if descent.plain and descent.theory.threshold and descent.at_start.directions is None:
        left_out.append("windows")
    return f"{', '.join(left_out)} {sizes.LEFT_OUT}" if left_out else ""


def _sample_note(job: FinishedJob, findings_by_measure: list[tuple[Measure, Findings]]) -> str:
    """Return a note on how many points figures show.

    It is empty where they show all points, and where the setting `record` requests no measure:
    only requested measures have figures of points.
    """
    is_requested = any(measure.record for measure, _ in findings_by_measure)
    if not is_requested or len(job.shown_points.z) == len(job.z):
        return ""
    return f"{len(job.shown_points.z)} of {len(job.z)} points are shown, drawn at random"


def explained(
    metrics: Mapping[str, float], tags: Mapping[str, str], steps: Sequence[Step], best: int | None
) -> str:
    """Return the sentences that explain the result of a scheme.

    Args:
        metrics: The metrics of the scheme.
        tags: The tags of the scheme.
        steps: The judged step sizes of the grid.
        best: The index of the step size that represents the scheme; None where there is none.
    """
    step_tags = {}
    if best is not None:
        # The explanation reads the shown step size and its verdict as tags.
        step = steps[best]
        step_tags = {names.STEP_TAG.key: f"{step.step_size:g}", names.VERDICT.key: step.verdict}
    logged_findings = reasons.SchemeRecord(metrics, {**tags, **step_tags})
    return sentences.paragraph(reasons.explain_scheme(logged_findings))
