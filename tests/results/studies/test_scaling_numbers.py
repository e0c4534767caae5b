"""The numbers of studies on dummies, outliers and targets, of records made by hand."""

import numpy as np
import pytest

from normbench import names
from normbench.results.studies.gallery import scaling
from tests.results.studies.records import Records, setting

SCHEMES = {
    "none": "{'numeric': 'standard'}",
    "centred": "{'numeric': 'standard', 'dummies': 'centre'}",
    "standardized": "standard",
}


def dummy_jobs(minima, l2="0.0", errors=1):
    """Return a job of each treatment and table, from the treatments' least costs by table."""
    return [
        setting(normalizer__schemes=SCHEMES[treatment], cost__l2=l2, dataset__seed=str(seed))
        | {
            names.MINIMUM.column: minimum,
            names.reached("1e-2").column: 10 * minimum,
            names.FINAL_TEST_MISCLASSIFICATIONS.column: errors + seed,
        }
        for treatment, of_tables in minima.items()
        for seed, minimum in enumerate(of_tables)
    ]


def test_treatments_of_dummies_are_compared_by_penalty():
    free = {"none": [1, 2, 9], "centred": [2, 3, 9], "standardized": [4, 2, 18]}
    held = {"none": [4, 5, 6], "centred": [4, 4, 6], "standardized": [4, 4, 6]}
    sweep = Records([*dummy_jobs(free), *dummy_jobs(held, "0.50", errors=2)])
    assert scaling.dummies(sweep) == {
        **{"iterations_none_0": 20, "iterations_centred_0": 30, "iterations_standardized_0": 40},
        **{"iterations_none_0.5": 50, "iterations_centred_0.5": 40},
        **{"iterations_standardized_0.5": 40, "errors_none_0": 6, "errors_centred_0": 6},
        **{"errors_standardized_0": 6, "errors_none_0.5": 9, "errors_centred_0.5": 9},
        "errors_standardized_0.5": 9,
        **{"spread_0": 3, "centring_0": 1, "spread_0.5": 0.25, "centring_0.5": 0.25},
    }


def outlier_jobs(values, case=("cells", "0.03"), points=10):
    """Return jobs from (condition, missed, cost, least, iterations) by scheme, one a table."""
    return [
        setting(dataset__outliers=case[0], dataset__outlier_share=case[1], dataset__seed=str(seed))
        | {"run_id": f"{scheme} {case} {seed}", "normalizer": scheme, "test_points": points}
        | {
            names.CONDITION.column: condition,
            names.FINAL_TEST_MISCLASSIFICATIONS.column: missed,
            names.FINAL_COST.column: cost,
            names.MINIMUM.column: least,
            names.reached("1e-1").column: iterations,
        }
        for scheme, of_tables in values.items()
        for seed, (condition, missed, cost, least, iterations) in enumerate(of_tables)
    ]


def test_outliers_are_compared_by_unit_and_share():
    values = {
        "standard": [(2, 3, 5, 0.5, 9), (2, 4, 7, 1.5, 8), (3, 1, 9, 2.5, 7)],
        "robust": [(2, 2, 4, 0.5, 8), (3, 5, 6, 0.5, 8), (4, 1, 8, 0.5, np.nan)],
        "quantile": [(1, 2, 3, 0.5, 2), (1, 3, 2, 0.5, 4), (1, 1, 1, 0.5, np.nan)],
    }
    jobs = outlier_jobs(values)
    costs = [[4, 3, 1, 0.5], [4, 1, 3, 1], [4, 2, 1, 1]]  # below for good after 3, 3 and 1
    histories = {(f"quantile ('cells', '0.03') {k}", 1.0): of for k, of in enumerate(costs)}
    other = {scheme: [of_tables[1]] for scheme, of_tables in values.items()}
    jobs += outlier_jobs(other, ("rows", "0.100"), 20)
    histories["quantile ('rows', '0.100') 0", 1.0] = [4, 3, 2]
    for number, job in enumerate(jobs):
        if job["normalizer"] != "quantile":
            histories[job["run_id"], 1.0] = [0.0, number]
    numbers = scaling.outliers(Records(jobs, histories=histories))
    expected = {
        **{"condition_cells_0.03_standard": 2, "condition_cells_0.03_robust": 3},
        **{"test_error_cells_0.03_standard": 0.3, "test_error_cells_0.03_quantile": 0.2},
        **{"cost_cells_0.03_robust": 6, "least_cells_0.03_standard": 1.5},
        **{"iterations_cells_0.03_standard": 8, "iterations_cells_0.03_robust": 8},
        **{"iterations_cells_0.03_quantile": 4, "test_error_rows_0.1_robust": 0.25},
        **{"larger_condition_cells_0.03": 2, "fewer_iterations_cells_0.03": 1},
        **{"lower_error_cells_0.03": 1, "lower_error_rows_0.1": 1},
        **{"larger_condition_rows_0.1": 1, "fewer_iterations_rows_0.1": 0},
        **{"overtaking_cells_0.03": 3, "overtaking_rows_0.1": np.inf},
    }
    assert {key: numbers[key] for key in expected} == pytest.approx(expected)
    assert len(numbers) == 2 * (5 * 3 + 4)


def target_records(costs, minima, own):
    """Return the records of descents by (optimizer, scheme, ...): those of Adam with two more."""
    jobs, steps, histories = [], [], {}
    for number, (key, history) in enumerate(costs.items()):
        optimizer, scheme, *more = key
        size, epsilon = more or ("0.1", "1e-08")
        jobs.append(
            setting(dataset__target_scheme=scheme, optimizer__epsilon=epsilon)
            | {"run_id": f"job{number}", names.OPTIMIZER.column: optimizer}
            | {names.MINIMUM.column: minima.get(scheme, 0.0)}
            | {names.OWN_COST.column: own.get(key, 1.0)}
        )
        steps.append({"run_id": f"step{number}", "parent": f"job{number}"})
        histories[f"step{number}", float(size)] = history
    return Records(jobs, steps=steps, histories=histories)


def test_schemes_of_the_target_are_compared_with_the_raw_one():
    slow = [4096 * c for c in (1.0, 0.5, 0.05, 0.04, 0.005, 0.004, 0.0005)]
    fast = [1.0, 0.1, 0.05, 0.005, 0.0005, 0.0004, 0.0001]
    costs = {
        ("gradient_descent", "identity"): [9.0, 2.0, 1.0, 1.004, 1.0],
        ("gradient_descent", "maxabs"): [9.0, 1.4, 1.8, 1.009, 1.0],
        ("gradient_descent", "centre"): [3.0, 2.0, 1.004, 1.0009, 1.0],
        ("gradient_descent", scaling.OVER_64): [1.0, 0.5, 0.0005],
        ("adam", "identity", "0.03", "1e-08"): slow,
        ("adam", scaling.OVER_64, "0.03", "1e-08"): fast,
        ("adam", "identity", "1.92", "6.4e-07"): [4096 * c for c in (1.0, 0.1, 0.04, *fast[3:])],
    }
    own = {("gradient_descent", "maxabs"): 1.5, ("adam", scaling.OVER_64, "0.03", "1e-08"): 9.0}
    ones = dict.fromkeys(("maxabs", "centre"), 1.0)
    numbers = scaling.target_scaling(target_records(costs, ones, own))
    raw = np.array(costs["gradient_descent", "identity"]) / 9
    over = (np.array(costs["gradient_descent", "maxabs"]) - 1) / 8
    assert numbers == pytest.approx(
        {
            "scaled_gap": np.abs(raw - over).max(),
            "bias_share": 1 - 2 / 9,
            **{"iterations_identity": np.inf, "iterations_maxabs": 4, "iterations_centre": 3},
            f"iterations_{scaling.OVER_64}": 2,
            "iterations_absolute": 2,
            "own_units_gap": 0.5,
            "adam_gap": 0.25,
            **{"adam_1e-1": 2, "adam_1e-2": 4 / 3, "adam_1e-3": 6 / 4},
        }
    )
    rising = costs | {("gradient_descent", "identity"): [9.0, 45.0, 1.0, 1.004, 1.0]}
    larger = scaling.target_scaling(target_records(rising, ones, own))
    assert larger["scaled_gap"] == pytest.approx((45 / 9 - 0.4 / 8) / 5)  # of what it rises to
