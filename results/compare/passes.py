"""Iterations in their unit: of a batch they are passes over the points, with several records."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows, number_in, shared_value

BATCH_SETTING, RECORDS = names.setting("batch"), names.setting("records_per_pass")
TRAIN_POINTS = "train_points"


class Unit(NamedTuple):
    """The name of an iteration, in singular and plural."""

    one: str
    many: str

    def of(self, count: float | None) -> str:
        """Return the name for a count."""
        return self.one if count == 1 else self.many

    @property
    def with_article(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.one[0] in 'aeiou' else 'a'} {self.one}"


ITERATION_UNIT, PASS_UNIT = Unit("iteration", "iterations"), Unit("pass", "passes")


def unit(jobs: pd.DataFrame) -> Unit:
    """Return what an iteration is: a pass over the points where a step of any job sees a batch."""
    return PASS_UNIT if any(is_batched(row) for row in as_rows(jobs)) else ITERATION_UNIT


def is_batched(job: Mapping[Any, Any]) -> bool:
    """Return whether a step of a job sees a batch of the points."""
    # The setting is `None`, which is no number, where a step sees all points.
    return pd.notna(pd.to_numeric(job.get(BATCH_SETTING), errors="coerce"))


def records_per_pass(job: Mapping[Any, Any]) -> int:
    """Return how often an iteration records the metrics: once, unless it is a pass with batches."""
    records = pd.to_numeric(job.get(RECORDS), errors="coerce")
    return int(records) if is_batched(job) and pd.notna(records) else 1


def batch_size(job: Mapping[Any, Any]) -> float:
    """Return how many points a step of a job sees; NaN where the number of points is not known."""
    return number_in(job, BATCH_SETTING if is_batched(job) else TRAIN_POINTS)


def updates_per_pass(job: Mapping[Any, Any]) -> int:
    """Return the number of updates of an iteration: one, unless it is a pass with batches."""
    # Rounded up: the last batch of a pass may be smaller.
    return (
        -(-int(number_in(job, TRAIN_POINTS)) // int(job[BATCH_SETTING])) if is_batched(job) else 1
    )


def count_text(count: float) -> str:
    """Return a count of iterations as text: a fraction of a pass has three digits."""
    return f"{count:.3f}".rstrip("0").rstrip(".")


def budget(schemes: pd.DataFrame) -> str:
    """Return the iterations and optimizer of scheme runs as `in 100 iterations of adam`.

    With batches it is such as `in 100 passes in batches of 200 of adam`. A number or optimizer that
    differs between runs is left out. The text is empty where there was no descent.
    """
    optimizer = shared_value(schemes, names.OPTIMIZER.column, "gradient_descent").replace("_", " ")
    iterations_setting = shared_value(schemes, names.setting("iterations"))
    iterations = (
        int(float(iterations_setting)) if iterations_setting else None
    )  # a user may have written 1e3
    if iterations == 0:
        return ""
    # Empty where runs differ, `None` for all points: neither is named.
    batch = shared_value(schemes, BATCH_SETTING, "None")
    iterations_text = f"{iterations} {unit(schemes).of(iterations)}"
    if batch not in ("", "None"):
        iterations_text += f" in batches of {batch}"
    phrases = ["" if iterations is None else iterations_text, optimizer]
    budget_text = " of ".join(phrase for phrase in phrases if phrase)
    return f"in {budget_text}" if budget_text else ""
