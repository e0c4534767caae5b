"""The table of promised and observed step sizes, and the notes beside it, cell by cell."""

import numpy as np
import pytest

from normbench import names
from normbench.results.answer import tables, theory_table
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import make_sentence
from tests.results.made import runs

GRID = {0.5: (9.0, 0.3), 1.0: (5.0, 0.2), 4.0: (3.0, 0.1)}


def sweep(metrics=(), *schemes, **tags):
    """Return a sweep of one scheme, or of some, with these metrics and tags."""
    frame = runs(*(("x", name, GRID) for name in schemes or ("a",)), iterations="50").runs
    is_scheme = frame["role"] == "scheme"
    for metric, value in dict(metrics).items():
        frame.loc[is_scheme, metric.column] = value
    for name, text in tags.items():
        frame.loc[is_scheme, getattr(names, name).column] = text
    return Sweep("-", "s", frame)


def cell(column, metrics=(), **tags):
    """Return a cell of the table of one scheme; None where the column is left out."""
    (row,) = theory_table.predictions(sweep(metrics, **tags)).to_dict("records")
    return row.get(column)


PROMISED = {names.THRESHOLD: 2.0}
FALLING = {**PROMISED, names.LARGEST_FALLING: 1.0}
CRITICAL = {**PROMISED, names.CRITICAL: 3.0}


@pytest.mark.parametrize(
    ("metrics", "tags", "text"),
    [
        (CRITICAL, {}, "1.5"),
        (CRITICAL, {"CENSORED_CRITICAL": "true"}, ">=1.5"),
        (FALLING, {}, "0.5 to 2"),
        ({**FALLING, names.LARGEST_FALLING: 0.5}, {}, "0.25 to 0.5"),
        (FALLING, {"CENSORED_FALLING": "true"}, ">=0.5"),
        ({**FALLING, names.LARGEST_FALLING: 4.0}, {}, None),
        (PROMISED, {}, "<0.25"),
        (FALLING, {"PLAIN": "false"}, None),
        ({**FALLING, names.THRESHOLD: 0.0}, {}, None),
        ({names.LARGEST_FALLING: 1.0}, {}, None),
    ],
)
def test_what_was_seen_is_a_share_of_what_was_promised(metrics, tags, text):
    assert cell("seen / promised", metrics, **tags) == text


def test_without_a_descent_nothing_was_seen():
    frame = sweep(FALLING).runs.assign(**{names.setting("iterations"): "0"})
    assert "seen / promised" not in theory_table.predictions(Sweep("-", "s", frame))


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({names.CONDITION: 12345.6}, "1.235e+04"),
        ({names.CONDITION_LIMIT: 1e30}, ">1e+30"),
        ({names.CONDITION: 7.0, names.CONDITION_LIMIT: 1e30}, "7"),
        ({}, None),
    ],
)
def test_a_condition_number_that_rounding_hides_has_a_bound(metrics, text):
    assert cell("condition number", metrics) == text


def test_the_largest_step_sizes_are_bounds_where_no_larger_one_failed():
    metrics = {names.LARGEST_FALLING: 0.5, names.LARGEST_CONVERGENT: 4.0, names.CRITICAL: 3.0}
    assert cell("always falls up to", metrics) == "0.5"
    assert cell("always falls up to", metrics, CENSORED_FALLING="true") == ">=0.5"
    assert cell("converges up to", metrics, CENSORED="false") == "4"
    assert cell("converges up to", metrics, CENSORED="true") == ">=4"
    assert cell("critical step", metrics, CENSORED_CRITICAL="true") == ">=3"
    assert cell("converges up to") is None  # the column stays, though it is empty


def test_step_sizes_that_the_optimizer_finds_itself_have_no_largest_one():
    metrics = {names.LARGEST_FALLING: 1.0, names.LARGEST_CONVERGENT: 1.0}
    for gridless, text in (("true", None), ("false", "1")):
        for column in ("always falls up to", "converges up to"):
            assert cell(column, metrics, GRIDLESS=gridless) == text
        summary = tables.summary(sweep(metrics, GRIDLESS=gridless))
        assert summary["best step"].tolist() == [text and "4"]
        assert ("converges up to" in summary) == (gridless == "false")


@pytest.mark.parametrize(("minimum", "shown"), [(0.0, 9.0), (0.1, None)])
def test_a_curvature_that_goes_to_0_with_the_cost_is_not_shown(minimum, shown):
    metrics = {names.THRESHOLD_BEST: 9.0, names.MINIMUM: minimum, names.target("1e-1"): 0.2}
    assert cell("2/L at the end", metrics, AT_INFINITY="true") == shown
    assert cell("2/L at the end", metrics, AT_INFINITY="false") == 9.0


def test_failed_jobs_and_columns_that_are_empty_are_left_out():
    both = runs(("x", "a", GRID), ("x", "b", None))
    table = theory_table.predictions(both)
    assert table["scheme"].tolist() == ["a"]
    assert list(table) == ["scheme", "always falls up to", "converges up to"]
    several = theory_table.predictions(runs(("x", "a", GRID), ("y", "a", GRID)))
    assert several["experiment"].tolist() == ["x", "y"]


def test_a_note_names_its_schemes_unless_it_is_of_all():
    assert theory_table.notes(sweep(NOTE="no curvature"), "x") == ["Note: no curvature."]
    two = sweep((), "b", "a", "c")
    schemes = two.runs["role"] == "scheme"
    two.runs.loc[schemes, names.NOTE.column] = ["too much work", "no curvature", "too much work"]
    assert theory_table.notes(two, "x") == ["Note: b; c: too much work.", "Note: a: no curvature."]
    assert theory_table.notes(sweep(), "x") == []


def test_what_was_judged_again_names_its_schemes():
    judged = sweep((), "a", "b", DESCEND_AGAIN="contours,sharpness")
    (note,) = theory_table.notes(judged, "x")
    assert note.startswith("a; b")
    assert "contours" in note


def test_it_is_explained_unless_no_step_was_made():
    frame = sweep().runs.assign(**{names.setting("iterations"): "0"})
    assert "figures" in theory_table.explanation(Sweep("-", "s", frame), "x")
    failed = runs(("x", "a", None))
    assert "Every job failed" in theory_table.explanation(failed, "x")
    some = runs(("x", "a", GRID), ("x", "b", None))
    assert "Every job failed" not in theory_table.explanation(some, "x")


def test_a_step_size_that_converged_on_one_split_only_is_told():
    jobs = [
        ("x", "a", {1.0: (3.0, 0.1 + n)}, {"dataset.seed": str(n), "data": str(n)}) for n in (0, 1)
    ]
    frame = runs(*jobs, iterations="50").runs
    frame.loc[frame["role"] == "scheme", names.LARGEST_CONVERGENT.column] = [1.0, np.nan]
    text = theory_table.explanation(Sweep("-", "s", frame), "x")
    assert "every split" in text


def test_theory_is_explained_unless_no_job_has_a_descent():
    jobs = [("x", name, {1.0: 3.0}, {"iterations": count}) for name, count in zip("ab", "09")]
    no_step = make_sentence("no_step").text
    assert theory_table.explanation(runs(*jobs), "x") != no_step
    assert theory_table.explanation(runs(jobs[0]), "x") == no_step


def test_each_number_of_theory_is_under_its_name():
    metrics = {names.LIPSCHITZ: 8.0, names.THRESHOLD: 0.25, names.THRESHOLD_BEST: 3.0}
    metrics |= {names.LARGEST_FALLING: 0.5, names.LARGEST_CONVERGENT: 4.0, names.CRITICAL: 1.0}
    metrics[names.CONDITION] = 16.0
    (row,) = theory_table.predictions(sweep(metrics)).to_dict("records")
    assert row == {
        "scheme": "a",
        "largest curvature L": 8.0,
        "2/L": 0.25,
        "2/L at the end": 3.0,
        "always falls up to": "0.5",
        "converges up to": "4",
        "critical step": "1",
        "seen / promised": "4",
        "condition number": "16",
    }


def test_a_step_size_as_large_as_the_largest_falling_one_is_not_the_next():
    """It is recorded to all digits, which may be one in a billion off."""
    near = {**FALLING, names.LARGEST_FALLING: 1.0 - 1e-10}
    assert cell("seen / promised", near) == "0.5 to 2"
    assert cell("seen / promised", {**FALLING, names.LARGEST_FALLING: 0.99}) == "0.495 to 0.5"


def test_steps_of_another_scheme_or_of_size_0_say_nothing_of_what_was_seen():
    grids = {"a": {0.0: 3.0, 1.0: 5.0, 4.0: 3.0}, "b": {0.1: 9.0, 2.0: 9.0}}
    frame = runs(*(("x", name, grid) for name, grid in grids.items()), iterations="50").runs
    of_a = (frame["role"] == "scheme") & (frame["normalizer"] == "a")
    frame.loc[of_a, names.THRESHOLD.column] = 2.0
    assert theory_table.predictions(Sweep("-", "s", frame.copy()))["seen / promised"][0] == "<0.5"
    frame.loc[of_a, names.LARGEST_FALLING.column] = 1.0
    seen = theory_table.predictions(Sweep("-", "s", frame))["seen / promised"]
    assert seen.fillna("").tolist() == ["0.5 to 2", ""]


def test_where_no_step_size_is_above_0_nothing_was_seen():
    frame = runs(("x", "a", {0.0: 3.0}), iterations="50").runs
    frame.loc[frame["role"] == "scheme", names.THRESHOLD.column] = 2.0
    assert "seen / promised" not in theory_table.predictions(Sweep("-", "s", frame))


@pytest.mark.parametrize(
    ("value", "censored", "text"),
    [
        (None, "true", None),
        (np.nan, "true", None),
        (0.0, None, "0"),
        (0.123456, "false", "0.1235"),
        (0.1, "true", ">=0.1"),
        (12345.6, None, "1.235e+04"),
    ],
)
def test_a_step_size_has_four_digits_and_a_sign_where_it_is_a_bound(value, censored, text):
    assert theory_table.format_bound(value, censored) == text


@pytest.mark.parametrize(("left", "shown"), [(1.0, None), (1.01, 9.0)])
def test_a_curvature_vanishes_where_no_more_than_what_is_told_apart_is_left(left, shown):
    frame = sweep({names.THRESHOLD_BEST: 9.0}, AT_INFINITY="true").runs
    schemes = frame["role"] == "scheme"
    # The excess at the start is 1.
    frame.loc[schemes, names.FINAL_COST.column] = left * names.TIED
    table = theory_table.predictions(Sweep("-", "s", frame))
    assert table.to_dict("records")[0].get("2/L at the end") == shown


def test_what_was_judged_again_is_named_in_words_once():
    judged = sweep((), "a", "b", "c")
    schemes = judged.runs["role"] == "scheme"
    lost = "final/critical_step,contours"
    judged.runs.loc[schemes, names.DESCEND_AGAIN.column] = [lost, None, "contours,contours"]
    told = theory_table.notes(judged, "x")
    whats = {text.partition(":")[0]: text for text in told}
    assert set(whats) == {"a", "c"}
    assert f"is left out ({names.CRITICAL.label}, contours);" in whats["a"]
    assert "is left out (contours);" in whats["c"]


def test_an_explanation_ends_with_its_notes():
    text = theory_table.explanation(sweep(NOTE="it rains"), "x")
    assert text.endswith(" Note: it rains.")
    assert not text.startswith(" ")
    some = runs(("x", "a", GRID, {"iterations": "0"}), ("x", "b", GRID, {"iterations": "9"}))
    assert theory_table.explanation(some, "x") != make_sentence("no_step").text
