"""Preconditioned gradient descent: the scheme in the steps, the same costs as in the points."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import names, optimizers
from normbench.choices import build, options, preconditioned
from normbench.costs import least_squares, multiclass_softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.scheme import normalize
from normbench.engine.settings import Settings
from normbench.job import Job, run

AFFINE = ["identity", "centre", "standard", "minmax", "pca", "pca_sphere", "zca_sphere", "cholesky"]
PLAIN = optimizers.gradient_descent()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((80, 4)) @ rng.standard_normal((4, 4)) * [1, 5, 0.2, 1] + [3, -9, 0, 1]
    classes = np.argmax(x[:, :3] + rng.standard_normal((80, 3)), axis=1)
    return make_dataset("made", x, classes, class_names=["a", "b", "c"], source="-")


def costs(data, scheme, optimizer, cost=multiclass_softmax, precision="float64"):
    settings = Settings((0.01, 0.1), 30, precision=precision, refine=False, shadows=False)
    normalizer = build("normalizer", options("normalizer", scheme))
    steps = run(Job(data, cost, normalizer, optimizer, settings)).steps
    return np.array([step.histories[names.TRAIN_COST.key] for step in steps])


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("cost", [multiclass_softmax, least_squares])
@pytest.mark.parametrize("scheme", AFFINE)
def test_it_descends_as_gradient_descent_does_under_the_scheme(data, scheme, cost):
    within = costs(data, "identity", preconditioned(scheme), cost)
    # Measured: 2e-12, where sphering multiplies rounding.
    np.testing.assert_allclose(within, costs(data, scheme, PLAIN, cost), rtol=1e-9)


def test_it_learns_from_the_points_that_fit_on_names(data):
    held_out = replace(data, x=data.x[:50], y=data.y[:50], x_test=data.x[50:], y_test=data.y[50:])
    of_train, of_all = (
        [costs(points, *pair) for pair in (("identity", preconditioned()), ("pca_sphere", PLAIN))]
        for points in (held_out, replace(held_out, fit_on="all"))
    )
    np.testing.assert_allclose(*of_train, rtol=1e-9)
    np.testing.assert_allclose(*of_all, rtol=1e-9)
    assert abs(of_all[0] / of_train[0] - 1).max() > 1e-3


def test_the_seconds_of_its_fit_are_those_of_fitting(data, monkeypatch):
    class Clock:
        seconds = 0.0

        @classmethod
        def perf_counter(cls):
            return cls.seconds

    def fit(scheme, x, *_):
        Clock.seconds += 7.0
        return normalize(scheme, x, *_)

    monkeypatch.setattr("normbench.preparation.time", Clock)
    monkeypatch.setattr("normbench.engine.scheme.normalize", fit)
    settings = Settings((0.01,), 2, refine=False, shadows=False, theory="none")
    scheme = FunctionTransformer()
    made = run(Job(data, multiclass_softmax, scheme, preconditioned(), settings))
    assert 7 <= made.fit_seconds < 14  # that of the normalizer is real


def test_points_in_single_precision_keep_it(data):
    found = costs(data, "identity", preconditioned("standard"), precision="float32")
    np.testing.assert_allclose(found, costs(data, "standard", PLAIN), rtol=1e-4)  # measured: 3e-6


@pytest.mark.parametrize("scheme", ["power", "quantile", "unit_norm", "contrast"])
def test_a_scheme_without_a_map_is_refused(data, scheme):
    with pytest.raises(UserError, match=r"optimizer.scheme=\w+: is not affine.*pca_sphere"):
        costs(data, "identity", preconditioned(scheme))


def test_a_map_that_nobody_declares_is_found(data):
    doubled = FunctionTransformer(lambda x: 2 * x + 1)
    rule = optimizers.preconditioned(doubled)
    settings = Settings((0.01,), 20, refine=False, shadows=False)
    twins = [(FunctionTransformer(), rule), (doubled, PLAIN)]
    found = [run(Job(data, multiclass_softmax, *twin, settings)).steps[0] for twin in twins]
    one, other = (step.histories[names.TRAIN_COST.key] for step in found)
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("entry", ["pca_spere", {"standard": 1}, ["standard", "pca"], 3])
def test_a_scheme_that_does_not_exist_is_refused(entry):
    with pytest.raises(UserError):
        build("optimizer", options("optimizer", "preconditioned") | {"scheme": entry})
