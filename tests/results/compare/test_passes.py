"""Iterations and passes: their names, their updates, and the budget in words."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import passes

BATCH, RECORDS = passes.BATCH_SETTING, passes.RECORDS
FULL = {passes.TRAIN_POINTS: 100.0}


def jobs(*rows, **settings):
    """Return scheme runs of gradient descent, by their settings."""
    shared = {names.setting(name): text for name, text in settings.items()}
    return pd.DataFrame([{**shared, **row} for row in rows] or [shared])


@pytest.mark.parametrize(
    ("unit", "texts"),
    [
        (passes.ITERATION_UNIT, ["iterations", "iteration", "iterations", "iterations"]),
        (passes.PASS_UNIT, ["passes", "pass", "passes", "passes"]),
    ],
)
def test_one_of_a_unit_has_the_singular(unit, texts):
    assert [unit.of(count) for count in (0, 1, 1.5, None)] == texts


@pytest.mark.parametrize(
    ("job", "records", "size", "updates"),
    [
        (FULL, 1, 100.0, 1),
        ({**FULL, BATCH: "None", RECORDS: "4"}, 1, 100.0, 1),
        ({**FULL, BATCH: "30"}, 1, 30.0, 4),  # the last of 10 points
        ({**FULL, BATCH: "25", RECORDS: "4"}, 4, 25.0, 4),
        ({**FULL, BATCH: "100", RECORDS: "None"}, 1, 100.0, 1),
    ],
)
def test_a_job_in_batches_has_records_and_updates_of_a_pass(job, records, size, updates):
    assert passes.records_per_pass(job) == records
    assert passes.batch_size(job) == size
    assert passes.updates_per_pass(job) == updates
    batched = job.get(BATCH, "None") != "None"
    assert passes.is_batched(job) == batched
    assert passes.unit(pd.DataFrame([FULL, job])) == (
        passes.PASS_UNIT if batched else passes.ITERATION_UNIT
    )


def test_the_size_of_a_batch_of_unknown_points_is_not_known():
    assert np.isnan(passes.batch_size({}))


@pytest.mark.parametrize(
    ("count", "text"), [(12.0, "12"), (100.0, "100"), (0.25, "0.25"), (1 / 3, "0.333"), (0, "0")]
)
def test_a_count_has_three_digits_of_a_fraction(count, text):
    assert passes.count_text(count) == text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"iterations": "100"}, "in 100 iterations of gradient descent"),
        ({"iterations": "1"}, "in 1 iteration of gradient descent"),
        ({"iterations": "1e3"}, "in 1000 iterations of gradient descent"),
        ({"iterations": "9", "batch": "20"}, "in 9 passes in batches of 20 of gradient descent"),
        ({"iterations": "1", "batch": "20"}, "in 1 pass in batches of 20 of gradient descent"),
        ({"iterations": "9", "batch": "None"}, "in 9 iterations of gradient descent"),
        ({"iterations": "0"}, ""),
        ({}, "in gradient descent"),
    ],
)
def test_the_budget_is_told_in_words(settings, words):
    assert passes.budget(jobs(**settings)) == words


def test_what_differs_between_jobs_is_left_out_of_the_budget():
    optimizer = names.OPTIMIZER.column
    rows = [{optimizer: "adam"}, {optimizer: "momentum"}]
    assert passes.budget(jobs(*rows, iterations="9")) == "in 9 iterations"
    several = [{names.setting("iterations"): text, optimizer: "adam"} for text in ("9", "10")]
    assert passes.budget(jobs(*several)) == "in adam"
    assert passes.budget(jobs(*[{**row, **other} for row, other in zip(several, rows)])) == ""
    sizes = [{BATCH: size} for size in ("10", "20")]
    assert passes.budget(jobs(*sizes, iterations="9")) == "in 9 passes of gradient descent"
