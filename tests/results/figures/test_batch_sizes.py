"""Steps, passes and updates over the size of a batch, and the sentence on them."""

import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing
from normbench.results.compare import passes
from normbench.results.compare.batch_gains import batch_table
from normbench.results.compare.reached import thresholds_that_hold
from normbench.results.figures import drawing, phase_diagram
from normbench.results.figures.base import material
from normbench.results.store.runs import Sweep
from tests.results.figures.pictures import batched_sweep as sweep
from tests.results.made import runs


@pytest.mark.parametrize("sizes", [("1", "10", "10"), ("1", "None", "None")])
def test_few_sizes_or_no_batch_say_nothing(sizes):
    assert closing.batch_and_exclusion_remarks(sweep(3, 30, 30, sizes=sizes), "x") == []
    assert drawing.figure(sweep(3, 30, 30, sizes=sizes), "x", "batch_sizes") is None
    full = sweep(3, sizes=("None",))
    assert batch_table(full, "x").empty
    assert drawing.figure(full, "x", "batch_sizes") is None


def in_passes(*counts, records="8"):
    """A sweep of one job a count, in batches of 10 of 100 points, with records within passes."""
    settings = {"batch": "10", "records_per_pass": records, "iterations": "4"}
    jobs = [("x", name, {1.0: count}, settings) for name, count in zip("ab", counts)]
    frame = runs(*jobs).runs.assign(train_points=100)
    return Sweep("-", "s", frame.assign(**{names.PLAIN.column: "false"}))


def test_two_over_l_is_drawn_as_that_of_the_full_batch():
    frame = in_passes(1, 3).runs.assign(**{names.THRESHOLD.column: 2.0})
    assert material.schemes(Sweep("-", "s", frame), "x")[names.THRESHOLD.column].isna().all()
    batched = Sweep("-", "s", frame.assign(**{names.BATCHED.column: "true"}))
    rows = material.schemes(batched, "x")
    assert (rows[names.THRESHOLD.column] == 2.0).all()
    assert material.threshold_label(rows) == "the full batch's 2/L"
    assert thresholds_that_hold(rows)[names.THRESHOLD.column].isna().all()


JOB = {"run_id": "r", "label": "a", "normalizer": "standard", "verdict": names.CONVERGED}
OF_BATCHES = {passes.BATCH_SETTING: "30", passes.RECORDS: "2", passes.TRAIN_POINTS: 100.0}


def test_other_axes_say_what_they_count():
    assert material.iteration_label(pd.DataFrame([JOB])) == "iteration"
    assert material.iteration_label(pd.DataFrame([JOB | OF_BATCHES])) == "record, 2 a pass"
    once = OF_BATCHES | {passes.RECORDS: "1"}
    assert material.iteration_label(pd.DataFrame([JOB | once])) == "pass"


def test_the_rows_of_a_phase_diagram_are_by_scheme_and_batch():
    limits = {"standard": 2.0, "pca_sphere": 1.0}
    rows = [
        {"label": f"{scheme}, batch={batch}", "normalizer": scheme, passes.BATCH_SETTING: batch}
        | {names.THRESHOLD.column: limit, passes.TRAIN_POINTS: 100.0}
        for batch in ("64", "None", "8")
        for scheme, limit in limits.items()
    ]
    ordered = phase_diagram._ordered(pd.DataFrame(rows))
    assert [row["label"] for row in ordered] == [
        f"{scheme}, batch={batch}"
        for scheme in ("pca_sphere", "standard")
        for batch in (8, 64, None)
    ]
    full = [row | {passes.BATCH_SETTING: "None"} for row in rows]
    assert [row["normalizer"] for row in phase_diagram._ordered(pd.DataFrame(full))] == [
        *["pca_sphere"] * 3,
        *["standard"] * 3,
    ]
