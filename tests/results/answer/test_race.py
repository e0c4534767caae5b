"""The race of schemes to a target: iterations, step sizes, and which schemes lost."""

import numpy as np
import pytest

from normbench import names
from normbench.results.answer import headline
from normbench.results.answer.race import RACE_TARGETS, race_target, races
from normbench.results.store.runs import Sweep
from tests.results.made import runs

NEVER = np.inf


def race_of(sweep):
    (race,) = races(sweep, "x")
    return race


def over_splits(count, **schemes):
    """Return a sweep of schemes with one step size a split, (size, iterations) each."""
    jobs = [
        ("x", name, {size: (iterations, 0.1 + n)}, {"dataset.seed": str(n), "data": str(n)})
        for name, split_runs in schemes.items()
        for n, (size, iterations) in zip(range(count), split_runs)
    ]
    return runs(*jobs, iterations="50")


def test_a_race_of_one_split():
    sweep = runs(
        ("x", "a", {0.1: 9.0, 1.0: 4.0}),
        ("x", "b", {0.1: 4.0}),
        ("x", "c", {1.0: 7.0}),
        ("x", "d", {1.0: (NEVER, 0.5)}),
        iterations="50",
    )
    race = race_of(sweep)
    assert (race.setting, race.target, race.budget, race.by_count) == ("", "1e-2", 50, False)
    assert race.iterations.to_dict() == {"a": 4.0, "b": 4.0, "c": 7.0, "d": NEVER}
    assert race.fewest_iterations == 4.0
    assert race.fastest_schemes == ["a", "b"]
    assert race.other_iterations.index.tolist() == ["c", "d"]
    assert race.step_sizes[["a", "b", "c"]].tolist() == [1.0, 0.1, 1.0]
    assert (race.splits, race.enough_splits, list(race.undecided_schemes)) == (1, False, [])
    assert (race.boundary_schemes, race.uncertain_schemes) == (frozenset(), frozenset())


def test_over_splits_there_are_medians_and_a_step_size_where_it_is_one():
    race = race_of(
        over_splits(3, a=[(1.0, 3), (1.0, 9), (1.0, 5)], b=[(1.0, 8), (2.0, 8), (1.0, 8)])
    )
    assert race.iterations.to_dict() == {"a": 5.0, "b": 8.0}
    assert race.step_sizes["a"] == 1.0
    assert np.isnan(race.step_sizes["b"])
    assert (race.splits, race.enough_splits) == (3, False)
    assert list(race.undecided_schemes) == ["b"]


def test_a_scheme_that_never_arrives_leaves_the_order_of_the_others_open():
    never = [(1.0, NEVER)] * 3
    race = race_of(over_splits(3, a=[(1.0, 3)] * 3, b=[(1.0, 9)] * 3, c=never))
    assert race.fastest_schemes == ["a"]
    assert list(race.undecided_schemes) == ["b", "c"]


@pytest.mark.parametrize(("count", "enough"), [(6, False), (7, True)])
def test_three_schemes_are_three_pairs_which_need_seven_splits(count, enough):
    schemes = {name: [(1.0, n + 3)] * count for n, name in enumerate("abc")}
    assert race_of(over_splits(count, **schemes)).enough_splits == enough


@pytest.mark.parametrize(("count", "enough"), [(5, False), (6, True)])
def test_two_schemes_need_six_splits_for_a_difference(count, enough):
    race = race_of(over_splits(count, a=[(1.0, 3)] * count, b=[(1.0, 9)] * count))
    assert race.enough_splits == enough
    assert list(race.undecided_schemes) == ([] if enough else ["b"])


def test_the_budget_is_known_where_it_is_one():
    jobs = [("x", name, {1.0: 3.0}) for name in "ab"]
    assert race_of(runs(*jobs, iterations="1e2")).budget == 100
    frame = runs(*jobs, iterations="50").runs
    frame.loc[frame["normalizer"] == "a", names.setting("iterations")] = "60"
    assert {race.budget for race in races(Sweep("-", "s", frame), "x")} <= {None, 50, 60}
    assert races(runs(*jobs, iterations="0"), "x") == []


def test_schemes_all_of_whose_jobs_failed_or_diverged_are_lost():
    frame = runs(
        ("x", "a", {1.0: 3.0}), ("x", "b", None), ("x", "c", {1.0: (NEVER, 0.5)}), iterations="50"
    ).runs
    frame.loc[frame["normalizer"] == "c", "verdict"] = "diverged"
    race = race_of(Sweep("-", "s", frame))
    assert race.lost_verdicts == {"b": "failed", "c": "diverged"}


def test_a_scheme_that_rounding_decides_at_the_target_is_uncertain():
    ends = {"a": 0.001, "b": 0.01, "c": 0.02}
    jobs = [("x", name, {1.0: (NEVER, end)}) for name, end in ends.items()]
    frame = runs(("x", "d", {1.0: 3.0}), *jobs, iterations="50").runs
    frame.loc[(frame["role"] == "step") & (frame["normalizer"] != "d"), "verdict"] = (
        names.BY_ROUNDING
    )
    assert race_of(Sweep("-", "s", frame)).uncertain_schemes == {"a", "b"}


def test_the_target_is_the_first_that_a_scheme_meets_or_else_the_last():
    frame = runs(("x", "a", {1.0: (NEVER, 0.05)}), ("x", "b", {1.0: (NEVER, 0.5)})).runs
    assert race_of(Sweep("-", "s", frame)).target == RACE_TARGETS[-1]
    assert race_of(Sweep("-", "s", frame)).fastest_schemes == []
    met = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 4.0}))
    assert race_of(met).target == RACE_TARGETS[0]
    assert race_target(met) == RACE_TARGETS[0]
    both = runs(("x", "a", {1.0: (NEVER, 0.05)}), ("y", "a", {1.0: 3.0}))
    assert race_target(both) == RACE_TARGETS[0]
    assert race_target(Sweep("-", "s", frame.copy())) == RACE_TARGETS[-1]
    assert race_target(Sweep("-", "s", frame[:0])) == RACE_TARGETS[0]  # without a race


def test_an_optimizer_that_finds_its_step_sizes_has_none_in_a_race():
    frame = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 4.0}), iterations="50").runs
    frame.loc[(frame["role"] == "scheme") & (frame["normalizer"] == "a"), names.GRIDLESS.column] = (
        "true"
    )
    race = race_of(Sweep("-", "s", frame))
    assert np.isnan(race.step_sizes["a"])
    assert race.step_sizes["b"] == 1.0
    assert race.is_refined.to_dict() == {"a": True, "b": False}


@pytest.mark.parametrize(("fewest", "leading"), [(0.0, []), (1.0, ["a"])])
def test_a_scheme_that_needs_one_iteration_leads_and_one_that_needs_none_does_not(fewest, leading):
    sweep = runs(("x", "a", {1.0: fewest}), ("x", "b", {1.0: 4.0}), iterations="50")
    assert headline.leaders(sweep.of_role("scheme"), race_of(sweep)) == leading


def test_equal_counts_at_other_step_sizes_have_a_clause_each():
    jobs = [("x", "b", {1.0: 9.0}), ("x", "c", {2.0: 9.0}), ("x", "d", {1.0: 9.0})]
    sweep = runs(("x", "a", {1.0: 3.0}), *jobs, iterations="50")
    assert [*headline._other_schemes(race_of(sweep))] == [
        "b and d need 9 (step size 1)",
        "c needs 9 (step size 2)",
    ]


def test_a_race_is_by_count_where_one_scheme_is_compared_by_it():
    frame = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 4.0}), iterations="50").runs
    for schemes, by_count in (("", False), ("a", True), ("ab", True)):
        told = frame["normalizer"].isin([*schemes]).map({True: names.MISCLASSIFICATIONS})
        sweep = Sweep("-", "s", frame.assign(**{names.COMPARED.column: told}))
        assert race_of(sweep).by_count == by_count


def test_schemes_that_tie_stay_in_the_order_of_their_jobs():
    jobs = [("x", name, {1.0: count}) for name, count in (("c", 3.0), ("b", 9.0), ("a", 3.0))]
    race = race_of(runs(*jobs, ("x", "A", {1.0: 9.0}), iterations="50"))
    assert race.fastest_schemes == ["c", "a"]
    assert [*race.other_iterations.index] == ["b", "A"]


def test_the_race_of_each_setting_is_of_its_own_jobs():
    jobs = [
        ("x", name, {1.0: count}, {"start_scale": scale})
        for scale, counts in (("9", (3.0, 4.0)), ("1", (8.0, 7.0)))
        for name, count in zip("ab", counts)
    ]
    first, second = races(runs(*jobs, iterations="50"), "x")
    assert (first.setting, first.iterations.to_dict()) == ("start_scale=9", {"a": 3.0, "b": 4.0})
    assert (second.setting, second.iterations.to_dict()) == ("start_scale=1", {"a": 8.0, "b": 7.0})


def test_a_scheme_is_lost_where_all_its_jobs_are_for_one_reason():
    jobs = [("x", "a", {1.0: 3.0}), ("x", "a", {1.0: 4.0}), ("x", "b", None), ("x", "b", None)]
    jobs = [(*job, {"dataset.seed": str(n % 2)}) for n, job in enumerate(jobs)]
    frame = runs(*jobs, iterations="50").runs
    for verdicts, lost in (
        (["diverged", "failed"], {}),
        (["diverged", "diverged"], {"b": "diverged"}),
        (["failed", "not converged"], {}),
    ):
        is_of_b = (frame["role"] == "scheme") & (frame["normalizer"] == "b")
        frame.loc[is_of_b, "verdict"] = verdicts
        assert race_of(Sweep("-", "s", frame.copy())).lost_verdicts == lost


def test_an_experiment_of_failed_jobs_has_a_race_without_a_winner_or_none():
    assert races(runs(("x", "a", {1.0: 3.0}), iterations="0"), "x") == []
    race = race_of(runs(("x", "a", None), ("x", "b", {1.0: (NEVER, 0.5)}), iterations="50"))
    assert race.iterations.to_dict() == {"a": NEVER, "b": NEVER}
    assert race.fewest_iterations == NEVER
    assert race.fastest_schemes == []


def test_only_runs_of_the_race_s_own_jobs_are_uncertain():
    frame = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: (NEVER, 0.001)}), iterations="50").runs
    steps = frame["role"] == "step"
    frame.loc[steps & (frame["normalizer"] == "b"), "verdict"] = names.BY_ROUNDING
    frame.loc[steps & (frame["normalizer"] == "b"), "parent"] = "of another"
    assert race_of(Sweep("-", "s", frame)).uncertain_schemes == frozenset()


@pytest.mark.parametrize("failed", [False, True])
def test_jobs_without_any_target_have_no_race_and_are_ranked_by_their_cost(failed):
    """No job's cost at zero weights is finite, as that of scores normalized without an epsilon."""
    others = [("x", "c", None)] if failed else []
    sweep = runs(("x", "a", {1.0: (NEVER, 0.5)}), ("x", "b", {1.0: (NEVER, 0.1)}), *others)
    assert len(races(sweep, "x")) == 1
    table = sweep.runs.assign(**{names.target(key).column: np.nan for key in RACE_TARGETS})
    without = Sweep("-", "s", table)
    assert races(without, "x") == []
    assert race_target(without) == RACE_TARGETS[0]
    assert "from the lowest cost up: b, 0.1 at step size 1" in headline.headline(without)


def test_jobs_that_all_failed_have_a_race_that_nobody_wins():
    race = race_of(runs(("x", "a", None), ("x", "b", None)))
    assert race.fastest_schemes == []
