"""The answer by final costs: its places, what it counts over problems, and what it leaves out."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing
from normbench.results.store.runs import Sweep
from tests.results.made import runs

NEVER = (np.inf, 0.5)


def ended(**costs):
    """Return a sweep of experiments, each with the final costs of its schemes; None: it failed."""
    return runs(
        *(
            (experiment, scheme, None if cost is None else {1.0: (3.0, cost)})
            for experiment, ends in costs.items()
            for scheme, cost in ends.items()
        )
    )


def with_verdicts(sweep, verdict, *schemes):
    """Return a sweep all runs of some of whose schemes have a verdict."""
    frame = sweep.runs.copy()
    frame.loc[frame["normalizer"].isin(schemes), "verdict"] = verdict
    return Sweep("-", "s", frame)


def test_of_equal_mean_ranks_the_one_of_more_wins_comes_first():
    sweep = ended(x={"a": 0.1, "b": 0.2, "c": 0.3}, y={"a": 0.3, "b": 0.2, "c": 0.1})
    assert "(and the mean rank): a = c 1 (2), b 0 (2); each" in closing.overall_ranking(sweep)


def test_schemes_that_tie_share_the_mean_of_their_ranks():
    sweep = ended(x={"c": 0.3, "a": 0.1, "b": 0.1}, y={"c": 0.2, "a": 0.3, "b": 0.3})
    # c is third and first; a and b are first together, and last together: 1.5 and 2.5.
    assert "(and the mean rank): c 1 (2), a = b 1 (2); each" not in closing.overall_ranking(sweep)
    assert "(and the mean rank): c = a = b 1 (2); each" in closing.overall_ranking(sweep)


def test_a_problem_without_a_cost_is_not_counted():
    sweep = ended(x={"a": 0.1, "b": 0.2}, y={"a": None, "b": None, "c": None})
    said = closing.overall_ranking(sweep)
    assert said.startswith("Of 1 problem, the lowest cost on how many (and the mean rank): ")
    assert "a 1 (1), b 0 (2); each scheme at its best step size. 3 of 5 jobs failed." in said
    none = ended(x={"a": None, "b": None}, y={"a": None})
    assert closing.overall_ranking(none) == "No scheme has a cost to compare. 3 of 3 jobs failed."


@pytest.mark.parametrize(
    ("counted", "what"),
    [
        ("", "lowest cost"),
        ("x", "lowest cost or fewest misclassified points"),
        ("xy", "fewest misclassified points"),
    ],
)
def test_what_is_lowest_over_problems_is_the_cost_or_the_count_or_either(counted, what):
    frame = ended(x={"a": 0.1, "b": 0.2}, y={"a": 0.1, "b": 0.2}).runs
    by_count = frame["experiment"].isin([*counted])
    frame[names.COMPARED.column] = np.where(by_count, names.MISCLASSIFICATIONS, "")
    frame[names.FINAL_MISCLASSIFICATIONS.column] = 1.0
    assert closing.overall_ranking(Sweep("-", "s", frame)).startswith(
        f"Of 2 problems, the {what} on how"
    )


@pytest.mark.parametrize(
    ("diverged", "who"),
    [("b", "b"), ("bcde", "b, c, d and e"), ("bcdef", "5 of 6 jobs")],
)
def test_up_to_four_schemes_that_diverged_are_named(diverged, who):
    sweep = ended(x=dict.fromkeys("abcdef"[: len(diverged) + 1], 0.1))
    told = closing.batch_and_exclusion_remarks(with_verdicts(sweep, names.DIVERGED, *diverged), "x")
    assert told == [f"{who} diverged at every step size."]


def test_over_several_experiments_what_diverged_is_counted():
    sweep = with_verdicts(ended(x={"a": 0.1, "b": 0.2}, y={"a": 0.1, "b": 0.2}), "diverged", "b")
    assert closing.overall_ranking(sweep).endswith(" 2 of 4 jobs diverged at every step size.")


@pytest.mark.parametrize(
    ("verdict", "schemes", "named"),
    [
        (names.DIVERGED, "ab", True),
        (names.DIVERGED, "a", False),  # b has a cost
        (names.BY_ROUNDING, "ab", False),  # neither has a cost, and none diverged
    ],
)
def test_smaller_step_sizes_are_named_where_all_diverged_and_none_has_a_cost(
    verdict, schemes, named
):
    sweep = with_verdicts(ended(x={"a": 0.1, "b": 0.2}), verdict, *schemes)
    sweep.runs[names.THRESHOLD.column] = 0.5  # below the one step size that was tried
    assert (
        any("begins below" in text for text in closing.batch_and_exclusion_remarks(sweep, "x"))
        == named
    )


@pytest.mark.parametrize("grid", [None, {1.0: NEVER}])
def test_without_a_limit_or_a_step_size_no_smaller_ones_are_named(grid):
    sweep = with_verdicts(runs(("x", "a", grid)), names.DIVERGED, "a")
    if grid is None:  # nothing was tried
        sweep.runs[names.THRESHOLD.column] = 0.5
    assert closing.batch_and_exclusion_remarks(sweep, "x") == ["a diverged at every step size."]


def test_of_several_experiments_no_smaller_step_sizes_are_named():
    sweep = with_verdicts(ended(x={"a": 0.1}, y={"a": 0.1}), names.DIVERGED, "a")
    sweep.runs[names.THRESHOLD.column] = 0.5
    assert "begins below" in closing.ranking_paragraph(sweep, "x")
    assert "begins below" not in closing.overall_ranking(sweep)


@pytest.mark.parametrize(
    ("settings", "question", "begin"),
    [
        ({"iterations": "50"}, " in 50 iterations of gradient descent", "After 50 iterations of"),
        ({"iterations": "5", "batch": "8"}, None, "After 5 passes in batches of 8 of gradient"),
        ({"iterations": "0"}, None, "No descent was made"),
        ({}, " in gradient descent", "After gradient descent: a, 0.1"),
    ],
)
def test_one_scheme_is_asked_how_far_it_gets_within_the_budget(settings, question, begin):
    sweep = runs(("x", "a", {1.0: (3.0, 0.1)} if begin[0] == "A" else None), **settings)
    assert closing.ranking_paragraph(sweep, "x").startswith(begin)
    if question:
        asked = f"How far does a lower the cost of x{question}?"
        assert closing.question(sweep, "x") == asked


@pytest.mark.parametrize(
    ("settings", "compared", "asked"),
    [
        ({}, "", "How far does a lower the cost of x in gradient descent?"),
        (
            {},
            names.MISCLASSIFICATIONS,
            "How few points of x does a leave misclassified in gradient descent?",
        ),
        ({"iterations": "0"}, "", "What does a make of the points of x?"),
    ],
)
def test_one_scheme_on_several_problems_is_asked_as_one(settings, compared, asked):
    jobs = [("x", "a", {1.0: (3.0, 0.1)}, {"cost.l2": penalty}) for penalty in "01"]
    sweep = runs(*jobs, **settings)
    sweep.runs[names.COMPARED.column] = compared
    assert closing.question(sweep, "x") == asked


def test_of_other_optimizers_and_no_known_budget_the_end_is_told_as_such():
    frame = ended(x={"a": 0.1, "b": 0.2}).runs
    frame[names.OPTIMIZER.column] = frame["normalizer"].map({"a": "adam", "b": "sign"})
    sweep = Sweep("-", "s", frame)
    assert closing.ranking_paragraph(sweep, "x").startswith(
        "At the end, from the lowest cost up: a, 0.1"
    )
    assert closing.question(sweep, "x") == "Which of a and b lowers the cost of x furthest?"


def test_where_one_scheme_alone_was_to_descend_the_question_is_of_costs():
    jobs = [("x", "a", None, {"iterations": "0"}), ("x", "b", None, {"iterations": "9"})]
    assert closing.question(runs(*jobs), "x").startswith("Which of a and b lowers the cost")
    assert closing.ranking_paragraph(runs(*jobs), "x").startswith(
        "No scheme has a cost to compare."
    )
    assert closing.ranking_paragraph(runs(jobs[0]), "x").startswith("No descent was made")


def test_four_schemes_are_named_in_a_question_and_five_are_counted():
    four = ended(x=dict.fromkeys("abcd", 0.1))
    assert closing.question(four, "x").startswith("Which of a, b, c and d lowers")
    five = ended(x=dict.fromkeys("abcde", 0.1))
    assert closing.question(five, "x").startswith("Which of 5 schemes lowers")


def test_each_scheme_whose_larger_batches_gain_little_is_named_with_its_batch():
    jobs = [
        ("x", scheme, {1.0: (passes, 0.001)}, {"batch": size})
        for scheme, counts in (("a", (3.0, 4.0, 30.0)), ("b", (3.0, 20.0, 60.0)))
        for size, passes in zip(("1", "10", "None"), counts)
    ]
    sweep = Sweep("-", "s", runs(*jobs).runs.assign(train_points=100))
    # a: 300, 40 and 30 updates; b: 300, 200 and 60, of which none is at most twice the last.
    assert closing.batch_and_exclusion_remarks(sweep, "x") == [
        "Beyond a batch of 10 larger batches save less than half of the steps under a."
    ]
    frame = sweep.runs
    frame[names.reached("1e-2").column] = frame[names.reached("1e-2").column].replace(20.0, 12.0)
    # Of b 120 updates are twice 60.
    (told,) = closing.batch_and_exclusion_remarks(Sweep("-", "s", frame), "x")
    assert told.endswith("larger batches save less than half of the steps under a; under b, 10.")


def row(label="a", cost=0.25, **others):
    """Return a scheme run whose excess at the start was 1 over 0, the least cost."""
    columns = {"label": label, "verdict": "converged", names.STEP_TAG.column: "1"}
    columns |= {names.FINAL_COST.column: cost, names.MINIMUM.column: 0.0}
    columns |= {names.target("1e-1").column: 0.1, names.MINIMUM_REACHED.column: "true"}
    return columns | {getattr(names, name).column: value for name, value in others.items()}


@pytest.mark.parametrize(
    ("rows", "criterion", "text"),
    [
        ([row()], "cost", "a, 0.25 at step size 1 (converged, 25% of the excess cost left)"),
        ([row(MINIMUM_REACHED="false")], "cost", "a, 0.25 at step size 1 (converged)"),
        (
            [row(cost=1e-6)],
            "cost",
            "a, 1e-06 at step size 1 (converged, 0.0001% of the excess cost left)",
        ),
        (
            [row(cost=-9e-7)],
            "cost",
            "a, under 1e-06 at step size 1 (converged, under 0.0001% of the excess cost left)",
        ),
        ([row(), row("b")], "excess", "a = b, 25% of its excess cost left at step size 1"),
        (
            [row(), row("b", STEP_TAG="10"), row("c", STEP_TAG=None)],
            "excess",
            "a = b = c, 25% of its excess cost left at step sizes 1 and 10",
        ),
        ([row(STEP_TAG=None)], "excess", "a, 25% of its excess cost left (converged)"),
        ([row(MINIMUM_REACHED="false")], "excess", "a, of an unknown excess cost at step size 1"),
        ([row(MINIMUM=np.nan)], "excess", "a, of an unknown excess cost at step size 1"),
        (
            [row(FINAL_MISCLASSIFICATIONS=7.0)],
            "count",
            "a, 7 misclassified at step size 1 (converged)",
        ),
    ],
)
def test_a_place_has_its_value_step_sizes_and_verdicts(rows, criterion, text):
    assert closing._rank_text(rows, criterion, "the").startswith(text)


def test_a_place_without_a_descent_has_no_step():
    without = row() | {names.setting("iterations"): "0"}
    assert closing._rank_text([without], "excess", "the") == (
        "a, 25% of its excess cost left (no step)"
    )


def test_a_place_from_another_start_is_told_of_zero_weights():
    drawn = row() | {names.setting("start"): "normal"}
    assert closing._rank_text([drawn], "cost", "its own").endswith(
        "(converged, 25% of its own excess cost of zero weights left)"
    )


def test_least_costs_of_what_was_not_solved_do_not_differ():
    rows = [row(), row("b", MINIMUM=0.05)]
    assert closing._minima_differ(pd.DataFrame(rows))
    rows[1][names.MINIMUM_REACHED.column] = "false"
    assert not closing._minima_differ(pd.DataFrame(rows))
    assert not closing._minima_differ(pd.DataFrame(rows[1:]))


def test_equal_least_costs_do_not_differ_however_large_they_are():
    rows = [row(name, MINIMUM=0.05) for name in "ab"]
    assert not closing._minima_differ(pd.DataFrame(rows))
