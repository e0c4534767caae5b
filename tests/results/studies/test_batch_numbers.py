"""The numbers of studies on batches, of descents made by hand."""

import numpy as np
import pytest

from normbench import names
from normbench.results.compare import passes
from normbench.results.studies.gallery import batches
from tests.results.studies.records import COST, Records, setting


def job(label, experiment="x", *, minimum=0.0, batch="None", points=100, **columns):
    about = {"run_id": f"{experiment} {label}", "label": label, "experiment": experiment}
    about |= {names.MINIMUM.column: minimum, passes.BATCH_SETTING: batch}
    return about | {passes.TRAIN_POINTS: points, passes.RECORDS: "1"} | columns


def descent(costs, step_sizes=(1.0,), **columns):
    costs = np.atleast_2d(np.array(costs, dtype=float))
    return batches.Descent(job("a", **columns), np.array(step_sizes), costs)


def recorded(*pairs, steps=()):
    """Return the records of jobs, each (row, step sizes, costs of one start by step size)."""
    arrays = {}
    for row, step_sizes, costs in pairs:
        of_starts = np.array(costs, dtype=float)[:, None]
        group = {"step_sizes": np.array(step_sizes, dtype=float), COST: of_starts}
        arrays[row["experiment"], row["label"]] = group
    jobs = [row for row, *_ in pairs]
    return Records(jobs, steps=steps, arrays={names.DESCENT_ARRAYS: arrays})


def falls(first, second, count=12):
    """Return an excess below 1e-1 and 1e-3 from one iteration on, below 1e-4 from another on."""
    k = np.arange(count)
    return np.where(k < first, 1.0, np.where(k < second, 5e-4, 5e-5))


def test_a_descent_is_of_its_own_experiment_and_of_its_first_start():
    rows = [job("a", "x", batch="5", minimum=1.0), job("a", "y"), job("b", "y")]
    arrays = {
        ("x", "a"): {"step_sizes": np.array([1.0]), COST: np.array([[[3.0, 2.0], [9.0, 8.0]]])},
        ("y", "a"): {"step_sizes": np.array([2.0]), COST: np.array([[[5.0, 4.0], [9.0, 8.0]]])},
    }
    first, second = batches.descents(Records(rows, arrays={names.DESCENT_ARRAYS: arrays}))
    assert (first.batch, second.batch) == (5, 100)
    assert (first.costs.tolist(), second.costs.tolist()) == ([[3.0, 2.0]], [[5.0, 4.0]])
    assert first.excess.tolist() == [[2.0, 1.0]]
    assert second.step_sizes.tolist() == [2.0]


def test_passes_are_the_fewest_of_all_step_sizes_over_the_records_of_a_pass():
    slow, quick = [9.0, 9.0, 9.0, 2.9], [9.0, 5.0, 3.0, 2.0]
    halves = descent([slow, quick], (1, 2), minimum=1.0, batch="5", **{passes.RECORDS: "2"})
    assert batches.passes_to(halves, 0.2) == 1.5  # to an excess of 1.6
    assert batches.passes_to(halves, 0.25) == 1
    assert batches.passes_to(halves, 0.2, least_cost=2.0) == 1  # to an excess of 1.4
    assert batches.passes_to(descent(slow, minimum=1.0), 0.25) == 3
    assert batches.passes_to(descent(slow, minimum=1.0), 0.1) == np.inf


@pytest.mark.parametrize(
    ("excess", "stable"),
    [
        ([100, 1, 9], True),
        ([100, 1, 10], False),
        ([100, 1, 10.5], False),
        ([100, 1, 50], False),
        ([1, 0.5, 1], False),
        ([4, np.nan, 2], True),
        ([4, 2, np.nan], False),
        ([1, 1e-15, 5e-14], True),
        ([100, 1e-15, 5e-10], True),
        ([100, 1e-15, 5e-9], False),
    ],
)
def test_a_stable_run_ends_below_its_start_and_near_its_lowest(excess, stable):
    both = np.array([excess, [1, 0.5, 0.25]], dtype=float)
    assert batches.stable_runs(both).tolist() == [stable, True]


def steps_with_knee(knee, largest=2.0, sizes=(1, 10, 100, 10**8)):
    """Return the largest stable steps by batch; of so many points the last one has no knee."""
    return {m: largest * m / (knee + m - 1) for m in sizes}


@pytest.mark.parametrize("knee", [1.0, 2.0, 10.0, 3e3])
def test_a_knee_is_that_of_the_steps(knee):
    assert batches.fit_knee(steps_with_knee(knee)) == pytest.approx(knee, rel=1e-3)
    assert batches.fit_knee(steps_with_knee(knee, 7.0)) == pytest.approx(knee, rel=1e-3)


def with_knees(knees, theory):
    """Return the records of jobs whose largest stable steps have these knees by scheme, features.

    A larger step size ends above its start in each, and a smaller one is stable.
    """
    pairs = []
    for (scheme, features), knee in knees.items():
        for batch, step in steps_with_knee(knee).items():
            full = batch == 10**8
            row = job(f"{scheme} {features} {batch}", batch="None" if full else str(batch))
            row |= {passes.TRAIN_POINTS: 10**8, "normalizer": scheme}
            row |= setting(dataset__features=features)
            if not full:
                row[names.KNEE.column] = theory[scheme, features]
            pairs.append((row, [step / 2, step, 2 * step], [[4, 2], [4, 3], [4, 5]]))
    return recorded(*pairs)


KNEES = {("standard", 2): 10.0, ("identity", 2): 20.0}
KNEES |= {("standard", 3): 30.0, ("identity", 3): 20.0}


def test_measured_knees_are_compared_with_those_of_theory_and_between_schemes():
    theory = {**dict.fromkeys(KNEES, 20.0), ("identity", 3): 5.0}
    numbers = batches.critical_batch(with_knees(KNEES, theory))
    for (scheme, features), knee in KNEES.items():
        assert numbers[f"{scheme}_{features}"] == pytest.approx(knee, rel=1e-3)
        assert numbers[f"theory_{scheme}_{features}"] == theory[scheme, features]
    assert numbers["worst"] == pytest.approx(4, rel=1e-3)
    assert numbers["equal"] == pytest.approx(0.5, rel=1e-3)  # farther from 1 than 1.5
    less = {**dict.fromkeys(KNEES, 20.0), ("standard", 3): 300.0}
    numbers = batches.critical_batch(with_knees(KNEES, less))
    assert numbers["worst"] == pytest.approx(10, rel=1e-3)


def test_points_with_an_offset_have_the_smallest_ratio_of_two_knees():
    sweep = with_knees(KNEES, dict.fromkeys(KNEES, 20.0))
    numbers = batches.critical_batch_offset(sweep)
    assert sorted(numbers) == [
        *("apart", "identity_2", "identity_3", "standard_2", "standard_3"),
    ]
    assert numbers["apart"] == pytest.approx(0.5, rel=1e-3)


def test_a_batch_buys_the_passes_of_all_points_over_its_own():
    pairs = []
    for scheme, batch, first, second, knee in (
        ("standard", None, 8, 10, np.nan),
        ("standard", 1, 1, 2, 1e9),  # of one point no law is compared
        ("standard", 2, 2, 5, 6.0),
        ("standard", 16, 4, 4, 8.0),
        ("pca_sphere", None, 6, 6, np.nan),
        ("pca_sphere", 16, 3, 4, 1e9),  # nor where the points are sphered
    ):
        row = job(f"{scheme} {batch}", batch=str(batch), points=64, normalizer=scheme)
        pairs.append((row | {names.KNEE.column: knee}, [1.0], [falls(first, second)]))
    numbers = batches.what_batches_buy(recorded(*pairs))
    assert numbers == {
        **{"gain_standard_1_1e-3": 8, "gain_standard_1_1e-4": 5},
        **{"gain_standard_2_1e-3": 4, "gain_standard_2_1e-4": 2},
        **{"gain_standard_16_1e-3": 2, "gain_standard_16_1e-4": 2.5},
        **{"gain_pca_sphere_16_1e-3": 2, "gain_pca_sphere_16_1e-4": 1.5},
        "law_1e-3": 4 * (2 + 6) / 64,  # 0.5; the batches of 16 have 2 * 24 / 64 = 0.75
        "law_1e-4": 2 * (2 + 6) / 64,  # 0.25, and 0.9375
        **{"fewest_standard": 2, "fewest_pca_sphere": 4},
    }


def test_of_classes_each_data_set_has_its_gains_above_its_lowest_cost():
    """On x all points never get there: they count with one pass more than there are."""
    pairs = []
    for data, scheme, batch, first in (
        ("x", "standard", None, 12),
        ("x", "standard", 5, 3),
        ("x", "standard", 9, 6),
        ("x", "pca_sphere", None, 8),
        ("x", "pca_sphere", 5, 4),
        ("y", "standard", None, 6),
        ("y", "standard", 5, 2),
        ("y", "pca_sphere", None, 4),
        ("y", "pca_sphere", 5, 1),
    ):
        row = job(f"{data} {scheme} {batch}", batch=str(batch), normalizer=scheme)
        excess = np.where(np.arange(12) < first, 1.0, 0.0)
        pairs.append((row | {names.DATASET.column: data}, [1.0], [4 + excess]))
    numbers = batches.what_batches_buy_classes(recorded(*pairs))
    gains = {"gain_x_standard": 4, "gain_x_pca_sphere": 2}
    gains |= {"gain_y_standard": 3, "gain_y_pca_sphere": 4}
    assert {key: numbers[key] for key in gains} == gains
    assert numbers["standard_over_sphered"] == 0.75
    # Equal costs lead: until a batch gets there, they are equal, and from 4 passes on again.
    assert numbers["leads_x_standard"] == numbers["leads_y_standard"] == 1
    assert numbers["leads_y_pca_sphere"] == 4


def test_all_points_that_do_not_get_there_count_as_one_pass_more_whatever_the_records():
    pairs = []
    for scheme in ("standard", "pca_sphere"):
        for batch, count, first in (("5", 21, 4), ("None", 11, 99)):  # ten passes
            columns = {"normalizer": scheme, passes.RECORDS: "2", names.DATASET.column: "x"}
            row = job(f"{scheme} {batch}", batch=batch, **columns)
            pairs.append((row, [1.0], [4 + np.where(np.arange(count) < first, 1.0, 0.0)]))
    numbers = batches.what_batches_buy_classes(recorded(*pairs))
    assert numbers["gain_x_standard"] == 11 / 2  # a batch gets there at its fourth record


def test_all_points_lead_after_the_first_pass_with_the_lowest_cost():
    full = descent([[9, 8, 3, 2], [9, 9, 9, 9]], (1, 2))
    batch = descent([9, 5, 4, 3], batch="5")
    halves = descent([9, 9, 5, 1, 4, 1, 3], batch="7", **{passes.RECORDS: "2"})
    assert batches.pass_of_lead([full, batch]) == 2
    assert batches.pass_of_lead([halves, full]) == 2  # after whole passes alone
    assert batches.pass_of_lead([full, descent([9, 8, 3, 2], batch="5")]) == 1
    assert batches.pass_of_lead([full, descent([9, 1, 1, 1], batch="5")]) == np.inf
    behind = descent([9, 9, 9, 9], batch="5")
    assert batches.pass_of_lead([full, behind, batch]) == 2


def test_the_noise_floor_is_compared_with_the_last_records_of_all_seeds():
    """Of 301 records the last 200 count, whose first half is 1 above the least cost, the rest 3."""
    pairs, steps = [], []
    for label, order, times in (("a", "shuffled", 1), ("b", "shuffled", 2), ("c", "drawn", 4)):
        row = job(label, minimum=5.0, **setting(batch_order=order))
        excess = times * np.repeat([50.0, 1.0, 3.0], [101, 100, 100])
        pairs.append((row, [0.5, 1.0], [5 + excess, 5 + 2 * excess]))
        for size, floor in (("0.50", 2.0), ("1.0", 8.0)):
            step = {"parent": row["run_id"], names.STEP_TAG.column: size}
            steps.append(step | {names.NOISE_FLOOR.column: floor})
    assert batches.noise_floor(recorded(*pairs, steps=steps)) == pytest.approx(
        {"shuffled_0.5": 1.5, "shuffled_1": 0.75, "drawn_0.5": 4, "drawn_1": 2}
    )


def disturbed(scheme, features, batch, disturbance, points=640):
    row = job(f"{scheme} {features} {batch}", batch=str(batch), points=points, normalizer=scheme)
    return row | setting(dataset__features=features) | {names.DISTURBANCE.column: disturbance}


def test_disturbances_are_compared_with_their_laws():
    rows = [
        disturbed("standard", "5", 10, 0.15),  # 1 of the law
        disturbed("standard", "5", 40, 0.0375 / 4),  # a quarter
        disturbed("standard", "5", 20, 0.075 * 3),  # three times as much, nearer to 1
        disturbed("standard", "5", 41, 9.0),  # more than a sixteenth of the points
        disturbed("zca_sphere", "5", 10, 5 / 30 * 2),  # from two points a feature on
        disturbed("zca_sphere", "5", 9, 9.0),
        disturbed("zca_sphere", "4", 10, 4 / 30 * 0.75),
        disturbed("identity", "5", 10, 9.0),
    ]
    expected = {"standard_5": 0.25, "zca_sphere_5": 2, "zca_sphere_4": 0.75}
    assert batches.disturbances(Records(rows)) == pytest.approx(expected)
    assert batches.batch_statistics_width(Records(rows)) == pytest.approx(expected)


def test_statistics_of_a_batch_cost_the_lowest_last_cost_of_all_step_sizes():
    costs = [[9, 1, 3], [9, 1, 2], [9, 1, np.nan]]
    rows = [disturbed("standard", "5", 10, 0.3), disturbed("zca", "5", 10, 0.3)]
    numbers = batches.batch_statistics(recorded(*((row, [1, 2, 3], costs) for row in rows)))
    assert numbers == pytest.approx({"cost_standard_10": 2, "cost_zca_10": 2, "standard_law": 2})


def test_a_line_learned_online_scales_each_input_by_those_up_to_it():
    a, b = 0.3, 0.05
    after_one = 2 * b  # the intercept: the first input is scaled to 0
    slope = 2 * (after_one - 3)
    weight, intercept = -a * slope, after_one - b * slope
    last = 2 * (weight / 4 + intercept - 2)
    expected = (weight - a * last / 4) / 4
    inputs, targets = np.array([0.0, 4.0, 1.0]), np.array([1.0, 3.0, 2.0])
    assert batches.online_line(inputs, targets, a, b) == pytest.approx(expected)
    assert batches.online_line(inputs + 10, targets, a, b) == pytest.approx(expected)
    two = batches.online_line(np.array([2.0, 0.0]), np.array([1.0, 3.0]), a, b)
    assert two == pytest.approx(0)  # both are scaled to 0


def test_a_slope_is_over_that_of_the_targets_and_online_where_all_points_are_recorded():
    x = np.linspace(1, 3, 6)
    points = np.c_[x, 2 * x + 1]
    fits = {
        "few": {"x": x, "prediction": 0.5 * x, "points": points},
        "many": {"x": x, "prediction": 3 * x - 4, "points": points},
    }
    rows = [
        job(label, **setting(dataset__points=count), **{names.STEP_TAG.column: "0.2"})
        for label, count in (("few", 6), ("many", 7))
    ]
    numbers = batches.online_scaling(Records(rows, arrays={"fit": fits}))
    loop = batches.online_line(*points.T, 0.2, 0.2)
    slow = batches.online_line(*points.T, 0.2, 0.02)
    assert numbers == pytest.approx(
        {"slope_6": 0.75, "slope_7": 4.5, "loop_6": 3 * loop / 2, "slow_6": 3 * slow / 2}
    )


@pytest.mark.parametrize(("first", "ratio"), [(3, np.inf), (12, np.nan)])
def test_a_gain_over_none_is_infinite(first, ratio):
    """No batch of the sphered points gets there; nor, of the second case, of the others."""
    pairs = []
    for scheme, batch, count in (
        ("standard", None, 6),
        ("standard", 5, first),
        ("pca_sphere", None, 6),
        ("pca_sphere", 5, 12),
    ):
        row = job(f"{scheme} {batch}", batch=str(batch), normalizer=scheme)
        excess = np.where(np.arange(12) < count, 1.0, 0.0)
        pairs.append((row | {names.DATASET.column: "x"}, [1.0], [4 + excess]))
    numbers = batches.what_batches_buy_classes(recorded(*pairs))
    assert numbers["gain_x_pca_sphere"] == 0
    assert numbers["standard_over_sphered"] == pytest.approx(ratio, nan_ok=True)
