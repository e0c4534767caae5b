"""The table of the studies of `conf/experiment`: the source's statement beside the measurement."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.answer.theory_table import format_bound
from normbench.results.compare import passes
from normbench.results.store import comparison_files, runs
from normbench.results.store.comparison_files import Comparison
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.studies import expected

EXPERIMENT_ARGUMENT = re.compile(r"experiment=([\w/]+)")


def last_sweeps(home: Path, folder: str = "textbook") -> tuple[dict[str, Sweep], list[str]]:
    """Return the last complete comparison of each study in a folder of `conf/experiment`.

    Args:
        home: The folder of comparisons and their records.
        folder: The folder of the studies.

    Returns:
        The comparisons by the study's name, in the order in which they ran; the last one with a job
        where none is complete. Beside them, a sentence on each later one that is not complete.

    Raises:
        ResultsError: If no study of the folder has a job.
    """
    by_study: dict[str, list[Comparison]] = {}
    for comparison in comparison_files.recorded(home):  # the latest first
        # Such as `textbook/mnist`; empty for a command that names no study.
        name = _study(comparison.command)
        if name.startswith(f"{folder}/"):
            by_study.setdefault(name.removeprefix(f"{folder}/"), []).append(comparison)
    shown_sweeps: dict[str, Sweep] = {}
    notes: list[str] = []
    for name, of_study in reversed(by_study.items()):
        shown = next((other for other in of_study if _is_complete(other)), None)
        shown = shown or next((other for other in of_study if other.keys), None)
        replacement = f"; shown is {shown.id}" if shown else ""
        for comparison in of_study:
            if _is_complete(comparison):
                break
            predicate = f"{comparison.predicate}{replacement}"
            notes.append(f"{folder}/{name}: comparison {comparison.id} {predicate}.")
        if shown:
            shown_sweeps[name] = runs.of_comparisons([shown])
    if not shown_sweeps:  # the notes, if any study ran, say why it is not shown
        reason = "; ".join(note.removesuffix(".") for note in notes) or (
            f"holds no study of {folder}; normbench experiment={folder}/NAME runs one"
        )
        raise ResultsError(f"{home}: {reason}")
    return shown_sweeps, notes


def _is_complete(comparison: Comparison) -> bool:
    """Return whether every job of a comparison is done."""
    return len(comparison.keys) == len(comparison.jobs)


def _study(command: str) -> str:
    """Return the study that a command names, such as `textbook/mnist`; empty if it names none."""
    # An argument is `experiment=...` or, as Hydra adds a choice, `+experiment=...`.
    matches = (
        EXPERIMENT_ARGUMENT.fullmatch(argument.lstrip("+"))
        for argument in runs.split_command(command)
    )
    return next((match[1] for match in matches if match), "")


def compare_with_sources(sweeps: Mapping[str, Sweep], folder: str) -> pd.DataFrame:
    """Return one row for each number that studies expect, with its source's value and the measured.

    The columns are those of `expected.compare_with_source`.

    Args:
        sweeps: The sweeps by the study's name, from `last_sweeps`.
        folder: The folder of the studies.

    Returns:
        The table; empty where no study expects a number.
    """
    tables = [
        expected.compare_with_source(sweep, f"{folder}/{name}") for name, sweep in sweeps.items()
    ]
    return pd.DataFrame([row for study_rows in tables for row in study_rows])


def table(sweeps: Mapping[str, Sweep]) -> pd.DataFrame:
    """Return what the source of each study states about each scheme, and what was measured.

    Args:
        sweeps: The sweeps by the study's name, from `last_sweeps`.

    Returns:
        One row a scheme, with the columns `study`, `scheme`, `the source says` and `measured`.
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
    """Return the results of one scheme of a study as text.

    Args:
        row: The row of the scheme run.

    Returns:
        Phrases joined by semicolons; for a failed job, `failed:` and its reason.
    """
    if row["verdict"] == names.FAILED:
        return f"failed: {row['reason']}"
    # No step size was tried in a job that only fits its scheme.
    phrases = _descent(row) if _number(row, names.STEPS_TRIED) else []
    phrases += [
        text.format(value)
        for metric, text in METRIC_TEXTS.items()
        if (value := _number(row, metric)) is not None
    ]
    return "; ".join(phrases)


# The phrases on recorded metrics of a scheme beside its descent.
METRIC_TEXTS = {
    names.CONDITION: "condition number {:.4g}",
    names.IDENTITY_GAP: "largest |SS'/P - I| {:.2g}",
    names.VARIANCE_LOST: "{:.1%} of the variance lost",
}


def _descent(row: dict[Any, Any]) -> list[str]:
    """Return phrases on a scheme's best run, and on its largest step sizes that fall or converge.

    Args:
        row: The row of the scheme run.
    """
    unit = passes.PASS_UNIT if passes.is_batched(row) else passes.ITERATION_UNIT
    budget = f"{row.get(names.setting('iterations'))} {unit.many}"
    # An optimizer that finds its own step sizes has a placeholder, and no largest step size.
    is_gridless = row.get(names.GRIDLESS.column) == "true"
    step_size = "" if is_gridless else _text(row.get(names.STEP_TAG.column))
    phrases = [f"step {step_size}, {budget}" if step_size else budget]
    # With these verdicts no step size is the best one, and there is no final cost to state.
    if row["verdict"] == names.DIVERGED:
        return [*phrases, "diverged at every step size"]
    if row["verdict"] == names.BY_ROUNDING:
        return [*phrases, "each step size diverged or is decided by rounding"]
    outcome = [f"cost {_number(row, names.FINAL_COST):.4g}"]
    misclassified = _number(row, names.FINAL_MISCLASSIFICATIONS)
    if misclassified is not None:
        outcome.append(f"{misclassified:g} misclassified")
    limits = {
        "always falls up to": (names.LARGEST_FALLING, names.CENSORED_FALLING),
        "converges up to": (names.LARGEST_CONVERGENT, names.CENSORED),
    }
    for text, (metric, censored) in limits.items() if not is_gridless else ():
        limit = format_bound(_number(row, metric), row.get(censored.column))
        if limit is not None:
            phrases.append(f"{text} {limit}")
    # The step size first, then the outcome, then the limits.
    return [phrases[0], ", ".join(outcome), *phrases[1:]]


def _number(row: dict[Any, Any], metric: names.Metric) -> float | None:
    """Return a recorded metric of a row; None where it is missing."""
    value = row.get(metric.column)
    return None if value is None or pd.isna(value) else float(value)


def _text(value: Any) -> str:
    """Return a recorded value as text; empty where it is missing."""
    return "" if value is None or pd.isna(value) else str(value)
