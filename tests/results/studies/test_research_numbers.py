"""The numbers of further studies of research, of records made by hand."""

import math

import numpy as np
import pytest
from scipy.stats import linregress

from normbench import names
from normbench.results.compare import passes
from normbench.results.studies.gallery import exercises, research
from tests.results.studies.records import COST, Records, setting

INF, NAN = np.inf, np.nan


def test_centring_has_a_share_of_the_logarithmic_gain():
    rows = [
        {names.DATASET.column: data, "normalizer": scheme, names.CONDITION.column: condition}
        for data, *conditions in (("x", 1e4, 1e3, 1e2), ("y", 1e6, 1e2, 1e1))
        for scheme, condition in zip(("identity", "centre", "standard"), conditions)
    ]
    assert research.centring_alone(Records(rows)) == pytest.approx({"x": 0.5, "y": 0.8})


def grid(jobs):
    """Return step rows and histories of jobs: by run, the costs of each step size."""
    steps, histories = [], {}
    for run_id, by_size in jobs.items():
        for size, costs in by_size.items():
            steps.append({"run_id": f"{run_id} {size}", "parent": run_id})
            histories[steps[-1]["run_id"], size] = costs
    return steps, histories


def test_the_largest_of_a_bound_begins_where_the_cost_stays_below_one_over_the_step():
    # With a step of 2 the cost stays below 0.5 from iteration 3 on.
    cost = np.array([1.0, 0.4, 0.5, 0.25, 0.25, 0.1, 0.3])
    assert research._largest_bound(2.0, cost, 3.0) == pytest.approx(9 * 2 * 3 * 0.3)
    assert research._largest_bound(2.0, cost[:4], 3.0) == 0
    below = np.array([0.4, 0.25, 0.05])
    assert research._largest_bound(2.0, below, 0.5) == pytest.approx(0.25 * 2 * 0.25)
    assert research._largest_bound(2.0, np.array([0.4, 0.1, 0.1]), 0.5) == pytest.approx(0.1)


def test_a_margin_is_half_the_gap_between_two_classes():
    """Points at -1 and 3: weights (-1, 1) over 2 and a margin of 1 over their length."""
    assert research.margin(np.array([[-1.0], [3.0]]), np.array([0, 1])) == pytest.approx(2**0.5)
    far = np.array([[-1.0], [3.0], [-9.0], [7.0]])
    assert research.margin(far, np.array([1, 2, 1, 2])) == pytest.approx(2**0.5)
    assert research.margin(far, np.array([2, 1, 2, 1])) == pytest.approx(2**0.5)
    corners = np.array([[2.0, 0.0], [-2.0, 0.0], [2.0, 9.0], [-2.0, -9.0]])
    assert research.margin(corners, np.array([1, -1, 1, -1])) == pytest.approx(2)


def test_large_steps_have_a_bound_over_all_step_sizes():
    points = {"a": {"points": np.array([[2.0], [-2.0]]), "target": np.array([1.0, -1.0])}}
    costs = {25.0: np.r_[1.0, np.full(400, 1e-3)], 50.0: np.r_[1.0, np.full(400, 2e-3)]}
    costs[100.0] = np.r_[1.0, np.full(400, 1e-9)]
    costs[25.0][100], costs[50.0][200], costs[100.0][400] = 3e-3, 5e-4, 7e-5
    steps, histories = grid({"a": costs})
    jobs = [{"run_id": "a", "label": "a"}]
    numbers = research.large_steps(
        Records(jobs, steps=steps, histories=histories, arrays={"points": points})
    )
    expected = {"cost_100": 3e-3, "cost_200": 5e-4, "cost_400": 7e-5}
    assert numbers == pytest.approx(expected | {"bound": 4 * 50 * 399 * 2e-3})


def test_iterations_are_a_power_of_the_condition_with_an_interval():
    """Counts by penalty and step size, to a cost that is above the least one by the penalty."""
    jobs, costs = [], {}
    counts = {0.5: (4, 2), 0.125: (20, 3), 0.03125: (60, 7), 0.0078125: (300, 0)}
    for l2, (slow, quick) in counts.items():
        run_id = f"{l2}"
        jobs.append({"run_id": run_id, **setting(cost__l2=run_id)})
        jobs[-1] |= {names.MINIMUM.column: 2.0, names.LIPSCHITZ.column: 8.0}
        costs[run_id] = {
            size: np.where(np.arange(301) < count, 9.0, 2.0 + l2)
            for size, count in ((0.1, slow), (1.0, quick), (10.0, 301))
        }
    steps, histories = grid(costs)
    numbers = research.large_steps_ridge(Records(jobs, steps=steps, histories=histories))
    kappa = np.log([4 / l2 for l2 in counts])
    for name, place in (("small", 0), ("large", 1)):
        line = linregress(kappa, np.log([max(pair[place], 1) for pair in counts.values()]))
        assert numbers[name] == pytest.approx(line.slope)
        width = 4.302653 * line.stderr  # of Student's t with two degrees of freedom
        assert numbers[f"{name}_low"] == pytest.approx(line.slope - width, rel=1e-6)
        assert numbers[f"{name}_high"] == pytest.approx(line.slope + width, rel=1e-6)


def test_a_dial_has_the_error_of_each_ridge_that_reaches_a_cost_of_0_3():
    rows = [
        {"run_id": ridge, "test_points": 10, "normalizer": "a"} | setting(normalizer__ridge=ridge)
        for ridge in ("0.10", "1e-3", "5")
    ]
    histories = {}
    for ridge, costs in (("0.10", [0.5, 0.1]), ("1e-3", [0.7, 0.3]), ("5", [0.7, 0.31])):
        histories[ridge, 1.0] = {COST: costs, names.TEST_COST.key: [1, 1]}
        histories[ridge, 1.0] |= {names.TEST_MISCLASSIFICATIONS.key: [8, 4]}
    numbers = research.ridge_dial(Records(rows, histories=histories))
    assert numbers == pytest.approx({"error_0.1": 0.6, "error_0.001": 0.4})


def test_evaluations_of_lbfgs_are_summed_over_the_tables():
    jobs, costs = [], {}
    counts = {("identity", 0): 6, ("identity", 1): 9, ("standard", 0): 2, ("standard", 1): 3}
    counts |= {("pca_sphere", 0): 1, ("pca_sphere", 1): 3}
    for l2_in, times in (("transformed", 1), ("features", 2)):
        for (scheme, table), count in counts.items():
            run_id = f"{l2_in} {scheme} {table}"
            jobs.append({"run_id": run_id, "normalizer": scheme} | setting(cost__l2_in=l2_in))
            jobs[-1][names.MINIMUM.column] = 2.0
            reached = np.arange(8 * times + 1) >= count * times
            costs[run_id] = {1.0: 2 + np.where(reached, 1e-4, 1.1e-4) * 8.0}
            costs[run_id][1.0][0] = 10.0
    steps, histories = grid(costs)
    numbers = research.lbfgs_and_scaling(Records(jobs, steps=steps, histories=histories))
    assert numbers == pytest.approx(
        {
            **{"transformed_identity": 6 + 8, "features_identity": 12 + 16},
            **{"transformed_standard": 5, "features_standard": 10},
            **{"transformed_pca_sphere": 4, "features_pca_sphere": 8},
            **{"transformed_gain": 2.8, "features_gain": 2.8},
            **{"transformed_saved": 0.2, "features_saved": 0.2},
        }
    )


def test_images_are_counted_to_a_share_between_two_targets():
    """The costs of the targets are 1 at 0.1, 0.1 at 0.01, 0.01 at 0.001: 0.3 at 0.03."""
    jobs = [{"run_id": scheme, "normalizer": scheme} for scheme in ("image", "pixel", "never")]
    for job in jobs:
        job |= {names.target(f"1e-{k}").column: str(10.0 ** (1 - k)) for k in (1, 2, 3)}
    costs = {
        "image": {0.1: [3, 1, 0.31, 0.29, 0.2], 1.0: [3, 0.2, 0.29, 0.31, 0.3001]},
        "pixel": {0.1: [3, 3, 3, 3, 0.2], 1.0: [3, 0.2, 0.2, 0.25, 0.29]},
        "never": {0.1: [3, 3, 3, 3, 0.31]},
    }
    steps, histories = grid(costs)
    records = Records(jobs, steps=steps, histories=histories)
    expected = {"image": 3, "pixel": 1, "never": INF}
    assert research.per_image_or_per_pixel(records) == expected
    assert research.per_image_or_per_pixel_mnist(records) == expected


def test_rotations_have_the_range_of_their_fewest_iterations():
    costs = {
        "a": {0.1: [1, 0.2, 0.103], 1.0: [1, 0.103, 0.103]},
        "b": {0.1: [1, 0.2, 0.104], 1.0: [1, 0.2, 0.105]},
        "c": {0.1: [1, 0.2, 0.2]},
        "d": {0.1: [0.1, 0.05, 0.01]},
    }
    steps, histories = grid(costs)
    for step in steps:
        step[names.OPTIMIZER.column] = "adam" if step["parent"] in "cd" else "gradient_descent"
    numbers = research.rotations(Records([{}], steps=steps, histories=histories))
    assert numbers == {
        **{"gradient_descent_fewest": 1, "gradient_descent_most": 2},
        **{"adam_fewest": 0, "adam_most": INF},
    }


def test_the_rest_of_the_excess_is_that_of_the_best_step_size():
    rows = [
        {names.OPTIMIZER.column: "adam", "normalizer": scheme, "verdict": names.CONVERGED}
        | {names.FINAL_COST.column: cost, names.MINIMUM.column: 1.0, "run_id": scheme}
        | {names.target("1e-1").column: 1.4}
        for scheme, cost in (("identity", 2.0), ("standard", 1.0))
    ]
    numbers = research.scaling_with_adam(Records(rows))
    assert numbers == pytest.approx({"adam_identity": 0.25, "adam_standard": 0})


def test_whitenings_are_one_curve_but_for_ledoit_wolf():
    steps, histories = [], {}
    base = np.array([4.0, 2.0, 1.0])
    for scheme, factor in (
        ("pca_sphere", [1, 1, 1]),
        ("zca_sphere", [1, 0.5, 1]),
        ("cholesky", [1, 1, 1.25]),
        ("ledoit_wolf", [1, 3, 1]),
    ):
        steps.append({"run_id": scheme, "normalizer": scheme})
        histories[scheme, 0.1] = base * factor
        histories[scheme, 0.2] = 2 * base
    numbers = research.six_whitenings_one_curve(Records([{}], steps=steps, histories=histories))
    assert numbers == pytest.approx({"whitenings": 0.5, "with_ledoit_wolf": 2})


def test_a_solver_reaches_its_target_or_does_not():
    rows = [
        {names.OPTIMIZER.column: optimizer, names.DATASET.column: "x", "normalizer": scheme}
        | {names.reached("1e-2").column: count}
        for optimizer, scheme, count in (
            *(("lbfgs", "a", 3.0), ("lbfgs", "b", NAN)),
            ("gradient_descent", "c", 3.0),
        )
    ]
    assert research.solver_buys(Records(rows)) == {"x_a_reached": 1, "x_b_reached": 0}


def test_sparse_points_have_the_costs_of_dense_ones():
    rows, histories = [], {}
    for scheme, sparse, costs in (
        *(("a", "True", [2, 1, 1]), ("a", "False", [2, 1, 2])),
        *(("b", "true", [5, 3, 1]), ("b", "False", [4, 3, 1])),
    ):
        run_id = f"{scheme} {sparse}"
        row = {"run_id": run_id, "normalizer": scheme}
        rows.append(row | setting(dataset__sparse=sparse))
        histories[run_id, 1.0] = costs
    assert research.sparse_features(Records(rows, histories=histories)) == {"gap": 0.5}


def test_statistics_of_all_points_bias_the_cross_validated_error():
    rows = [
        {"normalizer": "a", names.FIT_ON: fit_on, names.FOLDS_ERROR.column: error}
        | setting(dataset__points=points)
        for points, fit_on, error in (
            *((30, "all", 0.1), (30, "all", 0.2), (30, "train", 0.3), (30, "train", 0.4)),
            *((90, "all", 0.5), (90, "train", 0.25)),
        )
    ]
    biases = research.statistics_before_the_split(Records(rows))
    assert biases == pytest.approx({"a_30": -0.2, "a_90": 0.25})


def test_steps_that_land_outside_all_directions_are_counted():
    landing = {
        "a": {"direction": np.array([0.5, 2.0]), "position": np.array([0.5, 2.0, 1.0, 2.1, 0.1])},
        "b": {
            "direction": np.array([[1.0, 4.0], [2.0, 3.0]]),
            "position": np.array([1 - 3e-6, 4 + 3e-6, 4 + 5e-6, 1 - 5e-6]),
        },
    }
    rows = [{"run_id": label, "label": label} for label in landing]
    numbers = research.where_a_step_lands(Records(rows, arrays={"landing": landing}))
    assert numbers == {"outside": 4}


def test_a_gain_at_the_start_is_kept_in_part_at_the_minimum():
    rows = [
        {"normalizer": scheme}
        | {names.CONDITION_START.column: start, names.CONDITION_MINIMUM.column: end}
        for scheme, start, end in (("a", 1e2, 1e3), ("identity", 1e6, 1e4), ("b", 1e3, 1e1))
    ]
    assert research.where_the_gain_is(Records(rows)) == pytest.approx({"kept_a": 0.25, "kept_b": 1})


def test_a_fit_takes_so_many_iterations_more_than_standardizing():
    rows = [
        {"normalizer": scheme, names.FIT_SECONDS.column: fit, names.SECONDS_A_STEP.column: step}
        for scheme, fit, step in (("standard", "0.5", "0.25"), ("pca_sphere", "3", "9"))
    ]
    assert research.whitening_in_seconds(Records(rows)) == {"fit_in_iterations": 10}


def sklearns_own(passes_over, sizes):
    """Return plain stochastic descents on the data, written down anew, as records of jobs."""
    from sklearn.datasets import load_breast_cancer

    x, classes = load_breast_cancer(return_X_y=True)
    y = np.where(classes > 0, 1.0, -1.0)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    rows, arrays = [], {}
    for cost, scheme, points in (
        *(("softmax", "identity", x), ("softmax", "standard", standard)),
        ("least_squares", "standard", standard),
    ):
        label = f"{cost} {scheme}"
        weights, bias = np.zeros(x.shape[1]), 0.0
        for p, target in [*zip(points, y)] * passes_over:
            score = weights @ p + bias
            if cost == "softmax":
                slope = -target / (1 + math.exp(min(target * score, 700.0)))
                size = 0.01
            else:
                slope, size = 2 * (score - target), 0.0005
            weights, bias = weights - size * slope * p, bias - size * slope
        scores = points @ weights + bias
        each = np.logaddexp(0, -y * scores) if cost == "softmax" else (scores - y) ** 2
        costs = np.full((len(sizes), 1, passes_over + 1), 9.0)
        costs[sizes.index(size), 0, -1] = each.mean()
        rows.append({"run_id": label, "label": label, "experiment": "x", "normalizer": scheme})
        rows[-1] |= {names.COST.column: cost, passes.BATCH_SETTING: "1"}
        arrays[label] = {"step_sizes": np.array(sizes), COST: costs}
    return Records(rows, arrays={names.DESCENT_ARRAYS: arrays})


def test_scikit_learns_descent_with_the_same_schedule_ends_at_the_same_costs():
    numbers = exercises.scaling_sgd(sklearns_own(2, [0.001, 0.0005, 0.01, 0.02]))
    for name in ("classifier_identity", "classifier_standard", "regressor_standard"):
        assert numbers[name] < 1e-6
    assert numbers["default_standard"] < 20 < numbers["default_identity"] < 285
    assert numbers["default_decades"] > 20
