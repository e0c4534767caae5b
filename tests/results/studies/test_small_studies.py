"""The numbers of studies of exercises, lectures, notes and the textbook, of records by hand."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import passes
from normbench.results.studies.gallery import at_cost, exercises, lecture, networks, notes, textbook
from tests.results.studies.records import COST, Records, setting

MISSED = names.TRAIN_MISCLASSIFICATIONS.key
TEST_COST, TEST_MISSED = names.TEST_COST.key, names.TEST_MISCLASSIFICATIONS.key
INF, NAN = np.inf, np.nan


def labelled(*labels, **columns):
    rows = [{"run_id": label, "label": label, "normalizer": label} for label in labels]
    return [row | {"experiment": "x"} | columns for row in rows]


def arrays_of(record, **by_label):
    """Return the records of schemes that have the arrays of one record."""
    return Records(labelled(*by_label), arrays={record: by_label})


def test_the_state_at_a_cost_lies_between_two_iterations():
    histories = {
        ("between", 1.0): {COST: [5, 3, 1, 0], TEST_COST: [8, 6, 2, 0], TEST_MISSED: [9, 8, 4, 1]},
        ("start", 1.0): {COST: [2, 1, 0, 0], TEST_COST: [7, 6, 2, 0], TEST_MISSED: [6, 8, 4, 1]},
        ("flat", 1.0): {COST: [3, 2, 2, 9], TEST_COST: [7, 6, 2, 0], TEST_MISSED: [6, 8, 4, 1]},
        ("never", 1.0): {COST: [5, 3, 2.1, 4], TEST_COST: [8, 6, 2, 0], TEST_MISSED: [9, 8, 4, 1]},
    }
    rows = labelled("never", "between", "start", "flat", test_points=20)
    table = at_cost(Records(rows, histories=histories), 2.0).set_index("run_id")
    assert table.loc["between", ["iteration", "test_cost", "missed"]].tolist() == [2, 4, 0.3]
    assert table.loc["start", ["iteration", "test_cost", "missed"]].tolist() == [0, 7, 0.3]
    assert table.loc["flat", ["iteration", "test_cost", "missed"]].tolist() == [1, 6, 0.4]
    assert table.loc["never", ["iteration", "test_cost", "missed"]].isna().all()
    quarter = at_cost(Records(rows, histories=histories), 1.5).set_index("run_id")
    assert quarter.loc["between", ["iteration", "test_cost", "missed"]].tolist() == [2, 3, 0.25]


def test_an_autoencoder_is_solved_in_means_and_medians_over_its_starts():
    starts = {"overlap": np.array([0.5, 1.0]), "lost": np.array([0.1, 0.3])}
    sweep = arrays_of(
        "autoencoder",
        pca_sphere=starts | {"iterations": np.array([1, 4, 9])},
        centre=starts | {"iterations": np.array([1, 8, 90])},
        standard=starts | {"iterations": np.array([1, 2, 3])},
    )
    numbers = exercises.linear_autoencoder(sweep)
    assert numbers["centre_overlap"] == 0.75
    assert numbers["standard_lost"] == pytest.approx(0.2)
    assert numbers["pca_sphere_iterations"] == 4
    assert (numbers["centre_over_sphered"], numbers["standard_over_sphered"]) == (2, 0.5)


def test_principal_directions_are_orthogonal_and_leave_no_correlation():
    axes = np.array([[-0.6, -0.8], [4.0, 3.0]])
    points = np.array([[0.0, 0.0], [1.0, -1.0], [2.0, -1.5], [3.0, -4.0]])
    numbers = exercises.pca_basis(
        arrays_of("points", centre={"axes": axes}, pca={"points": points})
    )
    correlation = abs(pd.DataFrame(points).corr().iloc[0, 1])
    assert numbers == pytest.approx(
        {"direction_1_1": 0.6, "direction_1_2": 0.8, "cosine": 0.96, "correlation": correlation}
    )
    other = {"axes": np.array([[3.0, -1.0], [1.0, 3.0]])}
    numbers = exercises.pca_basis(arrays_of("points", centre=other, pca={"points": points}))
    assert numbers["direction_1_1"] == pytest.approx(3 / 10**0.5)
    assert numbers["direction_1_2"] == pytest.approx(-1 / 10**0.5)
    assert numbers["cosine"] == pytest.approx(0)


def test_sphered_points_are_compared_with_standardized_ones_at_a_cost_of_0_3():
    rows, histories = [], {}
    for seed, (standard, sphered) in enumerate([((3, 1), (1, 3)), ((2, 4), (1, 5)), ((1, 1), ())]):
        for scheme, given in (("standard", standard), ("pca_sphere", sphered)):
            first, missed = given or (9, 0)
            run_id = f"{scheme} {seed}"
            rows += [{"run_id": run_id, "normalizer": scheme, "test_points": 10}]
            rows[-1] |= setting(dataset__split_seed=seed)
            costs = [0.5] * first + [0.3, 0.1]
            histories[run_id, 1.0] = {COST: costs if given else [0.5] * 3}
            of_test = np.full(len(costs if given else [0.5] * 3), missed)
            histories[run_id, 1.0] |= {TEST_COST: of_test, TEST_MISSED: of_test}
    numbers = exercises.standard_against_sphering(Records(rows, histories=histories))
    assert numbers["more_error"] == pytest.approx(0.15)  # of 0.2 and 0.1
    assert numbers["more_error_doubt"] == pytest.approx(0.05)
    assert (numbers["standard_fewest"], numbers["standard_most"]) == (1, 3)
    assert np.isnan([numbers["sphered_fewest"], numbers["sphered_most"]]).all()
    both = Records(rows[:4], histories=histories)
    numbers = exercises.standard_against_sphering(both)
    assert (numbers["sphered_fewest"], numbers["sphered_most"]) == (1, 1)


def test_deep_networks_are_compared_with_the_plain_one():
    rows = [
        setting(model__normalize=kind)
        | {names.FINAL_TEST_MISCLASSIFICATIONS.column: missed, "test_points": "40"}
        | {names.FINAL_COST.column: cost}
        for kind, missed, cost in (("none", 10, 0.5), ("batch", 4, 0.125))
    ]
    assert exercises.two_moons_deep(Records(rows)) == {
        **{"accuracy_none": 75, "accuracy_batch": 90, "cost_none": 1, "cost_batch": 0.25}
    }


def test_the_first_components_of_a_digit_explain_their_share_of_the_variance():
    values = np.r_[np.full(49, 2.0), np.full(20, 0.1)]
    sweep = Records(
        labelled("a"),
        arrays={
            "spectrum": {"a": {"before": values}},
            "exemplars": {"a": {"place": np.array([3, 1, 3, 7])}},
        },
    )
    assert lecture.digit_three(sweep) == pytest.approx({"explained": 0.98, "different": 3})


@pytest.mark.parametrize(("turn", "off"), [(30, 0), (20, 10), (45, 15), (200, 10), (-145, 5)])
def test_a_first_axis_has_a_direction_whatever_its_sign(turn, off):
    def axes(degrees):
        return {"axes": 2.0 * np.array([[np.cos(degrees), np.sin(degrees)], [9.0, 9.0]])}

    sweep = arrays_of("points", centre=axes(np.radians(turn)), standard=axes(np.radians(225)))
    assert lecture.nonorthogonal(sweep) == pytest.approx(
        {"off_middle": off, "standard": 45}, abs=1e-9
    )


def test_a_correlation_is_that_of_two_eigenvalues():
    sweep = arrays_of("spectrum", standard={"after": np.array([1.8, 0.2])})
    assert lecture.old_faithful(sweep) == pytest.approx({"correlation": 0.8})


def test_noise_along_the_axes_is_less_off_grey_than_round_noise():
    """The first axis is grey, the others lie across: of round noise two thirds are off grey."""
    first = np.ones(3) / 3**0.5
    second, third = np.array([1.0, -1.0, 0.0]) / 2**0.5, np.array([1.0, 1.0, -2.0]) / 6**0.5
    axes = np.c_[-first, second, third]
    biplot = {"entries": axes, "deviations": np.array([3.0, 1.0, 2.0])}
    numbers = notes.aligned_perturbation(arrays_of("biplot", a=biplot))
    expected = {"grey": 1, "off_aligned": 5 / 14, "off_round": 2 / 3}
    assert numbers == pytest.approx(expected)
    tilted = {"entries": np.eye(3), "deviations": np.array([3.0, 1.0, 2.0])}
    numbers = notes.aligned_perturbation(arrays_of("biplot", a=tilted))
    assert numbers["grey"] == pytest.approx(3**-0.5)


def test_copies_change_condition_and_error():
    rows, spectra = [], {}
    for kind, ratio, missed in (("None", 4, 1), ("round", 2, 2), ("aligned", 8, 9)):
        for split, times in enumerate((1, 2, 9)):
            label = f"{kind} {split}"
            (row,) = labelled(label, test_points=20)
            row |= {names.FINAL_TEST_MISCLASSIFICATIONS.column: missed * times}
            rows.append(row | setting(dataset__augment=kind))
            spectra[label] = {"before": np.array([3.0 * times * ratio, 7.0, 3.0])}
    numbers = notes.augmented_copies(Records(rows, arrays={"spectrum": spectra}))
    assert numbers == pytest.approx(
        {"none": 8, "round": 4, "aligned_over_none": 2, "more_error": 0.2}
    )


def test_what_one_component_keeps_is_what_it_does_not_lose():
    sweep = Records([{names.VARIANCE_LOST.column: "0.25"}])
    assert notes.dimension_reduction(sweep) == {"kept": 0.75}


def test_angles_between_arrows_are_compared_with_correlations():
    entries = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])
    deviations = np.array([2.0, 1.0, 0.5])
    arrows = entries * deviations

    def cosines(arrows):
        lengths = np.sqrt((arrows**2).sum(axis=1))
        return arrows @ arrows.T / np.outer(lengths, lengths)

    biplot = {"entries": entries, "deviations": deviations, "correlation": cosines(arrows)}
    numbers = notes.iris_pca(arrays_of("biplot", a=biplot))
    of_two = np.abs(cosines(arrows[:, :2]) - cosines(arrows)).max()
    assert numbers == pytest.approx({"gap": 0, "gap_of_two": of_two}, abs=1e-12)
    off = biplot | {"correlation": cosines(arrows) - 0.25}
    assert notes.iris_pca(arrays_of("biplot", a=off))["gap"] == pytest.approx(0.25)


def rotation(degrees):
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_a_whitening_turns_by_the_angle_of_its_nearest_rotation():
    x = np.array([[1.0, 2.0], [-3.0, 1.0], [2.0, -3.0], [0.5, 0.25]])
    stretch = np.array([[2.0, 0.5], [0.5, 1.0]])
    schemes = {"centre": x, "zca_sphere": x @ stretch, "pca_sphere": x @ stretch @ rotation(40).T}
    arrays = {label: {"points": points} for label, points in schemes.items()}
    numbers = notes.zca_2d(arrays_of("points", **arrays))
    assert numbers == pytest.approx({"zca_turn": 0, "pca_turn": 40, "between": 0}, abs=1e-6)
    arrays["pca_sphere"] = {"points": schemes["pca_sphere"] + x @ np.diag([0.0, 1e-3])}
    assert 1e-4 < notes.zca_2d(arrays_of("points", **arrays))["between"] < 1e-2


@pytest.mark.parametrize(
    ("factor", "angle"),
    [(np.eye(2), 0), (rotation(30), 30), (rotation(-70), 70), (np.diag([1.0, -1.0]), 180)],
)
def test_an_angle_is_the_largest_that_a_vector_turns_by(factor, angle):
    assert notes._angle(factor) == pytest.approx(angle, abs=1e-6)


def test_a_whitened_digit_is_alike_where_its_pixels_are():
    images = np.array([[1.0, 2.0, 3.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    short = np.array([[1.0, 2.0], [0.0, 5.0]])
    sweep = arrays_of(
        "components",
        zca_sphere={"points": images, "under": 3 * images + 1},
        pca_sphere={"points": images, "under": short},
    )
    padded = [[1.0, 2.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]]
    each = [pd.Series(image).corr(pd.Series(pad)) for image, pad in zip(images, padded)]
    assert notes.zca_images(sweep) == pytest.approx({"zca_alike": 1, "pca_alike": np.mean(each)})


def of_starts(label, last, sizes, **settings):
    """Return a job and its arrays, from (cost, missed) of each step size and start in the end."""
    last = np.array(last, dtype=float)
    (row,) = labelled(label)
    arrays = {
        key: np.concatenate([np.full((*last.shape[:2], 2), 77.0), last[..., k : k + 1]], axis=-1)
        for k, key in enumerate((COST, MISSED))
    }
    return row | setting(**settings), arrays | {"step_sizes": np.array(sizes, dtype=float)}


def textbook_records():
    """Two starts' scales, with and without batch normalization, each of two step sizes."""
    pairs = [
        of_starts(
            f"{start} {kind}",
            [[(cost, 1), (cost, 3), (90, 5)], [(2 * cost, 4), (2 * cost, 4), (0, 9)]],
            [0.1, 0.5],
            model__start_scale=start,
            model__normalize=kind,
        )
        for (start, kind), cost in {
            **{("0.1", "none"): 5, ("0.1", "batch"): 1},
            **{("he", "none"): 4, ("he", "batch"): 0.5},
        }.items()
    ]
    pairs[0][1][COST][1] = NAN
    arrays = {row["label"]: arrays for row, arrays in pairs}
    return Records([row for row, _ in pairs], arrays={names.DESCENT_ARRAYS: arrays})


def test_the_share_of_the_start_is_what_he_s_start_gains_of_batch_normalization():
    numbers = textbook.batch_normalization(textbook_records())
    assert numbers["share_of_the_start"] == 0.25
    assert numbers["lowest_0.1_none"] == 5
    assert numbers["cost_0.1_batch_0.1"] == 1
    assert numbers["cost_he_batch_0.5"] == 1
    assert np.isnan(numbers["cost_0.1_none_0.5"])
    assert numbers["missed_he_none_0.1"] == 3
    assert numbers["missed_he_none_0.5"] == 4
    assert len(numbers) == 4 * 5 + 1


def test_the_normalized_network_is_compared_with_the_plain_one_of_the_same_start():
    numbers = textbook.batch_normalization_2d(textbook_records())
    assert np.isnan(numbers.pop("ratio_0.1_0.5"))
    assert numbers == {
        **{"ratio_0.1_0.1": 0.2, "ratio_0.1_best": 0.2},
        **{"ratio_he_0.1": 0.125, "ratio_he_0.5": 0.125, "ratio_he_best": 0.125},
    }


def test_minibatches_are_compared_with_all_points_at_the_step_size_of_the_source():
    sizes = np.array([0.01, 0.1, 0.3])
    source = {
        ("a", "200"): ([9, 3, 2, 1], [0, 8, 8, 1]),
        ("a", "None"): ([9, 4, 2, 3], [9, 9, 9, 2]),
        ("b", "200"): ([1, 5, 5, 5], [1, 5, 5, 5]),
        ("b", "None"): ([9, 4, 2, 3], [9, 9, 5, 5]),
    }
    rows, arrays = [], {}
    for (scheme, batch), (costs, missed) in source.items():
        (row,) = labelled(f"{scheme} {batch}")
        row |= {"normalizer": scheme, passes.BATCH_SETTING: batch, passes.TRAIN_POINTS: 900}
        rows.append(row)
        best = [9, 9, 9, {"200": 0.5, "None": 2.0}[batch]]
        arrays[row["label"]] = {
            COST: np.array([best, costs, [9, 9, 9, NAN]], dtype=float)[:, None],
            MISSED: np.array([missed[::-1], missed, missed[::-1]], dtype=float)[:, None],
            "step_sizes": sizes,
        }
    records = Records(rows, arrays={names.DESCENT_ARRAYS: arrays})
    assert textbook.minibatch(records) == {
        **{"cost_a": 2, "missed_a": 3, "best_a": 0.25},
        **{"cost_b": 0, "missed_b": 1, "best_b": 0.25},
    }


def network_records(costs):
    """Return the records of networks by (data, normalizer, inside, hidden layers, rule)."""
    rows, steps, histories = [], [], {}
    for number, ((data, normalizer, kind, layers, rule), by_size) in enumerate(costs.items()):
        rows.append(
            {"run_id": f"job{number}", "normalizer": normalizer, names.DATASET.column: data}
            | setting(model__normalize=kind, model__hidden=str([9] * layers))
            | setting(model__start_scale=rule)
        )
        for size, history in by_size.items():
            steps.append({"run_id": f"job{number} {size}", "parent": f"job{number}"})
            histories[steps[-1]["run_id"], size] = history
    return Records(rows, steps=steps, histories=histories)


def test_inputs_or_inside_counts_to_a_tenth_of_the_zero_weights_excess():
    """The lowest cost of digits is 0: a tenth of log 10 is 0.2303; of two classes 0.0693."""
    costs = {
        ("digits", "standard", "none", 1, "he"): {0.1: [3, 0.2, 0.24, 0.23], 1.0: [3, 2, 2, 2]},
        ("digits", "standard", "batch", 1, "he"): {0.1: [3, 0.23, 0.0, 0.1], 1.0: [3, NAN, 9, 9]},
        ("digits", "identity", "none", 1, "he"): {0.1: [3, 2, 2, 0.24]},
        ("breast_cancer", "identity", "none", 1, "he"): {0.1: [1, 0.2, 0.07, 0.069, 0.0]},
    }
    expected = {"digits_standard_none": 3, "digits_standard_batch": 1}
    expected |= {"digits_identity_none": 1000, "breast_cancer_identity_none": 3}
    assert networks.inputs_or_inside(network_records(costs)) == expected
    assert networks.inputs_or_inside_mnist(network_records(costs)) == expected
    above = {key: {s: [c + 1 for c in h] for s, h in of.items()} for key, of in costs.items()}
    numbers = networks.inputs_or_inside(network_records(above))  # a tenth of log 10 - 1 above 1
    assert numbers["digits_standard_batch"] == 2


def test_the_lowest_end_of_a_rule_is_over_the_logarithm_of_ten_classes():
    costs = {
        ("mnist", "a", "none", 2, "he"): {0.1: [3, 0.1, 2], 1.0: [3, 2, 1]},
        ("mnist", "b", "none", 2, "he"): {0.1: [3, 0.1, 4]},
        ("mnist", "a", "none", 3, "1"): {0.1: [3, 0.1, 5], 1.0: [1, 2, NAN]},
    }
    numbers = networks.initial_scale(network_records(costs))
    assert numbers == pytest.approx({"he_2": 1 / np.log(10), "1_3": 5 / np.log(10)})


def test_larger_steps_of_batch_normalization_are_compared_with_the_plain_network():
    """The plain network falls up to 1, so a tenth is 0.1; with normalization up to 10."""
    plain = {0.01: [3, 2, 1.5, 1], 0.12: [3, 1, 0.8, 0.2], 1.0: [3, 2, 0.2, 0.1]}
    plain[10.0] = [3, 3, 3, 3]
    batch = {0.01: [3, 3, 1, 0.9], 0.12: [3, 2, 2, 0.5], 1.0: [3, 2, 2, 0.2]}
    batch |= {10.0: [3, 0.2, 0.2, 0.1], 100.0: [3, 3, 3, 3.5]}
    costs = {
        ("mnist", "a", "none", 2, "he"): plain,
        ("mnist", "a", "batch", 2, "he"): batch,
        ("mnist", "a", "none", 4, "he"): {0.1: [3, 0.2], 1.0: [3, 4.0]},
        ("mnist", "a", "batch", 4, "he"): {0.1: [3, 2.5], 1.0: [3, 2.0], 2.0: [2, 0.1]},
    }
    numbers = networks.larger_steps(network_records(costs))
    assert {key: number for key, number in numbers.items() if key.endswith("_2")} == pytest.approx(
        {
            "steps_2": 10,
            "low_2": 2 / 3,  # both to 1: the plain one at 3, the other at 2
            "tenth_2": 3 / 3,  # near 0.12, to 0.5
            "equal_2": 3 / 2,  # at 1
            "own_2": 1 / 2,  # at 10
        }
    )
    assert (numbers["steps_4"], numbers["equal_4"], numbers["own_4"]) == (20, 1000, 1)


def test_each_scheme_has_its_own_step_nearest_to_that_of_the_source():
    grids, costs = {"a": [0.1, 1.0], "b": [0.01, 0.1]}, {"200": [9, 1, 1], "None": [9, 2, 2]}
    jobs, arrays = [], {}
    for scheme, sizes in grids.items():
        for batch, history in costs.items():
            (row,) = labelled(f"{scheme} {batch}")
            row |= {"normalizer": scheme, passes.BATCH_SETTING: batch, passes.TRAIN_POINTS: 900}
            jobs.append(row)
            of_sizes = [history if size == 0.1 else [9, 9, 9] for size in sizes]
            of_starts = np.array(of_sizes, dtype=float)[:, None]
            arrays[row["label"]] = {COST: of_starts, MISSED: of_starts}
            arrays[row["label"]]["step_sizes"] = np.array(sizes)
    numbers = textbook.minibatch(Records(jobs, arrays={names.DESCENT_ARRAYS: arrays}))
    assert [numbers["cost_a"], numbers["cost_b"]] == [2, 2]
    assert [numbers["missed_a"], numbers["missed_b"]] == [2, 2]
