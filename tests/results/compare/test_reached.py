"""When a target is reached: at which step size, and by which count."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import names
from normbench.costs import least_absolute_deviations
from normbench.datasets.bundled import diabetes
from normbench.engine.settings import Settings
from normbench.results.compare import comparisons, reached
from normbench.results.store.runs import Sweep
from normbench.verdicts.best_step import best_step
from tests.recorded import write_sweep
from tests.results.made import runs

INF = float("inf")


def test_a_target_is_reached_at_the_scheme_s_best_step_for_it_and_ties_go_to_the_smaller():
    """PCA and ZCA sphering end equally low at many steps; rounding must not choose among them."""
    costs = {0.1: 11.0, 0.2: 6.0, 0.5: 2.0, 0.7: 2.0, 0.9: 20.0}
    jitter = dict(zip(costs, [1e-12, -1e-12, 3e-12, -3e-12, 0.0]))
    one = {size: (value, 1e-6 + jitter[size]) for size, value in costs.items()}
    other = {size: (value, 1e-6 - jitter[size]) for size, value in costs.items()}
    table = reached.reached([runs(("x", "pca", one), ("x", "zca", other))])
    assert table["value"].tolist() == [2, 2]
    assert table["step"].tolist() == [0.5, 0.5]
    # What another choice among the steps that end as low would have told.
    assert table[["least", "most"]].to_numpy().tolist() == [[2, 20], [2, 20]]
    assert comparisons.spread(table)["tied steps"].tolist() == ["2 to 20", "2 to 20"]


def test_one_step_is_chosen_for_all_splits_by_the_median():
    grids = [{0.1: 9.0, 1.0: 3.0}, {0.1: 9.0, 1.0: 4.0}, {0.1: 1.0, 1.0: INF}]
    jobs = [
        ("x", "a", grid, {"dataset.split_seed": str(n), "data": str(n)})
        for n, grid in enumerate(grids)
    ]
    table = reached.reached([runs(*jobs)])
    assert table["step"].tolist() == [1.0] * 3  # never one for each split
    assert table["value"].tolist() == [3, 4, INF]


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
    table = reached.reached([runs(*jobs)])
    assert len(table) == 8
    assert table["setting"].eq("").all()
    assert table["step"].eq(1.0).all()
    assert comparisons.leaderboard(table)["splits"].tolist() == [4, 4]
    x, y = comparisons.paired(table).to_dict("records")
    assert (x["splits"], y["splits"]) == (2, 2)
    assert (x["wins"], y["wins"]) == (0.75, 0.5)


def test_a_scheme_that_failed_at_every_seed_of_the_start_stays_unreached():
    measured = [("x", "a", {1.0: (n, n / 1e4)}, {"seed": str(n)}) for n in (3, 5, 9)]
    failed = [("x", "b", None, {"seed": seed}) for seed in "359"]
    table = reached.reached([runs(*measured, *failed)])
    assert dict(zip(table["scheme"], table["value"])) == {"a": 5.0, "b": INF}


def test_a_job_without_a_descent_is_no_problem():
    study = runs(("x", "a", None), ("x", "b", None), iterations="0")
    assert reached.reached([study]).empty
    made = runs(("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0}), iterations="9")
    table = reached.reached([study, made])
    assert comparisons.leaderboard(table)["solved"].tolist() == [1, 1]


def test_a_job_that_was_run_twice_counts_once_as_it_was_last():
    table = reached.reached([runs(("x", "a", {1.0: 5.0})), runs(("x", "a", {1.0: 7.0}))])
    assert table["value"].tolist() == [7]


def test_seconds_hold_the_fit_and_each_step(three):
    table = reached.reached([three.sweep], "1e-1", "seconds").set_index("scheme")
    counts = reached.reached([three.sweep], "1e-1").set_index("scheme")
    for row in three.sweep.of_role("scheme").to_dict("records"):
        fit, each = (row[m.column] for m in (names.FIT_SECONDS, names.SECONDS_A_STEP))
        wanted = fit + counts.loc[row["normalizer"], "value"] * each
        assert table.loc[row["normalizer"], "value"] == pytest.approx(wanted)
    every = three.sweep.runs.drop(columns=names.reached("1e-1", "seconds").column)
    unknown = reached.reached([Sweep("-", "s", every)], "1e-1", "seconds")
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
    values = reached.reached([made.sweep], "1e-1").set_index("scheme")["value"]
    assert values["identity"] == np.inf
    assert values["standard"] == standard[count]
    # Under a penalty on its own weights each scheme has a target of its own.
    own = Sweep(made.uri, "s", made.sweep.runs.assign(**{names.setting("cost.l2"): "0.1"}))
    values = reached.reached([own], "1e-1").set_index("scheme")["value"]
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
    assert reached.first_held(costs, 0.5) == first


def test_the_excess_that_is_left_is_a_share_of_the_start_s():
    scheme = {names.MINIMUM.column: 1.0, names.target("1e-1").column: 1.2}  # it began at 3
    run = {"verdict": names.LEVELLED, names.FINAL_COST.column: 1.5}
    assert reached.excess_left(run, scheme) == pytest.approx(0.25)
    assert reached.excess_left({**run, "verdict": names.DIVERGED}, scheme) == INF
    assert np.isnan(reached.excess_left(run, {**scheme, names.target("1e-1").column: 1.0}))
    points = {names.COMPARED.column: names.MISCLASSIFICATIONS, names.target("1e-1").column: 8.0}
    wrong = {**run, names.final(names.TRAIN_MISCLASSIFICATIONS).column: 20}
    assert reached.excess_left(wrong, {**scheme, **points}) == pytest.approx(0.25)


def test_a_table_has_the_excess_that_is_left_of_the_start_s():
    sweep = runs(("x", "a", {1.0: (5.0, 0.06)}))
    sweep.runs.loc[:, names.MINIMUM.column] = 0.05  # a tenth of the excess is left at 0.1
    assert reached.reached([sweep])["excess"].tolist() == pytest.approx([0.02])


def test_what_is_counted_again_has_seconds_by_its_iterations_and_none_of_several_starts():
    scheme = {names.FIT_SECONDS.column: 3.0, names.SECONDS_A_STEP.column: 0.5}
    assert reached._counted(scheme, 4.0, "iterations") == (4, 4)
    assert reached._counted(scheme, 4.0, "seconds") == (4, 5)
    several = {**scheme, names.setting("starts"): "2"}
    assert np.isnan(reached._counted(several, 4.0, "iterations")).all()
