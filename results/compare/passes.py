"""Iterations in their unit: of a batch they are passes over the points, with several records."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows, number_in

BATCH, RECORDS = names.setting("batch"), names.setting("records_per_pass")
POINTS = "train_points"


class Unit(NamedTuple):
    """The name of an iteration, in singular and plural."""

    one: str
    many: str

    def of(self, count: float | None) -> str:
        """Return the name for a count."""
        return self.one if count == 1 else self.many


ITERATIONS, PASSES = Unit("iteration", "iterations"), Unit("pass", "passes")


def unit(jobs: pd.DataFrame) -> Unit:
    """Return what an iteration is: a pass over the points where a step of any job sees a batch."""
    return PASSES if any(is_batched(row) for row in as_rows(jobs)) else ITERATIONS


def is_batched(job: Mapping[Any, Any]) -> bool:
    """Return whether a step of a job sees a batch of the points."""
    return pd.notna(pd.to_numeric(job.get(BATCH), errors="coerce"))


def records_per_pass(job: Mapping[Any, Any]) -> int:
    """Return the number of records of an iteration."""
    records = pd.to_numeric(job.get(RECORDS), errors="coerce")
    return 1 if pd.isna(records) else int(records)


def updates_per_pass(job: Mapping[Any, Any]) -> int:
    """Return the number of updates of an iteration."""
    return -(-int(number_in(job, POINTS)) // int(job[BATCH])) if is_batched(job) else 1


def count_text(count: float) -> str:
    """Return a count of iterations as text: a fraction of a pass has three digits."""
    return f"{count:.3f}".rstrip("0").rstrip(".")
