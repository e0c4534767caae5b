"""Steps, passes and updates over the size of a batch, and the sentence on them."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing
from normbench.results.answer.headline import headline
from normbench.results.compare import passes
from normbench.results.compare.batch_gains import batch_table
from normbench.results.compare.reached import thresholds_that_hold
from normbench.results.figures import batch_sizes, drawing, histories, phase_diagram
from normbench.results.figures.base import material
from normbench.results.store.runs import Sweep
from tests.results.made import runs

SIZES = ("1", "10", "None")


def sweep(*counts, knee=11.0, sizes=SIZES):
    """A sweep of two schemes on 100 points: the second takes twice the passes."""
    jobs = [
        ("x", scheme, {1.0: (factor * count, 0.001)}, {"batch": size})
        for factor, scheme in ((1, "standard"), (2, "pca_sphere"))
        for count, size in zip(counts, sizes)
    ]
    frame = runs(*jobs).runs.assign(train_points=100)
    return Sweep("-", "s", frame.assign(**{names.KNEE.column: knee}))


@pytest.mark.parametrize("sizes", [("1", "10", "10"), ("1", "None", "None")])
def test_few_sizes_or_no_batch_say_nothing(sizes):
    assert closing.batch_and_exclusion_remarks(sweep(3, 30, 30, sizes=sizes), "x") == []
    assert drawing.figure(sweep(3, 30, 30, sizes=sizes), "x", "batch_sizes") is None
    full = sweep(3, sizes=("None",))
    assert batch_table(full, "x").empty
    assert drawing.figure(full, "x", "batch_sizes") is None


@pytest.mark.parametrize("knee", [11.0, np.nan])
def test_the_figure_marks_the_knee(knee):
    figure = drawing.figure(sweep(3, 4, 30, knee=knee), "x", "batch_sizes")
    figure.draw_without_rendering()
    assert [axis.get_ylabel() for axis in figure.axes] == [
        *(text for name, text in batch_sizes.BATCH_PANELS.items() if name != "stable")
    ]
    for axis in figure.axes:
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
        marked = [line for line in axis.get_lines() if line.get_label() == "_knee"]
        assert len(marked) == (0 if np.isnan(knee) else 2)
    note = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert ("the knee of theory" in note) == (not np.isnan(knee))
    assert "upper bounds" not in note
    bounded = drawing.figure(sweep(1, 4, 30, knee=knee), "x", "batch_sizes")
    assert "upper bounds" in bounded.legends[0].get_title().get_text().replace("\n", " ")
    passes, updates = (axis.get_lines()[0].get_ydata() for axis in figure.axes)
    np.testing.assert_array_equal(updates / passes, [100, 10, 1])


def test_bounds_are_hollow():
    exact = drawing.figure(sweep(3, 4, 30), "x", "batch_sizes")
    assert not [line for line in exact.axes[0].get_lines() if line.get_label() == "_bounds"]
    bounded = drawing.figure(sweep(1, 4, 30), "x", "batch_sizes")
    hollow = [line for line in bounded.axes[0].get_lines() if line.get_label() == "_bounds"]
    assert [line.get_xdata().tolist() for line in hollow] == [[1.0], [1.0]]
    assert {line.get_markerfacecolor() for line in hollow} == {"white"}
    of_all = drawing.figure(sweep(3, 4, 2), "x", "batch_sizes")  # each update is recorded
    assert not [line for line in of_all.axes[0].get_lines() if line.get_label() == "_bounds"]
    stable = {names.LARGEST_CONVERGENT.column: 1.0, names.CENSORED.column: "true"}
    ended = Sweep("-", "s", sweep(3, 4, 30).runs.assign(**stable))
    note = drawing.figure(ended, "x", "batch_sizes").legends[0].get_title().get_text()
    assert "no larger step size failed" in note.replace("\n", " ")


def in_passes(*counts, records="8"):
    """A sweep of one job a count, in batches of 10 of 100 points, with records within passes."""
    settings = {"batch": "10", "records_per_pass": records, "iterations": "4"}
    jobs = [("x", name, {1.0: count}, settings) for name, count in zip("ab", counts)]
    frame = runs(*jobs).runs.assign(train_points=100)
    return Sweep("-", "s", frame.assign(**{names.PLAIN.column: "false"}))


def test_the_headline_counts_passes():
    text = headline(in_passes(0.375, 1))
    assert "in 0.375 passes (step size 1); b needs 1 (step size 1)" in text
    assert "in 1 pass (step size 1); b needs 3" in headline(in_passes(1, 3))
    assert "did not get there in 4" in headline(in_passes(1, np.inf))
    assert "No scheme removes 90 % of the excess cost in 4 passes" in headline(
        in_passes(np.inf, np.inf)
    )


def test_two_over_l_is_drawn_as_that_of_the_full_batch():
    frame = in_passes(1, 3).runs.assign(**{names.THRESHOLD.column: 2.0})
    assert material.schemes(Sweep("-", "s", frame), "x")[names.THRESHOLD.column].isna().all()
    batched = Sweep("-", "s", frame.assign(**{names.BATCHED.column: "true"}))
    rows = material.schemes(batched, "x")
    assert (rows[names.THRESHOLD.column] == 2.0).all()
    assert material.threshold_label(rows) == "the full batch's 2/L"
    assert thresholds_that_hold(rows)[names.THRESHOLD.column].isna().all()


RECORDS = pd.DataFrame(
    {"run_id": ["r"] * 7, "iteration": range(7), "train/cost": np.geomspace(1, 0.1, 7)}
)
JOB = {"run_id": "r", "label": "a", "normalizer": "standard", "verdict": names.CONVERGED}
OF_BATCHES = {passes.BATCH_SETTING: "30", passes.RECORDS: "2", passes.TRAIN_POINTS: 100.0}


@pytest.mark.parametrize(
    ("by", "label", "across"),
    [
        ("iterations", "pass over the points", [0, 0.5, 1, 1.5, 2, 2.5, 3]),
        ("passes", "pass over the points", [0, 0.5, 1, 1.5, 2, 2.5, 3]),
        ("updates", "update of the weights", [0, 2, 4, 6, 8, 10, 12]),
        ("seconds", "seconds of one run", [1, 6, 11, 16, 21, 26, 31]),
    ],
)
def test_records_within_a_pass_are_drawn_where_they_are(by, label, across):
    timed = {names.FIT_SECONDS.column: 1.0, names.SECONDS_A_STEP.column: 10.0}
    figure = histories.draw(RECORDS, pd.DataFrame([JOB | OF_BATCHES | timed]), "-", by=by)
    axis = figure.axes[0]
    assert axis.get_xlabel().startswith(label)
    assert axis.lines[0].get_xdata().tolist() == across
    late = histories.draw(RECORDS, pd.DataFrame([JOB | OF_BATCHES]), "-", first=2)
    assert late.axes[0].lines[0].get_xdata().tolist() == [2, 2.5, 3]


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
