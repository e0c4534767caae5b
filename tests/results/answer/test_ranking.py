"""The ranking of schemes: who shares a rank, by which number, and what is one problem."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing, ranking
from normbench.results.compare.merging import REPEATS

TENTH, COUNT = names.target("1e-1").column, ranking.FINAL_COUNT


def schemes(*costs, **columns):
    """Return scheme runs by their final costs; each began at an excess of 1 over 0."""
    rows = {"label": [*"abcde"[: len(costs)]], "experiment": "x", "normalizer": "n"}
    rows |= {"verdict": names.CONVERGED, ranking.FINAL_COST: costs, TENTH: 0.1}
    return pd.DataFrame({**rows, names.MINIMUM.column: 0.0, **columns})


def labels(ranks):
    return ["".join(ranking.labels_of(rows)) for rows in ranks]


def test_costs_that_differ_by_no_more_than_what_is_told_apart_share_a_rank():
    tied = names.TIED
    near = schemes(0.5, 0.5 + 0.9 * tied, 0.2, 0.5 + 2.5 * tied)
    assert labels(ranking.rank_rows(near)) == ["c", "ab", "d"]
    # By the smallest excess at a start; of unknown ones by the lowest cost.
    small = near.assign(**{TENTH: [0.1, 0.01, 0.1, 0.1]})
    assert labels(ranking.rank_rows(small)) == ["c", "a", "b", "d"]
    unknown = near.assign(**{TENTH: np.nan})
    assert labels(ranking.rank_rows(unknown)) == ["c", "a", "b", "d"]
    high = schemes(4.0, 4.0 + 3.9 * tied, 4.0 + 9 * tied).assign(**{TENTH: np.nan})
    assert labels(ranking.rank_rows(high)) == ["ab", "c"]
    some = near.assign(**{TENTH: [np.nan, 0.1, np.nan, np.nan]})
    assert labels(ranking.rank_rows(some)) == ["c", "ab", "d"]
    # Of single precision, equal schemes end apart by rounding.
    single = schemes(0.5, 0.5 + 0.9 * names.TIED_FLOAT32, 0.5 + 2.5 * names.TIED_FLOAT32)
    single = single.assign(**{names.setting("precision"): ["float32", "float32", "float64"]})
    assert labels(ranking.rank_rows(single)) == ["ab", "c"]


def test_the_criterion_is_the_count_or_the_own_excess_or_the_cost():
    assert ranking.ranking_criterion(schemes(1.0, 2.0)) == "cost"
    own = schemes(0.3, 0.2, **{names.setting("cost.l2"): "0.1"}).assign(**{TENTH: [0.1, 0.05]})
    assert ranking.ranking_criterion(own) == "excess"
    assert labels(ranking.rank_rows(own)) == ["a", "b"]  # 0.3 and 0.4 of their own
    assert labels(ranking.rank_rows(own, "cost")) == ["b", "a"]
    unknown = own.assign(**{TENTH: [np.nan, 0.05]})
    assert labels(ranking.rank_rows(unknown)) == ["b", "a"]  # by cost
    compared = {names.COMPARED.column: names.MISCLASSIFICATIONS, COUNT: [3.0, 1.0, 3.0]}
    counted = schemes(0.1, 0.2, 0.3, **compared)
    assert ranking.ranking_criterion(counted) == "count"
    assert labels(ranking.rank_rows(counted)) == ["b", "ac"]


def test_schemes_that_have_no_cost_have_no_rank():
    verdicts = [names.CONVERGED, names.FAILED, names.DIVERGED, names.BY_ROUNDING, names.CYCLING]
    rows = schemes(0.5, 0.1, 0.2, 0.3, 0.4).assign(verdict=verdicts)
    assert ranking.with_final_cost(rows)["label"].tolist() == ["e", "a"]
    assert ranking.with_final_cost(rows.assign(**{ranking.FINAL_COST: np.nan})).empty
    assert ranking.with_final_cost(rows.drop(columns=ranking.FINAL_COST)).empty


def over_batches(*jobs):
    """Return scheme runs, each a normalizer and the size of its batch."""
    rows = pd.DataFrame(jobs, columns=["normalizer", names.setting("batch")])
    rows["label"] = [f"{name}, batch={size}" for name, size in jobs]
    return rows.assign(experiment="x")


def test_each_batch_is_a_problem_unless_every_one_has_a_scheme_of_its_own():
    two = over_batches(("a", "8"), ("b", "8"), ("a", "64"))
    grouped = ranking.by_problem(two)
    assert [rows["label"].tolist() for rows in grouped] == [["a", "b"], ["a"]]
    alone = ranking.by_problem(over_batches(("a", "8"), ("a", "64")))
    assert [rows["label"].tolist() for rows in alone] == [["a, batch=8", "a, batch=64"]]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.5, "50%"),
        (0.0123, "1.2%"),
        (0.99, "99%"),
        (0.9949, "99%"),
        (0.995, "100%"),
        (0.999, "100%"),
        (1.0, "100%"),
        (12.344, "1234%"),
        (names.TIED / 2, f"under {100 * names.TIED:.4f}%"),
        (-names.TIED / 2, f"under {100 * names.TIED:.4f}%"),
        (names.TIED, f"{100 * names.TIED:.2g}%"),
    ],
)
def test_a_share_is_told_in_percent_and_a_small_one_is_bounded(share, text):
    assert closing.format_share(share) == text


def test_medians_are_over_splits_and_starts():
    starts = names.setting("starts")
    for repeats, count, note in (
        (None, None, ""),
        ("", "1", ""),
        ("4 splits", "1", " (medians of 4 splits)"),
        (None, "3", " (medians of 3 starts)"),
        ("4 splits", "3", " (medians of 4 splits x 3 starts)"),
    ):
        rows = pd.DataFrame({REPEATS: [repeats, repeats], starts: ["1", count]})
        assert closing.medians_note(rows) == note
    assert closing.medians_note(pd.DataFrame({"label": ["a"]})) == ""
    assert closing.medians_note(pd.DataFrame({"label": []})) == ""


def test_the_share_of_another_start_is_of_zero_weights():
    start = names.setting("start")
    for told in ({}, {start: "zeros"}, {start: "None"}, {start: None}):
        assert closing._excess_reference(told) == ""
    assert closing._excess_reference({start: "normal"}) == " of zero weights"


def test_ranks_follow_the_order_of_the_jobs_within_a_rank():
    tied = schemes(0.5, 0.1, 0.5).iloc[[2, 1, 0]]
    assert labels(ranking.rank_rows(tied)) == ["b", "ac"]
    assert ranking.with_final_cost(schemes(0.5, 0.1, 0.5))["label"].tolist() == ["b", "a", "c"]


def test_counts_differ_by_one_and_by_less_of_several_starts():
    compared = {names.COMPARED.column: names.MISCLASSIFICATIONS, COUNT: [3.0, 3.5, 3.0]}
    assert labels(ranking.rank_rows(schemes(0.1, 0.1, 0.1, **compared))) == ["ac", "b"]
    # One scheme that is compared by counts makes it a ranking of counts.
    one = schemes(0.1, 0.2, **{COUNT: [3.0, 1.0]})
    one[names.COMPARED.column] = [names.MISCLASSIFICATIONS, ""]
    assert ranking.ranking_criterion(one) == "count"


def test_own_excesses_differ_by_more_than_what_is_told_apart():
    own = {names.setting("cost.l2"): "0.1", TENTH: [0.1, 0.2, 0.1]}
    # Of starts at 1, 2 and 1: what is left is 0.2, a little more, and more than a little more.
    tied = schemes(0.2, 0.4 + 1.8 * names.TIED, 0.2 + 2.5 * names.TIED, **own)
    assert labels(ranking.rank_rows(tied)) == ["ab", "c"]


def test_a_batch_and_its_order_are_told_apart_within_a_problem():
    order = names.setting("batch_order")
    rows = over_batches(("a", "8"), ("b", "8"), ("a", "8"), ("b", "8"))
    rows[order] = ["once", "once", "cyclic", "cyclic"]
    rows["label"] = rows["label"] + ", batch_order=" + rows[order]
    grouped = ranking.by_problem(rows)
    assert [group["label"].tolist() for group in grouped] == [["a, batch=8", "b, batch=8"]] * 2


def test_seeds_are_no_problems_of_their_own():
    rows = over_batches(("a", "8"), ("b", "8"), ("a", "8"), ("b", "8"))
    rows[names.setting("seed")] = ["0", "0", "1", "1"]
    assert len(ranking.by_problem(rows)) == 1


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (4, "a, b, c and d"), (5, "5 schemes")])
def test_up_to_four_schemes_are_named(count, text):
    assert ranking.names_or_count("abcde"[:count]) == text
