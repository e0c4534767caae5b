"""Fewer points, folds, and whose statistics: what is drawn, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from normbench import costs
from normbench.choices import build, options
from normbench.datasets import Sampling, split
from normbench.datasets.bundled import breast_cancer, diabetes, wine
from normbench.datasets.sampling import (
    assign_folds,
    draw_subset,
    hold_out,
    keep_classes,
    set_fit_points,
)
from normbench.datasets.tables import TableOptions, table_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from tests.door import normalize

SHARES = {len(data.y): np.bincount(data.y) / len(data.y) for data in (wine(), breast_cancer())}


@pytest.mark.parametrize(("load", "count"), [(wine, 57), (wine, 178), (breast_cancer, 10)])
def test_a_subset_keeps_the_classes_shares_and_the_points(load, count):
    whole = load()
    fewer = draw_subset(whole, count, 3)
    assert fewer.x.shape == (count, whole.x.shape[1])
    drawn = np.bincount(fewer.y, minlength=whole.classes)
    assert np.abs(drawn - count * SHARES[len(whole.y)]).max() < 1 + 1e-9
    rows = {(*point, target) for point, target in zip(whole.x, whole.y)}
    assert all((*point, target) in rows for point, target in zip(fewer.x, fewer.y))
    assert len(np.unique(fewer.x, axis=0)) == count  # no point twice


def test_a_seed_makes_a_subset_and_none_keeps_all():
    data = diabetes()
    assert draw_subset(data, None, 0) is data
    assert draw_subset(data, 50, 1).fingerprint == draw_subset(data, 50, 1).fingerprint
    assert draw_subset(data, 50, 1).fingerprint != draw_subset(data, 50, 2).fingerprint
    assert len(draw_subset(data, 50, 1).y) == 50


def test_a_table_s_medians_are_of_the_points_that_are_left():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 100.0] * 5, "y": list("pqpq") * 5})
    settings = TableOptions(fill="median", target=-1, task="classes")
    data = table_dataset("t", frame, settings, source="made")
    few = draw_subset(data, 4, 0)
    known = few.columns.frame["a"]
    assert np.array_equal(few.x[:, 0], known.fillna(known.median()))
    held = hold_out(few, np.arange(4) == 0)
    assert len(held.x) == 3


@pytest.mark.parametrize("load", [wine, diabetes])
@pytest.mark.parametrize("count", [2, 5])
def test_folds_deal_every_point_and_class_evenly(load, count):
    data = assign_folds(load(), count, 3, 4)
    assert len(data.folds) == 3
    for numbers in data.folds:
        sizes = np.bincount(numbers, minlength=count)
        assert sizes.max() - sizes.min() <= 1
        for group in range(data.classes):
            own = np.bincount(numbers[data.y == group], minlength=count)
            assert own.max() - own.min() <= 1
    assert not np.array_equal(data.folds[0], data.folds[1])
    np.testing.assert_array_equal(data.folds[1], assign_folds(load(), count, 1, 5).folds[0])


def job(data, normalizer="pca_sphere", cost=costs.multiclass_softmax):
    scheme = build("normalizer", options("normalizer", normalizer))
    rule = build("optimizer", options("optimizer", "gradient_descent"))
    return Job(data, cost, scheme, rule, Settings((0.1, 1.0), 20, theory="none"))


@pytest.mark.parametrize(
    ("fit_on", "copies"), [("all", {}), ("train", {"augment": "round", "augment_copies": 2})]
)
def test_cross_validation_is_what_its_folds_come_to_one_by_one(fit_on, copies):
    data = Sampling(folds=3, repeats=2, fit_on=fit_on, **copies).apply(wine())
    made = run(job(data))
    step = made.steps[made.best].step_size
    by_seed = []
    for repeat, numbers in enumerate(data.folds):
        wrong = cost = train = 0.0
        for fold in range(3):
            held = hold_out(wine(), numbers == fold)
            own = run(job(Sampling(split_seed=repeat, fit_on=fit_on, **copies).apply(held)))
            (there,) = (one for one in own.steps if one.step_size == step)
            wrong += there.histories["test/misclassifications"][-1]
            cost += there.histories["test/cost"][-1] * np.sum(numbers == fold)
            train += there.histories["train/cost"][-1] / 3
        by_seed.append((wrong / 178, cost / 178, train))
    found = made.findings
    for place, name in enumerate(("folds/error", "folds/cost", "folds/train_cost")):
        expected = [values[place] for values in by_seed]
        np.testing.assert_allclose(found.series[f"{name}_of_seed"][1], expected, rtol=1e-9)
        assert found.metrics[name] == pytest.approx(np.mean(expected), rel=1e-9)


def test_real_targets_have_a_cross_validated_cost_and_no_error():
    found = run(job(assign_folds(diabetes(), 4, 1, 0), "standard", costs.least_squares)).findings
    assert found.metrics["folds/cost"] > 0
    assert "folds/error" not in found.metrics


def test_statistics_of_all_points_are_of_the_test_points_too():
    data = split(wine(), 0.25, 0)
    both = np.concatenate([data.x, data.x_test])
    for name in ("standard", "pca_sphere", "identity"):
        scheme = build("normalizer", options("normalizer", name))
        z, _ = normalize(scheme, both, both[:0], "float64")
        ours = run(job(set_fit_points(data, "all"), name))
        scheme = ours.scheme
        np.testing.assert_allclose(scheme.transform(both), z, rtol=1e-12)
        theirs = run(job(data, name))
        same = np.isclose(
            ours.steps[0].histories["test/cost"][-1], theirs.steps[0].histories["test/cost"][-1]
        )
        assert same == (name == "identity")


def test_classes_are_kept_by_their_names_and_numbered_anew():
    data = split(wine(), 0.25, 0)
    two = keep_classes(data, ["class_2", "class_0"])
    assert (two.task, two.class_names) == ("binary", ("class_0", "class_2"))
    np.testing.assert_array_equal(two.x, data.x[data.y != 1])
    np.testing.assert_array_equal(two.y_test, data.y_test[data.y_test != 1] // 2)
    one = Sampling(keep_classes=["class_1"], points=20).apply(wine())
    assert (one.task, one.classes, len(one.y), one.x.shape) == ("unlabelled", 0, 0, (20, 13))
    assert keep_classes(data, None) is data


def test_kept_classes_of_a_table_are_filled_by_their_own_points():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 50.0, 70.0], "y": [0, 0, 0, 1, 1]})
    options = TableOptions(fill="median", target="y", task="classes")
    data = table_dataset("t", frame, options, source="made")
    assert keep_classes(data, [0]).x[:, 0].tolist() == [1, 2, 3]
