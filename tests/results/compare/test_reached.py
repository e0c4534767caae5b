"""When a target is reached: at which step size, and by which count."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import names
from normbench.costs import least_absolute_deviations
from normbench.datasets.bundled import diabetes
from normbench.engine.settings import Settings
from normbench.results.compare import comparisons, reached
from normbench.results.store.runs import Sweep
from normbench.verdicts.judging import best_step
from tests.recorded import write_sweep
from tests.results.made import runs

INF = float("inf")


def test_a_target_is_reached_at_the_scheme_s_best_step_for_it_and_ties_go_to_the_smaller():
    """PCA and ZCA sphering end equally low at many steps; rounding must not choose among them."""
    costs = {0.1: 11.0, 0.2: 6.0, 0.5: 2.0, 0.7: 2.0, 0.9: 20.0}
    jitter = dict(zip(costs, [1e-12, -1e-12, 3e-12, -3e-12, 0.0]))
    one = {size: (value, 1e-6 + jitter[size]) for size, value in costs.items()}
    other = {size: (value, 1e-6 - jitter[size]) for size, value in costs.items()}
    table = reached.time_to_target([runs(("x", "pca", one), ("x", "zca", other))])
    assert table["value"].tolist() == [2, 2]
    assert table["step"].tolist() == [0.5, 0.5]
    assert not table["finer"].any()


def over_splits(*grids, **own):
    """One scheme on a split for each grid; own: of every job."""
    jobs = [
        ("x", "a", grid, {"dataset.split_seed": str(n), "data": str(n), **own})
        for n, grid in enumerate(grids)
    ]
    return runs(*jobs)


GRIDS = [{0.1: 9.0, 1.0: 3.0}, {0.1: 9.0, 1.0: 4.0}, {0.1: 1.0, 1.0: INF}]


def test_each_split_is_tuned_for_itself():
    table = reached.time_to_target([over_splits(*GRIDS)])
    assert table["step"].tolist() == [1.0, 1.0, 0.1]
    assert table["value"].tolist() == [3, 4, 1]


def test_one_step_size_for_all_splits_reaches_the_target_on_most_of_them():
    (row,) = reached.tuned_once(over_splits(*GRIDS)).to_dict("records")
    assert (row["step"], row["reached"], row["splits"]) == (0.1, 3, 3)
    assert (row["median"], row["q3"]) == (9, 9)


def test_one_step_size_for_all_splits_has_the_lowest_upper_quartile():
    lucky = [{0.1: 5.0, 1.0: 1.0}, {0.1: 5.0, 1.0: 2.0}, {0.1: 5.0, 1.0: 9.0}]
    (row,) = reached.tuned_once(over_splits(*lucky)).to_dict("records")
    assert (row["step"], row["median"], row["q3"]) == (0.1, 5, 5)
    equal = [{0.1: 5.0, 1.0: 1.0}, {0.1: 5.0, 1.0: 2.0}, {0.1: 5.0, 1.0: 5.0}]
    (row,) = reached.tuned_once(over_splits(*equal)).to_dict("records")
    assert (row["step"], row["median"], row["q3"]) == (1.0, 2, 5)  # then the lower median
    alike = [{0.1: 5.0, 1.0: 5.0}] * 3
    jobs = [
        {size: (count, n + 1e-3) for size, count in grid.items()} for n, grid in enumerate(alike)
    ]
    assert reached.tuned_once(over_splits(*jobs))["step"].tolist() == [0.1]  # the smaller


def test_one_step_size_for_all_splits_may_lie_between_those_of_the_grid_where_all_tried_it():
    finer = {"finer": {8: 2.0, 12: INF}}  # 10^(8/16) and 10^(12/16)
    (row,) = reached.tuned_once(over_splits(*GRIDS, **finer)).to_dict("records")
    assert row["step"] == pytest.approx(10**0.5)
    assert (row["reached"], row["median"]) == (3, 2)
    sweep = over_splits(*GRIDS, **finer)
    first = sweep.runs.index[sweep.runs["role"] == "scheme"][0]
    sweep.runs.loc[first, names.REFINED.column] = None  # that job did not try it
    assert reached.tuned_once(sweep)["step"].tolist() == [0.1]


def test_a_target_that_no_step_size_reaches_on_a_split_is_counted_as_such():
    never = {0.1: INF, 1.0: INF}
    (row,) = reached.tuned_once(over_splits(*GRIDS[:2], never)).to_dict("records")
    assert (row["step"], row["reached"], row["splits"]) == (1.0, 2, 3)
    assert (row["median"], row["q3"]) == (4, INF)


def test_one_step_size_for_all_splits_is_of_the_grid_for_a_target_that_no_finer_one_was_for():
    sweep = over_splits(*GRIDS[:2], finer={8: 2.0})
    schemes = sweep.runs["role"] == "scheme"
    tag = json.dumps({"numbers": [8], "1e-2": [2.0], "1e-1": [1.0], "targets": ["1e-1"]})
    sweep.runs.loc[schemes, names.REFINED.column] = tag
    assert reached.tuned_once(sweep)["step"].tolist() == [1.0]


def test_where_no_step_size_reaches_the_target_none_is_the_best_for_all_splits():
    never = [{0.1: (INF, 0.5 + n), 1.0: (INF, 0.4 + n)} for n in range(2)]
    (row,) = reached.tuned_once(over_splits(*never)).to_dict("records")
    assert np.isnan(row["step"])
    assert (row["reached"], row["splits"], row["median"]) == (0, 2, INF)


def test_one_step_size_for_all_splits_takes_no_less_than_the_best_of_each():
    """The iterations of a job are a median over neighbouring step sizes."""
    sweep = over_splits(*GRIDS[:2], finer={8: 2.0, 12: 1.0})
    schemes = sweep.runs["role"] == "scheme"
    sweep.runs.loc[schemes, names.reached("1e-2").column] = 2.0
    (row,) = reached.tuned_once(sweep).to_dict("records")
    assert (row["step"], row["median"]) == (pytest.approx(10**0.5), 2)
    assert reached.time_to_target([sweep])["value"].tolist() == [2, 2]
    sweep.runs.loc[schemes, names.reached("1e-2").column] = np.nan  # of three, one is there
    assert reached.tuned_once(Sweep("-", "s", sweep.runs))["reached"].tolist() == [0]


def test_a_split_whose_job_failed_is_not_reached_and_its_seeds_are_one():
    sweep = over_splits(*GRIDS[:2], None)
    (row,) = reached.tuned_once(sweep).to_dict("records")
    assert (row["step"], row["reached"], row["splits"]) == (1.0, 2, 3)
    jobs = [
        (
            "x",
            "a",
            {1.0: (n + 3.0 * seed, n / 1e4 + seed)},
            {"dataset.seed": str(n), "data": f"{n}"},
        )
        for n in (1, 2)
        for seed in (0, 1)
    ]
    jobs = [(*job[:3], {**job[3], "seed": str(n % 2)}) for n, job in enumerate(jobs)]
    (row,) = reached.tuned_once(runs(*jobs)).to_dict("records")
    assert (row["reached"], row["splits"], row["median"], row["q3"]) == (2, 2, 5, 5)


def test_one_step_size_for_all_splits_goes_to_the_goal_of_all_schemes(monkeypatch):
    jobs = [
        (
            "x",
            name,
            dict.fromkeys((0.1, 1.0), (1.0, n / 1e4)),
            {"dataset.seed": str(n), "data": str(n)},
        )
        for name in "ab"
        for n in range(2)
    ]
    sweep = runs(*jobs)
    every = sweep.runs
    its_own = (every["role"] == "scheme") & (every["normalizer"] == "a")
    every.loc[its_own, names.target("1e-2").column] = 0.5  # b has seen a lower cost
    later = every.index[(every["role"] == "step") & (every[names.STEP_TAG.column] == "1")]
    every.loc[later[:2], "verdict"] = names.BY_ROUNDING
    costs = {"iteration": range(4), "train/cost": [1.0, 0.4, 0.005, 0.005]}

    def histories(self, runs, metrics):
        return pd.concat(pd.DataFrame({"run_id": run_id, **costs}) for run_id in runs["run_id"])

    monkeypatch.setattr(Sweep, "histories", histories)
    once = reached.tuned_once(sweep).set_index("scheme")
    assert once[["step", "reached", "median"]].to_numpy().tolist() == [[0.1, 2, 2], [0.1, 2, 1]]
    table = reached.time_to_target([sweep])
    assert table["value"].tolist() == [2, 2, 1, 1]
    assert not table["finer"].any()  # those between the grid's were counted to another goal
    every.loc[every["parent"].isin(every.loc[its_own, "run_id"]), "verdict"] = names.BY_ROUNDING
    fresh = Sweep("-", "s", every)
    assert reached.time_to_target([fresh])["value"].tolist() == [INF, INF, 1, 1]
    assert reached.tuned_once(fresh)["reached"].tolist() == [0, 2]


@pytest.mark.parametrize(("excess", "lowered"), [(1e-3, True), (1e-8, False)])
def test_a_goal_is_another_schemes_where_the_targets_differ_by_more_than_rounding(excess, lowered):
    schemes = pd.DataFrame({"experiment": "x", "setting": "", "split": 0, "scheme": ["a", "b"]})
    schemes[names.target("1e-2").column] = [0.01 * (1 + excess), 0.01]
    schemes = schemes.assign(**{names.target("1e-1").column: 0.1, names.MINIMUM.column: 0.0})
    goals = reached.goals(schemes, "1e-2")
    assert goals["goal"].tolist() == [0.01, 0.01]
    assert goals["lowered"].tolist() == [lowered, False]


def goals_by_batch(first_data, second_data):
    """The goals of two sizes of the batch, of which the second has the lower target."""
    table = pd.DataFrame(
        {
            "experiment": "x",
            "setting": ["dataset.points=9, batch=16", "dataset.points=9, batch=null"],
            "split": 0,
            "data": [first_data, second_data],
            names.target("1e-2").column: [0.2, 0.1],
        }
    )
    return reached.goals(table, "1e-2")["goal"].tolist()


def test_batches_of_every_size_share_the_goal_where_they_see_the_same_points():
    assert goals_by_batch("p", "p") == [0.1, 0.1]
    assert goals_by_batch("p", "q") == [0.2, 0.1]


def test_one_split_is_not_tuned_once_for_several():
    assert reached.tuned_once(runs(("x", "a", GRIDS[0]), ("x", "b", GRIDS[1]))).empty


def test_finer_step_sizes_are_told_where_they_were_tried_for_the_target():
    jobs = [("x", "a", {1.0: 5.0}, {"finer": {8: 3.0}}), ("x", "b", {1.0: 5.0})]
    sweep = runs(*jobs)
    sweep.runs.loc[sweep.runs["role"] == "scheme", names.least("1e-2").column] = [2.5, np.nan]
    table = reached.time_to_target([sweep]).set_index("scheme")
    assert table["value"].to_dict() == {"a": 3, "b": 5}
    assert table["step"].to_dict() == {"a": pytest.approx(10**0.5), "b": 1}
    assert table["finer"].to_dict() == {"a": True, "b": False}
    assert table.loc["a", "least"] == 2.5
    assert comparisons.spread(table.reset_index())["range"].fillna("-").tolist() == [
        "2.5 to 3",
        "-",
    ]
    assert not reached.time_to_target([sweep], "1e-1")["finer"].any()  # for another target


def test_of_several_starts_drawn_of_a_split_there_is_the_upper_median():
    counts = (3, 5, 9, 11)
    jobs = [
        ("x", "a", {1.0: (n, n / 1e4)}, {"seed": str(n), "finer": {8: 20.0} if n < 11 else {}})
        for n in counts
    ]
    (row,) = reached.time_to_target([runs(*jobs)]).to_dict("records")
    assert row["value"] == 9
    assert row["finer"] is False  # of one of them they were not tried


@pytest.mark.parametrize(
    ("median", "unreached", "excess", "step"),
    [
        ([5, 3, 3], [0, 0, 0], [0.1, 0.1, 0.1], 2),
        ([INF, INF, INF], [2, 1, 1], [0.1, 0.2, 0.3], 2),
        ([INF, INF, INF], [2, 2, 2], [0.1 + 1e-9, 0.1, 0.3], 1),  # the tie of two ends
        ([INF, INF], [1, 1], [INF, INF], 1),
    ],
)
def test_where_the_median_is_not_reached_the_nearest_step_is_chosen(
    median, unreached, excess, step
):
    sizes = np.arange(1.0, len(median) + 1)
    number = best_step(sizes, median, unreached, excess)
    assert sizes[number] == step
    back = [values[::-1] for values in (sizes, median, unreached, excess)]  # in any order
    assert back[0][best_step(*back)] == step


def test_a_job_that_failed_is_unreached_and_keeps_its_problem():
    jobs = [
        (experiment, scheme, {1.0: (5.0, 1e-3 + 1e-4 * int(split))}, {"dataset.split_seed": split})
        for experiment in "xy"
        for split in "01"
        for scheme in "ab"
    ]
    jobs[1] = (*jobs[1][:2], None, jobs[1][3])
    table = reached.time_to_target([runs(*jobs)])
    assert len(table) == 8
    assert table["setting"].eq("").all()
    assert (
        table["step"].isna().tolist()
        == table["value"].eq(INF).tolist()
        == [False, True] + [False] * 6
    )
    assert comparisons.leaderboard(table)["splits"].tolist() == [4, 4]
    x, y = comparisons.compare_pairs(table).to_dict("records")
    assert (x["splits"], y["splits"]) == (2, 2)
    assert (x["wins"], y["wins"]) == (0.75, 0.5)


def test_a_scheme_that_failed_at_every_seed_of_the_start_stays_unreached():
    measured = [("x", "a", {1.0: (n, n / 1e4)}, {"seed": str(n)}) for n in (3, 5, 9)]
    failed = [("x", "b", None, {"seed": seed}) for seed in "359"]
    table = reached.time_to_target([runs(*measured, *failed)])
    assert dict(zip(table["scheme"], table["value"])) == {"a": 5.0, "b": INF}


def test_a_job_without_a_descent_is_no_problem():
    study = runs(("x", "a", None), ("x", "b", None), iterations="0")
    assert reached.time_to_target([study]).empty
    made = runs(("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0}), iterations="9")
    table = reached.time_to_target([study, made])
    assert comparisons.leaderboard(table)["solved"].tolist() == [1, 1]


def test_a_job_that_was_run_twice_counts_once_as_it_was_last():
    table = reached.time_to_target([runs(("x", "a", {1.0: 5.0})), runs(("x", "a", {1.0: 7.0}))])
    assert table["value"].tolist() == [7]


def test_seconds_hold_the_fit_and_each_step(three):
    table = reached.time_to_target([three.sweep], "1e-1", "seconds").set_index("scheme")
    counts = reached.time_to_target([three.sweep], "1e-1").set_index("scheme")
    for row in three.sweep.of_role("scheme").to_dict("records"):
        fit, each = (row[m.column] for m in (names.FIT_SECONDS, names.SECONDS_A_STEP))
        wanted = fit + counts.loc[row["normalizer"], "value"] * each
        assert table.loc[row["normalizer"], "value"] == pytest.approx(wanted)
    every = three.sweep.runs.drop(columns=names.reached("1e-1", "seconds").column)
    unknown = reached.time_to_target([Sweep("-", "s", every)], "1e-1", "seconds")
    assert unknown["value"].isin([np.inf]).all()  # none but of those that never reach it


def test_schemes_are_counted_to_one_target(tmp_path):
    schemes = [("identity", FunctionTransformer()), ("standard", StandardScaler())]
    settings = Settings((0.1, 1, 10), iterations=100)
    made = write_sweep(
        tmp_path, diabetes(), least_absolute_deviations, schemes, settings, "diabetes-deviations"
    )
    goal, count = names.target("1e-1").column, names.reached("1e-1").column
    rows = made.sweep.of_role("scheme").set_index("normalizer")
    identity, standard = rows.loc["identity"], rows.loc["standard"]
    assert identity[goal] > 1.1 * standard[goal]  # each job's own, of a cost without curvature
    assert identity[count] < 200
    values = reached.time_to_target([made.sweep], "1e-1").set_index("scheme")["value"]
    assert values["identity"] == np.inf
    without_finer = made.sweep.runs.drop(columns=names.REFINED.column)
    starts = without_finer.assign(**{names.setting("starts"): "2"})
    several = replace(made.sweep, runs=starts)
    known = reached.time_to_target([several], "1e-1")["scheme"].tolist()
    assert known == ["standard"]  # the median's costs are not each start's
    assert values["standard"] <= standard[count]  # a finer step size, to a lower goal
    # Under a penalty on its own weights each scheme has a target of its own.
    penalized = without_finer.assign(**{names.setting("cost.l2"): "0.1"})
    own = replace(made.sweep, runs=penalized)
    values = reached.time_to_target([own], "1e-1").set_index("scheme")["value"]
    assert values["identity"] == identity[count]


def test_a_step_size_has_all_digits_where_its_metric_is_known():
    tag, metric = names.STEP_TAG.column, names.STEP_SIZE.column
    assert reached.step_size({tag: "0.333333", metric: 1 / 3}) == 1 / 3
    assert reached.step_size({tag: "0.333333", metric: np.nan}) == 0.333333
    assert reached.step_size({tag: "0.333333"}) == 0.333333


@pytest.mark.parametrize(
    ("costs", "first"),
    [
        ({0: 1.0, 1: 0.5, 2: 0.4}, 1.0),  # at the goal is there
        ({0: 1.0, 1: 0.5, 2: 0.6}, np.inf),  # it did not stay
        ({0: 0.5, 1: 0.5}, 0.0),
        ({0: 1.0, 1: np.nan}, np.inf),
        ({0: 9.0, 1: 0.5, 2: 3.0, 3: 0.4, 4: 0.4}, 3.0),  # it came back
        ({}, np.inf),
    ],
)
def test_a_goal_is_held_from_the_first_cost_at_or_below_it(costs, first):
    assert reached.first_iteration_below(costs, 0.5) == first


def test_the_excess_that_is_left_is_a_share_of_the_start_s():
    scheme = {names.MINIMUM.column: 1.0, names.target("1e-1").column: 1.2}  # it began at 3
    run = {"verdict": names.CONVERGED, names.FINAL_COST.column: 1.5}
    assert reached.excess_left(run, scheme) == pytest.approx(0.25)
    assert reached.excess_left({**run, "verdict": names.DIVERGED}, scheme) == INF
    assert np.isnan(reached.excess_left(run, {**scheme, names.target("1e-1").column: 1.0}))
    points = {names.COMPARED.column: names.MISCLASSIFICATIONS, names.target("1e-1").column: 8.0}
    wrong = {**run, names.final_metric(names.TRAIN_MISCLASSIFICATIONS).column: 20}
    assert reached.excess_left(wrong, {**scheme, **points}) == pytest.approx(0.25)


def test_a_table_has_the_excess_that_is_left_of_the_start_s():
    sweep = runs(("x", "a", {1.0: (5.0, 0.06)}))
    sweep.runs.loc[:, names.MINIMUM.column] = 0.05  # a tenth of the excess is left at 0.1
    assert reached.time_to_target([sweep])["excess"].tolist() == pytest.approx([0.02])


def test_what_is_counted_again_and_bounds_have_seconds_by_their_iterations():
    scheme = {names.FIT_SECONDS.column: 3.0, names.SECONDS_A_STEP.column: 0.5}
    assert reached._in_measure(scheme, 4.0, "iterations") == 4
    assert reached._in_measure(scheme, 4.0, "seconds") == 5
    sweep = runs(("x", "a", {1.0: 8.0}))
    own = {names.reached("1e-2", "seconds"): 7.0, names.least("1e-2"): 4.0}
    columns = {metric.column: value for metric, value in own.items()}
    every = sweep.runs.assign(**scheme, **columns)
    (row,) = reached.time_to_target([Sweep("-", "s", every)], measure="seconds").to_dict("records")
    assert (row["value"], row["least"]) == (7, 5)


@pytest.mark.parametrize(
    ("best", "end"),
    [(65.0, "high"), (64.0, ""), (0.1 / 6.4, ""), (0.1 / 6.5, "low"), (0.1, ""), (10.0, "")],
)
def test_finer_step_sizes_have_an_end_13_sixteenths_of_a_decade_beyond_the_grid(best, end):
    """A decade beyond it, less the three neighbours of a best one: 10^(13/16) = 6.49."""
    assert reached._grid_end({}, [0.1, 1.0, 10.0], best, finer=True) == end
    without = "high" if best >= 10 else "low"
    assert reached._grid_end({}, [0.1, 1.0, 10.0], best, finer=False) == without
    assert reached._grid_end({}, [0.1, 10.0], best, finer=True) == ""  # two have no ends


def test_2_over_l_holds_for_plain_descent_alone():
    limits = pd.DataFrame({names.THRESHOLD.column: [2.0, 3.0]})
    told = limits.assign(**{names.PLAIN.column: ["true", "false"]})
    held = reached.thresholds_that_hold(told)[names.THRESHOLD.column]
    assert held.tolist() == pytest.approx([2.0, np.nan], nan_ok=True)
    for rows in (limits, told.drop(columns=names.THRESHOLD.column)):
        assert reached.thresholds_that_hold(rows) is rows


@pytest.mark.parametrize(
    ("columns", "size"),
    [
        ({names.STEP_TAG.column: "0.5"}, 0.5),
        ({names.STEP_TAG.column: "0.333333", names.STEP_SIZE.column: 1 / 3}, 1 / 3),
        ({names.STEP_TAG.column: "0.5", names.STEP_CHOSEN.column: "true"}, np.nan),
        ({names.STEP_TAG.column: "0.5", names.STEP_CHOSEN.column: "false"}, 0.5),
        ({names.STEP_TAG.column: None}, np.nan),
        ({}, np.nan),
    ],
)
def test_a_step_size_that_the_user_chose_is_not_the_one_of_the_lowest_cost(columns, size):
    assert reached._lowest_step_size(columns) == pytest.approx(size, nan_ok=True)


def test_a_grid_that_is_above_2_over_l_has_no_other_end():
    limit = names.THRESHOLD.column
    assert reached._grid_end({limit: 0.05}, [0.1, 1.0, 10.0], 0.1, finer=False) == reached.ABOVE
    assert reached._grid_end({limit: 0.1}, [0.1, 1.0, 10.0], 0.1, finer=False) == reached.LOW
    assert reached._grid_end({limit: 0.05}, [0.1, 1.0], 0.1, finer=False) == ""
    assert reached._grid_end({}, [0.1, 1.0, 10.0], np.nan, finer=False) == ""
    assert reached._grid_end({}, [0.1, 1.0, 10.0], 1.0, finer=False) == ""


def guessed(*lowest, reached_text="false", **columns):
    """Return scheme runs whose least cost is the lowest that each job saw; they began at 11."""
    rows = pd.DataFrame({"experiment": "x", "normalizer": [*"abc"[: len(lowest)]], **columns})
    rows["run_id"] = rows["normalizer"]
    rows[names.MINIMUM.column] = lowest
    rows[names.target("1e-1").column] = [value + 0.1 * (11 - value) for value in lowest]
    rows[names.MINIMUM_REACHED.column] = reached_text
    return rows


def test_schemes_that_guessed_their_least_cost_share_the_lowest():
    both = [names.MINIMUM.column, names.target("1e-1").column]
    shared = reached.with_lowest_seen(guessed(3.0, 1.0, 2.0))
    assert shared[both].to_numpy().tolist() == [[1.0, 2.0]] * 3
    known = guessed(3.0, 1.0, reached_text="true")
    assert reached.with_lowest_seen(known) is known
    unknown = reached.with_lowest_seen(guessed(np.nan, 1.0, 2.0))  # of one that diverged
    assert unknown[both].to_numpy().tolist() == [[1.0, 2.0]] * 3
    nothing = reached.with_lowest_seen(guessed(np.nan, np.nan))
    assert nothing[both].isna().all(axis=None)
    own = guessed(3.0, 1.0, **{names.setting("cost.l2"): "0.1"})
    assert reached.with_lowest_seen(own) is own
    counted = guessed(3.0, 1.0, **{names.COMPARED.column: names.MISCLASSIFICATIONS})
    assert reached.with_lowest_seen(counted)[names.MINIMUM.column].tolist() == [3.0, 1.0]
    several = guessed(3.0, 1.0, 2.0, **{names.setting("cost.eps"): ["1", "2", "1"]})
    several = pd.concat([several, several.assign(**{names.setting("cost.eps"): "2"})])
    mixed = several.reset_index(drop=True)
    told = reached.with_lowest_seen(mixed)[names.MINIMUM.column]
    assert told[mixed[names.setting("cost.eps")] == "1"].tolist() == [2.0, 2.0]


@dataclass(frozen=True)
class Finer(Sweep):
    """A sweep of which one scheme `a` has costs from 1 at finer step sizes, by their number."""

    ends: Any = ()

    def arrays(self, runs, name):
        assert runs["label"].tolist() == ["a"]
        return {"a": {"refined_cost": np.array([[[1.0, end, end]] for end in self.ends])}}

    def histories(self, runs, metrics=()):
        rows = [(run_id, k, cost) for run_id in runs["run_id"] for k, cost in enumerate([1, 0.5])]
        return pd.DataFrame(rows, columns=["run_id", "iteration", metrics[0]])


def finer(*ends, reached_text="false", unsure=()):
    """Return a sweep of two schemes of 0.5 as their lowest cost; finer step sizes of `a` end so."""
    grid = {1.0: (np.inf, 0.5)}
    frame = runs(("x", "a", grid), ("x", "b", grid), iterations="1").runs
    frame[names.MINIMUM_REACHED.column] = reached_text
    least = {names.MINIMUM.column: 0.5, names.target("1e-2").column: 0.505}
    least |= {names.target("1e-1").column: 0.55, names.target("1e-3").column: 0.5005}
    frame = frame.assign(**least)
    tag = {"numbers": [13 + n for n in range(len(ends))], "targets": [], "by_rounding": [*unsure]}
    frame.loc[frame["normalizer"] == "a", names.REFINED.column] = json.dumps(tag)
    return Finer("-", "s", frame, ends=ends)


def test_the_lowest_cost_seen_is_that_of_every_recorded_run():
    table = reached.time_to_target([finer(0.3, 0.2)]).set_index("scheme")
    # The goal is 0.2 + 0.01 * 0.8, which the second of the finer step sizes meets alone.
    assert table["value"].tolist() == [1, np.inf]
    assert table["step"]["a"] == pytest.approx(10 ** (14 / 16))
    assert table["excess"].tolist() == pytest.approx([0.375, 0.375])  # (0.5 - 0.2) / 0.8
    assert reached.time_to_target([finer(0.3, np.nan)])["excess"][0] == pytest.approx(2 / 7)
    assert reached.time_to_target([finer(0.3, 0.2, unsure=[14])])["excess"][0] == pytest.approx(
        2 / 7
    )
    assert reached.time_to_target([finer(0.2, reached_text="true")])["excess"].tolist() == [0, 0]


def test_a_shared_lowest_cost_is_that_of_all_jobs_on_the_same_data_and_cost():
    sweep = finer(0.2)
    schemes = sweep.of_role("scheme")
    jobs = reached.with_finer_minima([sweep], schemes)
    shared = reached.with_lowest_seen(schemes, jobs)
    assert shared[names.MINIMUM.column].tolist() == pytest.approx([0.2, 0.2])
    assert shared[names.target("1e-1").column].tolist() == pytest.approx([0.28, 0.28])
    settings = {"model.start_scale": ("0.1", "he"), "dataset.points": ("50", "60")}
    for name, values in settings.items():
        two = [
            guessed(1.0, 3.0, **{names.setting(name): values[0]}),
            guessed(2.0, 3.0, **{names.setting(name): values[1]}),
        ]
        minima = reached.with_lowest_seen(pd.concat(two, ignore_index=True))[names.MINIMUM.column]
        is_data = name.startswith("dataset")
        assert minima.tolist() == ([1.0, 1.0, 2.0, 2.0] if is_data else [1.0] * 4)


@pytest.mark.parametrize(("start", "ratio"), [("normal", 4.0), ("zeros", 1.0), (None, 1.0)])
def test_the_excess_of_a_start_is_a_multiple_of_that_of_zero_weights(start, ratio):
    scheme = {names.MINIMUM.column: 1.0, names.target("1e-1").column: 1.1}
    scheme[names.setting("start")] = start
    arrays = {"minimum": np.array(1.0), "train/cost": np.array([[[5.0, 2.0]]])}
    assert reached.start_ratio(scheme, arrays) == pytest.approx(ratio)
    counted = {**scheme, names.COMPARED.column: names.MISCLASSIFICATIONS}
    assert reached.start_ratio(counted, arrays) == 1


class Began(Sweep):
    """Runs whose costs begin at 11."""

    def histories(self, runs, metrics=()):
        costs = {"iteration": [0, 1], metrics[0]: [11.0, 5.0]}
        tables = [pd.DataFrame({"run_id": run, **costs}) for run in runs["run_id"]]
        return pd.concat(tables, ignore_index=True)


@pytest.mark.parametrize(
    ("end", "rests"),
    [(6.1, True), (6.0, True), (5.9, False)],  # half of the excess over 1 is left at 6
)
def test_a_run_rests_above_the_lowest_cost_where_more_is_left_than_may_be(end, rests):
    rows = guessed(5.5, 1.0, 1.5).assign(verdict=["converged", "not converged", "converged"])
    rows[names.setting("rules.excess")] = "0.5"
    rows[names.FINAL_COST.column] = [end, 1.0, 1.5]
    sweep = Began("-", "s", rows.assign(role="scheme"))
    resting = reached.resting_above_lowest(sweep, rows)
    assert resting["normalizer"].tolist() == (["a"] if rests else [])
    assert (resting[names.MINIMUM.column] == 1.0).all()
    failed = rows.assign(verdict=names.FAILED)
    assert reached.resting_above_lowest(sweep, failed).empty
    unruled = rows.drop(columns=names.setting("rules.excess"))
    assert reached.resting_above_lowest(sweep, unruled).empty


def test_the_excess_at_the_start_is_ten_times_that_of_its_tenth():
    scheme = {names.MINIMUM.column: 1.0, names.target("1e-1").column: 1.25}
    assert reached.start_excess(scheme) == 2.5
    assert np.isnan(reached.start_excess({names.MINIMUM.column: 1.0}))


@pytest.mark.parametrize(
    ("final", "shown"), [(1.5, 0.25), (1.0, 0.0), (1.0 - 1e-9, 0.0), (np.nan, None), (None, None)]
)
def test_the_excess_that_a_table_shows_is_at_least_0(final, shown):
    scheme = {names.MINIMUM.column: 1.0, names.target("1e-1").column: 1.2}
    run = {"verdict": names.CONVERGED, names.FINAL_COST.column: final}
    assert reached.excess_shown(run, scheme) == pytest.approx(shown)
    assert reached.excess_shown({**run, "verdict": names.DIVERGED}, scheme) is None


@pytest.mark.parametrize("batched", [True, False])
def test_2_over_l_of_all_points_is_kept_of_batches_where_it_is_asked_for(batched):
    rows = pd.DataFrame({names.THRESHOLD.column: [2.0, 3.0], names.PLAIN.column: "false"})
    if batched:
        rows[names.BATCHED.column] = ["true", "false"]
    held = reached.thresholds_that_hold(rows, of_full_batch=True)[names.THRESHOLD.column]
    assert held.tolist() == pytest.approx([2.0 if batched else np.nan, np.nan], nan_ok=True)
    assert reached.thresholds_that_hold(rows)[names.THRESHOLD.column].isna().all()


def test_costs_that_are_compared_have_the_name_of_their_history():
    counted = {names.COMPARED.column: names.MISCLASSIFICATIONS}
    assert reached.compared_metric(counted) is names.TRAIN_MISCLASSIFICATIONS
    assert reached.compared_metric({}) is names.TRAIN_COST
    assert reached.compares_counts(pd.DataFrame([counted, {}])).tolist() == [True, False]
    assert reached.compares_counts(pd.DataFrame({"run_id": [1]})).tolist() == [False]


def test_a_lower_goal_is_held_from_a_record_on_and_records_are_parts_of_a_pass(monkeypatch):
    """Two records a pass: the third record is a pass and a half."""
    sweep = runs(("x", "a", {1.0: 3.0, 2.0: 3.0}, {"batch": "8", "records_per_pass": "2"}))
    costs = {"iteration": range(5), names.TRAIN_COST.key: [1.0, 0.5, 0.3, 0.1, 0.1]}

    def histories(self, steps, metrics):
        return pd.concat(pd.DataFrame({"run_id": run, **costs}) for run in steps["run_id"])

    monkeypatch.setattr(Sweep, "histories", histories)
    schemes = sweep.of_role("scheme").assign(goal=0.1)
    assert reached._iterations_held(sweep, schemes) == {"x0": {1.0: 1.5, 2.0: 1.5}}
    sweep.runs.loc[sweep.runs[names.STEP_TAG.column] == "2", "verdict"] = names.BY_ROUNDING
    held = reached._iterations_held(Sweep("-", "s", sweep.runs), schemes.assign(verdict="-"))
    assert held["x0"][2.0] == INF
    assert reached._iterations_held(sweep, schemes.iloc[:0]) == {}


def test_a_scheme_whose_jobs_all_failed_has_no_one_step_size_and_leaves_the_others_theirs():
    jobs = [
        ("x", name, grid, {"dataset.split_seed": str(n), "data": str(n)})
        for name in "ab"
        for n, grid in enumerate(GRIDS[:2])
    ]
    jobs[:2] = [(*job[:2], None, job[3]) for job in jobs[:2]]
    (row,) = reached.tuned_once(runs(*jobs)).to_dict("records")
    assert (row["scheme"], row["step"], row["reached"], row["splits"]) == ("b", 1.0, 2, 2)


def test_splits_without_a_common_step_size_have_none_for_all():
    assert reached.tuned_once(over_splits({0.1: 9.0}, {1.0: 3.0})).empty
    assert [*reached.tuned_once(over_splits({0.1: 9.0}, {0.1: 3.0}))["step"]] == [0.1]
    assert reached.tuned_once(runs(("x", "a", None), iterations="0")).empty


def test_an_end_of_the_grid_at_one_seed_is_one_of_the_split():
    grid = {0.1: 9.0, 1.0: 7.0, 10.0: 8.0}
    jobs = [
        ("x", "a", {size: (count, n / 1e4) for size, count in own.items()}, {"seed": str(n)})
        for n, own in enumerate((grid, {**grid, 10.0: 3.0}, grid))
    ]
    (row,) = reached.time_to_target([runs(*jobs)]).to_dict("records")
    assert (row["end"], row["value"], row["step"]) == (reached.HIGH, 7, 1)
    assert list(reached.time_to_target([runs(*jobs)])) == reached.REACHED_COLUMNS


def test_where_no_step_size_reaches_the_target_the_end_is_that_of_the_lowest_cost():
    for best, end in ((0.1, reached.LOW), (1.0, ""), (10.0, reached.HIGH)):
        grid = {size: (INF, 0.2 if size == best else 0.3) for size in (0.1, 1.0, 10.0)}
        (row,) = reached.time_to_target([runs(("x", "a", grid))]).to_dict("records")
        assert (row["value"], row["end"]) == (INF, end)
        # Where finer ones were tried, too, it is not known which is best.
        finer = runs(("x", "a", grid, {"finer": {8: INF}}))
        assert reached.time_to_target([finer])["end"].tolist() == [""]


@pytest.mark.parametrize(
    ("setting", "left"),
    [
        ("batch=16", ""),
        ("dataset.points=9, batch=16", "dataset.points=9"),
        ("dataset.points=9, batch_order=once, records_per_pass=4", "dataset.points=9"),
        ("my_batch=16", "my_batch=16"),
        ("batch_seed=16", "batch_seed=16"),
    ],
)
def test_how_steps_see_the_points_is_no_part_of_a_cost(setting, left):
    table = pd.DataFrame({"experiment": ["x"], "setting": [setting], "split": 0, "data": "p"})
    columns = reached._columns_of_one_cost(table)
    if setting == left:
        assert columns == ["experiment", "setting", "split"]
    else:
        assert columns[1].tolist() == [left]
    assert reached._columns_of_one_cost(table.drop(columns="data"))[-1] == "split"


@pytest.mark.parametrize("lowest", [0.5, 2.0])
def test_a_job_without_a_target_of_its_own_shares_that_of_the_others(lowest):
    """Its cost at zero weights is not finite, as that of scores normalized without an epsilon."""
    minimum, targets = names.MINIMUM.column, [names.target(key).column for key in ("1e-1", "1e-2")]
    rows = guessed(1.0, lowest)
    rows.loc[1, targets[0]] = np.nan
    shared = reached.with_lowest_seen(rows)
    least = min(1.0, lowest)
    assert shared[minimum].tolist() == [least] * 2
    assert shared[targets[0]].tolist() == pytest.approx([least + 0.1 * (11 - least)] * 2)
    rows = rows.assign(setting="", split=0, **{targets[1]: [1 + 0.01 * 10, np.nan]})
    found = reached.goals(rows, "1e-2")
    assert found["goal"].tolist() == pytest.approx([least + 0.01 * (11 - least)] * 2)
    assert found["minimum"].tolist() == [least] * 2
    assert found["start"].tolist() == pytest.approx([11 - least] * 2)
    assert found["lowered"].tolist() == [lowest < 1, True]
    failed = rows.assign(**{minimum: [1.0, np.nan]})
    assert reached.goals(failed, "1e-2")["lowered"].tolist() == [False, False]
