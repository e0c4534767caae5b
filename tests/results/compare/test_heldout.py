"""Test points: who predicts best, and where a faster descent predicts worse."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import comparisons, evidence, heldout, passes
from normbench.results.store.runs import Sweep
from tests.results.made import runs


def splits(unarrived=(), **schemes):
    """A table as `by_split` returns it, of test error rates: one value a split.

    The descents of `unarrived` schemes have not arrived.
    """
    rows = [
        {"experiment": "x", "scheme": name, "split": n, "rate": rate, "cost": 0.1, "best cost": 0.1}
        | {"at": 100.0, "best rate": rate, "train rate": 0.0, "start": 0.7, "ratio": 1 / 3}
        | {"arrived": name not in unarrived}
        for name, rates in schemes.items()
        for n, rate in enumerate(rates)
    ]
    return pd.DataFrame(rows)


def test_a_faster_scheme_that_predicts_best_is_told():
    told = "The scheme that descends faster predicts best, too"
    few = splits(fast=[0.02, 0.02], slow=[0.04, 0.05])
    assert heldout.best_and_faster(few, ["fast"]) == (
        f"{told}, though 2 splits are too few to be sure."
    )
    sure = splits(fast=[0.02] * 6, slow=[0.04] * 6)
    assert heldout.best_and_faster(sure, ["fast"]) == f"{told}."
    assert heldout.best_and_faster(sure, ["slow"]) == ""
    three = splits(fast=[0.02] * 6, slow=[0.04] * 6, other=[0.05] * 6)
    assert heldout.best_and_faster(three, ["fast", "slow"]) == ""  # of which one does not
    both = splits(fast=[0.02] * 7, slow=[0.02] * 7, other=[0.05] * 7)
    assert heldout.best_and_faster(both, ["fast", "slow"]) == (
        "The schemes that descend faster predict best, too."
    )
    assert heldout.best_and_faster(splits(fast=[0.02], slow=[0.02]), ["fast"]) == ""


def test_a_faster_scheme_that_predicts_worse_is_told():
    table = splits(fast=[0.04, 0.05, 0.06], slow=[0.02, 0.03, 0.01])
    assert heldout.best_predictors(table) == ["slow"]
    (pair,) = heldout.compare_pairs(table).to_dict("records")
    assert (pair["scheme"], pair["wins"]) == ("fast", 0.0)
    tied = splits(fast=[0.04, 0.05], slow=[0.02, 0.05])
    assert heldout.compare_pairs(tied)["wins"].tolist() == [0.25]  # a tie is half a win
    assert heldout.worse_though_faster(table, ["fast"]) == (
        "The scheme that descends faster predicts worse, though 3 splits are too few to be sure: "
        "5.0% of the test points misclassified under fast, "
        "against 2.0% of the test points misclassified under slow."
    )
    assert heldout.worse_though_faster(table, ["slow"]) == ""
    assert heldout.worse_though_faster(table, ["slow", "fast"]) == ""  # equally fast
    one = heldout.worse_though_faster(splits(fast=[0.04], slow=[0.02]), ["fast"])
    assert "predicts worse, on one split, which cannot show a difference: 4.0% of" in one
    assert heldout.predictions_text(splits(a=[0.01, 0.05, 0.3]), ["a"]).startswith("5.0%")
    sure = splits(fast=[0.04] * 6, slow=[0.02] * 6)
    assert "predicts worse, on 6 splits: 4.0%" in heldout.worse_though_faster(sure, ["fast"])
    # A third scheme: the verdicts of three pairs hold together from seven splits on.
    three = splits(fast=[0.04] * 6, slow=[0.02] * 6, other=[0.03] * 6)
    assert "6 splits are too few" in heldout.worse_though_faster(three, ["fast"])


def test_a_pair_whose_descents_have_not_arrived_is_not_judged():
    errors = {"fast": [0.02] * 8, "slow": [0.04] * 8, "stuck": [0.5] * 8}
    table = splits(unarrived=("stuck",), **errors)
    pairs = heldout.compare_pairs(table)
    for column in ("conclusion", heldout.NEW_DATA):
        unjudged = pairs[column] == "not judged"
        assert unjudged.tolist() == [False, True, True]
    # The pair that is judged is as one without the others: its correction counts no other pair.
    alone = heldout.compare_pairs(splits(fast=errors["fast"], slow=errors["slow"]))
    assert pairs[:1].equals(alone)
    assert pairs[["splits", "difference"]].to_numpy().tolist() == [[8, 2], [8, 48], [8, 46]]
    assert heldout.best_and_faster(table, ["fast"]) == ""
    assert heldout.worse_though_faster(table, ["stuck"]) == ""
    assert "predicts worse, on 8 splits" in heldout.worse_though_faster(table, ["slow"])
    none = heldout.compare_pairs(splits(unarrived=("a", "b"), a=[0.1] * 8, b=[0.2] * 8))
    assert none["conclusion"].tolist() == ["not judged"]
    assert comparisons.assurance(none) == "no conclusion: no pair of schemes has arrived"
    assert comparisons.assurance(pairs) == comparisons.assurance(alone)


def test_one_split_on_which_a_descent_has_not_arrived_is_enough_not_to_judge():
    table = splits(a=[0.1] * 8, b=[0.2] * 8)
    table.loc[(table["scheme"] == "b") & (table["split"] == 5), "arrived"] = False
    assert heldout.compare_pairs(table)["conclusion"].tolist() == ["not judged"]
    # A split that only one of the two was run on says nothing of their pair.
    shared = table[(table["scheme"] == "b") | (table["split"] != 5)]
    assert heldout.compare_pairs(shared)["conclusion"].tolist() == ["better"]


@pytest.mark.parametrize(
    ("cost", "verdict", "reached", "arrived"),
    [
        (0.1, "not converged", "true", True),
        (0.11, "converged", "true", False),  # at rest, but far above the least cost
        (0.0, "not converged", "false", False),  # over its own lowest cost, nothing is ever left
        (0.0, "converged", "false", True),
        (0.0, "diverged", "true", False),
        (0.0, "decided by rounding", "true", False),
        (np.nan, "converged", "true", False),
    ],
)
def test_a_descent_has_arrived_that_leaves_a_tenth_of_the_excess(cost, verdict, reached, arrived):
    run = {"verdict": verdict, names.FINAL_COST.column: cost}
    job = {names.MINIMUM.column: 0.0, names.target("1e-1").column: 0.1}
    assert heldout._has_arrived(run, {**job, names.MINIMUM_REACHED.column: reached}) == arrived


def test_predictions_that_round_to_the_same_are_told_apart():
    near = splits(fast=[0.12541], slow=[0.12539])
    text = heldout.worse_though_faster(near, ["fast"])
    assert "12.541% of" in text
    assert "against 12.539% of" in text
    costs = near.assign(rate=np.nan, cost=[1.000004, 1.000001])
    assert "test cost 1.000004 under fast" in heldout.worse_though_faster(costs, ["fast"])


def test_equal_predictions_are_named_together():
    near = splits(a=[0.1], b=[0.1 + 1e-9], c=[0.1 + 5e-6])
    assert heldout.best_predictors(near) == ["a", "b"]


def test_real_targets_are_compared_by_their_cost():
    table = splits(a=[np.nan], b=[np.nan]).assign(cost=[3.0, 2.0])
    assert heldout.best_predictors(table) == ["b"]
    assert heldout.predictions_text(table, ["b"]) == "test cost 2"
    (row,) = heldout.compare_pairs(table).to_dict("records")
    assert row["difference"] == -1
    assert heldout.difference_caption(table).startswith("difference: test cost, of")
    assert heldout.prediction_column(splits(a=[np.nan], b=[0.1])) == "cost"  # of some, for all
    rates = splits(a=[0.1], b=[0.2])
    assert "percent of the test points" in heldout.difference_caption(rates)
    both = pd.concat([table, rates.assign(experiment="y"), rates.assign(experiment="z")])
    assert heldout.difference_caption(both) == (
        "difference: test cost (x) or percent of the test points misclassified (y, z), of "
        "`against` minus of `scheme`"
    )


@pytest.mark.parametrize(("end", "told"), [(0.18, True), (0.115, True), (0.105, False)])
def test_a_test_cost_that_rises_again_is_told(end, told):
    table = splits(a=[0.1], b=[0.1])
    table.loc[0, ["cost", "best cost", "at"]] = [end, 0.08, 12.0]
    said = heldout.describe_rises(table)
    assert bool(said) == told
    if told:
        assert said == f"The test cost rises again under a (from 0.08 at iteration 12 to {end})."
    small = table.assign(start=7e-4, cost=[1e-3 * end, 1e-4], **{"best cost": [8e-5, 1e-4]})
    assert bool(heldout.describe_rises(small)) == told  # whatever the unit


def test_a_rise_is_told_of_most_splits_and_not_of_their_medians():
    """Medians of the lowest, the end and where it was belong to no split."""
    table = splits(a=[0.1] * 4).assign(start=1.0)
    table["best cost"], table["cost"] = [0.1, 0.3, 0.5, 0.7], [0.1, 0.5, 0.6, 0.9]
    assert "under a (on 3 of 4 splits, by 0.2, their median)" in heldout.describe_rises(table)
    table["cost"] = [0.1, 0.3, 0.6, 0.9]  # on half of them
    assert heldout.describe_rises(table) == ""
    table["cost"] = [0.2, 0.5, 0.6, 0.9]
    assert "under a (on 2 of 2 splits, by 0.15, their median)" in heldout.describe_rises(table[:2])
    untrained = splits(a=[0.1]).assign(start=1.0, at=0.0, cost=1.2, **{"best cost": 1.0})
    assert "under a (from 1 at its start to 1.2)" in heldout.describe_rises(untrained)


def test_pairs_of_test_errors_have_verdicts_by_holm():
    few = splits(a=[0.01] * 6, b=[0.02] * 6, c=[0.03] * 6)
    assert (
        heldout.compare_pairs(few)["conclusion"] == "none"
    ).all()  # three pairs need seven splits
    found = heldout.compare_pairs(splits(a=[0.01] * 7, b=[0.02] * 7, c=[0.03] * 7))
    assert (found["conclusion"] == "better").all()
    assert found["difference"].tolist() == pytest.approx([1, 2, 1])  # percent of the points
    assert heldout.compare_pairs(splits(a=[0.1])).empty
    unequal = heldout.compare_pairs(splits(a=[0.1] * 3, b=[0.2] * 3, c=[0.3] * 2))
    assert unequal["splits"].tolist() == [3, 2, 2]


def test_what_holds_on_new_data_is_judged_beside_what_holds_on_this_data_set():
    """All splits on one side decide the sign test; the t-test weighs how much they vary."""
    base = np.full(12, 0.1)
    unsure, sure = np.r_[np.full(11, 0.001), 0.09], np.linspace(0.05, 0.06, 12)
    for more, wanted in ((unsure, "none"), (sure, "better")):
        for signed, said in ((more, wanted), (-more, wanted.replace("better", "worse"))):
            (row,) = heldout.compare_pairs(splits(a=base, b=base + signed)).to_dict("records")
            assert row["conclusion"] == ("better" if signed[0] > 0 else "worse")
            assert row["on new data"] == said


def test_what_holds_on_new_data_holds_together_in_a_table():
    base, more = np.full(12, 0.1), np.tile([0.02, 0.08], 6)
    assert 0.05 / 3 < evidence.resampled_t_test(more, 1 / 3) < 0.05
    assert heldout.compare_pairs(splits(a=base, b=base + more))["on new data"].tolist() == [
        "better"
    ]
    three = heldout.compare_pairs(splits(a=base, b=base + more, c=base))
    assert three["on new data"].tolist() == ["none"] * 3
    assert three["conclusion"].tolist() == ["better", "none", "worse"]


def test_one_split_and_equal_differences_say_nothing_of_new_data():
    for table in (splits(a=[0.1], b=[0.3]), splits(a=[0.01, 0.02] * 4, b=[0.02, 0.03] * 4)):
        assert heldout.compare_pairs(table)["on new data"].tolist() == ["none"]
    assert "on new data" in heldout.compare_pairs(splits(a=[0.1]))


def test_a_summary_has_medians_and_no_quartiles_of_one_split():
    one = heldout.summary(splits(a=[0.05]))
    assert one[["test error, %", "best test error, %"]].to_numpy().tolist() == [[5, 5]]
    assert "q1" not in one
    some = heldout.summary(splits(a=[0.05], b=[0.01, 0.03]))
    assert some["splits"].tolist() == [1, 2]
    more = heldout.summary(splits(a=[0.05, 0.01, 0.03]))
    assert more[["splits", "test error, %", "q1", "q3"]].to_numpy().tolist() == [[3, 3, 2, 4]]


def test_a_summary_has_the_medians_over_the_splits():
    table = splits(a=[0.1, 0.3, 0.2, 0.9, 0.4])
    table["at"] = [10.0, 90.0, 20.0, 30.0, 40.0]
    table["cost"], table["best cost"] = [5.0, 1.0, 2.0, 3.0, 9.0], [1.0, 0.1, 0.2, 0.3, 0.9]
    table["train rate"] = [0.0, 0.1, 0.2, 0.8, 0.3]
    (row,) = heldout.summary(table).to_dict("records")
    assert (row["splits"], row["at iteration"]) == (5, 30.0)
    assert (row["test cost"], row["best test cost"]) == (3.0, 0.3)
    assert row["train error, %"] == pytest.approx(20)
    assert row["test error, %"] == row["best test error, %"] == pytest.approx(30)
    assert (row["q1"], row["q3"]) == pytest.approx((20, 40))
    (one,) = heldout.summary(table[:1]).to_dict("records")
    assert "splits" not in one
    assert "q1" not in one


def test_a_run_ends_at_its_last_test_cost_and_its_best_is_its_lowest():
    table = {names.TEST_COST: [3.0, 1.0, 2.0, 4.0], names.TEST_MISCLASSIFICATIONS: [5, 2, 4, 3]}
    table |= {names.TRAIN_MISCLASSIFICATIONS: [9.0, 8.0, 7.0, 6.0]}
    history = pd.DataFrame({metric.key: values for metric, values in table.items()})
    ends = heldout._costs_and_rates(history, {"test_points": 10, "train_points": 20})
    wanted = {"cost": 4, "best cost": 1, "start": 3, "at": 1, "rate": 0.3, "best rate": 0.2}
    assert ends == pytest.approx({**wanted, "train rate": 0.3, "ratio": 0.5})
    copied = {names.setting("dataset.augment"): "round"}
    copied |= {names.setting("dataset.augment_copies"): "3"}
    points = {"test_points": 10, "train_points": 80, **copied}
    assert heldout._costs_and_rates(history, points)["ratio"] == 0.5  # copies are no new points
    none = {**points, names.setting("dataset.augment"): "None"}
    assert heldout._costs_and_rates(history, none)["ratio"] == 0.125
    real = heldout._costs_and_rates(history[[names.TEST_COST.key]], {})
    assert (real["cost"], np.isnan(real["rate"]), np.isnan(real["best rate"])) == (4, True, True)


@pytest.mark.parametrize(("batch", "at"), [("8", 2 / 3), ("None", 2)])
def test_of_batches_the_lowest_test_cost_is_at_a_pass(batch, at):
    history = pd.DataFrame({names.TEST_COST.key: [3.0, 2.0, 1.0, 4.0]})
    params = {names.setting("batch"): batch, names.setting("records_per_pass"): "3"}
    ends = heldout._costs_and_rates(history, {"test_points": 10, "train_points": 20, **params})
    assert ends["at"] == pytest.approx(at)
    table = splits(a=[0.1]).assign(at=2 / 3, cost=0.4)
    assert "at pass 0.667 to 0.4" in heldout.describe_rises(table, passes.PASS_UNIT)
    assert heldout.summary(table, passes.PASS_UNIT)["at pass"].tolist() == [2 / 3]


def test_schemes_and_experiments_stand_in_their_first_order():
    both = pd.concat([splits(b=[0.1], a=[0.1]).assign(experiment=name) for name in "yx"])
    assert heldout.best_predictors(both) == ["b", "a"]
    assert heldout.summary(both)["scheme"].tolist() == ["b", "a"] * 2
    assert heldout.compare_pairs(both)["experiment"].tolist() == ["y", "x"]
    assert "under b (from 0.1 at iteration 100 to 0.4); a" in heldout.describe_rises(
        both[:2].assign(cost=0.4)
    )


def test_seeds_of_a_split_are_its_median(monkeypatch):
    jobs = [("x", "a", {1.0: (3.0, n / 1e3)}, {"seed": str(n)}) for n in (1, 2, 9)]
    sweep = runs(*jobs)
    sweep = Sweep("-", "s", sweep.runs.assign(**{names.FINAL_TEST_COST.column: 1.0}))

    def histories(self, rows, *_):
        ends = [float(run_id.partition("-")[0][1:]) ** 2 for run_id in rows["run_id"]]
        table = {"run_id": rows["run_id"].to_numpy(), "iteration": 0, names.TEST_COST.key: ends}
        return pd.DataFrame(table)

    monkeypatch.setattr(Sweep, "histories", histories)
    assert heldout.by_split(sweep)[["split", "cost"]].to_numpy().tolist() == [[0, 1]]


@pytest.mark.parametrize("real", [False, True])
def test_a_cross_validated_interval_is_of_the_error_in_percent_or_of_the_cost(monkeypatch, real):
    sweep = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 3.0}), **{"dataset.folds": "5"})
    own = (sweep.runs["role"] == "scheme") & (sweep.runs["normalizer"] == "a")
    sweep.runs.loc[own, names.FOLDS_COST.column] = 0.7
    sweep.runs.loc[own, names.FOLDS_ERROR.column] = np.nan if real else 0.03
    seeds = dict(enumerate([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]))
    metric = names.FOLDS_COST if real else names.FOLDS_ERROR
    asked = names.of_seed(metric).key
    monkeypatch.setattr(Sweep, "series", lambda self, run_id, key: seeds if key == asked else {})
    (row,) = heldout.cross_validated(sweep, "x").to_dict("records")
    assert (row["scheme"], row["folds"], row["seeds"], row["cost"]) == ("a", "5", 6, 0.7)
    scale = 1 if real else 100
    assert (row["low"], row["high"]) == pytest.approx((scale * 0.01, scale * 0.06))
    assert ("error, %" in row) == (not real)
    assert real or row["error, %"] == pytest.approx(3)
    assert heldout.cross_validated(runs(("x", "a", {1.0: 3.0}))).empty


@pytest.mark.parametrize(
    ("rates", "column", "digits", "text"),
    [
        ([0.1234], "rate", 0, "12.3% of the test points misclassified"),
        ([0.1234], "rate", 2, "12.340% of the test points misclassified"),
        ([0.1, 0.3], "rate", 0, "20.0% of the test points misclassified"),
        ([1.23456], "cost", 0, "test cost 1.235"),
        ([1.23456], "cost", 1, "test cost 1.2346"),
    ],
)
def test_a_prediction_has_so_many_digits(rates, column, digits, text):
    table = splits(a=rates, b=[0.9])
    if column == "cost":
        table = table.assign(cost=table["rate"], rate=np.nan)
    assert heldout.predictions_text(table, ["a"], digits) == text


def test_medians_that_differ_by_a_millionth_are_equal():
    costs = splits(a=[2.0], b=[2.0 + 1.9e-6], c=[2.0 + 2.1e-6])
    assert heldout.best_predictors(costs) == ["a", "b"]
    negative = splits(a=[-2.0], b=[-2.0 + 1.9e-6], c=[-2.0 + 2.1e-6])
    assert heldout.best_predictors(negative) == ["a", "b"]


def test_several_schemes_that_are_fast_and_worse_are_named_with_all_that_are_best():
    table = splits(a=[0.3], b=[0.3], c=[0.1], d=[0.1])
    said = heldout.worse_though_faster(table, ["a", "b", "untested"])
    assert "under a = b, against 10.0% of the test points misclassified under c = d" in said
    assert said.startswith("The schemes that descend faster predict worse, on one split, which")
    assert heldout.worse_though_faster(table, ["untested"]) == ""
    assert heldout.worse_though_faster(table, []) == ""
    apart = heldout.worse_though_faster(splits(a=[0.3], b=[0.4], c=[0.1]), ["a", "b"])
    assert apart.partition(": ")[2] == (
        "30.0% of the test points misclassified under a and 40.0% of the test points "
        "misclassified under b, against 10.0% of the test points misclassified under c."
    )


def test_a_table_of_real_targets_has_costs_and_no_errors():
    table = splits(a=[0.1, 0.2]).assign(
        **dict.fromkeys(("rate", "best rate", "train rate"), np.nan)
    )
    summary = heldout.summary(table)
    assert list(summary) == [
        *("experiment", "scheme", "splits", "test cost", "best test cost", "at iteration")
    ]


def test_pairs_without_a_split_in_common_have_no_conclusion():
    table = splits(a=[0.1, 0.2], b=[0.3, 0.4])
    apart = table[(table["scheme"] == "a") == (table["split"] == 0)]
    (pair,) = heldout.compare_pairs(apart).to_dict("records")
    assert (pair["splits"], pair["conclusion"], pair[heldout.NEW_DATA]) == (0, "none", "none")
    assert np.isnan([pair["difference"], pair["low"], pair["wins"]]).all()
