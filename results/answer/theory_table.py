"""Prediction against observation: the step sizes that theory allows, and those that worked."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.compare.merging import every_job, merged
from normbench.results.compare.reached import excess_left, step_size
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.words import reasons, sentences

PLAIN = names.PLAIN.column
NOTE = names.NOTE.column
THRESHOLD = names.THRESHOLD.column
LARGEST = names.LARGEST_CONVERGENT.column


def predictions(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme: predicted threshold, observed ones, and their ratio.

    `2/L`: of the global bound, or of the curvature at the start where the cost has none; `2/L at
    the end`: at the last weights of the best step, unless they are on the way to infinity. always
    falls up to: the largest step size of the grid up to which the cost falls throughout; converges
    up to: the largest that converges (`>=` where no larger one failed); critical step: where it
    was searched for. seen / promised, of plain gradient descent alone: over 2/L, the step size that
    falls and the next, which does not: between them lies the limit; or the critical step, where it
    was searched for.
    """
    rows = []
    runs = merged(sweep)
    several = len(sweep.experiments) > 1
    for row in as_rows(runs.of_role(names.SCHEME)):
        if row["verdict"] == names.FAILED:
            continue
        critical = row.get(names.CRITICAL.column)
        entry = {"experiment": row["experiment"]} if several else {}
        entry |= {
            "scheme": row["label"],
            "largest curvature L": row.get(names.LIPSCHITZ.column),
            "2/L": row.get(THRESHOLD),
            "2/L at the end": None if _vanishing(row) else row.get(names.THRESHOLD_BEST.column),
            "always falls up to": bounded(
                row.get(names.LARGEST_FALLING.column), row.get(names.CENSORED_FALLING.column)
            ),
            "converges up to": converges_up_to(row),
            "critical step": bounded(critical, row.get(names.CENSORED_CRITICAL.column)),
            "seen / promised": _ratio(runs, row),
            "condition number": _condition(row),
        }
        rows.append(entry)
    table = pd.DataFrame(rows)
    kept = ("experiment", "scheme", "always falls up to", "converges up to")
    empty = [name for name in table if name not in kept and table[name].isna().all()]
    return table.drop(columns=empty)


def _vanishing(row: Mapping[Any, Any]) -> bool:
    """Return whether the least cost is at infinity and costs are no longer told apart from it.

    The curvature then goes to 0 with the cost, and rounding says how far it has come.
    """
    return row.get(names.AT_INFINITY.column) == "true" and excess_left(row, row) <= names.TIED


def _ratio(runs: Sweep, row: Mapping[Any, Any]) -> str | None:
    """Return the critical step over 2/L, or the interval over 2/L that the grid leaves for it."""
    predicted = number_in(row, THRESHOLD)
    still = row.get(names.setting("iterations")) == "0"
    if not predicted > 0 or row.get(PLAIN) == "false" or still:
        return None
    critical, falls = (number_in(row, m.column) for m in (names.CRITICAL, names.LARGEST_FALLING))
    if pd.notna(critical):
        return bounded(critical / predicted, row.get(names.CENSORED_CRITICAL.column))
    steps = runs.of_role(names.STEP, row["experiment"])
    own = steps[steps["parent"] == row["run_id"]]
    sizes = sorted(step_size(step) for step in as_rows(own))
    if pd.isna(falls):
        moved = [size for size in sizes if size > 0]
        return f"<{moved[0] / predicted:.3g}" if moved else None
    if row.get(names.CENSORED_FALLING.column) == "true":
        return f">={falls / predicted:.3g}"
    above = [size for size in sizes if size > falls * (1 + 1e-9)]
    return f"{falls / predicted:.3g} to {above[0] / predicted:.3g}" if above else None


def _condition(row: dict[Any, Any]) -> str | None:
    """Return the condition number in words: `>1e30` where more of it is lost in rounding."""
    known, limit = (number_in(row, m.column) for m in (names.CONDITION, names.CONDITION_LIMIT))
    if pd.notna(known):
        return f"{known:.4g}"
    return None if pd.isna(limit) else f">{limit:.2g}"


def converges_up_to(row: Mapping[Any, Any]) -> str | None:
    """Return a scheme's largest convergent step size, in words."""
    return bounded(row.get(names.LARGEST_CONVERGENT.column), row.get(names.CENSORED.column))


def bounded(value: float | None, censored: str | None) -> str | None:
    """Return a step size in words: `>=0.1` where nothing above it failed; None for none."""
    if value is None or pd.isna(value):
        return None
    return f"{'>=' if censored == 'true' else ''}{value:.4g}"


def explanation(sweep: Sweep, experiment: str) -> str:
    """Return what the numbers say of one experiment's schemes, in a few plain sentences."""
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    if len(schemes) and (schemes["verdict"] == names.FAILED).all():
        return sentences.said("none_ran").text
    if problems.without_descent(schemes).all():
        return sentences.said("no_step").text
    known = [(row["label"], reasons.Found.of_row(row)) for row in as_rows(schemes)]
    jobs = every_job(sweep, experiment)
    on_some_split = LARGEST in jobs and bool(jobs[LARGEST].notna().any())
    said = reasons.of_comparison(known, on_some_split)
    return " ".join([sentences.paragraph(said), *notes(sweep, experiment)])


def notes(sweep: Sweep, experiment: str) -> list[str]:
    """Return what theory could not say, and what jobs that were judged again lost."""
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    return [*_notes(schemes), *_judged_again(sweep.of_role(names.SCHEME, experiment))]


def _notes(schemes: pd.DataFrame) -> list[str]:
    """Return what theory could not say, and of which schemes where it is not of all."""
    said = []
    for note, rows in schemes.groupby(NOTE, sort=False) if NOTE in schemes else ():
        of = "" if len(rows) == len(schemes) else f"{'; '.join(rows['label'])}: "
        said.append(sentences.said("note", of=of, note=note).text)
    return said


def _judged_again(schemes: pd.DataFrame) -> list[str]:
    """Return what schemes that were judged by other rules lost with their best step."""
    again = names.AGAIN.column
    said = []
    for words, rows in schemes.groupby(again) if again in schemes else ():
        labels = dict.fromkeys(names.label_of(word) for word in str(words).split(","))
        values = {"schemes": "; ".join(rows["label"]), "what": ", ".join(labels)}
        said.append(sentences.said("judged_again", **values).text)
    return said
