"""The numbers of studies, of sweeps made by hand: what the slow tests see on real data alone."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.studies.gallery import research

SEEDS = range(6)


class Made:
    """What a study asks of a sweep: its jobs, and what each of them has recorded."""

    def __init__(self, jobs, recorded):
        self.jobs, self.recorded = pd.DataFrame(jobs), recorded

    def of_role(self, role):
        assert role == names.SCHEME
        return self.jobs

    def series(self, run_id, metric):
        return dict(zip(SEEDS, self.recorded[run_id][metric]))

    def arrays(self, runs, name):
        return {label: self.recorded[label] for label in runs["label"]}

    def histories(self, runs):
        return pd.concat([self.recorded[run_id] for run_id in runs["run_id"]])


def choice():
    """Errors 0.1, 0.2, 0.5 by scheme on both data sets, less in every seed; costs the other way."""
    jobs, recorded = [], {}
    for data in "xy":
        for place, scheme in enumerate(["standard", "identity", "pca_sphere"]):
            error = (0.1, 0.2, 0.5)[place] + 0.1 * (data == "y") * place
            job = {"run_id": data + scheme, names.DATASET.column: data, "normalizer": scheme}
            jobs.append({**job, names.FOLDS_ERROR.column: error})
            recorded[data + scheme] = {
                names.of_seed(names.FOLDS_ERROR).key: [error - 0.001 * seed for seed in SEEDS],
                names.of_seed(names.FOLDS_TRAIN_COST).key: [9 - place + seed for seed in SEEDS],
            }
    return Made(jobs, recorded)


def test_ranks_begin_with_the_least_and_harm_is_against_no_scheme():
    found = research.does_the_choice_matter(choice())
    assert [found[f"error_place_{name}"] for name in ("standard", "identity", "pca_sphere")] == [
        *(1, 2, 3)
    ]
    assert found["descent_place_pca_sphere"] == found["descent_rank_pca_sphere"] == 1
    assert found["error_low_identity"] == found["error_high_identity"] == 2
    assert found["error_lead"] == found["descent_lead"] == 1
    assert found["agreement"] == pytest.approx(-1)
    assert found["spread"] == pytest.approx(0.6)
    assert found["harm"] == pytest.approx(0.4)


def test_the_peak_is_where_the_error_is_largest_at_the_first_small_cost():
    jobs, recorded = [], {}
    for points, wrong in ((101, 5), (449, 50), (601, 20)):
        run_id = f"{points}"
        about = {"run_id": run_id, "normalizer": "pca_sphere", names.FIT_ON: "train"}
        jobs.append({**about, "train_points": points, "test_points": 100})
        recorded[run_id] = pd.DataFrame(
            {
                "run_id": run_id,
                "iteration": range(3),
                names.TRAIN_COST.key: [0.5, 0.1, 0.01],
                names.TEST_COST.key: [1.0, 2.0, 3.0],
                names.TEST_MISCLASSIFICATIONS.key: [99, wrong, 0],
            }
        )
    found = research.whitening_and_generalization(Made(jobs, recorded))
    assert found["pca_sphere_train_peak"] == 450
    assert found["pca_sphere_train_error_600"] == pytest.approx(0.2)
    assert found["pca_sphere_train_cost_100"] == 2


def test_the_worst_of_a_formula_is_the_largest_that_is_finite():
    jobs, recorded = [], {}
    for label, off in (("a", [np.nan, 1.0]), ("b", [3.0, 2.0]), ("c", [np.nan, 0.5])):
        kind = {research.DATA_KIND: label, research.DATA_SCALE: "1e6"}
        jobs.append({"run_id": label, "label": label, **kind})
        recorded[label] = {"formula": np.array(["p", "q"]), "off": np.array(off)}
    found = research.broken_data(Made(jobs, recorded))
    assert found["b_1e+06_q_off"] == 2
    assert np.isnan(found["a_1e+06_p_off"])
    assert (found["worst_p_off"], found["worst_q_off"]) == (3, 2)


def test_the_two_places_of_a_penalty_differ_in_least_costs_errors_and_coefficients():
    """Two splits: the coefficients of the second differ by twice as much as those of the first."""
    jobs, recorded = [], {}
    for seed in "01":
        for place, minimum, errors, moved in (
            ("features", 2.0, 3, 0.0),
            ("transformed", 2.0 + int(seed), 5, 0.5 * (1 + int(seed))),
        ):
            label = place + seed
            job = {"run_id": label, "label": label, "normalizer": "standard"}
            job |= {names.setting("cost.l2_in"): place, names.setting("dataset.split_seed"): seed}
            job |= {names.MINIMUM.column: minimum}
            jobs.append(job | {names.FINAL_TEST_MISCLASSIFICATIONS.column: errors})
            # The bias, which does not count, and two coefficients whose length is 5.
            last = [[100.0 * moved, 3.0 + 3.0 * moved, 4.0 + 4.0 * moved]]
            recorded[label] = {"weights": np.array([np.zeros((1, 3)), last])}
    assert research.penalty_and_scaling(Made(jobs, recorded)) == {
        **{"features": 0, "transformed": 0},
        **{"errors_features_standard": 6, "errors_transformed_standard": 10},
        "coefficients_standard": pytest.approx(0.75),
    }
    jobs.append(jobs[-1] | {"normalizer": "pca_sphere", names.MINIMUM.column: 4.5})
    jobs.append(jobs[2] | {"normalizer": "pca_sphere"})
    found = research.penalty_and_scaling(Made(jobs, recorded))
    assert (found["features"], found["transformed"]) == (0, pytest.approx(0.5))


def test_preconditioned_costs_are_compared_with_those_on_normalized_points():
    """The largest difference of all iterations, and of the two costs of one iteration."""
    jobs, histories = [], []
    for optimizer, normalizer, costs in (
        ("preconditioned", "identity", [1.0, 0.5, 0.2]),
        ("gradient_descent", "pca_sphere", [1.0, 0.4, 0.2]),
        ("adam", "identity", [1.0, 1.0, 1.0]),
        ("adam", "pca_sphere", [1.0, 0.5, 0.25]),
    ):
        run_id = f"{optimizer} {normalizer}"
        jobs.append({"run_id": run_id, names.OPTIMIZER.column: optimizer})
        about = {"run_id": run_id, "normalizer": normalizer, "step_size": 0.1}
        history = {"iteration": range(3), names.TRAIN_COST.key: costs}
        histories.append(pd.DataFrame(history).assign(**about))

    class OfSteps:
        def of_role(self, role):
            assert role == names.STEP
            return pd.DataFrame(jobs)

        def histories(self, runs, metrics):
            assert metrics == [names.TRAIN_COST.key]
            return pd.concat(histories, ignore_index=True)

    found = research.preconditioning(OfSteps())
    assert found == {"gradient_descent": pytest.approx(0.25), "adam": pytest.approx(3)}
