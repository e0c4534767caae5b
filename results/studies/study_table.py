"""The table of the studies of `conf/experiment`: what the source says, and what was measured."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.answer.theory_table import bounded
from normbench.results.store import runs, state
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.store.state import Phase, State
from normbench.results.studies import expected

EXPERIMENT = re.compile(r"experiment=([\w/]+)")


def last(store: str, folder: str = "textbook") -> tuple[dict[str, Sweep], list[str]]:
    """Return the last complete sweep of each study in a folder of `conf/experiment`, by its name.

    In the order in which they ran; the last that holds a job where none is complete. Beside them
    what there is to tell of those that are not complete, in sentences. Raises ResultsError where
    there is no such store, and where no study of the folder has a job.
    """
    ids: dict[str, list[str]] = {}
    for row in as_rows(runs.sweeps(store)):
        name = _study(row["command"])
        if name.startswith(f"{folder}/"):
            ids.setdefault(name.removeprefix(f"{folder}/"), []).append(row["sweep"])
    shown: dict[str, Sweep] = {}
    notes: list[str] = []
    for name, own in reversed(ids.items()):
        sweep, unfinished = _last_complete(store, list(dict.fromkeys(own)))
        shows = f"; shown is {sweep.sweep_id}" if sweep is not None else ""
        notes += [
            f"{folder}/{name}: comparison {one.sweep_id} {one.predicate}{shows}."
            for one in unfinished
        ]
        if sweep is not None:
            shown[name] = sweep
    if not shown:
        why = "; ".join(note.removesuffix(".") for note in notes) or (
            f"holds no study of {folder}; normbench experiment={folder}/NAME runs one"
        )
        raise ResultsError(f"--store {store}: {why}")
    return shown, notes


def _last_complete(store: str, sweep_ids: Sequence[str]) -> tuple[Sweep | None, list[State]]:
    """Return the first complete sweep, or the first that has jobs, and the states of those before.

    sweep_ids: the latest first.
    """
    unfinished: list[State] = []
    first = None
    for sweep_id in sweep_ids:
        sweep = runs.load(store, sweep_id)
        found = state.of(sweep)
        if found.done and (found.phase is Phase.ENDED or found.done == found.jobs):
            return sweep, unfinished
        unfinished.append(found)
        first = sweep if first is None and found.done else first
    return first, unfinished


def _study(command: str) -> str:
    """Return the study that a command names: `textbook/mnist`; nothing where it names none."""
    try:
        words = shlex.split(command)
    except ValueError:  # another's: ours are quoted
        return ""
    found = (EXPERIMENT.fullmatch(word.lstrip("+")) for word in words)
    return next((word[1] for word in found if word), "")


def checked(sweeps: Mapping[str, Sweep], folder: str) -> pd.DataFrame:
    """Return one row a number that studies expect, see `expected.checked`.

    Empty where none of them expects one. sweeps: by the study's name, from `last` of a folder.
    """
    rows = [expected.checked(sweep, f"{folder}/{name}") for name, sweep in sweeps.items()]
    return pd.DataFrame([row for part in rows for row in part])


def table(sweeps: Mapping[str, Sweep]) -> pd.DataFrame:
    """Return one row a study and scheme: `study`, `scheme`, `the source says`, `measured`.

    sweeps: by the study's name, from `last`.
    """
    rows = []
    for name, sweep in sweeps.items():
        for row in as_rows(sweep.of_role(names.SCHEME)):
            rows.append(
                {
                    "study": name,
                    "scheme": row["label"],
                    "the source says": _text(row.get(names.setting("study.says"))),
                    "measured": measured(row),
                }
            )
    return pd.DataFrame(rows)


def measured(row: dict[Any, Any]) -> str:
    """Return what one scheme of a study came to, in words: a row of the scheme runs."""
    if row["verdict"] == names.FAILED:
        return f"failed: {row['reason']}"
    words = _descent(row) if _number(row, names.STEPS_TRIED) else []
    words += [
        text.format(value)
        for metric, text in NUMBERS.items()
        if (value := _number(row, metric)) is not None
    ]
    return "; ".join(words)


# What is told of a scheme beside its descent, where it was recorded.
NUMBERS = {
    names.CONDITION: "condition number {:.4g}",
    names.IDENTITY_GAP: "largest |SS'/P - I| {:.2g}",
    names.VARIANCE_LOST: "{:.1%} of the variance lost",
}


def _descent(row: dict[Any, Any]) -> list[str]:
    """Return the run that stands for the scheme, and the largest step sizes of the grid."""
    iterations = row.get(names.setting("iterations"))
    words = [f"step {row.get(names.STEP_TAG.column)}, {iterations} iterations"]
    if row["verdict"] == names.DIVERGED:
        return [*words, "diverged at every step size"]
    if row["verdict"] == names.BY_ROUNDING:
        return [*words, "each step size diverged or is decided by rounding"]
    ended = [f"cost {_number(row, names.FINAL_COST):.4g}"]
    wrong = _number(row, names.FINAL_MISCLASSIFICATIONS)
    if wrong is not None:
        ended.append(f"{wrong:g} misclassified")
    limits = {
        "always falls up to": (names.LARGEST_FALLING, names.CENSORED_FALLING),
        "converges up to": (names.LARGEST_CONVERGENT, names.CENSORED),
    }
    for text, (metric, censored) in limits.items():
        limit = bounded(_number(row, metric), row.get(censored.column))
        if limit is not None:
            words.append(f"{text} {limit}")
    return [words[0], ", ".join(ended), *words[1:]]


def _number(row: dict[Any, Any], metric: names.Metric) -> float | None:
    value = row.get(metric.column)
    return None if value is None or pd.isna(value) else float(value)


def _text(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)
