"""Pairs, profiles, ranks and the leaderboard, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from results import comparisons


def table(**schemes):
    """A table as `reached` returns it: one experiment, one problem a start."""
    rows = [
        {"experiment": "x", "setting": "", "split": "0", "start": n, "scheme": name, "value": v}
        for name, values in schemes.items()
        for n, v in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_a_scheme_that_is_always_twice_as_fast_is_faster():
    (row,) = comparisons.paired(table(a=[10, 20, 30], b=[20, 40, 60])).to_dict("records")
    assert (row["wins"], row["verdict"]) == (1.0, "faster")
    assert row["ratio"] == pytest.approx(2.0)
    assert row["low"] == pytest.approx(2.0)
    assert row["high"] == pytest.approx(2.0)


def test_an_unreached_problem_is_infinite_in_a_median():
    found = comparisons.spread(table(a=[1, 2, 3], b=[4, np.inf, np.inf])).set_index("scheme")
    assert found.loc["a", ["median", "q1", "q3"]].tolist() == [2, 2, 3]
    assert found.loc["b", ["median", "q1", "q3"]].tolist() == [np.inf, np.inf, np.inf]


def test_there_is_no_verdict_where_the_interval_holds_one():
    (row,) = comparisons.paired(table(a=[10, 20, 30, 40], b=[20, 10, 60, 20])).to_dict("records")
    assert row["low"] <= 1 <= row["high"]
    assert row["verdict"] == "none"
    assert row["wins"] == 0.5


def test_one_pair_alone_has_no_verdict():
    assert comparisons.compare(np.array([1.0]), np.array([5.0]))["verdict"] == "none"


def test_unreached_is_infinite_and_twice_unreached_a_tie():
    found = comparisons.compare(np.array([5.0, 5.0, 5.0]), np.array([np.inf] * 3))
    assert (found["verdict"], found["ratio"], found["wins"]) == ("faster", np.inf, 1.0)
    found = comparisons.compare(np.array([np.inf] * 3), np.array([np.inf] * 3))
    assert (found["verdict"], found["ratio"], found["wins"]) == ("none", 1.0, 0.5)


def test_exchanging_the_schemes_exchanges_the_verdict():
    one, other = np.array([3.0, 7.0, 5.0, 9.0]), np.array([6.0, 8.0, 15.0, 10.0])
    there, back = comparisons.compare(one, other), comparisons.compare(other, one)
    assert there["ratio"] == pytest.approx(1 / back["ratio"])
    assert there["wins"] == 1 - back["wins"]
    assert (there["verdict"], back["verdict"]) == ("faster", "slower")


def test_the_interval_repeats_and_holds_the_median():
    values = np.random.default_rng(0).standard_normal(15)
    low, high = comparisons.bootstrap(values, seed=1)
    assert (low, high) == comparisons.bootstrap(values, seed=1)
    assert low <= np.median(values) <= high


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = []
    for number in range(200):
        low, high = comparisons.bootstrap(rng.standard_normal(21), number)
        covered.append(low <= 0 <= high)
    # Measured: 0.93; 200 draws of a share of 0.95 have a standard error of 0.015.
    assert 0.9 <= np.mean(covered) <= 0.99


def test_a_profile_is_the_share_within_a_factor_of_the_best():
    found = comparisons.profile(table(a=[10, 10, np.inf], b=[20, 5, np.inf]))
    share = found.set_index(["scheme", "factor"])["share"]
    assert share["a", 1.0] == pytest.approx(1 / 3)
    assert share["a", 2.0] == pytest.approx(2 / 3)
    assert share["b", 1.0] == pytest.approx(1 / 3)
    assert found["share"].max() < 1  # no scheme solves the third
    for _, own in found.groupby("scheme"):
        assert own["share"].is_monotonic_increasing


def test_ranks_share_ties_and_the_leaderboard_begins_with_the_best():
    both = table(a=[1, 1, np.inf], b=[2, 1, np.inf], c=[9, 9, 9])
    (ranks,) = comparisons.ranks(both).to_dict("records")
    assert ranks == pytest.approx({"a": 5 / 3, "b": 2.0, "c": 7 / 3})
    board = comparisons.leaderboard(both)
    assert list(board["scheme"]) == ["a", "b", "c"]
    assert list(board["solved"]) == pytest.approx([2 / 3, 2 / 3, 1])
    assert list(board["won"]) == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert (board["low"] <= board["rank"]).all()
    assert (board["rank"] <= board["high"]).all()


def test_only_problems_that_every_scheme_was_run_on_count():
    part = pd.concat([table(a=[1, 2]), table(b=[5])])
    assert set(comparisons.profile(part)["share"]) == {0.0, 1.0}
    assert comparisons.leaderboard(part)["problems"].tolist() == [1, 1]


def test_settings_make_problems_and_per_scheme_options_do_not():
    schemes = pd.DataFrame(
        {
            "run_id": ["1", "2", "3", "4"],
            "normalizer": ["a", "a", "b", "b"],
            "params.cost.l2": ["0", "1", "0", "1"],
            "params.iterations": ["10", "10", "50", "50"],
            "params.record": ["[]", "[x]", "[]", "[]"],
        }
    )
    found = comparisons._settings(schemes)
    assert found == {"1": "cost.l2=0", "2": "cost.l2=1", "3": "cost.l2=0", "4": "cost.l2=1"}
