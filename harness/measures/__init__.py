"""What is found out about a finished job: numbers, series and arrays, one measure a file."""

import importlib
import pkgutil
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.values import UserError, check_choice
from normbench.engine.settings import Settings
from normbench.measures.contract import Findings, Finished, Measure
from normbench.results.words import reasons, sentences
from normbench.theory.budget import Budget, Work
from normbench.verdicts.judging import Step

Arrays = Mapping[str, Mapping[str, Any]]
FOLLOWS = "follows"  # kept with the descent, (n, 2): each finding's name, and what it follows from


@cache
def measures() -> tuple[Measure, ...]:
    """Return the measure of every file of this room that has a `MEASURE`, by the file's name."""
    files = sorted(info.name for info in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}") for name in files]
    return tuple(module.MEASURE for module in found if hasattr(module, "MEASURE"))


def without_descent(settings: Settings) -> bool:
    """Return whether a job only fits its scheme and records: `iterations=0`, with a record."""
    return bool(settings.record) and settings.iterations == 0


def check(settings: Settings, dataset: Dataset, scheme: Any) -> None:
    """Raise `UserError` where what `record` asks for cannot be taken."""
    known = {measure.record: measure for measure in measures() if measure.record}
    troubles = []
    if settings.shown_point >= len(dataset.x):
        troubles.append(
            f"shown_point={settings.shown_point}: {dataset.name} has {len(dataset.x)} training "
            f"points, counted from 0; choose one up to {len(dataset.x) - 1}"
        )
    for name in settings.record:
        try:
            measure = known[check_choice("record", name, list(known))]
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


def take(
    made: Finished, settings: Settings, budget: Budget | None = None
) -> tuple[Findings, Arrays]:
    """Return what all measures find, as one, and the arrays by the words that asked for them.

    Arrays that no word asked for are kept with the descent.

    budget: what theory may still cost; None where no theory is asked for, or none is of use.
    """
    found: list[tuple[Measure, Findings]] = []
    arrays: dict[str, Mapping[str, Any]] = {}
    seconds = {False: 0.0, True: 0.0}  # of measures by whether they were asked for
    for measure in _wanted(made, settings, budget):
        tick = time.perf_counter()
        part = measure.take(made.shown_points if measure.record else made)
        seconds[measure.on_request] += time.perf_counter() - tick
        found.append((measure, part))
        if part.arrays:
            name = measure.record or names.KEPT
            arrays[name] = {**arrays.get(name, {}), **part.arrays}
    merged = _merged(found, made, budget, seconds)
    if names.KEPT in arrays:
        arrays[names.KEPT] = {**arrays[names.KEPT], FOLLOWS: np.array([*merged.follows.items()])}
    words = (*settings.record, names.KEPT)
    return merged, {name: arrays[name] for name in words if name in arrays}


def _wanted(made: Finished, settings: Settings, budget: Budget | None) -> Iterator[Measure]:
    for measure in measures():
        if measure.record and measure.record not in settings.record:
            continue
        if (measure.of_descent and made.descended is None) or not measure.applies(made):
            continue
        if _affords(budget, measure, made):
            yield measure


def _affords(budget: Budget | None, measure: Measure, made: Finished) -> bool:
    """Return whether there is enough left for a measure: memory alone for one that is asked for."""
    if not measure.what or budget is None:
        return measure.on_request or not measure.what
    work = measure.work(made)
    return budget.affords(measure.what, Work(memory=work.memory) if measure.on_request else work)


def _merged(
    taken: list[tuple[Measure, Findings]],
    made: Finished,
    budget: Budget | None,
    seconds: Mapping[bool, float],
) -> Findings:
    """Return findings put together, with the tags that are made from all of them."""
    parts = [part for _, part in taken]
    follows = {
        name: measure.follows
        for measure, part in taken
        for name in (*part.metrics, *part.tags, *part.series, measure.record)
        if name
    }
    metrics = {key: value for part in parts for key, value in part.metrics.items()}
    tags = {key: value for part in parts for key, value in part.tags.items()}
    if made.descended is not None:
        own = [made.descended.theory.note, budget.note if budget else "", _sample(made, taken)]
        notes = [note for note in (*own, *(note for part in parts for note in part.notes)) if note]
        if notes:
            follows[names.NOTE.key] = ""
            tags[names.NOTE.key] = "; ".join(notes)
        here = made.descended
        tags[names.EXPLANATION.key] = explained(metrics, tags, here.steps, here.best)
    return Findings(
        metrics,
        tags,
        {key: value for part in parts for key, value in part.series.items()},
        of_steps={key: value for part in parts for key, value in part.of_steps.items()},
        follows=follows,
        seconds=seconds[False],
        search_seconds=seconds[True],
    )


def _sample(made: Finished, taken: list[tuple[Measure, Findings]]) -> str:
    """Return a note of how many points are shown, where those are not all."""
    if not any(measure.record for measure, _ in taken) or len(made.shown_points.z) == len(made.z):
        return ""
    return f"{len(made.shown_points.z)} of {len(made.z)} points are shown, drawn at random"


def explained(
    metrics: Mapping[str, float], tags: Mapping[str, str], steps: Sequence[Step], best: int | None
) -> str:
    """Return what is said of a scheme; best: the number of the step that stands for it."""
    own = {}
    if best is not None:
        step = steps[best]
        own = {names.STEP_TAG.key: f"{step.step_size:g}", names.VERDICT.key: step.verdict}
    found = reasons.SchemeRecord(metrics, {**tags, **own})
    return sentences.paragraph(reasons.explain_scheme(found))
