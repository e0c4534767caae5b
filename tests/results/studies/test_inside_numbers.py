"""The numbers of studies on normalization inside models, of records made by hand."""

import numpy as np
import pytest

from normbench import names
from normbench.results.studies.gallery import inside
from normbench.results.studies.gallery.batches import Descent
from tests.results.studies.records import COST, Records, setting

INF, NAN = np.inf, np.nan


def affine(label, kind, step, step_sizes, costs):
    """Return a job whose gain and shift are made so, and its descent."""
    row = {"run_id": label, "label": label, "experiment": "x"}
    row |= setting(model__affine=kind, model__affine_step=step)
    return row, np.array(step_sizes, dtype=float), np.array(costs, dtype=float)[:, None]


def of_descents(*descents, **records):
    arrays = {row["label"]: {"step_sizes": sizes, COST: costs} for row, sizes, costs in descents}
    arrays = {names.DESCENT_ARRAYS: arrays, **records}
    return Records([row for row, *_ in descents], arrays=arrays)


@pytest.mark.parametrize(
    ("kind", "step", "word"),
    [
        ("solved", "None", "solved"),
        ("False", "None", "absent"),
        ("True", "0.1", "own"),
        ("True", "None", "shared"),
        ("False", "0.1", None),
        ("solved", "0.1", None),
    ],
)
def test_gain_and_shift_are_solved_absent_or_steps_of_their_own(kind, step, word):
    assert inside._affine(Descent(*affine("a", kind, step, [1], [[1]]))) == word


def test_steps_of_a_normalized_linear_model_are_counted_by_where_they_end():
    sizes = [1, 10, 1e3, 1e4]
    sweep = of_descents(
        affine("a", "solved", "None", sizes, [[9, 1], [9, 9], [9, 2], [9, 5]]),
        affine("b", "solved", "None", sizes, [[9, 2], [9, 1], [9, 1.5], [9, 10]]),
        affine("c", "True", "None", sizes, [[9, 2], [9, NAN], [9, INF], [9, 10]]),
        affine("d", "False", "0.1", sizes, [[9, INF]] * 4),  # another's double
        affine("e", "False", "None", sizes, [[9, 1], [9, 1], [9, 1], [9, 3]]),
    )
    expected = {
        **{"infinite_solved": 0, "up_solved": 2, "first_solved": 10},
        **{"least_left_solved": 0.5 / 8, "most_left_solved": 9 / 8},
        **{"infinite_shared": 2, "up_shared": 3, "first_shared": 10},
        **{"infinite_absent": 0, "up_absent": 0, "first_absent": INF},
        **{"least_left_absent": 0, "most_left_absent": 0.25},
    }
    assert inside.bn_any_step(sweep) == pytest.approx(expected)
    assert inside.bn_any_step_diabetes(sweep) == pytest.approx(expected)


def scaled(label, scale, step_sizes, costs, path, epsilon=0, l2=0):
    row = {"run_id": label, "label": label, "experiment": "x"}
    row |= setting(optimizer="adam", model__start_scale=scale)
    row |= setting(model__epsilon=str(epsilon), cost__l2=str(l2))
    descent = row, np.array(step_sizes, dtype=float), np.array(costs, dtype=float)[:, None]
    return descent, {label: {"weights": np.array(path, dtype=float)}}


def test_histories_from_a_scaled_start_are_compared_at_the_scaled_step_size():
    jobs = [
        scaled("a", 1.0, [0.1, 0.2], [[4, 2], [4, 1]], [[3, 4], [6, 8], [6, 8]]),
        scaled("b", 3.0, [9.0, 0.9], [[9, 9], [5, 2]], [[3, 4], [0, 4], [0, 5]]),
        scaled("c", 10.0, [10, 99], [[4, 3], [9, 9]], [[3, 4], [6, 8], [6, 8]]),
        scaled("d", 1.0, [0.1], [[4, 2]], [[1, 0], [2, 0], [6, 0]], epsilon=1e-5),
        scaled("e", 2.0, [0.4], [[4, 2]], [[1, 0], [2, 0], [7, 0]], epsilon=1e-5),
    ]
    paths = {label: path for _, of_label in jobs for label, path in of_label.items()}
    sweep = of_descents(*(descent for descent, _ in jobs), path=paths)
    assert inside.scale_invariance(sweep) == pytest.approx(
        {
            **{"adam_none_3": 0.25, "adam_none_10": 0.5, "adam_epsilon_2": 0},
            **{"norms_adam_none": 0.8, "norms_adam_epsilon": 2},
        }
    )


@pytest.mark.parametrize(
    ("epsilon", "l2", "word"),
    [(0, 0, "none"), (1e-5, 0, "epsilon"), (0, 0.1, "l2"), (1e-5, 0.1, "both")],
)
def test_a_change_is_epsilon_or_a_penalty(epsilon, l2, word):
    assert inside._change(setting(model__epsilon=epsilon, cost__l2=str(l2))) == word


def sharpness_of(**series):
    """Return the records of step sizes, each a scheme's name, a number, and its sharpness."""
    rows = [{"run_id": label, "normalizer": label.rstrip("0123456789")} for label in series]
    return Records(rows, series={label: values for label, values in series.items() if values})


def test_the_edge_of_stability_is_seen_in_the_second_half_of_the_iterations():
    rising = {0: 1.0, 10: 1.2, 20: 0.9, 30: 0.95, 40: 1.0, 50: 1.3, 60: 1.1}
    least = {0: 2.0, 1: 1.5, 2: 1.25}
    numbers = inside.edge_of_stability(
        sharpness_of(
            a1=rising,
            a2={0: 0.5, 2: 0.75, 4: 0.6},
            a3={0: 0.9, 1: 0.99, 2: 0.7, 3: 0.1},
            a4={0: 2.01, 1: 1.5, 2: 1.5},
            b1=least,
            b2={},
            c1={0: 1.5, 5: 1.0, 10: 0.5},
        )
    )
    tail = [0.95, 1.0, 1.3, 1.1]
    low, high = np.quantile(tail, [0.05, 0.95])
    assert numbers == pytest.approx(
        {
            **{"median_a": 1.05, "low_a": low, "high_a": high, "arrival_a": 30, "small_a": 0.75},
            **{"median_b": 1.375, "low_b": 1.2625, "high_b": 1.4875, "arrival_b": 0},
            **{"median_c": 0.75, "low_c": 0.525, "high_c": 0.975, "arrival_c": INF},
            "arrivals_apart": INF,
        }
    )
    later = {0: 1.5, 5: 0.9, 10: 1.2}
    numbers = inside.edge_of_stability(sharpness_of(a1=rising, b1=later))
    assert numbers["arrivals_apart"] == 30 - 10


def test_ranks_and_gradients_are_those_of_the_hidden_layers_at_the_start():
    """Of three hidden layers of the four the second to the third grow: by 4, squared 16."""
    rank, gradient = names.LAYER_RANK.key, names.LAYER_GRADIENT.key
    by_layer = {
        ("x", "a"): {
            rank: np.array([[9.0, 9.0, 9.0, 6.0, 1.0], [0, 0, 0, 0, 0]]),
            gradient: np.array([[9.0, 8.0, 4.0, 1.0, 7.0], [0, 0, 0, 0, 0]]),
        },
        ("y", "a"): {
            rank: np.array([[9.0, 9.0, 3.0, 1.0]]),
            gradient: np.array([[9.0, 0.0, 4.0, 1.0]]),
        },
        ("z", "a"): {
            rank: np.array([[9.0, 9.0, 9.0, 9.0, 1.0]]),
            gradient: np.array([[9.0, 2.0, 0.0, 1.0, 1.0]]),
        },
    }
    rows = [
        {"run_id": 1, "label": "a", "experiment": "x"}
        | setting(model__hidden="[9, 9, 9, 9]", model__normalize="batch", model__start_scale="he"),
        {"run_id": 2, "label": "a", "experiment": "y"}
        | setting(model__hidden="[9, 9, 4]", model__normalize="none", model__start_scale="he"),
        {"run_id": 4, "label": "a", "experiment": "z"}
        | setting(model__hidden="[9, 9, 9, 9]", model__normalize="none", model__start_scale="1"),
        {"run_id": 3, "label": "b", "experiment": "y"}
        | setting(model__hidden="[9, 9, 4]", model__normalize="layer", model__start_scale="he"),
    ]
    numbers = inside.rank_and_gradients(Records(rows, arrays={"by_layer": by_layer}))
    assert numbers == pytest.approx(
        {
            **{"rank_batch_he_4": 6, "root_batch_he_4": 2, "growth_batch_he_4": 4},
            **{"rank_none_he_3": 3, "root_none_he_3": 1.5},
            **{"rank_none_1_4": 9, "root_none_1_4": 3},  # a gradient of 0 does not grow
        }
    )


def test_the_growth_of_gradients_is_a_geometric_mean():
    row = {"run_id": 1, "label": "a", "experiment": "x"}
    row |= setting(model__hidden="[9, 9, 9, 9, 9]", model__normalize="none", model__start_scale="1")
    record = {
        names.LAYER_RANK.key: np.ones((1, 6)),
        names.LAYER_GRADIENT.key: np.array([[5.0, 6.0, 3.0, 1.0, 7.0, 7.0]]),
    }
    numbers = inside.rank_and_gradients(Records([row], arrays={"by_layer": {"a": record}}))
    assert numbers["growth_none_1_5"] == pytest.approx(6)  # the root of 36 / 1


def of_starts(label, last, **settings):
    """Return a job and the last costs of its step sizes, a row each, one a start."""
    row = {"run_id": label, "label": label, "experiment": "x"} | setting(**settings)
    costs = np.array(last, dtype=float)[..., None]
    return row, np.ones(len(costs)), np.concatenate([9 + 0 * costs, costs], axis=-1)


def test_a_small_batch_is_compared_with_the_plain_network_of_that_batch():
    jobs = [
        of_starts(f"{kind} {batch}", last, model__normalize=kind, batch=batch)
        for kind, batch, last in (
            ("none", "2", [[1, 2, 9], [3, 3, 3]]),  # medians 2 and 3
            ("none", "10", [[4, 4, 4]]),
            ("none", "100", [[8, 8, 8]]),
            ("batch", "2", [[NAN, 1, 1], [5, 6, 40]]),
            ("batch", "10", [[1, 1, 1]]),
            ("batch", "100", [[4, 4, 4], [5, 1, 2]]),
        )
    ]
    assert inside.small_batches(of_descents(*jobs)) == {
        **{"none_2": 1, "none_10": 1, "none_100": 1},
        **{"batch_2": 3, "batch_10": 0.25, "batch_100": 0.25},
        "loss_of_small": 12,
    }


def test_whitenings_inside_are_compared_with_zca():
    jobs = [
        of_starts(
            f"{method} {signs} {count}",
            [[cost] for cost in last],
            model__normalize=method,
            model__signs=signs,
            model__newton_iterations=count,
        )
        for method, signs, count, last in (
            ("zca", "free", 5, [2, 4, NAN]),
            ("zca", "fixed", 5, [1, NAN, NAN]),
            ("pca", "free", 5, [6, 6, 1]),
            ("pca", "fixed", 5, [0.5, 7, 7]),
            ("newton", "free", 3, [8, 6, NAN]),
            ("newton", "free", 10, [4, 2, NAN]),
        )
    ]
    assert inside.whitening_inside(of_descents(*jobs)) == {
        **{"zca_free": 1, "zca_fixed": 1, "pca_free": 0.5, "pca_fixed": 0.5, "stalls": 1.5},
        **{"newton_3": 3, "newton_10": 1},
    }


def test_misclassified_points_of_all_splits_are_shared_by_training_points():
    rows = [
        {"train_points": points, names.FINAL_TEST_MISCLASSIFICATIONS.column: missed}
        | {"test_points": of}
        | setting(dataset__fit_on=fit_on)
        for fit_on, points, missed, of in (
            ("train", 50, 3, 10),
            ("train", 50, 2, 10),
            ("train", 55, 1, 5),
            ("train", 49, 4, 8),
            ("all", 20, 1, 40),
        )
    ]
    assert inside.whitened_networks(Records(rows)) == {
        **{"train_50": 0.25, "train_most": 6 / 25, "train_55": 0.2, "train_49": 0.5},
        "all_20": 0.025,
    }


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_too_few_hidden_layers_have_no_growth(layers):
    row = {"run_id": 1, "label": "a", "experiment": "x"}
    row |= setting(model__hidden=str([9] * layers), model__normalize="none", model__start_scale="1")
    record = {
        names.LAYER_RANK.key: np.ones((1, layers + 1)),
        names.LAYER_GRADIENT.key: np.ones((1, layers + 1)),
    }
    numbers = inside.rank_and_gradients(Records([row], arrays={"by_layer": {"a": record}}))
    assert numbers == {f"rank_none_1_{layers}": 1, f"root_none_1_{layers}": 1 / 3}
