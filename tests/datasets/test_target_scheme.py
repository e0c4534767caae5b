"""A scheme of the target: fitted on training targets, and costs in the target's own units."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import compare, names
from normbench.costs import least_squares
from normbench.costs.declaration import Traits
from normbench.datasets import Sampling, UserError, make_dataset
from normbench.datasets.sampling import with_target_scheme
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from normbench.results.store.rows import as_rows
from tests.door import mapped

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 3))
Y = 40 + X @ [5.0, -2.0, 1.0] + RNG.standard_normal(60)
DATA = make_dataset("made", X, Y, source="-")
GRID = {"step_sizes": [0.1, 0.3], "iterations": 30, "test_fraction": 0.25}


def own_units(**settings):
    """Return the own-unit metrics of one comparison, by scheme."""
    comparison = compare(X, Y, "least_squares", ["standard", "pca_sphere"], **GRID, **settings)
    rows = as_rows(comparison.sweep.of_role(names.SCHEME))
    metrics = (names.OWN_COST, names.OWN_TEST_COST, names.OWN_ERROR, names.OWN_TEST_ERROR)
    return {row["normalizer"]: [row[metric.column] for metric in metrics] for row in rows}


def test_it_learns_from_the_training_targets_alone():
    data = Sampling(test_fraction=0.25, target_scheme=StandardScaler()).apply(DATA)
    raw = Sampling(test_fraction=0.25).apply(DATA)
    np.testing.assert_allclose(data.y, (raw.y - raw.y.mean()) / raw.y.std())
    np.testing.assert_allclose(data.y_test, (raw.y_test - raw.y.mean()) / raw.y.std())
    np.testing.assert_array_equal(data.own_targets.y, raw.y)
    np.testing.assert_allclose(data.own_targets.invert(data.y_test), raw.y_test)
    assert data.target_summary == raw.target_summary


def test_targets_in_other_units_are_other_data():
    twice = make_dataset("made", X, 2 * Y, source="-")
    scaled = [with_target_scheme(data, StandardScaler()) for data in (DATA, twice)]
    np.testing.assert_array_equal(scaled[0].y, scaled[1].y)
    assert scaled[0].fingerprint != scaled[1].fingerprint


def test_identity_has_the_recorded_cost_and_its_root():
    comparison = compare(X, Y, "least_squares", "standard", target_scheme="identity", **GRID)
    (row,) = as_rows(comparison.sweep.of_role(names.SCHEME))
    assert row[names.OWN_COST.column] == pytest.approx(row[names.FINAL_COST.column], rel=1e-12)
    cost = row[names.FINAL_TEST_COST.column]
    assert row[names.OWN_TEST_COST.column] == pytest.approx(cost, rel=1e-12)
    assert row[names.OWN_TEST_ERROR.column] == pytest.approx(cost**0.5, rel=1e-12)
    assert "test RMS error" in comparison.table


def test_points_that_are_read_have_it_too():
    whole = with_target_scheme(DATA, StandardScaler())
    optimizer, settings = gradient_descent(), Settings((0.1, 1e200), iterations=20)
    steps, read_steps = (
        run(Job(data, least_squares, StandardScaler(), optimizer, settings)).steps
        for data in (whole, replace(whole, x=mapped(whole.x)))
    )
    key = names.OWN_COST.key
    assert read_steps[0].metrics[key] == pytest.approx(steps[0].metrics[key], rel=1e-9)
    assert key not in steps[1].metrics  # it diverged


def test_a_scheme_without_a_straight_line_maps_predictions_back():
    values = own_units(target_scheme="quantile")
    assert all(np.isfinite(numbers).all() for numbers in values.values())


def test_a_cost_of_ones_own_is_taken_in_own_units_too():
    def absolute(scores, targets):
        return anp.sum(anp.abs(scores[:, 0] - targets), axis=-1)

    absolute.traits = Traits(tasks=("regression",))
    comparison = compare(X, Y, absolute, "standard", target_scheme="standard", **GRID)
    (row,) = as_rows(comparison.sweep.of_role(names.SCHEME))
    cost, scale = row[names.FINAL_COST.column], Sampling(test_fraction=0.25).apply(DATA).y.std()
    assert row[names.OWN_COST.column] == pytest.approx(scale * cost, rel=1e-9)


class Two(TransformerMixin, BaseEstimator):
    """Gives two columns."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.c_[X, X]

    def inverse_transform(self, X):
        return X[:, :1]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"target_scheme": "standrd"}, "target_scheme='standrd': no such option"),
        (
            {"target_scheme": "zscore"},
            "target_scheme='zscore': is called standard here; type standard",
        ),
        ({"target_scheme": 3}, "target_scheme: 3 is not a scheme"),
        ({"target_scheme": "unit_norm"}, "has no inverse_transform"),
        ({"target_scheme": "standard", "folds": 5}, "has folds; leave it out"),
        ({"target_scheme": Two()}, "cannot reshape array"),
        ({"target_scheme": FunctionTransformer(np.log, np.exp, check_inverse=False)}, "not finite"),
        (
            {"target_scheme": {"minmax": {"feature_range": [1, 0]}}},
            "MinMaxScaler is unfit for",
        ),
    ],
)
def test_a_mistake_is_a_line_with_its_remedy(setting, words):
    targets = Y - 40
    with pytest.raises(UserError) as error:
        compare(X, targets, "least_squares", "standard", **setting)
    assert words in str(error.value)
    assert "target_scheme" in str(error.value)
    assert "\n" not in str(error.value)


def test_classes_and_points_without_targets_have_no_scale():
    labels = np.arange(60) % 2
    with pytest.raises(UserError, match=r"is for real targets .* and x has classes; leave it out"):
        compare(X, labels, "softmax", target_scheme="standard")
    unlabelled = make_dataset("made", X, source="-")
    with pytest.raises(UserError, match="has none; leave it out"):
        with_target_scheme(unlabelled, StandardScaler())
