"""What is said of best step sizes at an end of the grid or beyond it, word by word."""

import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import fastest
from normbench.results.compare.reached import ABOVE, HIGH, LOW
from normbench.results.store.runs import Sweep
from tests.results.made import runs

GRID = {0.1: (9.0, 0.3), 1.0: (5.0, 0.2), 30.0: (3.0, 0.1)}


def remarks(monkeypatch, *rows, value=9.0):
    """Return what is said of (scheme, end, best step size); 2/L is 0.04."""
    table = pd.DataFrame(rows, columns=["scheme", "end", "step"]).assign(value=value)
    monkeypatch.setattr(fastest, "time_to_target", lambda sweeps, target: table)
    sweep = runs(*(("x", name, GRID) for name in {"a", *table["scheme"]}))
    sweep.runs[names.THRESHOLD.column] = 0.04
    return fastest._grid_edge_sentences(sweep, "1e-2")


@pytest.mark.parametrize(
    ("end", "decades"), [(HIGH, ("-1", "4")), (LOW, ("-3", "2")), (ABOVE, ("-4", "2"))]
)
def test_more_decades_are_named_at_the_end_where_the_best_step_size_is(monkeypatch, end, decades):
    (text,) = remarks(monkeypatch, ("a", end, 1.0), ("b", "", 1.0))
    fields = {"schemes": "a", "first": int(decades[0]), "last": int(decades[1])}
    name = "grid_above" if end == ABOVE else "grid_end"
    splits = {} if end == ABOVE else {"splits": ""}
    assert text == fastest.make_sentence(name, **fields, **splits).text


def test_an_end_on_some_splits_is_told_as_such_and_a_grid_above_on_all_alone(monkeypatch):
    (text,) = remarks(monkeypatch, ("a", HIGH, 30.0), ("a", "", 1.0))
    assert " on some splits" in text
    assert remarks(monkeypatch, ("a", ABOVE, 30.0), ("a", "", 1.0)) == []


@pytest.mark.parametrize("end", [HIGH, LOW, ABOVE, ""])
def test_of_a_start_that_meets_the_target_no_step_size_is_looked_for(monkeypatch, end):
    assert remarks(monkeypatch, ("a", end, 0.01), value=0.0) == []
    assert remarks(monkeypatch, ("a", end, 0.01)) != []


@pytest.mark.parametrize(("limits", "first"), [((7e-6, 0.05), -8), ((0.05, 0.09), -4)])
def test_a_grid_below_begins_two_decades_below_the_smallest_limit(limits, first):
    sweep = runs(("x", "a", GRID), ("x", "b", GRID))
    for name, limit in zip("ab", limits):
        sweep.runs.loc[sweep.runs["normalizer"] == name, names.THRESHOLD.column] = limit
    (text,) = fastest._grid_edge_sentences(sweep, "1e-2")
    assert "2/L of a and b, so" in text
    assert text.endswith(f"step_sizes='${{decades:{first},2}}' begins below.")


def test_a_best_step_size_beyond_the_grid_is_told(monkeypatch):
    (text,) = remarks(monkeypatch, ("a", "", 40.0), ("b", "", 0.05), ("c", "", 30.0))
    assert text == fastest.make_sentence("grid_beyond", schemes="a and b").text
    assert remarks(monkeypatch, ("a", "", None), ("b", "", 0.1)) == []


def test_without_a_step_nothing_is_at_an_end(monkeypatch):
    assert remarks(monkeypatch) == []
    sweep = runs(("x", "a", None))
    assert fastest._grid_edge_sentences(sweep, "1e-2") == []


def test_the_ends_are_those_of_the_first_target_where_there_is_no_race(monkeypatch):
    targets = []

    def note_target(sweep, target):
        targets.append(target)
        return []

    monkeypatch.setattr(fastest, "races", lambda sweep, experiment: [])
    monkeypatch.setattr(fastest, "_grid_edge_sentences", note_target)
    sweep = runs(("x", "a", GRID), ("x", "b", GRID))
    fastest.answers(sweep, "x", pd.DataFrame({"experiment": []}))
    assert targets == [fastest.RACE_TARGETS[0]]


def test_schemes_under_no_descent_have_no_answer():
    sweep = runs(("x", "a", GRID), ("x", "b", GRID))
    none = Sweep("-", "s", sweep.runs.assign(**{names.setting("iterations"): "0"}))
    assert fastest.answers(none, "x", pd.DataFrame({"experiment": []})) == []


@pytest.mark.parametrize(
    ("splits", "note"), [(1, ""), (2, ", median of 2 splits"), (9, ", median of 9 splits")]
)
def test_a_median_is_of_two_splits_and_more(splits, note):
    assert fastest._medians_note(splits) == note


@pytest.mark.parametrize(("folded", "unknown"), [("", True), ("a", False), ("ab", False)])
def test_predictions_are_unknown_unless_one_scheme_is_cross_validated(folded, unknown):
    frame = runs(("x", "a", GRID), ("x", "b", GRID), iterations="50").runs
    cost = frame["normalizer"].map(dict.fromkeys(folded, 0.5)).astype(float)
    sweep = Sweep("-", "s", frame.assign(**{names.FOLDS_COST.column: cost}))
    told = fastest.answers(sweep, "x", pd.DataFrame({"experiment": []}))
    assert (fastest.make_sentence("predicts_unknown").text in told) == unknown


def test_schemes_at_one_end_are_on_some_splits_where_one_of_them_is(monkeypatch):
    (text,) = remarks(monkeypatch, ("a", HIGH, 30.0), ("b", HIGH, 30.0), ("b", "", 1.0))
    assert "The best step size of a and b is at the end of those tried on some splits: " in text
    (text,) = remarks(monkeypatch, ("a", HIGH, 30.0), ("b", HIGH, 30.0), ("c", "", 1.0))
    assert "The best step size of a and b is at the end of those tried: " in text


def test_a_step_size_that_is_at_an_end_is_not_told_to_be_beyond_it_too(monkeypatch):
    (text,) = remarks(monkeypatch, ("a", HIGH, 300.0), ("b", "", 1.0))
    assert text.startswith("The best step size of a is at the end of those tried")


def test_each_end_has_a_sentence_in_their_order(monkeypatch):
    told = remarks(
        monkeypatch, ("a", "", 50.0), ("b", ABOVE, 1.0), ("c", LOW, 0.1), ("d", HIGH, 30.0)
    )
    assert [text.partition(":")[0] for text in told] == [
        "The best step size of d is at the end of those tried",
        "The best step size of c is at the end of those tried",
        "Every step size tried is above 2/L of b, so nothing is known of smaller ones",
        "The best step size of a is beyond those of the grid, by less than a factor of ten.",
    ]


def of_tests(**rates):
    """Return what `heldout.by_split` returns of one split: the test errors by scheme."""
    rows = [
        {"experiment": "x", "scheme": name, "split": 0, "cost": 0.1, "best cost": 0.1, "at": 3.0}
        | {"rate": rate, "best rate": rate, "train rate": 0.1, "start": 0.7, "ratio": 1 / 3}
        | {"arrived": True}
        for name, rate in rates.items()
    ]
    return pd.DataFrame(rows)


def test_schemes_that_predict_equally_well_are_named_together():
    sweep = runs(("x", "a", GRID), ("x", "b", GRID), iterations="50")
    told = fastest.answers(sweep, "x", of_tests(a=0.1, b=0.1))
    assert told[1].startswith("Predicts best: a = b (10.0% of the test points misclassified)")
    told = fastest.answers(sweep, "x", of_tests(a=0.1, b=0.2))
    assert told[1].startswith("Predicts best: a (10.0% of the test points misclassified)")
    assert fastest.make_sentence("predicts_unknown").text not in told


def test_test_points_of_another_experiment_say_nothing():
    sweep = runs(("x", "a", GRID), ("x", "b", GRID), iterations="50")
    told = fastest.answers(sweep, "x", of_tests(a=0.1, b=0.1).assign(experiment="y"))
    assert fastest.make_sentence("predicts_unknown").text in told


@pytest.mark.parametrize(
    "jobs",
    [
        [("x", "a", GRID)],
        [("x", "a", None), ("x", "b", None)],
        [("x", name, GRID, {"start_scale": scale}) for name in "ab" for scale in "12"],
    ],
)
def test_one_scheme_several_problems_and_failures_have_no_answer(jobs):
    no_splits = pd.DataFrame({"experiment": []})
    assert fastest.answers(runs(*jobs, iterations="50"), "x", no_splits) == []
    both = runs(("x", "a", GRID), ("x", "b", GRID), iterations="50")
    assert fastest.answers(both, "x", no_splits) != []


def test_where_one_scheme_has_no_descent_the_others_are_compared():
    jobs = [("x", name, GRID, {"iterations": count}) for name, count in zip("abc", "099")]
    told = fastest.answers(runs(*jobs), "x", pd.DataFrame({"experiment": []}))
    assert told[0].startswith("Fastest on this grid: b and c.")


@pytest.mark.parametrize(
    ("splits", "pairs", "clause"),
    [
        (1, "none", "; one split cannot show a difference from b"),
        (5, "none", "; 5 splits are too few to show a difference from b"),
        (6, "none", "; 6 splits show no difference from b"),
        (6, "not judged", "; not judged against b, because a descent has not arrived"),
        (6, "better", ""),
    ],
)
def test_a_doubt_names_what_the_splits_do_not_tell_apart(splits, pairs, clause):
    table = pd.DataFrame({"scheme": ["a"], "against": ["b"], "conclusion": [pairs]})
    assert fastest._doubt_clause(table, ["a"], splits) == clause


def test_schemes_at_an_end_stand_in_the_order_of_their_jobs(monkeypatch):
    (text,) = remarks(monkeypatch, ("b", LOW, 0.1), ("a", LOW, 0.1))
    assert text.startswith("The best step size of b and a is at the end of those tried: ")
