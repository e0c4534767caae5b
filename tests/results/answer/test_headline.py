"""The answer in a sentence for a person: who is fastest, in every case."""

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing, race
from normbench.results.answer import headline as module
from normbench.results.answer.headline import headline
from normbench.results.compare.problems import scheme_runs
from normbench.results.store.runs import Sweep
from tests.results.made import runs

FINER = {"finer": {8: np.inf}}  # step sizes between those of the grid were tried, in vain
NEVER = (np.inf, 0.5)


def raced(*grids, **params):
    """Return the answer of schemes a, b, c with iterations by step size, finer ones tried too."""
    jobs = [("x", name, grid, FINER) for name, grid in zip("abc", grids)]
    return headline(runs(*jobs, **{"iterations": "100", **params}))


def changed(sweep, where, **columns):
    """Return a sweep with other columns of the runs of one scheme, by their place in `names`."""
    frame = sweep.runs.copy()
    for name, value in columns.items():
        column = name if name in frame else getattr(names, name).column
        frame.loc[frame["normalizer"] == where, column] = value
    return Sweep("-", "s", frame)


def test_the_fastest_is_named_with_what_the_others_take():
    assert raced({10.0: 12}, {10.0: 45}, {1.0: NEVER}) == (
        "Fastest: a. It removes 99 % of the excess cost in 12 iterations (step size 10); b needs "
        "45 (step size 10); c did not get there in 100."
    )


def test_a_tie_names_all_that_are_equal():
    assert raced({1.0: 3}, {10.0: 3}, {1.0: 9}) == (
        "Fastest: a and b. They remove 99 % of the excess cost in 3 iterations (step sizes 1 and "
        "10); c needs 9 (step size 1)."
    )
    assert raced({1.0: 3}, {1.0: 9}, {1.0: 9}).endswith("; b and c need 9 (step size 1).")
    assert raced({1.0: 3}, {1.0: NEVER}, {2.0: NEVER}).endswith(
        "; b and c did not get there in 100."
    )


def test_one_scheme_is_not_called_the_fastest():
    assert raced({1.0: 3}) == "a removes 99 % of the excess cost in 3 iterations (step size 1)."
    assert raced({1.0: NEVER}) == (
        "a does not remove 90 % of the excess cost in 100 iterations on this grid: it leaves "
        "50% of it."
    )


def test_a_budget_that_differs_is_not_told():
    sweep = runs(
        ("x", "a", {1.0: 3}, {**FINER, "iterations": "10"}),
        ("x", "b", {1.0: NEVER}, {**FINER, "iterations": "${per_scheme:10,20}"}),
    )
    assert headline(sweep).endswith("; b did not get there.")


def test_an_optimizer_without_a_grid_has_no_step_size():
    sweep = runs(("x", "a", {1.0: 3}), ("x", "b", {1.0: 5}), iterations="9")
    sweep.runs[names.GRIDLESS.column] = "true"
    assert headline(sweep) == (
        "Fastest: a. It removes 99 % of the excess cost in 3 iterations; b needs 5."
    )


def test_jobs_that_failed_or_diverged_are_said_to():
    grids = {"a": {1.0: 3}, "b": None, "c": {1.0: (np.inf, np.nan)}}
    sweep = runs(*(("x", name, grid, FINER) for name, grid in grids.items()), iterations="9")
    sweep = changed(sweep, "c", verdict=names.DIVERGED)
    assert headline(sweep).endswith("(step size 1); b failed; c diverged at every step size.")
    assert headline(runs(("x", "a", None), ("x", "b", None))) == "No scheme has a cost to compare."


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (0.001, "b did not get there for certain in 9: rounding decides."),
        (0.5, "b did not get there in 9."),
    ],
)
def test_what_rounding_decides_is_not_said_to_have_missed(end, words):
    sweep = runs(
        ("x", "a", {1.0: 3}, FINER),
        ("x", "b", {1.0: NEVER, 2.0: (np.inf, end)}, FINER),
        iterations="9",
    )
    chaotic = (sweep.runs["normalizer"] == "b") & (sweep.runs[names.STEP_TAG.column] == "2")
    sweep.runs.loc[chaotic & (sweep.runs["role"] == "step"), "verdict"] = names.BY_ROUNDING
    assert headline(sweep).endswith(words)
    jobs = scheme_runs([sweep])
    assert race._uncertain_schemes(sweep, "1e-2", jobs) == ({"b"} if end == 0.001 else set())
    # Above the goal of another scheme, which is the common one, it missed.
    jobs.loc[jobs["scheme"] == "a", names.target("1e-2").column] = 0.0005
    assert not race._uncertain_schemes(sweep, "1e-2", jobs)


def test_an_excess_is_said_to_be_of_what_it_is():
    sweep = runs(("x", "a", {1.0: 3}), ("x", "b", {1.0: 5}))
    assert "removes 99 % of the excess cost in 3" in headline(sweep)
    drawn = runs(("x", "a", {1.0: 3}), ("x", "b", {1.0: 5}), start="normal")
    assert "It brings the excess cost down to 1 % of that of zero weights in 3" in headline(drawn)


def over_splits(counts, splits):
    """Return schemes whose iterations on each split are as many more."""
    return runs(
        *(
            (
                *("x", name, {1.0: (own[n % len(own)], 0.001 + n / 1e4)}),
                {"dataset.split_seed": str(n), "data": f"{n}"},
            )
            for name, own in counts.items()
            for n in range(splits)
        )
    )


def test_splits_that_show_no_difference_leave_it_open():
    doubt = headline(over_splits({"a": [3, 9], "b": [4]}, 8))
    assert doubt.startswith("Fastest: b or a; 8 splits show no difference. b removes 99 % of the")
    assert doubt.endswith(" (medians of 8 splits).")
    few = headline(over_splits({"a": [3], "b": [4]}, 2))
    assert few.startswith("Fastest: a or b; 2 splits are too few to show a difference. a removes")
    many = {name: [n + 3] for n, name in enumerate("abcdef")}
    assert headline(over_splits(many, 2)).startswith("Fastest: a or one of 5 others; 2 splits are")


def problems(*winners, **tags):
    """Return a sweep of problems on which these schemes, a and b, are the fastest."""
    jobs = [
        (f"{number}-softmax", name, {1.0: 3 if name in who else NEVER if who == "-" else 7})
        for number, who in zip(("iris", "wine", "digits", "sonar", "yeast"), winners)
        for name in "ab"
    ]
    sweep = runs(*jobs)
    frame = sweep.runs.assign(**{names.DATASET.column: sweep.runs["experiment"].str[:-8]})
    return headline(Sweep("-", "s", frame.assign(**tags)))


def test_several_problems_are_counted():
    assert problems("a", "a", "b") == "a is fastest on 2 of 3 data sets; b on digits."
    assert problems("a", "ab", "a") == "a is fastest on 2 of 3 data sets; wine shows no difference."
    assert problems("ab", "ab") == "iris and wine show no difference."
    assert problems("a", "-") == (
        "a is fastest on 1 of 2 data sets; on wine no scheme removes 90 % of the excess cost."
    )


def test_problems_that_the_data_does_not_tell_apart_are_named_whole():
    sweep = runs(
        ("iris-softmax", "a", {1.0: 3}),
        ("iris-softmax", "b", {1.0: 7}),
        ("iris-squares", "a", {1.0: 9}),
        ("iris-squares", "b", {1.0: 7}),
    )
    sweep = Sweep("-", "s", sweep.runs.assign(**{names.DATASET.column: "iris"}))
    assert headline(sweep) == "a is fastest on 1 of 2 problems; b on iris-squares."
    assert headline(sweep, "iris-squares").startswith("Fastest on this grid: b. It removes 99 %")


def in_orders(sizes, orders, schemes="ab"):
    """Return schemes in batches of several sizes over orders, and once on all points."""
    grids = {"a": {1.0: (3.0, 0.001)}, "b": {1.0: (4.0, 0.002)}}
    jobs = [
        ("x", name, grids[name], {"batch": size, "batch_seed": str(order)})
        for name in schemes
        for size in sizes
        for order in range(orders if size != "None" else 1)
    ]
    jobs = [
        (*job[:2], {1.0: (job[2][1.0][0], job[2][1.0][1] + n / 1e6)}, job[3])
        for n, job in enumerate(jobs)
    ]
    return runs(*jobs, data="d", batch_order="shuffled", train_points=100)


def test_orders_of_several_batches_that_are_too_few_are_told_to_be():
    assert headline(in_orders(["8", "64", "None"], 2)) == (
        "a is fastest on 1 of 3 problems; 2 orders of the batches are too few to show a difference "
        "on x, batch=8; x, batch=64."
    )
    assert headline(in_orders(["8", "64"], 8)) == "a is fastest on 2 of 2 problems."


@pytest.mark.parametrize("orders", [1, 3])
def test_each_batch_is_a_problem_of_the_ranking_and_orders_are_none(orders):
    sweep = in_orders(["8", "64", "None"], orders)
    assert closing.ranking_paragraph(sweep, "x").startswith(
        "Of 3 problems, the lowest cost on how many (and the mean rank): a 3 (1), b 0 (2);"
    )
    assert closing.question(sweep, "x").startswith("Which of a and b lowers the cost")


def test_batches_of_one_scheme_are_ranked_by_their_costs():
    text = closing.ranking_paragraph(in_orders(["8", "64", "None"], 3, "a"), "x")
    assert "from the lowest cost up: a, batch=8, 0.001" in text
    assert "a, batch=null" in text


def test_several_problems_of_one_scheme_are_ranked_as_before():
    sweep = runs(("x", "a", {1.0: 3}), ("y", "a", {1.0: 3}))
    assert headline(sweep).startswith("Of 2 problems")


def test_without_a_descent_the_reason_is_said():
    sweep = runs(("x", "a", None), ("x", "b", None), iterations="0")
    assert headline(sweep).startswith("No descent was made (iterations=0): the figures show")


def test_schemes_that_start_at_the_target_are_told_in_their_number():
    there = {1.0: (0, 0.001)}
    rest = "with no more than 1 % of "
    assert f"a starts {rest}" in raced(there, {1.0: 9})
    assert f"a and b start {rest}" in raced(there, there, {1.0: 9})


def test_a_problem_of_one_scheme_beside_those_of_two_is_not_counted():
    jobs = [("x", "a", {1.0: 3}), ("x", "b", {1.0: 7}), ("y", "a", {1.0: 3})]
    assert headline(runs(*jobs)) == "a is fastest on x."
    jobs += [("z", "a", {1.0: 3}), ("z", "b", {1.0: 3})]
    assert headline(runs(*jobs)) == "a is fastest on 1 of 2 problems; z shows no difference."


def test_the_one_experiment_that_has_a_race_is_told():
    jobs = [("x", "a", {1.0: 3}, {"iterations": "0"}), ("y", "a", {1.0: 3}), ("y", "b", {1.0: 7})]
    assert headline(runs(*jobs)).startswith("Fastest on this grid: a. It removes 99 %")


def test_the_most_wins_come_first_and_winners_of_one_problem_together():
    assert problems("b", "a", "a") == "a is fastest on 2 of 3 data sets; b on iris."
    jobs = [
        (experiment, name, {1.0: 3 if name in fast else 7})
        for experiment, fast in (("x", "ab"), ("y", "c"), ("z", "ab"))
        for name in "abc"
    ]
    assert headline(runs(*jobs)) == "a and b are fastest on 2 of 3 problems; c on y."


@pytest.mark.parametrize(("count", "named"), [(4, "x0, x1, x2 and x3"), (5, "5 of 5 problems")])
def test_up_to_four_problems_without_a_difference_are_named(count, named):
    jobs = [(f"x{number}", name, {1.0: 3}) for number in range(count) for name in "ab"]
    assert headline(runs(*jobs)) == f"{named} show no difference."


def test_many_problems_are_counted_out_of_all():
    """Whether or not another clause has the number of all problems."""
    jobs = [(f"x{n}", name, {1.0: NEVER}) for n in range(5) for name in "ab"]
    nobody = "on 5 of 6 problems no scheme removes 90 % of the excess cost."
    for grid, said in ((3, "y shows no difference"), (7, "a is fastest on 1 of 6 problems")):
        more = [("y", "a", {1.0: 3}), ("y", "b", {1.0: grid})]
        assert headline(runs(*jobs, *more)) == f"{said}; {nobody}"
    few = [
        (
            f"x{n}",
            name,
            {1.0: (count, 1e-3 + split / 1e4)},
            {"dataset.seed": f"{split}", "data": f"{split}"},
        )
        for n in range(5)
        for name, count in (("a", 3), ("b", 7))
        for split in range(2)
    ]
    assert headline(runs(*few)) == ("2 splits are too few to show a difference on 5 of 5 problems.")


@pytest.mark.parametrize("splits", [2, 8])
def test_a_scheme_that_failed_is_no_candidate(splits):
    def jobs(experiment, **grids):
        return [
            (
                experiment,
                name,
                grid and {1.0: (grid, 1e-3 + n / 1e4)},
                {"dataset.seed": f"{n}", "data": f"{n}"},
            )
            for name, grid in grids.items()
            for n in range(splits)
        ]

    failed = jobs("x", a=3, b=None)
    assert headline(runs(*failed)).startswith("Fastest on this grid: a. It removes 99 % ")
    assert headline(runs(*failed)).endswith(f"; b failed (medians of {splits} splits).")
    both = headline(runs(*failed, *jobs("y", a=3, b=7)))
    assert both.startswith(f"a is fastest on {1 + (splits == 8)} of 2 problems")
    third = headline(runs(*jobs("x", a=3, b=None, c=4)))
    assert third.startswith(
        "Fastest on this grid: a." if splits == 8 else "Fastest: a or c; 2 splits"
    )


def test_problems_where_a_scheme_starts_at_the_target_show_no_difference():
    jobs = [("x", "a", {1.0: 0}), ("x", "b", {1.0: 7}), ("y", "a", {1.0: 3}), ("y", "b", {1.0: 7})]
    assert headline(runs(*jobs)) == "a is fastest on 1 of 2 problems; x shows no difference."


def test_no_difference_is_shown_by_enough_splits_and_by_one():
    enough = [
        (
            *("x", name, {1.0: (own[n % 2], 0.001 + n / 1e4)}),
            {"dataset.split_seed": str(n), "data": f"{n}"},
        )
        for name, own in (("a", (3, 9)), ("b", (4, 4)))
        for n in range(8)
    ]
    one = [("y", "a", {1.0: 3}, {"data": "y"}), ("y", "b", {1.0: 7}, {"data": "y"})]
    assert headline(runs(*enough, *one)) == (
        "a is fastest on 1 of 2 problems; x shows no difference."
    )


def test_what_no_scheme_reaches_is_grouped_by_the_goal():
    jobs = [(experiment, name, {1.0: NEVER}) for experiment in "xyz" for name in "ab"]
    jobs = [(*job, {"start": "normal"} if job[0] == "z" else {}) for job in jobs]
    assert headline(runs(*jobs)) == (
        "on x and y no scheme removes 90 % of the excess cost; on z no scheme brings the excess "
        "cost down to 10 % of that of zero weights."
    )


def test_one_data_set_of_several_experiments_does_not_name_them():
    sweep = runs(*((experiment, name, {1.0: 3}) for experiment in "xy" for name in "ab"))
    frame = sweep.runs.assign(**{names.DATASET.column: sweep.runs["experiment"].str.upper()})
    assert headline(Sweep("-", "s", frame)) == "X and Y show no difference."
    frame.loc[frame["experiment"] == "y", names.DATASET.column] = None
    assert headline(Sweep("-", "s", frame.copy())) == "x and y show no difference."


def undecided(count, **known):
    """Return who is said to be fastest of a scheme `a` and others that splits do not set apart."""
    others = [f"s{number}" for number in range(count)]
    fields = {"undecided_schemes": others, "boundary_schemes": frozenset(), "splits": 8}
    fields |= {"sample": "splits", "enough_splits": True}
    return module._undecided_sentence(SimpleNamespace(**fields | known), "a").text


def test_up_to_four_candidates_are_named():
    assert undecided(1) == "Fastest: a or s0; 8 splits show no difference."
    assert undecided(3) == "Fastest: a or s0 or s1 or s2; 8 splits show no difference."
    assert undecided(4) == "Fastest: a or one of 4 others; 8 splits show no difference."


def test_the_end_of_a_grid_is_a_reason_for_those_alone_that_are_candidates():
    beyond = undecided(2, boundary_schemes=frozenset({"s1", "other"}))
    assert "do not decide, because the best step size of s1 may lie beyond the grid" in beyond
    assert undecided(2, boundary_schemes=frozenset({"other"})).endswith("show no difference.")
    few = undecided(2, boundary_schemes=frozenset({"s1"}), enough_splits=False, splits=2)
    assert few.endswith("2 splits are too few to show a difference.")


@dataclass(frozen=True)
class Seen(Sweep):
    """Runs from a cost of 1 to their final cost, and finer ones to costs by scheme and number."""

    finer: Any = ()

    def histories(self, runs, metrics=()):
        ends = zip(runs["run_id"], runs[names.FINAL_COST.column])
        rows = [(run_id, k, cost) for run_id, end in ends for k, cost in enumerate((1.0, end))]
        return pd.DataFrame(rows, columns=["run_id", "iteration", metrics[0]])

    def arrays(self, runs, name):
        ends = {label: [*self.finer[label].values()] for label in runs["label"]}
        return {
            label: {"refined_cost": np.array([[[1.0, end]] for end in own])}
            for label, own in ends.items()
        }


def seen(grids, finer=(), by_rounding=(), reached="false", **params):
    """Return a sweep of schemes whose least cost is not known.

    Args:
        grids: By scheme, the final cost by step size.
        finer: By scheme, that of step sizes beside the grid, by their number on the lattice.
        by_rounding: The numbers of those that rounding decides.
        reached: By scheme, or for all, whether the least cost is known.
        **params: Settings.
    """
    grids = {
        name: {size: (np.inf, end) for size, end in grid.items()} for name, grid in grids.items()
    }
    frame = runs(
        *(("x", name, grid) for name, grid in grids.items()), iterations="9", **params
    ).runs
    for name, ends in dict(finer).items():
        tag = {"numbers": [*ends], "1e-2": [None] * len(ends), "targets": []}
        tag |= {"by_rounding": [*by_rounding]} if by_rounding else {}
        frame.loc[frame["normalizer"] == name, names.REFINED.column] = json.dumps(tag)
    frame[names.MINIMUM_REACHED.column] = reached
    return Seen("-", "s", frame, finer=dict(finer))


UNKNOWN = "How much lower the cost can go is not known."


def test_where_the_least_cost_is_not_known_the_answer_is_who_ended_lowest_and_no_share():
    grids = {"a": {1.0: 0.25, 10.0: 0.24}, "b": {1.0: 0.2427}}
    assert headline(seen(grids)) == (
        "Ended lowest: a. Its cost fell from 1 to 0.24 (step size 10) in 9 iterations; b ended at "
        f"0.2427 (step size 1). {UNKNOWN}"
    )
    assert headline(seen({"a": {1.0: 0.25}})) == (
        f"The cost under a fell from 1 to 0.25 (step size 1) in 9 iterations. {UNKNOWN}"
    )
    tied = headline(seen({"a": {1.0: 0.25}, "b": {1.0: 0.25 + 1e-8}, "c": {1.0: 1.5}}))
    assert tied.startswith("Ended lowest: a and b. Their cost fell from 1 to 0.25 (step size 1) in")
    assert "; c ended at 1.5 (step size 1). " in tied
    rising = headline(seen({"a": {1.0: 1.1}, "b": {1.0: 1.2}}))
    assert "Its cost rose from 1 to 1.1" in rising
    single = seen({"a": {1.0: 0.25, 10.0: 0.25 - 1e-9}, "b": {1.0: 0.3}}, precision="float32")
    assert "(step size 1) in" in headline(single)  # of equal ends the smallest step size


def test_the_lowest_of_every_recorded_run_counts_finer_step_sizes_too():
    grids, finer = {"a": {1.0: 0.24}, "b": {1.0: 0.25}}, {"a": {13: 0.2}, "b": {13: 0.3, 18: 0.19}}
    assert headline(seen(grids, finer)).startswith(
        "Ended lowest: b. Its cost fell from 1 to 0.19 (step size 13.3) in 9 iterations; a ended "
        "at 0.2 (step size 6.49)."
    )
    assert headline(seen(grids, finer, by_rounding=[18])).startswith("Ended lowest: a. ")
    gone_off = {"a": {13: np.nan}, "b": {13: np.nan}}
    assert headline(seen(grids, gone_off)).startswith(
        "Ended lowest: a. Its cost fell from 1 to 0.24"
    )


def test_schemes_without_an_end_are_named_with_the_reason():
    sweep = seen({"a": {1.0: 0.2}, "b": {1.0: 0.3}, "c": {1.0: 0.4}})
    steps = sweep.runs["role"] == "step"
    for scheme, verdict in (("b", names.DIVERGED), ("c", names.BY_ROUNDING)):
        own = sweep.runs["normalizer"] == scheme
        sweep.runs.loc[own if verdict == names.DIVERGED else own & steps, "verdict"] = verdict
    assert headline(sweep).endswith(
        f"; b diverged at every step size; rounding decides where c ended. {UNKNOWN}"
    )
    frame = sweep.runs.assign(verdict=sweep.runs["verdict"].where(~steps, names.DIVERGED))
    assert headline(Seen("-", "s", frame)) == "No scheme has a cost to compare."


def test_one_least_cost_that_is_not_known_is_enough_to_give_no_share():
    grids = {"a": {1.0: 0.2}, "b": {1.0: 0.3}}
    sweep = seen(grids, reached="true")
    assert headline(sweep).startswith("No scheme removes 90 %")
    sweep.runs.loc[sweep.runs["normalizer"] == "b", names.MINIMUM_REACHED.column] = "false"
    assert headline(Seen("-", "s", sweep.runs)).startswith("Ended lowest: a. ")


def test_functions_of_their_own_are_not_compared():
    assert headline(seen({"a": {1.0: 0.2}, "b": {1.0: 0.3}}, **{"cost.l2": "0.1"})) == (
        "Each scheme minimizes another function; the cost under a fell from 1 to 0.2 (step size "
        f"1); under b fell from 1 to 0.3 (step size 1) in 9 iterations. {UNKNOWN}"
    )


def test_of_several_problems_it_is_said_on_which_a_scheme_ended_lowest():
    one, two = (seen({"a": {1.0: 0.2}, "b": {1.0: 0.3}}) for _ in range(2))
    other = two.runs.replace({"experiment": {"x": "y"}})
    other["run_id"], other["parent"] = other["run_id"] + "y", other["parent"] + "y"
    sweep = Seen("-", "s", pd.concat([one.runs, other], ignore_index=True))
    assert headline(sweep) == "a ended lowest on x and y."


def test_what_no_scheme_reaches_from_another_start_is_a_tenth_of_zero_weights():
    assert raced({1.0: NEVER}, {1.0: (np.inf, 0.4)}, start="normal") == (
        "No scheme brings the excess cost down to 10 % of that of zero weights in 100 iterations "
        "on this grid: b comes closest and leaves 40% of it."
    )
    assert raced({1.0: NEVER}, {1.0: NEVER}, iterations="1").endswith(
        " in 1 iteration on this grid: a and b come closest and leave 50% of it."
    )


def test_of_counts_the_points_are_what_is_left():
    sweep = runs(("x", "a", {1.0: NEVER}), ("x", "b", {1.0: NEVER}), iterations="9")
    wrong = sweep.runs["normalizer"].map({"a": 0.3, "b": 0.2})
    columns = {names.COMPARED.column: names.MISCLASSIFICATIONS}
    columns[names.FINAL_MISCLASSIFICATIONS.column] = wrong
    assert headline(Sweep("-", "s", sweep.runs.assign(**columns))) == (
        "No scheme brings the misclassified points down to 10 % of all in 9 iterations on this "
        "grid: b comes closest and leaves 20% of the points."
    )


def test_who_comes_closest_is_not_told_where_the_excess_is_not_known():
    sweep = runs(("x", "a", {1.0: NEVER}), ("x", "b", {1.0: NEVER}), iterations="9")
    unknown = Sweep("-", "s", sweep.runs.assign(**{names.MINIMUM.column: np.nan}))
    assert headline(unknown) == (
        "No scheme removes 90 % of the excess cost in 9 iterations on this grid."
    )


def test_two_splits_have_a_median_and_one_has_none():
    assert headline(over_splits({"a": [3], "b": [4]}, 2)).endswith(" (medians of 2 splits).")
    assert "median" not in headline(over_splits({"a": [3], "b": [4]}, 1))


def test_a_step_size_that_differs_between_splits_is_not_told():
    jobs = [
        (
            "x",
            name,
            {size: (count, 0.001 + n / 1e4)},
            {"dataset.split_seed": str(n), "data": f"{n}"},
        )
        for name, count, sizes in (("a", 3, (1.0, 2.0)), ("b", 4, (1.0, 1.0)))
        for n, size in enumerate(sizes)
    ]
    assert "in 3 iterations; b needs 4 (step size 1) (medians" in headline(runs(*jobs))


def test_equal_counts_of_a_grid_and_of_finer_step_sizes_have_a_clause_each():
    jobs = [("x", "a", {1.0: 3}, FINER), ("x", "b", {1.0: 9}, FINER), ("x", "c", {1.0: 9})]
    assert headline(runs(*jobs, iterations="20")).endswith(
        "; b needs 9 (step size 1); c needs at most 9 (step size 1)."
    )


@pytest.mark.parametrize(
    ("winners", "told"),
    [
        (["on ['height and weight']"], "on ['height and weight'] is"),
        (["pca, ridge=0", "zca, ridge=0"], "pca, ridge=0; zca, ridge=0 are"),
    ],
)
def test_one_scheme_is_and_several_are_whatever_their_names(winners, told):
    jobs = [
        (data, name, {1.0: 3 if name in winners else 7})
        for data in ("iris", "wine")
        for name in (*winners, "b")
    ]
    frame = runs(*jobs).runs
    frame[names.DATASET.column] = frame["experiment"]
    assert headline(Sweep("-", "s", frame)) == f"{told} fastest on 2 of 2 data sets."
