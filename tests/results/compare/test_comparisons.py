"""Pairs, profiles, ranks and the leaderboard, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import comparisons
from normbench.results.report import profile
from tests.results.made import runs

ALL = [10, 20, 30, 40, 50, 60]


def table(excess=None, **schemes):
    """A table as `time_to_target` returns it: one experiment, one problem, a value a split."""
    rows = [
        {"experiment": "x", "setting": "", "split": n, "scheme": name, "value": v, "step": 1.0}
        | {"excess": (excess or {}).get(name, [0.5] * len(values))[n], "least": 1.0, "finer": True}
        | {"end": ""}
        for name, values in schemes.items()
        for n, v in enumerate(values)
    ]
    return pd.DataFrame(rows)


def compare(first, second):
    (row,) = comparisons.compare_pairs(table(a=list(first), b=list(second))).to_dict("records")
    return row


def test_a_scheme_that_is_always_twice_as_fast_is_faster():
    row = compare(ALL, [2 * value for value in ALL])
    assert (row["wins"], row["conclusion"]) == (1.0, "faster")
    assert row["ratio"] == pytest.approx(2.0)
    assert row["low"] == pytest.approx(2.0)
    assert row["high"] == pytest.approx(2.0)


def test_an_unreached_split_is_infinite_in_a_median():
    found = comparisons.spread(table(a=[1, 2, 3], b=[4, np.inf, np.inf])).set_index("scheme")
    assert found.loc["a", ["median", "q1", "q3"]].tolist() == [2, 2, 3]
    assert found["range"].fillna("-").tolist() == ["1 to 2", "-"]
    assert found.loc["b", ["median", "q1", "q3"]].tolist() == [np.inf, np.inf, np.inf]


@pytest.mark.parametrize("end", ["low", "high", "above"])
def test_a_scheme_whose_best_step_is_at_an_end_is_not_concluded_to_be_slower(end):
    own = [*ALL, 70, 80]
    three = table(a=own, b=[2 * value for value in own], c=[9 * value for value in own])
    assert set(comparisons.compare_pairs(three)["conclusion"]) == {"faster"}
    three.loc[(three["scheme"] == "b") & (three["split"] == 0), "end"] = end
    found = comparisons.compare_pairs(three).set_index(["scheme", "against"])["conclusion"]
    assert found.to_dict() == {("a", "b"): "none", ("a", "c"): "faster", ("b", "c"): "faster"}
    backwards = table(c=three.loc[three["scheme"] == "c", "value"], b=own)
    backwards.loc[backwards["scheme"] == "c", "end"] = end
    pairs = comparisons.compare_pairs(backwards)
    assert pairs["conclusion"].tolist() == ["none"]
    assert comparisons.boundary_schemes(pairs) == {"c"}
    tied = table(a=ALL, b=[20, 10, 60, 20, 100, 30])
    assert not comparisons.boundary_schemes(comparisons.compare_pairs(tied.assign(end=end)))


def test_there_is_no_verdict_where_the_interval_holds_one():
    row = compare(ALL, [20, 10, 60, 20, 100, 30])
    assert row["low"] <= 1 <= row["high"]
    assert row["conclusion"] == "none"
    assert row["wins"] == 0.5


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_fewer_than_six_splits_of_one_pair_have_no_interval_and_no_conclusion(count):
    found = compare(np.ones(count), np.full(count, 5.0))
    assert (found["conclusion"], found["ratio"], found["wins"]) == ("none", pytest.approx(5), 1.0)
    assert np.isnan([found["low"], found["high"]]).all()
    assert compare(np.ones(6), np.full(6, 5.0))["conclusion"] == "faster"


def test_more_pairs_need_more_splits_and_the_table_says_how_many():
    def of(schemes, splits):
        values = {f"s{n}": [10.0**n * (1 + m) for m in range(splits)] for n in range(schemes)}
        return comparisons.compare_pairs(table(**values))

    few = of(8, 10)
    assert (few["conclusion"] == "none").all()
    assert comparisons.assurance(few) == (
        "no conclusion: 28 pairs of schemes need at least 11 splits "
        "(2 x 0.5^11 <= 0.05 / 28); there are 10"
    )
    enough = of(8, 11)
    assert (enough["conclusion"] == "faster").all()
    assert "Holm's correction" in comparisons.assurance(enough)
    one = comparisons.assurance(enough.iloc[:1])
    assert "Holm" not in one
    lone = comparisons.assurance(few.iloc[:1].assign(splits=3))
    assert lone.startswith("no conclusion: 1 pair of schemes needs")
    assert "fewer than 11 splits can show nothing" in comparisons.assurance(enough)


def test_pairs_of_too_few_splits_are_left_out():
    both = pd.concat([table(a=[1, 2], b=[2, 3]), table(c=[5])])
    (row,) = comparisons.compare_pairs(both, least=2).to_dict("records")
    assert (row["scheme"], row["against"], row["splits"]) == ("a", "b", 2)
    assert len(comparisons.compare_pairs(both)) == 3


def test_the_one_that_arrives_wins_and_two_that_do_not_have_no_order():
    found = compare(np.full(6, 5.0), np.full(6, np.inf))
    assert (found["conclusion"], found["ratio"], found["wins"]) == ("faster", np.inf, 1.0)
    lost = [np.inf] * 6
    left = {"a": [0.2] * 5 + [0.4], "b": [0.3] * 6}
    (found,) = comparisons.compare_pairs(table(left, a=lost, b=lost)).to_dict("records")
    assert (found["conclusion"], found["neither"]) == ("neither reached it", 6)
    assert np.isnan([found["wins"], found["ratio"], found["low"], found["high"]]).all()
    assert found["ends lower"] == "a, 5 of 6"
    # Those that neither reaches do not count: five values are too few for a conclusion.
    some = comparisons.compare_pairs(table(left, a=[1] * 5 + [np.inf], b=[2] * 5 + [np.inf]))
    assert some[["splits", "neither", "wins", "conclusion"]].values.tolist() == [
        [6, 1, 1.0, "none"]
    ]
    assert some["ends lower"].tolist() == ["b, 1 of 1"]
    assert comparisons.assurance(some).endswith("there are 5")
    fewer = some.assign(splits=4, neither=0)
    assert comparisons.assurance(pd.concat([fewer, some])).endswith("there are 5")
    equal = comparisons.compare_pairs(table({"a": [0.2] * 6, "b": [0.2] * 6}, a=lost, b=lost))
    assert equal["ends lower"].tolist() == ["equal"]


def test_schemes_that_both_miss_the_target_are_not_told_apart():
    lost = [np.inf] * 8
    pairs = comparisons.compare_pairs(table(a=lost, b=lost, c=[5] * 8))
    assert pairs["conclusion"].tolist() == ["neither reached it", "slower", "slower"]
    assert comparisons.indistinguishable_schemes(pairs, ["a"]) == ["b"]


def test_exchanging_the_schemes_exchanges_the_conclusion():
    one, other = np.array([3.0, 7, 5, 9, 4, 6]), np.array([6.0, 8, 15, 10, 5, 7])
    there, back = compare(one, other), compare(other, one)
    assert there["ratio"] == pytest.approx(1 / back["ratio"])
    assert there["wins"] == 1 - back["wins"]
    assert (there["conclusion"], back["conclusion"]) == ("faster", "slower")


def test_a_profile_is_the_share_within_a_factor_of_the_best():
    both = table(a=[10, 10, np.inf, np.inf], b=[20, 5, np.inf, 5])
    found = comparisons.profile(both)
    share = found.set_index(["scheme", "factor"])["share"]
    assert share["a", 1.0] == pytest.approx(1 / 4)
    assert share["a", 2.0] == pytest.approx(2 / 4)
    assert share["b", 1.0] == pytest.approx(2 / 4)
    assert share["b", 2.0] == pytest.approx(3 / 4)  # the third counts, too: as in the leaderboard
    solved = comparisons.leaderboard(both).set_index("scheme")["solved"]
    for name in "ab":
        assert share[name].max() == pytest.approx(solved[name])
    assert comparisons.unsolved(both) == (1, 4)
    for _, own in found.groupby("scheme"):
        assert own["share"].is_monotonic_increasing
    for values, factor in (({"a": [0], "b": [8]}, 8), ({"a": [0.5], "b": [0]}, 1)):
        shown = comparisons.profile(table(**values))  # 0 counts as 1, or as what is less
        assert shown.loc[shown["share"] == 1, "factor"].max() == factor
    alone = comparisons.profile(table(a=[10], b=[30]))
    assert sorted(set(alone["factor"])) == [1.0, 3.0]  # no step of a staircase is made up


def test_a_problem_counts_once_however_many_splits_it_has():
    many = pd.concat([table(a=[1] * 9, b=[2] * 9), table(a=[2], b=[1]).assign(experiment="y")])
    share = comparisons.profile(many).set_index(["scheme", "factor"])["share"]
    assert share["a", 1.0] == pytest.approx(0.5)
    assert share["b", 1.0] == pytest.approx(0.5)
    board = comparisons.leaderboard(many).set_index("scheme")
    assert board["won"].tolist() == pytest.approx([0.5, 0.5])
    assert board["rank"].tolist() == [1.5, 1.5]


def test_ranks_share_ties_and_the_unreached_are_ranked_by_what_is_left():
    left = {"a": [0, 0, 0.3], "b": [0, 0, 0.2], "c": [0, 0, 0]}
    both = table(left, a=[1, 1, np.inf], b=[2, 1, np.inf], c=[9, 9, 9])
    assert comparisons.ranks_by_problem(both).to_numpy().tolist() == [
        [1, 2, 3],
        [1.5, 1.5, 3],
        [3, 2, 1],
    ]
    (ranks,) = comparisons.mean_ranks(both).to_dict("records")
    assert ranks == pytest.approx({"a": 5.5 / 3, "b": 5.5 / 3, "c": 7 / 3})
    assert comparisons.ranks_by_problem(table(a=[1], b=[9], c=[np.inf])).to_numpy().tolist() == [
        [1, 2, 3]
    ]
    nobody = table(left, a=[np.inf] * 3, b=[np.inf] * 3, c=[np.inf] * 3)
    assert comparisons.ranks_by_problem(nobody).to_numpy().tolist()[2] == [3, 2, 1]
    assert comparisons.profile(nobody).empty


def test_a_leaderboard_begins_with_the_best():
    left = {"a": [0, 0, 0.2], "b": [0, 0, 0.3], "c": [0, 0, 0]}
    both = table(left, a=[1, 1, np.inf], b=[2, 1, np.inf], c=[9, 9, 9])
    board = comparisons.leaderboard(both)
    assert list(board["scheme"]) == ["a", "b", "c"]
    again = comparisons.leaderboard(both.sort_values("scheme", ascending=False))
    pd.testing.assert_frame_equal(again, board)  # numbered from the best one on
    assert list(board["solved"]) == pytest.approx([2 / 3, 2 / 3, 1])
    assert list(board["won"]) == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert board[["low", "high"]].isna().all(axis=None)  # of three splits
    board = comparisons.leaderboard(table(a=[1] * 6 + [9], b=[2] * 7))
    assert board["low"].tolist() == [1, 1]
    assert board["high"].tolist() == [2, 2]


def test_the_intervals_of_three_median_ranks_need_seven_values():
    """2 x 0.5^6 > 0.05 / 3 >= 2 x 0.5^7; several experiments are the values, by their means."""
    values = {"a": [1.0] * 7, "b": [2.0] * 7, "c": [3.0] * 7}
    assert comparisons.leaderboard(table(**values))["low"].tolist() == [1, 2, 3]
    fewer = comparisons.leaderboard(table(**{name: own[1:] for name, own in values.items()}))
    assert fewer["low"].isna().all()
    other = table(a=[2.0], b=[1.0], c=[3.0]).assign(experiment="y")
    two = comparisons.leaderboard(pd.concat([table(**values), other])).set_index("scheme")
    assert two["median"].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert two["low"].isna().all()


@pytest.mark.commands
def test_the_interval_of_a_median_rank_covers_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(100):
        a, b, c = rng.standard_exponential((3, 9))
        board = comparisons.leaderboard(table(a=a, b=b, c=c))
        covered.append(((board["low"] <= 2) & (board["high"] >= 2)).all())
    # All three at once. Measured: 1.0; the standard error of 0.95 of 100 draws is 0.022.
    assert np.mean(covered) >= 0.93


def test_only_problems_that_every_scheme_was_run_on_count():
    part = pd.concat([table(a=[1, 2]), table(b=[5])])
    assert set(comparisons.profile(part)["share"]) == {0.0, 1.0}
    assert comparisons.leaderboard(part)["splits"].tolist() == [1, 1]


def test_settings_are_not_pooled():
    more = [*ALL, 70]  # two pairs in the table
    both = pd.concat(
        [
            table(a=more, b=[2 * value for value in more]).assign(setting="optimizer=adam"),
            table(a=more, b=[value / 2 for value in more]).assign(setting="optimizer=newton"),
        ]
    )
    pairs = comparisons.compare_pairs(both)
    assert pairs["setting"].tolist() == ["optimizer=adam", "optimizer=newton"]
    assert pairs["conclusion"].tolist() == ["faster", "slower"]
    few = comparisons.assurance(comparisons.compare_pairs(both[both["split"] < 6]))
    assert few.startswith("no conclusion: 2 pairs of schemes need at least 7 splits")
    spread = comparisons.spread(both).set_index(["setting", "scheme"])["median"]
    assert spread["optimizer=newton", "b"] == spread["optimizer=adam", "b"] / 4
    assert "setting" not in comparisons.compare_pairs(table(a=[1], b=[2]))
    assert "setting" not in comparisons.spread(table(a=[1]))
    some = pd.concat([table(a=[1]), table(a=[2]).assign(setting="optimizer=adam")])
    assert comparisons.spread(some)["setting"].tolist() == ["", "optimizer=adam"]


def test_a_profile_says_which_schemes_share_no_problem(monkeypatch, capsys):
    found = {
        "1": runs(*(("x", scheme, {1.0: 1.0}) for scheme in "abc")),
        "2": runs(*(("y", scheme, {1.0: 1.0}) for scheme in "ad")),
    }
    monkeypatch.setattr(profile.state, "read", lambda store, ids: (found[ids[0]], []))
    monkeypatch.setattr(profile, "_predictions", lambda loaded: pd.DataFrame())
    profile.print_profile("-", ["1", "2"], "1e-2", "iterations")
    told = capsys.readouterr().out
    assert "leaderboard: nothing to compare (no problem on which every scheme was run" in told
    assert "two schemes" not in told


def test_schemes_and_experiments_stand_in_their_first_order():
    both = pd.concat([table(b=[1, 5], a=[2, 4]).assign(experiment=name) for name in "yx"])
    assert comparisons.spread(both)[["experiment", "scheme"]].to_numpy().tolist() == [
        ["y", "b"],
        ["y", "a"],
        ["x", "b"],
        ["x", "a"],
    ]
    assert comparisons.compare_pairs(both)["experiment"].tolist() == ["y", "x"]
    assert comparisons.compare_pairs(both)[["scheme", "against"]].to_numpy()[0].tolist() == [
        "b",
        "a",
    ]


def test_a_spread_has_quartiles_and_the_range_that_finer_step_sizes_leave_open():
    values = table(a=[5.0, 1.0, 4.0, 2.0, 3.0])
    values["least"], values["step"] = [3.0, 0.5, 2.5, 1.0, 1.5], [1.0, 2.0, 4.0, 2.0, 1.0]
    (row,) = comparisons.spread(values).to_dict("records")
    assert (row["q1"], row["median"], row["q3"], row["range"]) == (2, 3, 4, "1.5 to 3")
    assert row["step"] == 2
    values.loc[0, ["value", "least", "step"]] = [np.inf, np.nan, np.nan]  # one split is unreached
    (row,) = comparisons.spread(values).to_dict("records")
    assert (row["median"], row["range"]) == (3, "1.5 to 3")
    values.loc[1, "least"] = np.nan  # one is reached, and nothing is known below it
    assert comparisons.spread(values)["range"].tolist() == [None]
    assert comparisons.spread(table(a=[1.0]))["range"].tolist() == [None]


@pytest.mark.parametrize("splits", [1, 2])
def test_pairs_of_a_sweep_are_of_two_splits_and_more(splits):
    jobs = [
        ("x", scheme, {1.0: (value + n, 1e-3 + 1e-4 * n)}, {"dataset.seed": str(n), "data": str(n)})
        for scheme, value in (("a", 2.0), ("b", 5.0))
        for n in range(splits)
    ]
    assert len(comparisons.compare_pairs_over_splits(runs(*jobs))) == splits - 1


def test_holm_s_correction_is_named_from_two_pairs_on_and_one_scheme_has_a_profile():
    values = {"a": [1.0] * 9, "b": [2.0] * 9, "c": [3.0] * 9}
    pairs = comparisons.compare_pairs(table(**values))
    assert "by Holm's correction" in comparisons.assurance(pairs.iloc[:2])
    assert "Holm" not in comparisons.assurance(pairs.iloc[:1])
    alone = comparisons.profile(table(a=[10.0, 30.0]))
    assert alone[["factor", "share"]].to_numpy().tolist() == [[1.0, pytest.approx(1.0)]]


@pytest.mark.parametrize(
    ("conclusion", "low", "high", "slower"),
    [
        ("none", 1.5, 2.0, {"b"}),
        ("none", 1.0, 2.0, set()),
        ("none", 0.5, 0.9, {"a"}),
        ("none", 0.5, 1.0, set()),
        ("none", np.nan, np.nan, set()),
        ("faster", 1.5, 2.0, set()),
    ],
)
def test_a_scheme_would_be_slower_where_the_interval_is_beside_1(conclusion, low, high, slower):
    row = {"scheme": "a", "against": "b", "conclusion": conclusion, "low": low, "high": high}
    assert comparisons.boundary_schemes(pd.DataFrame([row])) == slower


@pytest.mark.parametrize(
    ("excess", "words"),
    [
        ([], None),
        ([[0.1, 0.2]], "a, 1 of 1"),
        ([[0.2, 0.1]], "b, 1 of 1"),
        ([[0.0, names.TIED]], "equal"),
        ([[names.TIED, 0.0]], "equal"),
        ([[0.0, 1.1 * names.TIED]], "a, 1 of 1"),
        ([[0.1, 0.2], [0.2, 0.1]], "equal"),
        ([[0.1, 0.2], [0.2, 0.1], [0.3, 0.1]], "b, 2 of 3"),
        ([[0.1, np.inf], [np.inf, np.inf]], "a, 1 of 2"),
    ],
)
def test_who_ends_lower_is_counted_by_what_is_told_apart(excess, words):
    values = np.array(excess, dtype=float).reshape(-1, 2)
    assert comparisons._lower_end({"scheme": "a", "against": "b"}, values) == words


def test_schemes_with_a_pair_without_a_conclusion_are_not_told_apart():
    rows = [("a", "b", "none"), ("a", "c", "faster"), ("b", "c", "none"), ("d", "a", "none")]
    pairs = pd.DataFrame(rows, columns=["scheme", "against", "conclusion"])
    assert comparisons.indistinguishable_schemes(pairs, ["a"]) == ["b", "d"]
    assert comparisons.indistinguishable_schemes(pairs, ["a", "b"]) == ["c", "d"]
    assert comparisons.indistinguishable_schemes(pairs, ["c"]) == ["b"]


def test_equal_mean_ranks_stand_by_the_names_of_their_schemes():
    board = comparisons.leaderboard(table(b=[1.0, 2.0], a=[2.0, 1.0], c=[9.0, 9.0]))
    assert board[["scheme", "rank"]].to_numpy().tolist() == [["a", 1.5], ["b", 1.5], ["c", 3.0]]
    assert board[["problems", "splits"]].to_numpy().tolist() == [[1, 2]] * 3


def test_those_that_do_not_arrive_come_after_the_slowest_that_does():
    keys = comparisons._sort_keys(np.array([np.inf, 5.0, np.inf, 7.0]), np.array([0.3, 0, 0.2, 0]))
    assert np.argsort(keys).tolist() == [1, 3, 2, 0]
    assert keys[[1, 3]].tolist() == [5.0, 7.0]
    nobody = comparisons._sort_keys(np.full(3, np.inf), np.array([0.2, 0.2 + 1e-9, 0.1]))
    assert nobody[0] == nobody[1] > nobody[2]


def test_splits_on_which_nobody_arrives_are_counted():
    lost = table(a=[np.inf, np.inf, 1.0], b=[np.inf, 2.0, np.inf])
    assert comparisons.unsolved(lost) == (1, 3)
    assert comparisons.unsolved(lost[lost["scheme"] == "a"]) == (2, 3)


def test_problems_count_alike_in_a_profile_and_so_do_the_splits_of_each():
    both = pd.concat(
        [table(a=[1.0, 1.0], b=[4.0, 1.0]), table(a=[2.0], b=[2.0]).assign(setting="s=1")]
    )
    share = comparisons.profile(both).set_index(["scheme", "factor"])["share"]
    assert share["a", 1.0] == pytest.approx(1.0)
    assert share["b", 1.0] == pytest.approx(0.25 + 0.5)
    assert share["b", 4.0] == pytest.approx(1.0)
    assert sorted(set(share.index.get_level_values("factor"))) == [1.0, 4.0]
