"""The question that a comparison asks and its answer, in sentences."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing as answer
from normbench.results.answer import fastest, headline, race, tables
from normbench.results.answer import theory_table as theory
from normbench.results.compare import reached
from normbench.results.store.runs import Sweep
from tests.results.made import runs

NO_SPLITS = pd.DataFrame({"experiment": []})


def table(*rows):
    """Return a sweep of one experiment whose schemes have (label, verdict, cost, step size)."""
    columns = ["label", "verdict", names.FINAL_COST.column, names.STEP_TAG.column]
    frame = pd.DataFrame(rows, columns=columns).assign(role="scheme", experiment="e", data="")
    frame["normalizer"] = frame["run_id"] = frame["label"]
    sweep = {"role": "sweep", "experiment": "e"}
    return Sweep("-", "s", pd.concat([frame, pd.DataFrame([sweep])], ignore_index=True))


SENTENCES = {
    "a": (
        (
            ("a", "not converged", 0.5, "10"),
            ("b", "converged", 0.1, "1"),
            ("c", "cycling", 0.3, "1"),
        ),
        "After gradient descent, from the lowest cost up: b, 0.1 at step size 1 (converged); "
        "c, 0.3 at step size 1 (cycling); a, 0.5 at step size 10 (not converged).",
    ),
    "equal": (
        (("a", "converged", 0.1 + 1e-9, "10"), ("b", "not converged", 0.1, "1")),
        "After gradient descent: a = b, 0.1 at step sizes 10 and 1 (converged and not converged).",
    ),
    "alone": (
        (("a", "converged", 0.1, "1"),),
        "After gradient descent: a, 0.1 at step size 1 (converged).",
    ),
    "failed": (
        (("a", "converged", 0.1, "1"), ("b", "failed", None, None)),
        "After gradient descent: a, 0.1 at step size 1 (converged). 1 of 2 jobs failed.",
    ),
    "none": (
        (("a", "diverged", None, None), ("b", "failed", None, None)),
        "No scheme has a cost to compare. a diverged at every step size. 1 of 2 jobs failed.",
    ),
    "diverged": (
        (("a", "converged", 0.1, "1"), *((name, "diverged", None, None) for name in "bc")),
        "After gradient descent: a, 0.1 at step size 1 (converged). "
        "b and c diverged at every step size.",
    ),
    "many diverged": (
        (("a", "converged", 0.1, "1"), *((name, "diverged", None, None) for name in "bcdef")),
        "After gradient descent: a, 0.1 at step size 1 (converged). "
        "5 of 6 jobs diverged at every step size.",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_the_answer_ranks_every_scheme_and_names_equal_ones_together(case):
    rows, sentence = SENTENCES[case]
    sweep = table(*rows)
    assert answer.ranking_paragraph(sweep, "e") == sentence
    assert answer.overall_ranking(sweep) == sentence


def known(left=(0.0, 0.25), **settings):
    """Return two schemes of which the least cost, 0, is known; left: of the start's excess, 1."""
    sweep = table(*((name, "converged", cost, "1") for name, cost in zip("ab", left)))
    about = {names.MINIMUM.column: 0.0, names.target("1e-1").column: 0.1}
    about |= {names.MINIMUM_REACHED.column: "true", names.setting("iterations"): "100"}
    about |= {names.setting(name): text for name, text in settings.items()}
    return Sweep("-", "s", sweep.runs.assign(**about))


def test_the_answer_says_the_budget_and_what_is_left():
    assert answer.ranking_paragraph(known(), "e") == (
        "After 100 iterations of gradient descent, from the lowest cost up: "
        "a, under 1e-06 at step size 1 (converged, under 0.0001% of the excess cost left); "
        "b, 0.25 at step size 1 (converged, 25% of the excess cost left)."
    )
    # A millionth of the start's excess is the same, whatever the costs themselves are.
    assert "a = b" in answer.ranking_paragraph(known((1e-9, 1e-6)), "e")
    assert "a = b" not in answer.ranking_paragraph(known((1e-9, 1e-5)), "e")


def test_an_excess_over_a_least_cost_of_its_own_is_called_its_own():
    sweep = known((0.3, 0.1))
    least = sweep.runs["normalizer"].map({"a": 0.3, "b": 0.0})
    own = Sweep("-", "s", sweep.runs.assign(**{names.MINIMUM.column: least}))
    assert "under 0.0001% of its own excess cost left" in answer.ranking_paragraph(own, "e")
    assert "of the excess cost left" in answer.ranking_paragraph(sweep, "e")


@pytest.mark.parametrize(("minimum", "owner"), [(0.0015, "its own"), (0.0008, "the")])
def test_least_costs_differ_by_more_than_a_thousandth_of_the_starts_excess(minimum, owner):
    sweep = known((0.3, 0.1))
    minima = sweep.runs["normalizer"].map({"a": minimum, "b": 0.0})
    differing = Sweep("-", "s", sweep.runs.assign(**{names.MINIMUM.column: minima}))
    assert f"of {owner} excess cost left" in answer.ranking_paragraph(differing, "e")


def test_costs_are_equal_up_to_a_share_of_the_smallest_excess_at_a_start():
    sweep = known((0.0, 1e-4))
    targets = sweep.runs["normalizer"].map({"a": 0.1, "b": 1000.0})
    differing = Sweep("-", "s", sweep.runs.assign(**{names.target("1e-1").column: targets}))
    assert "a = b" not in answer.ranking_paragraph(differing, "e")


def test_costs_of_other_functions_are_not_ranked():
    said = answer.ranking_paragraph(known(**{"cost.l2": "0.1"}), "e")
    assert said == (
        "After 100 iterations of gradient descent, by how much of each scheme's own excess cost "
        "is left: "
        "a, under 0.0001% of its excess cost left at step size 1 (converged); "
        "b, 25% of its excess cost left at step size 1 (converged)."
    )
    same = answer.ranking_paragraph(known(**{"cost.l2": "0.1", "cost.l2_in": "features"}), "e")
    assert "from the lowest cost up" in same


def test_the_answer_over_several_problems_counts_them_and_ranks_all():
    one = table(*((name, "converged", cost, "1") for name, cost in zip("abc", (0.1, 0.2, 0.3))))
    other = one.runs.assign(experiment="f", run_id=one.runs["run_id"] + "2")
    sweep = Sweep("-", "s", pd.concat([one.runs, other], ignore_index=True))
    assert answer.overall_ranking(sweep).startswith(
        "Of 2 problems, the lowest cost on how many (and the mean rank): a 2 (1), b 0 (2), c 0 (3);"
    )


def test_schemes_without_a_cost_share_the_last_ranks():
    costs = {"a": 0.1, "b": None, "c": None}
    verdicts = {"a": "converged", "b": "failed", "c": "diverged"}
    rows = table(*((name, verdicts[name], cost, "1") for name, cost in costs.items())).runs
    other = rows.assign(experiment="f", run_id=rows["run_id"] + "2")
    sweep = Sweep("-", "s", pd.concat([rows, other], ignore_index=True))
    assert "a 2 (1), b = c 0 (2.5);" in answer.overall_ranking(sweep)


def test_the_question_names_a_few_schemes_and_counts_many():
    few = table(*((name, "converged", 0.1, "1") for name in "ab"))
    assert answer.question(few, "e") == (
        "Which of a and b lowers the cost of e furthest in gradient descent?"
    )
    for optimizers, iterations, within in (
        (("adam", "adam"), "9", " in 9 iterations of adam?"),
        (("adam", "sign"), "9", " furthest in 9 iterations?"),
        (("adam", "sign"), None, " furthest?"),
    ):
        every = few.runs.assign(**{names.setting("iterations"): iterations})
        every.loc[every["role"] == "scheme", names.OPTIMIZER.column] = optimizers
        assert answer.question(Sweep("-", "s", every), "e").endswith(within)
    many = table(*((name, "converged", 0.1, "1") for name in "abcdef"))
    assert "6 schemes" in answer.question(many, "e")


@pytest.mark.parametrize(("labels", "does"), [("a", "does a make"), ("ab", "do a and b make")])
def test_the_question_of_no_descent_is_what_schemes_make_of_the_points(labels, does):
    sweep = table(*((name, "", None, None) for name in labels))
    none = sweep.runs.assign(**{names.setting("iterations"): "0"})
    assert answer.question(Sweep("-", "s", none), "e") == f"What {does} of the points of e?"


@pytest.mark.parametrize(
    ("labels", "asks"),
    [
        ("a", "How few points of e does a leave misclassified?"),
        ("ab", "Which of a and b leaves the fewest points of e misclassified?"),
    ],
)
def test_the_question_of_counts_is_of_misclassified_points(labels, asks):
    sweep = table(*((name, "converged", 0.1, "1") for name in labels))
    counted = sweep.runs.assign(**{names.COMPARED.column: names.MISCLASSIFICATIONS})
    counted[names.OPTIMIZER.column] = ""
    assert answer.question(Sweep("-", "s", counted), "e") == asks


def varied(name, texts):
    """Return `table` with a setting: b wins under the first of its values, a under the second."""
    parts = []
    for number, text in enumerate(texts):
        cost = 0.1 if number == 1 else 0.3
        part = table(("a", "converged", cost, "1"), ("b", "converged", 0.2, "1")).of_role("scheme")
        part = part.assign(**{names.setting(name): text}, run_id=part["run_id"] + str(number))
        part["label"] += f", {name}={text}"
        parts.append(part)
    sweep = pd.DataFrame([{"role": "sweep", "experiment": "e"}])
    return Sweep("-", "s", pd.concat([*parts, sweep], ignore_index=True))


@pytest.mark.parametrize("name", ["dataset.condition_number", "start_scale", "cost.some"])
def test_costs_of_different_problems_are_counted_and_not_compared(name):
    sweep = varied(name, ["10", "100", "1000"])
    said = answer.ranking_paragraph(sweep, "e")
    assert said == (
        "Of 3 problems, the lowest cost on how many (and the mean rank): b 2 (1.33), a 1 (1.67); "
        "each scheme at its best step size."
    )
    assert answer.overall_ranking(sweep) == said
    assert answer.question(sweep, "e").startswith("Which of a and b lowers the cost")


def test_costs_of_one_problem_are_compared_under_every_optimizer():
    sweep = varied("optimizer", ["adam", "newton"])
    assert "up: a, optimizer=newton, 0.1" in answer.ranking_paragraph(sweep, "e")


@pytest.mark.parametrize(("cost", "told"), [(3e-7, False), (3e-5, True)])
def test_costs_below_what_is_told_apart_are_told_as_such(cost, told):
    sweep = runs(("x", "a", {1.0: (5.0, cost)}))
    extra = {names.MINIMUM_REACHED.column: "true", names.AT_INFINITY.column: "true"}
    extra |= {names.THRESHOLD.column: 2.0, names.THRESHOLD_BEST.column: 123.0}
    sweep = Sweep("-", "s", sweep.runs.assign(**extra))
    said, table = answer.ranking_paragraph(sweep, "x"), theory.predictions(sweep)
    if told:
        assert "a, 3e-05 at step size 1 (not converged, 0.003% of the excess cost left)" in said
        assert table["2/L at the end"].tolist() == [123.0]
    else:
        assert (
            "a, under 1e-06 at step size 1 (not converged, under 0.0001% of the excess cost" in said
        )
        assert "2/L at the end" not in table
    attained = Sweep("-", "s", sweep.runs.assign(**{names.AT_INFINITY.column: "false"}))
    assert theory.predictions(attained)["2/L at the end"].tolist() == [123.0]


@pytest.mark.parametrize("name", ["dataset.split_seed", "seed"])
def test_splits_and_seeds_are_one_scheme_that_is_never_compared_with_itself(name):
    kind = {"seed": "seeds"}.get(name, "splits")
    jobs = [
        (
            "x",
            scheme,
            {1.0: (5.0, cost * (1 + n))},
            {name: str(n), "data": f"{n}" * (kind == "splits")},
        )
        for scheme, cost in (("a", 0.3), ("b", 0.1))
        for n in range(3)
    ]
    sweep = runs(*jobs, iterations="100")
    said = answer.ranking_paragraph(sweep, "x")
    assert said.count("a,") == said.count("b,") == 1
    assert "b, 0.2" in said
    assert "a, 0.6" in said
    assert said.endswith(f"(medians of 3 {kind}).")
    assert f"{name}=" not in said


def test_schemes_of_which_jobs_failed_have_medians_of_fewer_splits():
    rows = pd.DataFrame({"repeats": ["10 splits", "4 splits", "10 splits", ""], "starts": 1})
    assert answer.medians_note(rows) == " (medians of 4 splits or 10 splits)"


def test_the_medians_of_several_starts_are_said(three):
    every = three.sweep.runs.assign(**{names.setting("starts"): "2"})
    said = answer.ranking_paragraph(Sweep(three.uri, "sweep-1", every), three.name)
    assert said.endswith("(medians of 2 starts).")


def test_which_is_best_is_not_told_of_a_scheme_under_several_optimizers():
    jobs = [
        ("x", scheme, {1.0: (count, 0.001)}, {"optimizer": optimizer})
        for scheme, count in (("a", 70), ("b", 90))
        for optimizer, count in (("newton", 4), ("gradient_descent", count))
    ]
    assert fastest.answers(runs(*jobs[1::2]), "x", NO_SPLITS)[0].startswith(
        "Fastest on this grid: a. It removes 99 % of the excess cost in 70 iterations (step size 1)"
    )
    assert fastest.answers(runs(*jobs), "x", NO_SPLITS) == []
    assert headline.headline(runs(*jobs)) == (
        "a is fastest on 1 of 2 problems; x, optimizer=newton shows no difference."
    )


def test_which_is_best_has_two_answers():
    sweep = runs(*(("x", name, {0.1: count, 1.0: np.inf}) for name, count in zip("abc", (5, 3, 3))))
    fast, predicts = fastest.answers(sweep, "x", NO_SPLITS)
    assert fast == (
        "Fastest on this grid: b and c. They remove 99 % of the excess cost in 3 iterations (step "
        "size 0.1); a needs 5 (step size 0.1)."
    )
    assert predicts.startswith("Whether the faster scheme also predicts better was not tested; to")
    none = {1.0: (np.inf, 0.5)}
    never = runs(("x", "a", none), ("x", "b", {1.0: (np.inf, 0.4)}), iterations="100")
    assert fastest.answers(never, "x", NO_SPLITS)[0] == (
        "No scheme removes 90 % of the excess cost in 100 iterations on this grid: b comes closest "
        "and leaves 40% of it."
    )
    assert fastest.answers(runs(("x", "a", none)), "x", NO_SPLITS) == []


def test_a_count_without_finer_step_sizes_is_one_of_the_grid():
    grids = {"a": {1.0: 5.0}, "b": {1.0: 9.0}, "c": {1.0: np.inf}, "d": {1.0: np.inf}}
    finer = {"a": {8: 3.0}, "c": {8: np.inf}}
    jobs = [("x", name, grid, {"finer": finer.get(name, {})}) for name, grid in grids.items()]
    assert fastest.answers(runs(*jobs, iterations="100"), "x", NO_SPLITS)[0] == (
        "Fastest: a. It removes 99 % of the excess cost in 3 iterations (step size 3.16); b needs "
        "at most 9 (step size 1); c did not get there in 100; d did not get there in 100 on this "
        "grid."
    )


def test_equal_counts_are_of_the_grid_where_one_of_them_is():
    finer = {"finer": {8: 3.0}}
    jobs = [("x", "a", {1.0: 5.0}, finer), ("x", "b", {1.0: 3.0})]
    assert fastest.answers(runs(*jobs), "x", NO_SPLITS)[0] == (
        "Fastest: a and b. They remove 99 % of the excess cost in at most 3 iterations (step sizes "
        "3.16 and 1)."
    )


def test_one_iteration_is_one():
    sweep = runs(("x", "a", {1.0: 1.0}, {"finer": {8: 2.0}}), ("x", "b", {1.0: 2.0}))
    fast = fastest.answers(sweep, "x", NO_SPLITS)[0]
    assert "in 1 iteration (step size 1); b needs at most 2 (" in fast


@pytest.mark.parametrize(
    ("splits", "middle", "doubt"),
    [(3, 4, "; 3 splits are too few to show a difference from b"), (6, 6, "")],
)
def test_who_is_best_over_splits_is_said_with_its_doubt(splits, middle, doubt):
    count = {"a": 3, "b": 5}
    sweep = runs(
        *(
            ("x", name, {0.1: count[name] + n}, {"dataset.split_seed": str(n), "data": f"{n}"})
            for name in count
            for n in range(splits)
        )
    )
    of_tests = [
        {"experiment": "x", "scheme": name, "split": n, "rate": count[name] / 100, "cost": 0.1}
        | {"best cost": 0.1, "at": 9.0, "best rate": 0.1, "train rate": 0.1, "start": 0.7}
        | {"ratio": 1 / 3, "arrived": True}
        for name in count
        for n in range(splits)
    ]
    fast, predicts, *faster = fastest.answers(sweep, "x", pd.DataFrame(of_tests))
    counts = (
        f"99 % of the excess cost in {middle} iterations (step size 0.1); b needs {middle + 2} "
        f"(step size 0.1) (medians of {splits} splits)."
    )
    assert fast == (
        f"Fastest: a or b; {splits} splits are too few to show a difference. a removes {counts}"
        if doubt
        else f"Fastest on this grid: a. It removes {counts}"
    )
    assert predicts == (
        "Predicts best: a (3.0% of the test points misclassified, "
        f"median of {splits} splits){doubt}."
    )
    assert faster == ([] if doubt else ["The scheme that descends faster predicts best, too."])
    one = pd.DataFrame(of_tests[::splits])
    doubt = "; one split cannot show a difference from b."
    assert fastest.answers(sweep, "x", one)[1].endswith(doubt)


def test_jobs_that_failed_were_to_descend(images):
    failed = table(("a", "failed", None, None), ("b", "diverged", None, None))
    assert answer.question(failed, "e").startswith("Which of a and b lowers the cost of e")
    every = Sweep("-", "s", failed.runs.assign(verdict="failed"))
    assert theory.explanation(every, "e") == "Every job failed, so there is nothing to compare."
    assert answer.ranking_paragraph(images.sweep, images.name).startswith("No descent was made")
    assert "figures" in theory.explanation(images.sweep, images.name)


def test_a_step_size_that_was_chosen_is_not_called_the_best(three):
    chosen = Sweep("-", "s", three.sweep.runs.assign(**{names.STEP_CHOSEN.column: "true"}))
    assert "shown step" in tables.summary(chosen)
    assert "best step" in tables.summary(three.sweep)
    sweep = varied("start_scale", ["0", "1"])
    sweep = Sweep("-", "s", sweep.runs.assign(**{names.STEP_CHOSEN.column: "true"}))
    assert "each scheme at its shown step size" in answer.ranking_paragraph(sweep, "e")


def test_of_no_iterations_nothing_is_said_to_be_fastest(three, monkeypatch):
    none = pd.DataFrame(columns=reached.REACHED_COLUMNS)
    monkeypatch.setattr(race, "time_to_target", lambda sweeps, target: none)
    monkeypatch.setattr(fastest, "time_to_target", lambda sweeps, target: none)
    sweep = Sweep(three.uri, "sweep-1", three.sweep.runs)  # of which nothing is known yet
    told = fastest.answers(sweep, three.name, NO_SPLITS)
    assert told[0].startswith("Whether the faster scheme also predicts better")
    assert headline.headline(sweep) == answer.ranking_paragraph(sweep, three.name)


@pytest.mark.parametrize("at_end", ["a", "b", ""])
def test_where_the_grid_ends_for_the_slower_scheme_the_splits_do_not_decide(at_end):
    sizes = {name: (1.0, 10.0) if name == at_end else (10.0, 1.0) for name in "ab"}
    sweep = runs(
        *(
            (
                "x",
                name,
                {0.1: 90.0, sizes[name][0]: 80.0, sizes[name][1]: count + n},
                {"dataset.split_seed": str(n), "data": str(n)},
            )
            for name, count in (("a", 3.0), ("b", 30.0))
            for n in range(7)
        )
    )
    answer = fastest.answers(sweep, "x", NO_SPLITS)[0]
    if at_end == "b":
        assert answer.startswith(
            "Fastest: a or b; 7 splits do not decide, because the best step size of b may lie"
        )
    else:
        assert answer.startswith("Fastest on this grid: a.")


def test_a_question_is_of_counts_where_any_scheme_is_compared_by_them():
    sweep = table(("a", "converged", 0.1, "1"), ("b", "converged", 0.1, "1"))
    compared = np.where(sweep.runs["label"] == "a", names.MISCLASSIFICATIONS, "")
    mixed = sweep.runs.assign(**{names.COMPARED.column: compared, names.OPTIMIZER.column: ""})
    said = answer.question(Sweep("-", "s", mixed), "e")
    assert said == "Which of a and b leaves the fewest points of e misclassified?"


def test_the_table_of_no_descent_lists_what_is_recorded_but_for_histories():
    sweep = table(("a", "", None, None), ("b", "", None, None))
    of_a = f"spectrum,{names.DESCENT_ARRAYS},points"
    recorded = {
        names.setting("iterations"): "0",
        names.RECORDED.column: np.where(sweep.runs["label"] == "a", of_a, ""),
    }
    found = tables.summary(Sweep("-", "s", sweep.runs.assign(**recorded)))
    assert found[names.RECORDED.key].dropna().tolist() == ["spectrum, points"]


def with_targets(*jobs):
    """Return a sweep of jobs, each (experiment, encoding, what its target was taken for)."""
    made = runs(*((experiment, f"s{n}", {1.0: 3.0}) for n, (experiment, *_) in enumerate(jobs)))
    schemes = made.runs["role"] == "scheme"
    made.runs.loc[schemes, names.setting("dataset.encoding")] = [job[1] for job in jobs]
    made.runs.loc[schemes, names.TARGET_SUMMARY.column] = [job[2] for job in jobs]
    return made


@pytest.mark.parametrize(
    ("jobs", "lines"),
    [
        ([("x", "a=0, b=1", "2 classes (a 3, b 1)")] * 3, ["target: 2 classes (a 3, b 1)"]),
        (
            [("x", None, "real numbers, 1 to 9"), ("x", None, "real numbers, 2 to 9")],
            ["target: real numbers, 1 to 9 (of the first training set)"],
        ),
        (
            [("x", "a=0", "A"), ("y", "a=0", "A"), ("z", "b=0", "B"), ("z", None, "C")],
            ["target of x and y: A", "target of z: B", "target of z: C"],
        ),
        ([("x", None, None), ("y", "a=0", "A")], ["target: A"]),
        ([("x", None, None)], []),
    ],
)
def test_a_target_is_told_once(jobs, lines):
    assert answer.targets(with_targets(*jobs)) == lines


def test_records_without_a_target_have_no_line_on_it():
    assert answer.targets(runs(("x", "a", {1.0: 3.0}))) == []
